//! Two agents at once, in a thousand orders: every event and every piece of streamed text says whose it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spinney::Tree;
use spinney::bus::{TracedEvent, Watch, WatchItem, Watcher};
use spinney_journal::Journal;
use spinney_kernel::primitives::{AgentId, Correlation, MessageKind};
use spinney_kernel::record::{Event, Outcome};
use spinney_store::{MemoryJournal, SqliteJournal};
use spinney_testkit::{TestHome, settled};

use crate::observed::name;

const TREE: &str = "root $9.00 turns=9 / a later turns=9 / b later turns=9";
/// How many orders must have been seen.
const ORDERS: usize = 1_000;
/// How many trees may be run for that.
const TREES_MAX: u64 = 2_000;

/// A random number, the same for the same state.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// A root with two children that look around, write to each other and answer, each in its own time. Everything that an
/// agent says begins with its name.
fn script(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut times = || {
        let (think, chunk) = (next(&mut state) % 8, next(&mut state) % 4);
        format!("think_ms: {think}\n    chunk_ms: {chunk}")
    };
    let mut rules = format!(
        "rules:
  - when: {{ agent: root, turn: 1 }}
    {}
    say: root sends both off
    call:
      - {{ tool: spawn_agent, args: {{ agent: a, goal: Look left., id: a }} }}
      - {{ tool: spawn_agent, args: {{ agent: b, goal: Look right., id: b }} }}
",
        times()
    );
    for (agent, other) in [("a", "b"), ("b", "a")] {
        rules += &format!(
            "  - when: {{ agent: {agent}, turn: 1 }}
    {}
    say: {agent} looks around and then looks again
    call: [ {{ tool: look_{agent} }} ]
  - when: {{ agent: {agent}, turn: 2 }}
    {}
    say: {agent} writes to {other}
    call: [ {{ tool: send_message, args: {{ to: {other}, text: from {agent} to {other}, type: note.{agent} }} }} ]
  - when: {{ agent: {agent} }}
    {}
    say: {agent} has seen it all
",
            times(),
            times(),
            times()
        );
    }
    let tools = ["a", "b"].map(|agent| {
        let think = next(&mut state) % 8;
        format!("  look_{agent}: {{ think_ms: {think}, say: seen by {agent} }}\n")
    });
    format!("{rules}  - {{ say: root is done }}\ntools:\n{}", tools.concat())
}

async fn all(mut watcher: Watcher) -> Vec<WatchItem> {
    let mut seen = Vec::new();
    while let Some(next) = watcher.next().await {
        seen.push(next.unwrap_or_else(|fault| panic!("{fault}")));
    }
    seen
}

fn events(seen: &[WatchItem]) -> Vec<Arc<TracedEvent>> {
    let event = |seen: &WatchItem| match seen {
        WatchItem::Event(traced) => Some(Arc::clone(traced)),
        WatchItem::Delta(_) | WatchItem::Missed(_) => None,
    };
    seen.iter().filter_map(event).collect()
}

/// Which agent an event is about, from the event alone: by its text, its own field, or the field of the call's first
/// event.
#[derive(Default)]
struct Owners {
    calls: BTreeMap<Correlation, AgentId>,
    parents: BTreeMap<AgentId, Option<AgentId>>,
}

