//! The trace: the agent, cause and order of each event.

use std::fmt::Write;

use spinney_kernel::context::{EventContext, Trace};
use spinney_kernel::primitives::AgentId;
use spinney_kernel::record::Event;
use spinney_testkit::Scenario;

fn traced(play: &Scenario) -> Vec<(Event, EventContext)> {
    let mut trace = Trace::default();
    let all =
        play.batches().iter().flat_map(|batch| batch.events.iter().map(|event| (batch.input.now, event)));
    all.map(|(now, event)| (event.clone(), trace.take(now, event))).collect()
}

fn recorded(play: &Scenario) -> String {
    let mut text = String::new();
    for (event, context) in traced(play) {
        let path: Vec<&str> = context.path().iter().map(AgentId::as_str).collect();
        let or_none = |word: Option<&str>| word.unwrap_or("-").to_owned();
        let caller = or_none(context.caller.as_ref().map(AgentId::as_str));
        let to = or_none(context.recipient.as_ref().map(AgentId::as_str));
        let of = or_none(context.correlation.as_ref().map(|of| of.as_str()));
        let since = context.since.map_or("-".to_owned(), |since| since.0.to_string());
        let end = if context.is_end { " end" } else { "" };
        let line = format!(
            "{} {}: {} by {caller} for {to} of {of} since {since}{end}",
            event.as_str(),
            context.topic,
            path.join("/")
        );
        writeln!(text, "{line}").unwrap_or_default();
    }
    text
}

/// O1, the local part: over four levels every event has its agent, its cause, its start, and its order.
#[test]
fn o1_every_event_of_four_hops_says_who_caused_it_and_since_when() {
    let mut play = Scenario::grow("root $9.00 / a later / b later / c later");
    play.run("spawn root a\nspawn a b\nspawn b c\ncall c $0.10\ndone #1 $0.05\nsend b news\nfinish c\ntool b read\ncancel root");
    insta::assert_snapshot!(recorded(&play), @"
    tree_started tree.start:  by - for - of - since -
    agent_spawned agent.spawn: root by - for - of root since 1000
    agent_spawned agent.spawn: root/a by root for a of a since 1000
    agent_spawned agent.spawn: root/a/b by a for b of b since 1000
    agent_spawned agent.spawn: root/a/b/c by b for c of c since 1000
    call_asked model.call: root/a/b/c by b for - of call-1 since 1000
    call_started model.call: root/a/b/c by b for - of call-1 since 1000
    call_ended model.call: root/a/b/c by b for - of call-1 since 1000 end
    message_sent agent.message: root/a/b by - for b of - since -
    agent_ended agent.result: root/a/b/c by b for b of c since 1000 end
    call_asked tool.call: root/a/b by a for - of call-2 since 1000
    call_started tool.call: root/a/b by a for - of call-2 since 1000
    agent_ending agent.ending: root by - for - of - since 1000
    agent_ending agent.ending: root/a by root for - of - since 1000
    agent_ending agent.ending: root/a/b by a for - of - since 1000
    ");
}

/// L19: everything that belongs together has one thread: the given one, or one that was generated once.
#[test]
fn l19_every_event_of_an_agent_carries_the_thread_of_its_tree() {
    let mut play = Scenario::grow("root $9.00 / a later / b later");
    play.run("spawn root a\nspawn a b\ncall b $0.10\ndone #1 $0.05\nfinish b\nfinish a\nfinish root");
    let all = traced(&play);
    let tree = play.world().tree().to_string();
    let mut seen = 0;
    for (event, context) in all.iter().filter(|(_, context)| context.agent.is_some()) {
        assert_eq!(context.thread().map(|thread| thread.as_str()), Some(tree.as_str()), "{event:?}");
        seen += 1;
    }
    assert!(seen >= 9, "{seen}");
}

#[test]
fn the_word_of_an_event_is_the_one_in_the_journal() {
    for event in spinney_testkit::conformance::batches().iter().flat_map(|batch| &batch.events) {
        let stored = serde_json::to_value(event).unwrap();
        assert_eq!(stored["type"], event.as_str());
    }
}

#[test]
fn a_topic_covers_what_lies_below_it() {
    let topic = |text: &str| text.parse::<spinney_kernel::primitives::Topic>().unwrap();
    assert!(topic("agent").covers(&topic("agent")));
    assert!(topic("agent").covers(&topic("agent.spawn")));
    assert!(!topic("agent").covers(&topic("agents.spawn")));
    assert!(!topic("agent.spawn").covers(&topic("agent")));
}
