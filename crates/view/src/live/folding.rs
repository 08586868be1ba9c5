//! Which agents of a large tree are shown: the most important ones with everyone above them. The others are counted.

use std::collections::{BTreeMap, BTreeSet};

use spinney_kernel::world::AgentIx;

use super::activity::AgentMark;
use super::state::LiveTree;

/// One line of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeLine {
    /// An agent.
    Agent {
        /// The agent.
        ix: AgentIx,
        /// For each level from below the root on: whether more follows there.
        rails: Vec<bool>,
    },
    /// Agents below the one above that are not shown.
    Hidden {
        /// As of an agent.
        rails: Vec<bool>,
        /// The number of them.
        count: usize,
        /// How many of each kind.
        by_mark: BTreeMap<AgentMark, usize>,
    },
}

/// The lines of the tree, at most so many.
#[must_use]
pub fn lines_within(tree: &LiveTree, lines_max: usize) -> Vec<TreeLine> {
    let all: Vec<AgentIx> = tree.agents.keys().copied().collect();
    if all.len() <= lines_max {
        return laid_out(tree, &all.into_iter().collect());
    }
    let mut ranked: Vec<(AgentMark, u64, AgentIx)> =
        all.iter().map(|ix| (tree.mark(*ix), u64::MAX - tree.agents[ix].changed.0, *ix)).collect();
    ranked.sort_unstable();
    // As many of them as fit: each may bring others above it, and lines that count the rest.
    let (mut fits, mut too_many) = (0, lines_max + 1);
    let mut best = BTreeSet::new();
    while fits + 1 < too_many {
        let tried = fits.midpoint(too_many);
        let shown = with_ancestors(tree, ranked.iter().take(tried).map(|(_, _, ix)| *ix));
        if lines_of(tree, &shown) <= lines_max {
            (fits, best) = (tried, shown);
        } else {
            too_many = tried;
        }
    }
    laid_out(tree, &best)
}

/// How many lines these agents take with those that count the others, without looking at each of the others.
fn lines_of(tree: &LiveTree, shown: &BTreeSet<AgentIx>) -> usize {
    let mut seen = BTreeMap::<AgentIx, usize>::new();
    for parent in shown.iter().filter_map(|ix| tree.agents.get(ix)?.parent) {
        *seen.entry(parent).or_default() += 1;
    }
    let hides_some = |ix: &&AgentIx| {
        let children = tree.agents.get(*ix).map_or(0, |note| note.children.len());
        children > seen.get(*ix).copied().unwrap_or(0)
    };
    shown.len() + shown.iter().filter(hides_some).count()
}

fn with_ancestors(tree: &LiveTree, agents: impl Iterator<Item = AgentIx>) -> BTreeSet<AgentIx> {
    let mut shown = BTreeSet::new();
    for ix in agents {
        let mut next = Some(ix);
        while let Some(ix) = next.filter(|ix| shown.insert(*ix)) {
            next = tree.agents.get(&ix).and_then(|note| note.parent);
        }
    }
    shown
}

fn laid_out(tree: &LiveTree, shown: &BTreeSet<AgentIx>) -> Vec<TreeLine> {
    let mut places = Vec::new();
    let Some(root) = tree.world().agents().root().filter(|root| shown.contains(root)) else { return places };
    let mut stack = vec![Entry::Agent(root, Vec::new())];
    while let Some(entry) = stack.pop() {
        let (ix, rails) = match entry {
            Entry::Agent(ix, rails) => (ix, rails),
            Entry::Hidden(children, rails) => {
                let by_mark = marks_below(tree, children);
                places.push(TreeLine::Hidden { rails, count: by_mark.values().sum(), by_mark });
                continue;
            }
        };
        let children = tree.agents.get(&ix).map_or(&[][..], |note| &note.children);
        let (seen, hidden): (Vec<AgentIx>, Vec<AgentIx>) = children.iter().partition(|ix| shown.contains(ix));
        let below = |more: bool| [rails.as_slice(), &[more]].concat();
        if !hidden.is_empty() {
            stack.push(Entry::Hidden(hidden, below(false)));
        }
        let last = seen.len().saturating_sub(1);
        let ends = seen.len() < children.len();
        for (at, child) in seen.into_iter().enumerate().rev() {
            stack.push(Entry::Agent(child, below(at < last || ends)));
        }
        places.push(TreeLine::Agent { ix, rails });
    }
    places
}

enum Entry {
    Agent(AgentIx, Vec<bool>),
    Hidden(Vec<AgentIx>, Vec<bool>),
}

/// How many agents of each kind are in these subtrees.
fn marks_below(tree: &LiveTree, mut left: Vec<AgentIx>) -> BTreeMap<AgentMark, usize> {
    let mut marks = BTreeMap::new();
    while let Some(ix) = left.pop() {
        *marks.entry(tree.mark(ix)).or_default() += 1;
        left.extend(tree.agents.get(&ix).map_or(&[][..], |note| &note.children));
    }
    marks
}
