//! The whole tree at one moment: for people, for programs and for Graphviz.

use serde_json::{Value, json};
use spinney_kernel::budget::{Resource, usd};
use spinney_kernel::words::{AgentId, Time, grouped};

use super::folding::places;
use super::state::LiveTree;
use super::view::{Columns, budget, head, line, living, money, steps};
use crate::terminal::out::inert;
use crate::terminal::paint::{Ink, Row, bar};

const BAR_WIDTH: usize = 8;
const DOING_WIDTH: usize = 80;

/// The head and every agent.
pub(crate) fn tree_lines(tree: &LiveTree, width: usize, now: Time) -> Vec<Row> {
    // A tree that nobody watches is shown as it was left.
    let now = if tree.world.state().is_over() { tree.last } else { now };
    let mut lines = vec![head(tree, now), budget(tree, width)];
    lines.extend(steps(tree));
    lines.push(Row::new());
    let columns = Columns::of(width);
    lines.extend(places(tree, usize::MAX).iter().map(|place| line(tree, place, columns, now)));
    lines.into_iter().map(|line| line.cut(width)).collect()
}

/// Every agent as an object, in spawn order.
pub(crate) fn json_lines(tree: &LiveTree) -> Vec<Value> {
    let agents = tree.world.agents();
    let lines = tree.agents.iter().map(|(ix, note)| {
        let view = tree.world.view(*ix);
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
    let agents = tree.world.agents();
    let mut lines = Vec::new();
    for (ix, note) in &tree.agents {
        let view = tree.world.view(*ix);
        let cost = usd(view.spent.of(Resource::Cost));
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
    /// Living and all.
    pub(crate) agents: String,
    pub(crate) cost: String,
    /// How much of its ceiling is used.
    pub(crate) bar: Row,
    pub(crate) tokens: String,
    /// What its most important agent does.
    pub(crate) doing: Row,
}

pub(crate) fn tree_row(tree: &LiveTree, now: Time) -> TreeRow {
    let agents = tree.world.agents();
    let root = agents.root().map(|root| tree.world.view(root));
    let limit = root.as_ref().and_then(|root| root.limit);
    let (spent, held) = root.map(|root| (root.spent, root.held)).unwrap_or_default();
    let ceiling = limit.and_then(|limit| limit.of(Resource::Cost));
    let bar = ceiling.map(|ceiling| {
        let mut row = bar(spent.of(Resource::Cost), held.of(Resource::Cost), ceiling, BAR_WIDTH);
        row.push(Ink::Dim, &format!(" {}", money(ceiling)));
        row
    });
    let first =
        tree.agents.keys().copied().min_by_key(|ix| (tree.mark(*ix), u64::MAX - tree.agents[ix].changed.0));
    let doing = first.map(|ix| {
        let mut row = Row::of(Ink::Name, agents.id(ix).as_str()).with(Ink::Plain, " ");
        row.append(tree.doing(ix, now, DOING_WIDTH));
        row
    });
    TreeRow {
        agents: format!("{}/{}", living(tree), tree.agents.len()),
        cost: money(spent.of(Resource::Cost)),
        bar: bar.unwrap_or_default(),
        tokens: grouped(spent.of(Resource::Tokens)),
        doing: doing.unwrap_or_default(),
    }
}
