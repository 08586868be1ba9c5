//! The live view as lines: a pure function of what is known, the size of the terminal and the time.

use std::path::{Path, PathBuf};

use spinney_host::home::ids::TreeInHome;
use spinney_kernel::budget::{Resource, usd};
use spinney_kernel::primitives::{CallId, Millis, Time, TreeId, grouped};
use spinney_kernel::record::ClockKind;
use spinney_kernel::world::{AgentIx, Halt, TreeState, World};
use spinney_terminal::money::MoneyColumn;
use spinney_terminal::out::inert;
use spinney_terminal::paint::{Ink, Row, bar, shortened, tail, width_of};
use spinney_view::live::{
    AgentMark, LiveAccount, LiveNotice, LiveTree, NoticeUrgency, TreeLine, lines_within,
};
use spinney_view::remedy::SuggestedRaise;
use spinney_view::wording::short_id;

use super::activity::{doing, seconds, sign};
use super::steps::steps;
use crate::hint::{YOUR_ANSWER, about, raise};

/// Levels of a tree that are drawn; deeper ones are not indented further.
const RAILS_MAX: usize = 8;
const NOTICES_SHOWN: usize = 4;
const QUESTIONS_SHOWN: usize = 3;
/// Pipelines that agents run, besides the tree's own.
const NESTED_MAX: usize = 4;
/// Whatever an agent does is said in less.
pub(super) const DOING_UNBOUND: usize = 1_000;
/// Where nothing is shortened, amounts and bars are as wide as on a terminal of this width.
pub(super) const WIDTH_UNBOUND: usize = 160;
/// Below this many lines there is only the head and the tree.
const HEIGHT_FOR_NOTICES: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// The commands that the view suggests, made once: which home they must name depends on where this process runs.
#[derive(Clone, Debug)]
pub(crate) struct Commands {
    home: PathBuf,
    tree: TreeId,
    answer: String,
    /// Why the tree is halted, and the command that raises the ceiling.
    raise: Option<(Halt, String)>,
}

impl Commands {
    const NUMBER: &str = "NUMBER";

    pub(crate) fn new(home: &Path, tree: TreeId) -> Self {
        let answer = about(home, "answer", tree, &[Self::NUMBER, YOUR_ANSWER]);
        Self { home: home.to_owned(), tree, answer, raise: None }
    }

    /// Takes in whether the tree is halted now, before it is viewed.
    pub(crate) fn update(&mut self, world: &World) {
        let halt = world.halted();
        if self.raise.as_ref().map(|(halt, _)| halt) == halt {
            return;
        }
        let root = world.agents().root().map(|root| world.agents().id(root));
        let place = TreeInHome { home: &self.home, tree: self.tree };
        self.raise =
            halt.map(|halt| (halt.clone(), raise(place, root, &SuggestedRaise::all(halt.shortfalls()))));
    }

    fn answer(&self, number: &str) -> String {
        // The home may have any name, so the last one counts.
        match self.answer.rsplit_once(Self::NUMBER) {
            Some((before, after)) => format!("{before}{number}{after}"),
            None => self.answer.clone(),
        }
    }
}

/// Everything that is shown now, in at most `height` lines of at most `width` columns.
pub(crate) fn view(
    tree: &LiveTree,
    commands: &Commands,
    prompt: Option<&(CallId, String)>,
    mut size: Size,
    now: Time,
) -> Vec<Row> {
    let width = size.width;
    let prompt = prompt.filter(|_| size.height > 0);
    size.height -= usize::from(prompt.is_some());
    let mut lines = vec![head(tree, now), budget(tree, width)];
    lines.extend(presumed(tree));
    lines.extend(halt(commands, width));
    lines.extend(steps(tree, NESTED_MAX));
    let below = below(tree, commands, prompt.map(|(question, _)| *question), size);
    let room = size.height.saturating_sub(lines.len() + below.len() + 1).max(1);
    lines.push(Row::new());
    let columns = Columns::new(width);
    lines.extend(lines_within(tree, room).iter().map(|place| line(tree, place, columns, now)));
    lines.extend(below);
    lines.truncate(size.height);
    lines.extend(prompt.map(|(_, typed)| typed_line(typed, width)));
    lines.into_iter().map(|line| line.cut(width)).collect()
}

