//! `spinney events`: shows every event of a tree, also while another process runs it. With `--follow` it continues
//! until the tree has ended, even if the processes that run it die.

use std::path::Path;

use anyhow::{Result, bail};
use spinney::bus::Tail;
use spinney::tree_file::nearest;
use spinney_journal::Journal;
use spinney_kernel::words::{Seq, Topic, TreeId};

use crate::events::screen::{Screen, Style, Wanted};
use crate::exit::Exit;
use crate::history::agents;
use crate::home::ids::find;
use crate::terminal::Terminal;
use crate::{args, home};

pub(super) async fn events(home: &Path, args: args::Events, terminal: Terminal) -> Result<Exit> {
    let journal = home::look(home)?;
    let head = find(home, &journal, args.tree.text())?;
    // A filter that nothing can match would wait for ever, or look like a tree in which nothing happened.
    if let Some(agent) = &args.agent {
        let known = agents::known(&journal, head.tree)?;
        if !known.contains(agent) {
            bail!(agents::unknown(agent, &known));
        }
    }
    if let Some(topic) = &args.topic {
        check_topic(&journal, head.tree, topic).await?;
    }
    let style = if args.json { Style::Json } else { Style::Log };
    let wanted = Wanted { agent: args.agent, topic: args.topic };
    let mut screen = Screen::new(head.tree, style).on(terminal).only(wanted).from(Seq(args.from));
    let mut tail = Tail::new(&journal, head.tree);
    while let Some(traced) = if args.follow { tail.wait_for_next().await? } else { tail.next().await? } {
        screen.show(&traced)?;
    }
    Ok(Exit::Completed)
}

/// The topics of a tree's own events. Messages may have others.
const TOPICS: [&str; 39] = [
    "agent.checkpoint",
    "agent.clock",
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
    "tree.branch",
    "tree.continue",
    "tree.graph",
    "tree.halt",
    "tree.node_end",
    "tree.node_start",
    "tree.start",
    "tree.suspend",
    "tree.unhalt",
];

/// Whether anything can be about this topic: the tree's own events, or a message so far.
async fn check_topic(journal: &dyn Journal, tree: TreeId, topic: &Topic) -> Result<()> {
    let is_own = TOPICS.iter().any(|own| own.parse().is_ok_and(|own: Topic| topic.covers(&own)));
    if is_own {
        return Ok(());
    }
    let mut tail = Tail::new(journal, tree);
    while let Some(traced) = tail.next().await? {
        if topic.covers(&traced.context.topic) {
            return Ok(());
        }
    }
    // One word stands for every topic that begins with it.
    let mut known: Vec<&str> = match topic.as_str().contains('.') {
        true => TOPICS.to_vec(),
        false => TOPICS.iter().filter_map(|own| own.split('.').next()).collect(),
    };
    known.dedup();
    bail!("no event of this tree has the topic `{topic}`: {}", nearest::help(topic.as_str(), known, "topics"))
}

#[cfg(test)]
mod tests {
    use spinney_kernel::context::Trace;
    use spinney_testkit::sim;

    use super::*;

    /// Messages of the simulator have topics of their own, which no tree's event begins with.
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
