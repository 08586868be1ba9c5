//! The topics of events: those of a tree's own, and those that messages have.

use std::ops::ControlFlow;

use spinney::tree_file::nearest;
use spinney_journal::{Batch, Journal, JournalFault};
use spinney_kernel::context::Trace;
use spinney_kernel::primitives::{Topic, TreeId};

use crate::{TreeFold, fold};

/// The topics of a tree's own events. Messages may have others.
const TOPICS: [&str; 45] = [
    "agent.approval",
    "agent.checkpoint",
    "agent.clock",
    "agent.connection",
    "agent.ending",
    "agent.message",
    "agent.pause",
    "agent.question",
    "agent.redirect",
    "agent.repeats",
    "agent.result",
    "agent.spawn",
    "agent.unpause",
    "agent.wait",
    "agent.wrap_up",
    "budget.charge",
    "budget.raise",
    "context.clear",
    "context.cut",
    "context.restore",
    "context.share",
    "context.window",
    "context.write",
    "model.add",
    "model.breaker",
    "model.call",
    "model.rate",
    "model.summary",
    "thread.join",
    "thread.leave",
    "tool.answer",
    "tool.call",
    "tree.adjust",
    "tree.branch",
    "tree.continue",
    "tree.graph",
    "tree.halt",
    "tree.node_end",
    "tree.node_start",
    "tree.replan",
    "tree.seal",
    "tree.start",
    "tree.suspend",
    "tree.unhalt",
    "tree.unseal",
];

/// Why nothing is about a topic.
#[derive(Debug, thiserror::Error)]
pub enum TopicError {
    /// No event has it, and none of a tree's own can.
    #[error("no event of this tree has the topic `{topic}`: {meant}")]
    Unknown {
        /// The topic.
        topic: Topic,
        /// Suggestions.
        meant: String,
    },
    /// The tree cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalFault),
}

/// Checks that anything can be about this topic: the tree's own events, or a message so far.
///
/// # Errors
/// If nothing can, or the tree cannot be read.
pub async fn check(journal: &dyn Journal, tree: TreeId, topic: &Topic) -> Result<(), TopicError> {
    let is_own = TOPICS.iter().any(|own| own.parse().is_ok_and(|own: Topic| topic.covers(&own)));
    if is_own {
        return Ok(());
    }
    let mut search = TopicSearch { topic, trace: Trace::default(), is_found: false };
    fold(journal, tree, &mut search).await?;
    if search.is_found {
        return Ok(());
    }
    // One word stands for every topic that begins with it.
    let mut known: Vec<&str> = match topic.as_str().contains('.') {
        true => TOPICS.to_vec(),
        false => TOPICS.iter().filter_map(|own| own.split('.').next()).collect(),
    };
    known.dedup();
    let meant = nearest::help(topic.as_str(), known, "topics");
    Err(TopicError::Unknown { topic: topic.clone(), meant })
}

struct TopicSearch<'t> {
    topic: &'t Topic,
    trace: Trace,
    is_found: bool,
}

impl TreeFold for TopicSearch<'_> {
    fn take(&mut self, batch: &Batch) -> ControlFlow<()> {
        for event in &batch.events {
            if self.topic.covers(&self.trace.take(batch.input.now, event).topic) {
                self.is_found = true;
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use spinney_testkit::sim;

    use super::*;

    /// Messages of the simulator have their own topics, which no tree's event begins with.
    #[test]
    fn the_list_of_topics_has_every_topic_of_a_trees_own_events() {
        for seed in 0..200 {
            let mut trace = Trace::default();
            for batch in sim::batches(seed).unwrap() {
                for event in &batch.events {
                    let topic = trace.take(batch.input.now, event).topic;
                    let is_listed = TOPICS.contains(&topic.as_str());
                    assert!(is_listed || !topic.is_own(), "`{topic}` is missing");
                }
            }
        }
    }
}