/// What a person is typing, as far as it fits, and where the next character goes.
fn typed_line(typed: &str, width: usize) -> Row {
    let typed = tail(&inert(typed), width.saturating_sub(3));
    Row::inked(Ink::Strong, "> ").with(Ink::Plain, &typed).with(Ink::Strong, "▏")
}

/// Why the tree is halted, and the command that lets it continue.
fn halt(commands: &Commands, width: usize) -> Vec<Row> {
    let Some((halt, raise)) = &commands.raise else { return Vec::new() };
    let why = Row::inked(Ink::Bad, &format!("■ everything waits: {}", halt.short.describe(&halt.account)));
    let mut lines = vec![why.cut(width)];
    if shows_command(raise, width) {
        lines.push(Row::inked(Ink::Name, &format!("  {raise}")));
    }
    lines
}

/// Whether the view has room for a command of a halt: half of one is worse than none.
pub(crate) fn shows_command(command: &str, width: usize) -> bool {
    width_of(command) + 2 <= width
}

/// The name, the state and the time.
pub(super) fn head(tree: &LiveTree, now: Time) -> Row {
    let state = tree.world().state();
    let ink = match state {
        TreeState::Running | TreeState::New => Ink::Good,
        TreeState::Waiting | TreeState::Paused | TreeState::Suspended => Ink::Warn,
        TreeState::Halted => Ink::Bad,
        TreeState::Ended(_) => Ink::Strong,
        TreeState::Moved | TreeState::Copied => Ink::Dim,
    };
    let until = if state.is_over() { tree.last } else { now.max(tree.last) };
    let mut head = Row::inked(Ink::Strong, &tree.name)
        .with(Ink::Dim, &format!(" · {} · ", short_id(tree.world().tree())))
        .with(ink, state.as_str())
        .with(Ink::Dim, &format!(" · {:#}", Millis(until.0.saturating_sub(tree.started.0))));
    let root = tree.world().agents().root();
    let clock = root.and_then(|root| tree.world().clock(root, ClockKind::Timeout));
    if let Some(clock) = clock.filter(|_| !state.is_over()) {
        let left = clock.left_at(now);
        let still = if clock.is_running() { "" } else { " (clock stopped)" };
        let ink = if left.saturating_mul(10) < clock.given_ms { Ink::Warn } else { Ink::Dim };
        head.push(ink, &format!(" · {} left{still}", seconds(left)));
    }
    let (living, all) = (tree.living(), tree.agents.len());
    head.push(Ink::Dim, &format!(" · {living}/{all} agents live"));
    head
}

/// What the whole tree has spent, with a bar for each ceiling.
pub(super) fn budget(tree: &LiveTree, width: usize) -> Row {
    let Some(account) = tree.root_account() else { return Row::new() };
    let money = money(tree);
    let bar_width = (width / 10).clamp(5, 16);
    let mut row = Row::new();
    for resource in [Resource::Cost, Resource::Tokens, Resource::Steps] {
        let limit = account.limit.and_then(|limit| limit.get(resource));
        let (spent, held) = (account.spent.get(resource), account.held.get(resource));
        if !row.text().is_empty() {
            row.push(Ink::Dim, "   ");
        }
        let shown = match resource {
            Resource::Cost => money.show(spent),
            Resource::Tokens | Resource::Steps | Resource::ToolCalls | Resource::Retries => grouped(spent),
        };
        row.push(Ink::Plain, &shown);
        row.push(Ink::Warn, account.spent.mark(resource));
        if let Some(limit) = limit {
            let shown = if resource == Resource::Cost { usd(limit) } else { grouped(limit) };
            row.push(Ink::Dim, &format!(" of {shown}"));
        }
        if resource != Resource::Cost {
            let unit = if resource == Resource::Tokens { " token" } else { " step" };
            row.push(Ink::Dim, unit);
            // The last number that was said.
            row.push(Ink::Dim, if limit.unwrap_or(spent) == 1 { "" } else { "s" });
        }
        if let Some(limit) = limit.filter(|_| resource != Resource::Steps) {
            row.push(Ink::Plain, " ");
            row.append(bar(spent, held, limit, bar_width));
        }
    }
    row
}

/// How much of what the whole tree has spent is presumed, if any. Lines with such a part are marked.
pub(super) fn presumed(tree: &LiveTree) -> Option<Row> {
    Some(Row::inked(Ink::Warn, &tree.root_account()?.spent.footnote()?))
}

