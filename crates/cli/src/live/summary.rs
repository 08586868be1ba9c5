//! What a person sees when a tree that was watched live is no longer run: the result, who spent what, what failed and
//! why, the files, and how to look closer.

use spinney_host::home::ids::TreeInHome;
use spinney_kernel::budget::Resource;
use spinney_kernel::primitives::grouped;
use spinney_terminal::Terminal;
use spinney_terminal::money::MoneyColumn;
use spinney_terminal::out::{self, Unwritten};
use spinney_terminal::paint::{Ink, Row, width_of, wrapped};
use spinney_terminal::reflow::reflowed;
use spinney_view::costs::{Costs, CostsBy};
use spinney_view::live::LiveTree;
use spinney_view::spent::Spent;

use crate::exit::Exit;
use crate::hint::about;
use crate::result::{self, LABEL_WIDTH, Outcome};

/// Agents with their own line.
const SPENDERS_MAX: usize = 8;
const FAILURES_MAX: usize = 8;

pub(crate) fn write_summary(
    outcome: &Outcome,
    tree: &LiveTree,
    costs: Option<&Costs>,
    place: TreeInHome<'_>,
    terminal: Terminal,
) -> Result<(), Unwritten> {
    summary(outcome, tree, costs, place, terminal.width).iter().try_for_each(|line| out::row(line, terminal))
}

pub(super) fn summary(
    outcome: &Outcome,
    tree: &LiveTree,
    costs: Option<&Costs>,
    place: TreeInHome<'_>,
    width: Option<usize>,
) -> Vec<Row> {
    // Beside the labels.
    let room = width.map(|width| width.saturating_sub(LABEL_WIDTH).max(20));
    let failed = failures(tree);
    let mut more = Vec::new();
    if !failed.is_empty() {
        more.push(("trouble", failed.join("\n")));
    }
    if let Some(costs) = costs {
        more.push(("costs", spenders(costs, room).join("\n")));
    }
    let looks = ["tree", "costs", "events"].map(|verb| about(place.home, verb, place.tree, &[]));
    let ink = match outcome.exit() {
        Exit::Completed => Ink::Good,
        Exit::Failed | Exit::Halted => Ink::Bad,
        _ => Ink::Warn,
    };
    let mut lines = vec![Row::inked(ink, &outcome.headline())];
    for (label, text) in outcome.blocks(more, &looks) {
        // A command is never broken: it is there to be copied.
        let is_command = matches!(label, "look" | "next" | "give up" | "remedy" | "tree");
        let room = room.filter(|_| !is_command);
        let text = out::inert(text.trim_end());
        let fitted = match room {
            None => text.lines().map(str::to_owned).collect(),
            // Its lines were broken by its author.
            Some(room) if label == result::label(outcome.exit()) => reflowed(&text, room),
            Some(room) => wrapped(&text, room),
        };
        for (at, line) in fitted.iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            let row = Row::inked(Ink::Dim, &format!("  {label:<7} "));
            lines.push(row.with(if is_command { Ink::Name } else { Ink::Plain }, line));
        }
    }
    lines
}

/// The agents below the root that did not complete, each with its reason.
fn failures(tree: &LiveTree) -> Vec<String> {
    let shown = tree.failures().take(FAILURES_MAX).map(|(agent, why)| format!("{agent}: {why}"));
    let more = tree.failures().count().saturating_sub(FAILURES_MAX);
    shown.chain((more > 0).then(|| format!("and {more} more"))).collect()
}

/// The agents that spent most, and how much of it is presumed: in words where there is room, or else marked.
fn spenders(costs: &Costs, room: Option<usize>) -> Vec<String> {
    let by_agent = costs.by(CostsBy::Agent);
    let rows = by_agent.rows();
    let shown: Vec<(&str, Spent)> =
        rows.iter().take(SPENDERS_MAX).map(|(name, sums)| (name.as_str(), sums.booked())).collect();
    let in_words = spender_lines(&shown, |spent| {
        let presumed = spent.presumed_first();
        let presumed =
            presumed.map(|(resource, amount)| format!("  ({:#} presumed)", resource.amount(amount)));
        Suffixes { end: presumed.unwrap_or_default(), ..Suffixes::default() }
    });
    let fits = |line: &String| room.is_none_or(|room| width_of(line) <= room);
    let (mut lines, footnote) = if in_words.iter().all(fits) {
        (in_words, None)
    } else {
        let marks = |spent: &Spent| Suffixes {
            cost: spent.mark(Resource::Cost),
            tokens: spent.mark(Resource::Tokens),
            end: String::new(),
        };
        (spender_lines(&shown, marks), costs.total.booked().footnote())
    };
    if rows.len() > SPENDERS_MAX {
        lines.push(format!("and {} more agents", rows.len() - SPENDERS_MAX));
    }
    lines.extend(footnote);
    lines
}

/// What follows the numbers of an agent, and its line.
#[derive(Default)]
struct Suffixes {
    cost: &'static str,
    tokens: &'static str,
    end: String,
}

fn spender_lines(shown: &[(&str, Spent)], suffixes: impl Fn(&Spent) -> Suffixes) -> Vec<String> {
    let money = MoneyColumn::exact(shown.iter().map(|(_, spent)| spent.get(Resource::Cost)));
    let cells: Vec<[String; 4]> = shown
        .iter()
        .map(|(name, spent)| {
            let Suffixes { cost, tokens, end } = suffixes(spent);
            let cost = money.show(spent.get(Resource::Cost)) + cost;
            [(*name).to_owned(), cost, grouped(spent.get(Resource::Tokens)) + tokens, end]
        })
        .collect();
    let width = |at: usize| cells.iter().map(|cells| cells[at].len()).max().unwrap_or(0);
    let [names, costs, tokens] = [0, 1, 2].map(width);
    let line = |[name, cost, used, end]: &[String; 4]| {
        format!("{name:<names$}  {cost:>costs$}  {used:>tokens$} tokens{end}")
    };
    cells.iter().map(line).collect()
}
