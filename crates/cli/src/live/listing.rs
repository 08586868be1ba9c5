//! The whole tree at one moment, for people and for Graphviz, and a tree in a list of several.

use spinney_kernel::budget::{Resource, usd};
use spinney_kernel::primitives::{AgentId, Time};
use spinney_terminal::out::inert;
use spinney_terminal::paint::{Ink, Row, bar};
use spinney_view::live::{LiveTree, TreeOverview, lines_within};
use spinney_view::spent::Spent;

use super::activity::doing;
use super::steps::steps;
use super::view::{Columns, DOING_UNBOUND, WIDTH_UNBOUND, budget, head, line, presumed};

const BAR_WIDTH: usize = 8;

/// The head and every agent, in lines of at most this width; whole without one.
pub(crate) fn tree_lines(tree: &LiveTree, width: Option<usize>, now: Time) -> Vec<Row> {
    // A tree without a process is shown as it was left.
    let now = if tree.world().state().is_over() { tree.last } else { now };
    let mut lines = vec![head(tree, now), budget(tree, width.unwrap_or(WIDTH_UNBOUND))];
    lines.extend(presumed(tree));
    lines.extend(steps(tree, usize::MAX));
    lines.push(Row::new());
    let places = lines_within(tree, usize::MAX);
    // Where everything fits, it is the same with and without a terminal.
    let unbound = Columns::unbound(tree, &places, now);
    let columns = width.filter(|width| unbound.width() > *width).map_or(unbound, Columns::new);
    lines.extend(places.iter().map(|place| line(tree, place, columns, now)));
    let fit = |line: Row| if let Some(width) = width { line.cut(width) } else { line };
    lines.into_iter().map(fit).collect()
}

/// Every agent as a node, and who spawned it as an edge.
pub(crate) fn dot_lines(tree: &LiveTree) -> Vec<String> {
    let agents = tree.world().agents();
    let mut lines = Vec::new();
    for (ix, note) in &tree.agents {
        let view = tree.world().view(*ix);
        let cost = Spent::from_view(&view).amount(Resource::Cost);
        let label = [view.agent.to_string(), view.role.to_string(), view.status.to_string(), cost];
        let label: Vec<String> = label.iter().map(|part| escaped(part)).collect();
        lines.push(format!("\"{}\" [label=\"{}\"];", escaped(view.agent.as_str()), label.join("\\n")));
        if let Some(parent) = note.parent {
            let [from, to] = [agents.id(parent), agents.id(*ix)].map(AgentId::as_str).map(escaped);
            lines.push(format!("\"{from}\" -> \"{to}\";"));
        }
    }
    lines
}

/// A text inside quotes of the language of Graphviz.
fn escaped(text: &str) -> String {
    inert(text).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ")
}

/// How much of its ceiling a tree in a list has used, and the ceiling.
pub(crate) fn overview_bar(overview: &TreeOverview) -> Row {
    let Some(most) = overview.cost_nanos_max else { return Row::new() };
    let row = bar(overview.spent.get(Resource::Cost), overview.cost_nanos_held, most, BAR_WIDTH);
    row.with(Ink::Dim, &format!(" {}", usd(most)))
}

/// What the most important agent of a tree does.
pub(crate) fn first_doing(tree: &LiveTree, overview: &TreeOverview, now: Time) -> Option<(AgentId, Row)> {
    let (ix, agent) = overview.first.as_ref()?;
    Some((agent.clone(), doing(tree, *ix, now, DOING_UNBOUND)))
}