/// Where the columns of an agent's line begin.
#[derive(Clone, Copy)]
pub(super) struct Columns {
    name: usize,
    doing: usize,
    /// What it spent, and its bar.
    cost: usize,
    bar: usize,
    /// Tokens with a bar, on wide terminals.
    tokens: Option<usize>,
}

impl Columns {
    /// As wide as these lines need them.
    pub(super) fn unbound(tree: &LiveTree, places: &[TreeLine], now: Time) -> Self {
        let agents = || {
            places.iter().filter_map(|place| match place {
                TreeLine::Agent { ix, rails } => Some((*ix, rails)),
                TreeLine::Hidden { .. } => None,
            })
        };
        let name = agents().map(|(ix, rails)| name(tree, ix, rails, usize::MAX).width()).max();
        let doing = agents().map(|(ix, _)| doing(tree, ix, now, DOING_UNBOUND).width()).max();
        let (name, doing) = (name.unwrap_or_default(), doing.unwrap_or_default());
        Self { name, doing, ..Self::new(WIDTH_UNBOUND) }
    }

    pub(super) fn new(width: usize) -> Self {
        let name = (width / 4).clamp(14, 36);
        let (cost, bar) = match width {
            0..70 => (9, 5),
            70..110 => (18, 8),
            _ => (20, 12),
        };
        let tokens = (width >= 140).then_some(20);
        // Before each amount are two columns, and one is between it and its bar.
        let rest = cost + bar + 3 + tokens.map_or(0, |tokens| tokens + bar + 3);
        Self { name, doing: width.saturating_sub(name + 1 + rest).max(8), cost, bar, tokens }
    }

    pub(super) fn width(self) -> usize {
        let Self { name, doing, cost, bar, tokens } = self;
        name + 1 + doing + cost + bar + 3 + tokens.map_or(0, |tokens| tokens + bar + 3)
    }
}

pub(super) fn line(tree: &LiveTree, place: &TreeLine, columns: Columns, now: Time) -> Row {
    match place {
        TreeLine::Agent { ix, rails } => agent_line(tree, *ix, rails, columns, now),
        TreeLine::Hidden { rails, count, by_mark } => {
            let marks = by_mark.iter().map(|(mark, count)| format!("{count} {}", mark.as_str()));
            let marks: Vec<String> = marks.collect();
            Row::inked(Ink::Dim, &drawn(rails))
                .with(Ink::Dim, &format!("… {count} more: {}", marks.join(", ")))
        }
    }
}

fn agent_line(tree: &LiveTree, ix: AgentIx, rails: &[bool], columns: Columns, now: Time) -> Row {
    let mut row = name(tree, ix, rails, columns.name).padded(columns.name + 1);
    row.append(doing(tree, ix, now, columns.doing));
    row = row.padded(columns.name + 1 + columns.doing);
    row.append(spending(&tree.account(ix), money(tree), columns));
    row
}

/// Where an agent is in the tree, how it is, its id and its role or step, in at most this many columns. How often it was
/// refused something is not cut.
fn name(tree: &LiveTree, ix: AgentIx, rails: &[bool], width: usize) -> Row {
    let agents = tree.world().agents();
    let mark = tree.mark(ix);
    let (sign, ink) = sign(mark);
    let (id, note) = (agents.id(ix), tree.agents.get(&ix));
    let role = agents.living(ix).map_or_else(
        || agents.ended(ix).map_or("", |ended| ended.role.as_str()),
        |agent| agent.terms.role.as_str(),
    );
    let mut row = Row::inked(Ink::Dim, &drawn(rails)).with(ink, sign).with(Ink::Plain, " ");
    let is_over = matches!(mark, AgentMark::Completed | AgentMark::Cancelled);
    row.push(if is_over { Ink::Dim } else { Ink::Name }, id.as_str());
    let more = note.and_then(|note| note.step.as_deref()).filter(|step| !id.as_str().starts_with(*step));
    let more = more.unwrap_or(if id.as_str().starts_with(role) { "" } else { role });
    if !more.is_empty() {
        row.push(Ink::Dim, &format!(" {more}"));
    }
    let refusals = note.map(|note| note.refusals).filter(|refusals| *refusals > 0);
    let refused = refusals.map_or_else(Row::new, |count| Row::inked(Ink::Warn, &format!(" !{count}")));
    row = row.cut(width.saturating_sub(refused.width()));
    row.append(refused);
    row
}