impl Owners {
    /// Checks the tags of one event.
    fn check(&mut self, tree: &Tree, traced: &TracedEvent) {
        let (event, context) = (&traced.recorded.event, &traced.context);
        if let Event::AgentSpawned(spawned) = event {
            self.parents.insert(spawned.agent.clone(), spawned.parent.clone());
        }
        if let Event::CallAsked { call, agent, .. } = event {
            self.calls.insert(Correlation::of_call(*call), agent.clone());
        }
        let own = event.agent().cloned();
        let of_call = || self.calls.get(context.correlation.as_ref()?).cloned();
        let owner = own.or_else(of_call);
        if let Some(owner) = &owner {
            assert_eq!(context.agent.as_ref(), Some(owner), "{event:?}");
            assert_eq!(context.path().last(), Some(owner), "{event:?}");
            let thread = context.thread().map(ToString::to_string);
            assert_eq!(thread, Some(tree.id().to_string()), "{event:?}");
        }
        // Models begin with the name of their agent, and tools end with it.
        if let Event::CallEnded { outcome: Outcome::Done { body, .. }, .. } = event {
            let mut words = body.text.split(' ');
            let is_tool = body.text.starts_with("seen");
            let word = if is_tool { words.next_back() } else { words.next() };
            assert_eq!(owner, word.map(name), "{event:?}");
        }
        match event {
            Event::MessageSent { to, body, .. } => {
                assert_eq!(context.recipient.as_ref(), Some(to));
                let from = context.caller.as_ref().unwrap();
                assert_eq!(body.text, format!("from {from} to {to}"));
                assert_eq!(context.message.as_ref().unwrap().as_str(), format!("note.{from}"));
            }
            Event::AgentEnded { agent, .. } => {
                assert_eq!(context.recipient, self.parents[agent], "a result is for the parent");
                let kind = self.parents[agent].as_ref().map(|_| MessageKind::spawn_result());
                assert_eq!(context.message, kind);
            }
            Event::AgentSpawned(spawned) if spawned.parent.is_some() => {
                assert_eq!(context.recipient.as_ref(), Some(&spawned.agent), "a spawn is for the child");
                assert_eq!(context.message, Some(MessageKind::spawn_request()));
            }
            _ => assert_eq!((&context.recipient, &context.message), (&None, &None), "{event:?}"),
        }
        assert!(!context.topic.as_str().is_empty());
    }
}

/// P19: two agents run at once, in a thousand different orders. Every event and every piece of text that a watcher sees
/// has its agent, thread, recipient and kind, and never those of the other one; a journal on disk gives the same back,
/// and messages of old journals have defaults.
#[tokio::test(start_paused = true)]
async fn p19_nothing_is_mistagged_in_a_thousand_interleavings_of_two_agents() {
    old_messages_have_defaults();
    let folder = tempfile::tempdir().unwrap();
    let mut orders = BTreeSet::new();
    for seed in 1..=TREES_MAX {
        let is_stored = seed % 100 == 0;
        let journal: Arc<dyn Journal> = if is_stored {
            let home = folder.path().join(seed.to_string());
            std::fs::create_dir(&home).unwrap();
            Arc::new(SqliteJournal::open(&home, spinney_store::Access::Write).unwrap())
        } else {
            Arc::new(MemoryJournal::new())
        };
        let stage = TestHome::on(journal, &script(seed));
        let home = stage.home();
        let tree = stage.start(&home, TREE).await;
        let live = tokio::spawn(all(tree.watch(Watch { deltas: true, ..Watch::default() })));
        settled(&tree).await;
        let live = live.await.unwrap();
        let mut owners = Owners::default();
        let mut order = Vec::new();
        for seen in &live {
            match seen {
                WatchItem::Event(traced) => {
                    owners.check(&tree, traced);
                    order.push((traced.context.agent.clone(), traced.recorded.event.as_str()));
                }
                WatchItem::Delta(delta) => {
                    let agent = &owners.calls[&Correlation::of_call(delta.call)];
                    assert_eq!((delta.origin.agent(), delta.origin.tree), (agent, tree.id()));
                    let is_first = delta.offset == 0;
                    assert!(!is_first || delta.text.starts_with(agent.as_str()), "{agent}: {}", delta.text);
                    order.push((Some(agent.clone()), "delta"));
                }
                WatchItem::Missed(count) => panic!("{count} deltas were dropped"),
            }
        }
        assert_eq!(owners.parents.len(), 3);
        if is_stored {
            // What is read back from the journal has the same tags.
            assert_eq!(events(&all(tree.watch(Watch::default())).await), events(&live));
        }
        orders.insert(order);
        if orders.len() == ORDERS {
            return;
        }
    }
    panic!("{} different orders in {TREES_MAX} trees", orders.len());
}

/// A message of an old journal has none of the fields, and still has an author.
fn old_messages_have_defaults() {
    let old = r#"{"type":"message_sent","from":"person","to":"a","body":{"text":"hello"}}"#;
    let event: Event = serde_json::from_str(old).unwrap();
    let Event::MessageSent { to, envelope, .. } = &event else { panic!("{event:?}") };
    assert!(to.as_str() == "a" && envelope.is_plain());
    let again: Event = serde_json::from_str(&serde_json::to_string(&event).unwrap()).unwrap();
    assert_eq!(again, event);
}
