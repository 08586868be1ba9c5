//! The whole tree at one moment: for people, for programs and for Graphviz.

use serde_json::{Value, json};
use spinney_kernel::budget::{Resource, usd};
use spinney_kernel::words::{AgentId, Time};
use spinney_view::live::{LiveTree, lines_within};
use spinney_view::spent::Spent;

use super::doing::doing;
use super::view::{Columns, DOING_UNBOUND, WIDTH_UNBOUND, budget, head, line, living, presumed, steps};
use crate::terminal::money::MoneyColumn;
use crate::terminal::out::inert;
use crate::terminal::paint::{Ink, Row, bar};

const BAR_WIDTH: usize = 8;

/// The head and every agent, in lines of at most this width; whole without one.
pub(crate) fn tree_lines(tree: &LiveTree, width: Option<usize>, now: Time) -> Vec<Row> {
    // A tree that nobody watches is shown as it was left.
    let now = if tree.world().state().is_over() { tree.last } else { now };
    let mut lines = vec![head(tree, now), budget(tree, width.unwrap_or(WIDTH_UNBOUND))];
    lines.extend(presumed(tree));
    lines.extend(steps(tree));
    lines.push(Row::new());
    let places = lines_within(tree, usize::MAX);
    // Where everything fits, it is the same with and without a terminal.
    let unbound = Columns::unbound(tree, &places, now);
    let columns = width.filter(|width| unbound.width() > *width).map_or(unbound, Columns::of);
    lines.extend(places.iter().map(|place| line(tree, place, columns, now)));
    let fit = |line: Row| if let Some(width) = width { line.cut(width) } else { line };
    lines.into_iter().map(fit).collect()
}

/// Every agent as an object, in spawn order.
pub(crate) fn json_lines(tree: &LiveTree) -> Vec<Value> {
    let agents = tree.world().agents();
    let lines = tree.agents.iter().map(|(ix, note)| {
        let view = tree.world().view(*ix);
        let path: Vec<String> = agents.path(*ix).iter().map(ToString::to_string).collect();
        json!({
            "agent": view.agent,
            "path": path.join("/"),
            "parent": view.parent,
            "role": view.role,
            "depth": view.depth,
            "state": view.status.to_string(),
            "goal": note.goal,
            "step": note.step,
            "spent": view.spent,
            "presumed": view.presumed,
            "held": view.held,
            "limit": view.limit,
            "refusals": note.refusals,
            "failure": note.failure,
        })
    });
    lines.collect()
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

/// A tree in a list of several.
pub(crate) struct TreeRow {
    pub(crate) living: usize,
    pub(crate) agents: usize,
    pub(crate) spent: Spent,
    pub(crate) cost_nanos_held: u64,
    pub(crate) cost_nanos_max: Option<u64>,
    /// Its most important agent, and what it does.
    pub(crate) doing: Option<(AgentId, Row)>,
}

pub(crate) fn tree_row(tree: &LiveTree, now: Time) -> TreeRow {
    let agents = tree.world().agents();
    let root = agents.root().map(|root| tree.world().view(root));
    let limit = root.as_ref().and_then(|root| root.limit);
    let (spent, held) = root.map(|root| (Spent::from_view(&root), root.held)).unwrap_or_default();
    let first =
        tree.agents.keys().copied().min_by_key(|ix| (tree.mark(*ix), u64::MAX - tree.agents[ix].changed.0));
    let doing = first.map(|ix| (agents.id(ix).clone(), doing(tree, ix, now, DOING_UNBOUND)));
    TreeRow {
        living: living(tree),
        agents: tree.agents.len(),
        spent,
        cost_nanos_held: held.of(Resource::Cost),
        cost_nanos_max: limit.and_then(|limit| limit.of(Resource::Cost)),
        doing,
    }
}

impl TreeRow {
    /// How much of its ceiling is used, and the ceiling.
    pub(crate) fn bar(&self) -> Row {
        let Some(most) = self.cost_nanos_max else { return Row::new() };
        let spent = self.spent.of(Resource::Cost);
        let row = bar(spent, self.cost_nanos_held, most, BAR_WIDTH);
        row.with(Ink::Dim, &format!(" {}", usd(most)))
    }

    /// The part of its cost that is presumed, or else of the tokens; empty if nothing is.
    pub(crate) fn presumed(&self, money: MoneyColumn) -> String {
        match self.spent.presumed_first() {
            Some((Resource::Cost, nanos)) => money.show(nanos),
            Some((resource, amount)) => format!("{:#}", resource.amount(amount)),
            None => String::new(),
        }
    }
}
