//! A thousand watchers over a hundred trees that crash: each sees exactly what it asked for, once and in order, even if
//! others stall, leave or return.

use std::sync::Arc;
use std::time::Duration;

use spinney::bus::{Overflow, Watch, WatchFault, WatchItem};
use spinney::{Shutdown, Tree};
use spinney_journal::{Journal, pages};
use spinney_kernel::context::Trace;
use spinney_kernel::primitives::{Seq, TreeId};
use spinney_kernel::world::TreeState;
use spinney_testkit::TestHome;
use tokio::sync::watch;

use crate::name;

const TREES: usize = 100;
const WATCHERS: usize = 10;
const CRASHES: u64 = 6;

const SCRIPT: &str = "
rules:
  - when: { agent: root, turn: 1 }
    think_ms: 10
    call:
      - { tool: spawn_agent, args: { agent: a, goal: Look left., id: a } }
      - { tool: spawn_agent, args: { agent: b, goal: Look right., id: b } }
  - when: { agent: root }
    say: Both have looked.
  - when: { turn: 4 }
    say: I have looked.
  - think_ms: 10
    call: [ { tool: look } ]
tools: { look: { repeatable: true, think_ms: 7, say: something } }
";

/// A reproducible random generator.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn a_watch(dice: &mut Dice) -> Watch {
    let agent = [None, None, Some("a"), Some("b"), Some("root")][dice.below(5) as usize].map(name);
    let topic =
        [None, None, Some("agent"), Some("tool.call"), Some("model")][dice.below(5) as usize].map(name);
    let overflow = match dice.below(3) {
        0 => Overflow::Disconnect,
        1 => Overflow::Wait(Duration::from_millis(3)),
        _ => Overflow::DropDeltas,
    };
    let deltas = dice.below(2) == 0;
    Watch { agent, topic, deltas, overflow, room: Some(1 + dice.below(20) as usize), ..Watch::default() }
}

/// Watches a tree through all its processes, and returns what it saw.
async fn follow(mut lives: watch::Receiver<Tree>, watch: Watch, mut dice: Dice) -> Vec<u64> {
    let mut seen: Vec<u64> = Vec::new();
    loop {
        let tree = lives.borrow_and_update().clone();
        let after = Seq(seen.last().copied().unwrap_or(0));
        let mut watcher = tree.watch(Watch { after, ..watch.clone() });
        // Some leave early, and some stall.
        let patience = dice.below(30);
        let mut taken = 0;
        let is_over = loop {
            match watcher.next().await {
                Some(Ok(WatchItem::Event(traced))) => seen.push(traced.recorded.seq.0),
                Some(Ok(WatchItem::Delta(_) | WatchItem::Missed(_))) => {}
                Some(Err(WatchFault::TooSlow { .. })) => break false,
                Some(Err(WatchFault::Journal(fault))) => panic!("{fault}"),
                None => break matches!(tree.status().state, TreeState::Ended(_)),
            }
            taken += 1;
            if dice.below(10) == 0 {
                tokio::time::sleep(Duration::from_millis(dice.below(40))).await;
            }
            if taken > patience {
                break false;
            }
        };
        drop(watcher);
        if is_over {
            return seen;
        }
        if tree.status().stopped.is_some()
            && !lives.has_changed().unwrap_or(false)
            && lives.changed().await.is_err()
        {
            panic!("no next life");
        }
        tokio::time::sleep(Duration::from_millis(dice.below(20))).await;
    }
}

/// What a watcher of an ended tree must have seen.
fn expected(journal: &dyn Journal, tree: TreeId, watch: &Watch) -> Vec<u64> {
    let mut trace = Trace::default();
    let mut expected = Vec::new();
    for entry in pages(journal, tree, Seq(0))
        .blocking()
        .flat_map(|page| page.unwrap_or_else(|fault| panic!("{fault}")))
    {
        for recorded in spinney::bus::recorded_events(entry) {
            let context = trace.take(recorded.at, &recorded.event);
            let agent = watch.agent.is_none() || watch.agent == context.agent;
            if agent && watch.topic.as_ref().is_none_or(|topic| topic.covers(&context.topic)) {
                expected.push(recorded.seq.0);
            }
        }
    }
    expected
}

#[tokio::test(start_paused = true)]
async fn o16_l36_a_thousand_watchers_see_what_they_asked_for_through_crashes() {
    let stage = TestHome::new(SCRIPT);
    let mut home = stage.home();
    let mut lives = Vec::new();
    for _ in 0..TREES {
        let tree = stage.start(&home, "root $9.00 turns=9 / a later turns=9 / b later turns=9").await;
        lives.push(watch::Sender::new(tree));
    }
    let mut dice = Dice(1);
    let mut watchers = Vec::new();
    for (number, life) in lives.iter().enumerate() {
        for other in 0..WATCHERS {
            let watch = a_watch(&mut dice);
            let own = Dice((number * WATCHERS + other) as u64);
            watchers.push((
                life.borrow().id(),
                watch.clone(),
                tokio::spawn(follow(life.subscribe(), watch, own)),
            ));
        }
    }
    for _ in 0..CRASHES {
        tokio::time::sleep(Duration::from_millis(3 + dice.below(15))).await;
        home.shutdown(Shutdown::Kill).await;
        home = stage.home();
        for (tree, resumed) in home.recover().await.unwrap() {
            let resumed = resumed.unwrap_or_else(|error| panic!("{error}"));
            let life = lives.iter().find(|life| life.borrow().id() == tree).unwrap();
            life.send_replace(resumed);
        }
    }
    let journal = Arc::clone(stage.journal());
    let mut all = 0;
    for (tree, watch, watcher) in watchers {
        let seen = watcher.await.unwrap();
        assert_eq!(seen, expected(journal.as_ref(), tree, &watch), "{watch:?}");
        all += seen.len();
    }
    assert!(all > 20_000, "{all}");
    for life in &lives {
        assert_eq!(life.borrow().watchers(), (0, 0));
    }
}
