//! What a person sees when a tree that was watched live is no longer run: the result, who spent what, what failed and
//! why, the files, and how to look closer.

use spinney_kernel::budget::{Resource, usd};
use spinney_kernel::words::grouped;
use spinney_kernel::world::AgentIx;

use super::state::LiveTree;
use crate::exit::Exit;
use crate::hint::about;
use crate::history::costs::{Costs, Sums};
use crate::home::ids::TreeInHome;
use crate::result::{self, Outcome};
use crate::terminal::Terminal;
use crate::terminal::out::{self, Unwritten};
use crate::terminal::paint::{Ink, Row, wrapped};
use crate::terminal::reflow::reflowed;

/// Agents with their own line.
const SPENDERS_MAX: usize = 8;
const FAILURES_MAX: usize = 8;
const LABEL_WIDTH: usize = 10;

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
    let failed = failures(tree);
    let mut more = Vec::new();
    if !failed.is_empty() {
        more.push(("trouble", failed.join("\n")));
    }
    if let Some(costs) = costs {
        more.push(("costs", spenders(costs).join("\n")));
    }
    let looks = ["tree", "costs", "events"].map(|verb| about(place.home, verb, place.tree, &[]));
    let ink = match outcome.exit() {
        Exit::Completed => Ink::Good,
        Exit::Failed | Exit::Halted => Ink::Bad,
        _ => Ink::Warn,
    };
    let mut lines = vec![Row::of(ink, &outcome.headline())];
    for (label, text) in outcome.blocks(more, &looks) {
        // A command is never broken: it is there to be copied.
        let is_command = matches!(label, "look" | "go on" | "give up" | "remedy" | "tree");
        let room = width.filter(|_| !is_command).map(|width| width.saturating_sub(LABEL_WIDTH).max(20));
        let text = out::inert(text.trim_end());
        let fitted = match room {
            None => text.lines().map(str::to_owned).collect(),
            // Somebody else broke its lines.
            Some(room) if label == result::label(outcome.exit()) => reflowed(&text, room),
            Some(room) => wrapped(&text, room),
        };
        for (at, line) in fitted.iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            let row = Row::of(Ink::Dim, &format!("  {label:<7} "));
            lines.push(row.with(if is_command { Ink::Name } else { Ink::Plain }, line));
        }
    }
    lines
}

/// The agents below the root that did not complete, each with its reason.
fn failures(tree: &LiveTree) -> Vec<String> {
    let root = tree.world().agents().root();
    let failed: Vec<(AgentIx, &String)> = tree
        .agents
        .iter()
        .filter(|(ix, _)| Some(**ix) != root)
        .filter_map(|(ix, note)| Some((*ix, note.failure.as_ref()?)))
        .collect();
    let mut lines: Vec<String> = failed
        .iter()
        .take(FAILURES_MAX)
        .map(|(ix, why)| format!("{}: {why}", tree.world().agents().id(*ix)))
        .collect();
    if failed.len() > FAILURES_MAX {
        lines.push(format!("and {} more", failed.len() - FAILURES_MAX));
    }
    lines
}

fn spenders(costs: &Costs) -> Vec<String> {
    let rows = costs.by_agent.rows();
    let shown: Vec<[String; 3]> = rows
        .iter()
        .take(SPENDERS_MAX)
        .map(|(name, Sums { spent, .. })| {
            [name.clone(), usd(spent.of(Resource::Cost)), grouped(spent.of(Resource::Tokens))]
        })
        .collect();
    let width = |at: usize| shown.iter().map(|cells| cells[at].len()).max().unwrap_or(0);
    let [names, costs, tokens] = [0, 1, 2].map(width);
    let line =
        |[name, cost, used]: &[String; 3]| format!("{name:<names$}  {cost:>costs$}  {used:>tokens$} tokens");
    let mut lines: Vec<String> = shown.iter().map(line).collect();
    if rows.len() > SPENDERS_MAX {
        lines.push(format!("and {} more agents", rows.len() - SPENDERS_MAX));
    }
    lines
}