/// What an agent and everything below it spent of what they may.
fn spending(account: &LiveAccount, money: MoneyColumn, columns: Columns) -> Row {
    let mut row = Row::new();
    for (resource, width) in [(Resource::Cost, Some(columns.cost)), (Resource::Tokens, columns.tokens)] {
        let Some(width) = width else { continue };
        let limit = account.own_limit.and_then(|limit| limit.get(resource));
        let spent = account.spent.get(resource);
        let is_cost = resource == Resource::Cost;
        let alone = if is_cost { money.show(spent) } else { grouped(spent) } + account.spent.mark(resource);
        let most = |limit| if is_cost { usd(limit) } else { grouped(limit) };
        let both = limit.map(|limit| format!("{alone} of {}", most(limit)));
        let text = both.filter(|both| width_of(both) <= width).unwrap_or(alone);
        let text = shortened(&text, width);
        row.push(Ink::Plain, &" ".repeat((width + 2).saturating_sub(width_of(&text))));
        row.push(if account.is_over { Ink::Dim } else { Ink::Plain }, &text);
        row.push(Ink::Plain, " ");
        match limit {
            Some(limit) => row.append(bar(spent, account.held.get(resource), limit, columns.bar)),
            None => row.push(Ink::Plain, &" ".repeat(columns.bar)),
        }
    }
    row
}

/// How the amounts of a tree are shown. The root has the largest.
pub(super) fn money(tree: &LiveTree) -> MoneyColumn {
    MoneyColumn::rounded(tree.root_account().map_or(0, |root| root.spent.get(Resource::Cost)))
}

/// The lines that lead to an agent.
fn drawn(rails: &[bool]) -> String {
    let from = rails.len().saturating_sub(RAILS_MAX);
    let rails = &rails[from..];
    let mut drawn = String::new();
    for (at, more) in rails.iter().enumerate() {
        drawn.push_str(match (at + 1 == rails.len(), more) {
            (true, true) => "├─",
            (true, false) => "└─",
            (false, true) => "│ ",
            (false, false) => "  ",
        });
    }
    drawn
}

/// Open questions and the newest notices.
fn below(tree: &LiveTree, commands: &Commands, asked_here: Option<CallId>, size: Size) -> Vec<Row> {
    let mut lines = Vec::new();
    let mut questions = tree.questions.iter();
    for (call, (agent, text)) in questions.by_ref().take(QUESTIONS_SHOWN) {
        let number = call.0.to_string();
        lines.push(
            Row::inked(Ink::Warn, "? ")
                .with(Ink::Name, agent.as_str())
                .with(Ink::Plain, &format!(" asks: {text}"))
                .cut(size.width),
        );
        let answer = Row::inked(Ink::Dim, &format!("  {}", commands.answer(&number)));
        // Half a command is worse than none.
        if answer.width() <= size.width && Some(*call) != asked_here {
            lines.push(answer);
        }
    }
    match questions.count() {
        0 => {}
        more => lines.push(Row::inked(Ink::Dim, &format!("  and {more} more questions"))),
    }
    if size.height >= HEIGHT_FOR_NOTICES {
        let from = tree.notices.len().saturating_sub(NOTICES_SHOWN);
        lines.extend(tree.notices.iter().skip(from).map(|notice| notice_line(tree, notice)));
    }
    if !lines.is_empty() {
        lines.insert(0, Row::new());
    }
    lines
}

fn notice_line(tree: &LiveTree, LiveNotice { at, who, text, urgency, count }: &LiveNotice) -> Row {
    let ink = match urgency {
        NoticeUrgency::Failure => Ink::Bad,
        NoticeUrgency::Warning => Ink::Warn,
        NoticeUrgency::Information => Ink::Plain,
    };
    let since = Millis(at.0.saturating_sub(tree.started.0));
    let mut row = Row::inked(Ink::Dim, &format!("{since:>#7} "));
    if let Some(who) = who {
        row.push(Ink::Name, &format!("{who} "));
    }
    if *count > 1 {
        row.push(Ink::Dim, &format!("(and {} before) ", count - 1));
    }
    row.with(ink, text)
}
