//! Watching: every watcher sees what it asked for, once and in order, and a slow one does not affect others.

use std::sync::Arc;
use std::time::Duration;

use spinney::Tree;
use spinney::bus::{Note, Overflow, TracedEvent, Watch, WatchFault, WatchItem, Watcher, reply};
use spinney::clock::{Clock, SystemClock};
use spinney::tree::RequestError;
use spinney::tree::{Quorum, ReplyError};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, AgentId, Correlation, Envelope, Seq, Topic};
use spinney_kernel::record::{Event, ExitKind};
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, definition, recorded, settled};

use crate::name;

/// A root that spawns two children, each of which calls `snapshot` twice.
const SCRIPT: &str = "
rules:
  - when: { agent: root, turn: 1 }
    think_ms: 10
    say: Off you go.
    call:
      - { tool: spawn_agent, args: { agent: a, goal: Look left., id: a } }
      - { tool: spawn_agent, args: { agent: b, goal: Look right., id: b } }
  - when: { agent: root }
    think_ms: 10
    say: Both have looked.
  - when: { turn: 3 }
    think_ms: 10
    say: I have looked twice now.
  - think_ms: 10
    say: Looking.
    call: [ { tool: look } ]
tools: { look: { say: something } }
";
const TREE: &str = "root $9.00 turns=9 / a later turns=9 / b later turns=9";

/// A root that waits for a person, so a tree lives as long as a test needs it.
pub(crate) const WAITING: &str = "
rules:
  - when: { turn: 1 }
    say: Hm.
    call: [ { tool: ask_human, args: { question: Which? } } ]
  - say: Thank you.
";

fn to(topic: &str, text: &str) -> Note {
    let envelope = Envelope { topic: Some(name(topic)), ..Envelope::default() };
    Note { to: None, envelope, text: text.to_owned() }
}

async fn all(mut watcher: Watcher) -> Vec<WatchItem> {
    let mut seen = Vec::new();
    while let Some(next) = watcher.next().await {
        seen.push(next.unwrap_or_else(|fault| panic!("{fault}")));
    }
    seen
}

fn traced_events(seen: &[WatchItem]) -> Vec<Arc<TracedEvent>> {
    seen.iter()
        .filter_map(|seen| if let WatchItem::Event(traced) = seen { Some(Arc::clone(traced)) } else { None })
        .collect()
}

fn seqs(traced_events: &[Arc<TracedEvent>]) -> Vec<u64> {
    traced_events.iter().map(|traced| traced.recorded.seq.0).collect()
}

/// O16: from any event on, whether the tree runs or has ended, a watcher sees exactly the rest.
#[tokio::test(start_paused = true)]
async fn o16_a_watcher_that_comes_back_sees_exactly_what_it_missed() {
    let stage = TestHome::new(SCRIPT);
    let home = stage.home();
    let tree = stage.start(&home, TREE).await;
    let first = tokio::spawn(all(tree.watch(Watch::default())));
    settled(&tree).await;
    let whole: Vec<u64> = recorded(&tree).await.iter().map(|recorded| recorded.seq.0).collect();
    assert_eq!(seqs(&traced_events(&first.await.unwrap())), whole);
    for after in 0..=whole.len() as u64 {
        let watch = Watch { after: Seq(after), ..Watch::default() };
        assert_eq!(seqs(&traced_events(&all(tree.watch(watch)).await)), whole[after as usize..]);
    }
}

/// A watcher sees what it asked for and nothing else, by agent, topic and type.
#[tokio::test(start_paused = true)]
async fn a_watcher_sees_only_what_it_asked_for() {
    let stage = TestHome::new(SCRIPT);
    let home = stage.home();
    let tree = stage.start(&home, TREE).await;
    let watches = [
        Watch { agent: Some(name("a")), ..Watch::default() },
        Watch { topic: Some(name("agent.spawn")), ..Watch::default() },
        Watch { topic: Some(name("tool")), ..Watch::default() },
        Watch { kind: Some("call_ended".to_owned()), ..Watch::default() },
        Watch { agent: Some(name("b")), topic: Some(name("model")), ..Watch::default() },
    ];
    let live: Vec<_> = watches.iter().map(|watch| tokio::spawn(all(tree.watch(watch.clone())))).collect();
    settled(&tree).await;
    let everything = traced_events(&all(tree.watch(Watch::default())).await);
    let expected = |wanted: &dyn Fn(&TracedEvent) -> bool| -> Vec<u64> {
        everything.iter().filter(|traced| wanted(traced)).map(|traced| traced.recorded.seq.0).collect()
    };
    let wanted: [&dyn Fn(&TracedEvent) -> bool; 5] = [
        &|traced| traced.context.agent == Some(name("a")),
        &|traced| traced.recorded.event.as_str() == "agent_spawned",
        &|traced| traced.context.topic.as_str().starts_with("tool."),
        &|traced| traced.recorded.event.as_str() == "call_ended",
        &|traced| traced.context.agent == Some(name("b")) && traced.context.topic.as_str() == "model.call",
    ];
    for ((live, watch), wanted) in live.into_iter().zip(watches).zip(wanted) {
        let expected = expected(wanted);
        assert!(!expected.is_empty(), "{watch:?}");
        assert_eq!(seqs(&traced_events(&live.await.unwrap())), expected, "{watch:?}");
        assert_eq!(seqs(&traced_events(&all(tree.watch(watch.clone())).await)), expected, "{watch:?}");
    }
}

/// A watcher sees each spawn as a message to the child and its end as one back, with the same
/// correlation; the root has neither. Waiting for the correlation finds the result.
#[tokio::test(start_paused = true)]
async fn a_spawn_and_its_result_are_messages_with_one_correlation() {
    let stage = TestHome::new(SCRIPT);
    let home = stage.home();
    let tree = stage.start(&home, TREE).await;
    settled(&tree).await;
    let of_b = Correlation::of_agent(&name("b"));
    let found = tree.wait_for(name("agent.result"), &of_b, Seq(0), Duration::from_secs(9)).await.unwrap();
    assert_eq!(found.context.message, Some(name("spawn_result")));
    let seen = traced_events(&all(tree.watch(Watch::default())).await);
    let messages: Vec<String> = seen
        .iter()
        .filter_map(|traced| {
            let context = &traced.context;
            let kind = context.message.as_ref()?;
            let to = context.recipient.as_ref().unwrap();
            let of = context.correlation.as_ref().unwrap();
            Some(format!("{} {kind} {} to {to} of {of}", context.topic, traced.recorded.event.as_str()))
        })
        .collect();
    insta::assert_snapshot!(messages.join("\n"), @"
    agent.spawn spawn_request agent_spawned to a of a
    agent.spawn spawn_request agent_spawned to b of b
    agent.result spawn_result agent_ended to root of a
    agent.result spawn_result agent_ended to root of b
    ");
    let Event::AgentSpawned(spawned) =
        &seen.iter().find(|traced| traced.context.message.is_some()).unwrap().recorded.event
    else {
        panic!("the first message is a spawn");
    };
    assert_eq!((spawned.role.as_str(), spawned.goal.as_str()), ("a", "Look left."));
}

/// The name of the agent and of the role at this depth.
fn at_depth(depth: usize) -> String {
    if depth == 0 { "root".to_owned() } else { format!("d{depth}") }
}

/// A chain of agents below the root, each of which says something and spawns the next. The last one writes for a while.
async fn chain(stage: &TestHome, depth: usize) -> Tree {
    let later: Vec<String> = (1..=depth).map(|depth| format!(" / d{depth} later turns=9")).collect();
    let mut definition = definition(&format!("root turns=9{}", later.concat()));
    definition.limits.depth_max = depth as u32;
    definition.roles.values_mut().for_each(|role| role.caps.depth_max = depth as u32);
    stage.home().start(definition).await.unwrap()
}

/// O17 (without visibility and redaction), S26: a watcher of the root sees what an agent 32 levels below it writes piece
/// by piece while that is written, with the path of the agent and the id of the tree, and so for every agent between
/// them.
#[tokio::test(start_paused = true)]
async fn o17_s26_a_deep_agents_text_is_seen_while_it_writes() {
    const DEPTH: usize = 32;
    let rules: String = (0..DEPTH)
        .map(|depth| {
            let (agent, next) = (at_depth(depth), at_depth(depth + 1));
            format!(
                "  - when: {{ agent: {agent}, turn: 1 }}
    think_ms: 10
    say: I am {agent}.
    call: [ {{ tool: spawn_agent, args: {{ agent: {next}, id: {next}, goal: Go down. }} }} ]
"
            )
        })
        .collect();
    let deep = at_depth(DEPTH);
    let text = "It is dark. ".repeat(8);
    let script = format!(
        "rules:\n{rules}  - {{ when: {{ agent: {deep} }}, chunk_ms: 1000, say: '{text}' }}\n  - {{ say: Done. }}"
    );
    let stage = TestHome::new(&script);
    let tree = chain(&stage, DEPTH).await;
    let mut watcher = tree.watch(Watch { deltas: true, ..Watch::default() });
    let only = tree.watch(Watch { deltas: true, agent: Some(name(&deep)), ..Watch::default() });
    let only = tokio::spawn(all(only));
    let mut texts = vec![String::new(); DEPTH + 1];
    let mut times = std::collections::BTreeSet::new();
    let clock = SystemClock::new();
    while let Some(next) = watcher.next().await {
        let WatchItem::Delta(delta) = next.unwrap() else { continue };
        let depth = delta.origin.path.len() - 1;
        let path: Vec<AgentId> = (0..=depth).map(|depth| name(&at_depth(depth))).collect();
        assert_eq!((&*delta.origin.path, delta.origin.tree), (path.as_slice(), tree.id()));
        assert_eq!(delta.origin.agent(), &name::<AgentId>(&at_depth(depth)));
        texts[depth].push_str(&delta.text);
        // There is more to come.
        if depth == DEPTH && texts[depth] != text {
            times.insert(clock.now_ms());
            let deepest = tree.snapshot().await.unwrap().agents.pop().unwrap();
            assert_eq!((deepest.agent.as_str(), deepest.status.to_string().as_str()), (&*deep, "running"));
        }
    }
    assert_eq!(texts[DEPTH], text);
    assert!(times.len() > 3, "the text came in pieces: {times:?}");
    for (depth, text) in texts[..DEPTH].iter().enumerate() {
        assert_eq!(*text, format!("I am {}.Done.", at_depth(depth)));
    }
    let of_deep = |seen: &WatchItem| match seen {
        WatchItem::Delta(delta) => Some((delta.origin.agent().to_string(), delta.text.clone())),
        _ => None,
    };
    let (agents, pieces): (Vec<String>, Vec<String>) = only.await.unwrap().iter().filter_map(of_deep).unzip();
    assert!(agents.iter().all(|agent| *agent == deep));
    assert_eq!(pieces.concat(), text);
}

/// O17 (text): a tree runs before it can be watched, so a home keeps what it streams until then for the first watcher of all
/// agents, if it is told to. A second one gets what comes from then on.
#[tokio::test(start_paused = true)]
async fn o17_the_first_watcher_has_all_text() {
    for (keeps_first_text, expected) in [(true, "one two three"), (false, "")] {
        let stage = TestHome::new("rules: [ { say: one two three } ]");
        let home = if keeps_first_text { stage.home().with_first_text() } else { stage.home() };
        let tree = stage.start(&home, "root turns=9").await;
        settled(&tree).await;
        let text = |seen: Vec<WatchItem>| -> String {
            let texts = seen.into_iter().filter_map(|seen| match seen {
                WatchItem::Delta(delta) => Some(delta.text.clone()),
                _ => None,
            });
            texts.collect()
        };
        let watch = || all(tree.watch(Watch { deltas: true, ..Watch::default() }));
        assert_eq!(text(watch().await), expected);
        assert_eq!(text(watch().await), "");
    }
}

/// A delta is never seen before its call's start nor after its end, even by a watcher that fell behind.
#[tokio::test(start_paused = true)]
async fn a_delta_comes_between_the_start_and_the_end_of_its_call() {
    let stage = TestHome::new(SCRIPT);
    let home = stage.home();
    let tree = stage.start(&home, TREE).await;
    let live = tokio::spawn(all(tree.watch(Watch { deltas: true, ..Watch::default() })));
    let mut slow = tree.watch(Watch { deltas: true, room: Some(1), ..Watch::default() });
    let mut taken = Vec::new();
    // It is live once it has nothing left to read.
    while let Ok(Some(next)) = tokio::time::timeout(Duration::from_millis(1), slow.next()).await {
        taken.push(next.unwrap());
    }
    settled(&tree).await;
    taken.extend(all(slow).await);
    for seen in [live.await.unwrap(), taken] {
        let mut open = std::collections::BTreeSet::new();
        let mut deltas = 0;
        for seen in seen {
            match seen {
                WatchItem::Event(traced) => match traced.recorded.event.as_str() {
                    "call_started" => drop(open.insert(traced.context.correlation.clone())),
                    "call_ended" => drop(open.remove(&traced.context.correlation)),
                    _ => {}
                },
                WatchItem::Delta(delta) => {
                    let call = Correlation::of_call(delta.call);
                    assert!(open.contains(&Some(call)), "{delta:?}");
                    deltas += 1;
                }
                WatchItem::Missed(_) => panic!("nothing was missed"),
            }
        }
        assert!(deltas >= 8, "{deltas}");
    }
}

/// A tree that waits for a person, with this many published messages.
async fn flooded(stage: &TestHome, count: usize, watch: Watch) -> (Tree, Watcher) {
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=9").await;
    settled(&tree).await;
    let mut watcher = tree.watch(Watch { topic: Some(name("flood")), ..watch });
    assert!(tree.publish(Actor::PERSON, to("flood", "first")).await.is_ok());
    assert!(matches!(watcher.next().await, Some(Ok(WatchItem::Event(_)))));
    // It is live once it has nothing left to read.
    assert!(tokio::time::timeout(Duration::from_millis(1), watcher.next()).await.is_err());
    for number in 0..count {
        let published = tree.publish(Actor::PERSON, to("flood", &number.to_string())).await;
        assert_eq!(published, Ok(true));
    }
    std::mem::forget(home);
    (tree, watcher)
}

/// L36: a stalled watcher blocks nothing, and reads the rest from the journal when it continues.
#[tokio::test(start_paused = true)]
async fn l36_a_stalled_watcher_affects_no_other_and_misses_nothing() {
    let stage = TestHome::new(WAITING);
    let (tree, mut slow) = flooded(&stage, 100, Watch { room: Some(10), ..Watch::default() }).await;
    assert!(slow.waiting() <= 11, "{}", slow.waiting());
    let fast = tree.watch(Watch { topic: Some(name("flood")), ..Watch::default() });
    tree.cancel(name("root"), "enough").await.unwrap();
    assert_eq!(traced_events(&all(fast).await).len(), 101);
    let mut seen = Vec::new();
    while let Some(next) = slow.next().await {
        let Ok(WatchItem::Event(traced)) = next else { panic!("{next:?}") };
        seen.push(traced.recorded.seq.0);
    }
    assert_eq!(seen.len(), 100);
    assert!(seen.is_sorted());
    // The counters are correct: sent, taken, queued.
    assert_eq!((slow.count().events, slow.count().dropped, slow.waiting()), (101, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn l36_a_watcher_that_wants_it_is_disconnected_when_it_is_too_slow() {
    let stage = TestHome::new(WAITING);
    let watch = Watch { room: Some(10), overflow: Overflow::Disconnect, ..Watch::default() };
    let (tree, mut slow) = flooded(&stage, 100, watch).await;
    let mut seen = 1;
    let fault = loop {
        match slow.next().await {
            Some(Ok(_)) => seen += 1,
            Some(Err(fault)) => break fault,
            None => panic!("it was not disconnected"),
        }
    };
    assert_eq!((seen, fault), (11, WatchFault::TooSlow { seen: slow.seen() }));
    assert_eq!(slow.next().await.map(drop_ok), None);
    // Watching again after the last seen event misses nothing.
    let again = tree.watch(Watch { after: slow.seen(), topic: Some(name("flood")), ..Watch::default() });
    tree.cancel(name("root"), "enough").await.unwrap();
    assert_eq!(traced_events(&all(again).await).len(), 90);
}

fn drop_ok(next: Result<WatchItem, WatchFault>) -> Option<WatchFault> {
    next.err()
}

/// L36: a tree waits for a watcher only as long as that watcher asked for.
#[tokio::test(start_paused = true)]
async fn l36_a_tree_waits_for_a_watcher_up_to_its_limit() {
    let stage = TestHome::new(WAITING);
    let patience = Duration::from_millis(500);
    let watch = Watch { room: Some(10), overflow: Overflow::Wait(patience), ..Watch::default() };
    let clock = SystemClock::new();
    let start = clock.now_ms();
    let (tree, mut slow) = flooded(&stage, 30, watch).await;
    assert_eq!(clock.now_ms() - start, 501);
    let mut seen = 1;
    while let Some(Ok(_)) = slow.next().await {
        seen += 1;
    }
    assert_eq!(seen, 11);
    // A watcher that keeps up is never disconnected.
    let watch = Watch {
        after: slow.seen(),
        topic: Some(name("flood")),
        room: Some(1),
        overflow: Overflow::Wait(patience),
        ..Watch::default()
    };
    let mut brisk = tree.watch(watch);
    for number in 0..50 {
        let published = tree.publish(Actor::PERSON, to("flood", &number.to_string()));
        let (published, next) = tokio::join!(published, brisk.next());
        assert_eq!(published, Ok(true));
        assert!(matches!(next, Some(Ok(_))), "{next:?}");
    }
}

/// L39: if deltas come too fast the oldest are dropped, and dropped plus seen is all there were. The depth of a
/// watcher's queue is the number of queued events. A message with `ttl: 1` is handled once, and forwarding it is
/// refused.
#[tokio::test(start_paused = true)]
async fn l39_overflow_is_counted_queues_are_true_and_a_ttl_of_one_goes_no_further() {
    dropped_deltas_are_counted().await;
    the_depth_of_a_queue_is_true().await;
    messages_are_passed_on_as_often_as_their_ttl_says().await;
}

async fn the_depth_of_a_queue_is_true() {
    let stage = TestHome::new(WAITING);
    let (_tree, mut slow) = flooded(&stage, 100, Watch { room: Some(200), ..Watch::default() }).await;
    for taken in 0..100 {
        let count = slow.count();
        assert_eq!((slow.waiting(), count.events, count.dropped), (100 - taken, 1 + taken as u64, 0));
        assert!(matches!(slow.next().await, Some(Ok(WatchItem::Event(_)))));
    }
    assert_eq!(slow.waiting(), 0);
}

/// Forwards every message of a topic to another one, until the tree refuses.
async fn pass_on(tree: Tree, from: &'static str, to: &'static str) {
    let mut watcher =
        tree.watch(Watch { after: tree.status().seq, topic: Some(name(from)), ..Watch::default() });
    while let Some(Ok(WatchItem::Event(traced))) = watcher.next().await {
        let Event::MessagePublished { envelope, body, .. } = &traced.recorded.event else {
            continue;
        };
        let ttl = envelope.ttl.map(|ttl| ttl - 1);
        let envelope = Envelope { topic: Some(name(to)), ttl, ..envelope.clone() };
        let note = Note { to: None, envelope, text: body.text.clone() };
        let refused = tree.publish(Actor::PERSON, note).await.err();
        assert_eq!(refused, (ttl == Some(0)).then_some(RequestError::Refused(Refusal::Forwarded)));
    }
}

async fn messages_are_passed_on_as_often_as_their_ttl_says() {
    for (ttl, handled) in [(1, ["left"].as_slice()), (2, &["left", "right"]), (3, &["left", "right", "left"])]
    {
        let stage = TestHome::new(WAITING);
        let home = stage.home();
        let tree = stage.start(&home, "root $9.00 turns=9").await;
        settled(&tree).await;
        // In a circle: only the ttl ends it.
        let circle = [("left", "right"), ("right", "left")]
            .map(|(from, to)| tokio::spawn(pass_on(tree.clone(), from, to)));
        while tree.watchers().0 < 2 {
            tokio::task::yield_now().await;
        }
        let envelope = Envelope { topic: Some(name("left")), ttl: Some(ttl), ..Envelope::default() };
        let note = Note { to: None, envelope, text: "Pass it on.".to_owned() };
        tree.publish(Actor::PERSON, note).await.unwrap();
        // With paused time, the clock advances only when all tasks are idle.
        tokio::time::sleep(Duration::from_secs(1)).await;
        tree.cancel(name("root"), "enough").await.unwrap();
        for relay in circle {
            relay.await.unwrap();
        }
        let topic = |recorded: &spinney::bus::RecordedEvent| match &recorded.event {
            Event::MessagePublished { envelope, .. } => envelope.topic.as_ref().map(ToString::to_string),
            _ => None,
        };
        assert_eq!(recorded(&tree).await.iter().filter_map(topic).collect::<Vec<_>>(), handled, "ttl {ttl}");
    }
}

async fn dropped_deltas_are_counted() {
    let text = "x".repeat(16 * 400);
    let script = format!(
        "rules:\n  - when: {{ turn: 15 }}\n    say: {text}\n  - think_ms: 10\n    say: {text}\n    call: [ {{ tool: look }} ]\ntools: {{ look: {{ say: it }} }}"
    );
    let stage = TestHome::new(&script);
    let home = stage.home();
    let mut definition = definition("root $900.00 turns=20");
    definition.models.values_mut().for_each(|model| model.output_max = None);
    let turns = definition.roles.values_mut().filter_map(|role| role.turns.as_mut());
    turns.for_each(|turns| turns.output_cap = Some(4_000));
    let tree = home.start(definition).await.unwrap();
    let mut slow = tree.watch(Watch { deltas: true, ..Watch::default() });
    let mut strict = tree.watch(Watch { deltas: true, overflow: Overflow::Disconnect, ..Watch::default() });
    assert_eq!(settled(&tree).await.state, TreeState::Ended(ExitKind::Completed));
    let mut last = None;
    while let Some(next) = slow.next().await {
        if let Ok(WatchItem::Delta(delta)) = next {
            let place = (delta.call, delta.offset);
            assert!(last < Some(place), "in order");
            last = Some(place);
        }
    }
    let count = slow.count();
    assert_eq!(last.map(|(_, offset)| offset), Some(16 * 399));
    assert_eq!((count.deltas + count.dropped, count.dropped), (15 * 400, 15 * 400 - 4_096));
    let ended = loop {
        match strict.next().await {
            Some(Ok(_)) => {}
            Some(Err(fault)) => break Some(fault),
            None => break None,
        }
    };
    assert!(matches!(ended, Some(WatchFault::TooSlow { .. })), "{ended:?}");
}

/// Answers every request on a topic, and sends a request to another one first.
async fn serve(tree: Tree, topic: &'static str, ask_first: Option<&'static str>) {
    let mut watcher =
        tree.watch(Watch { after: tree.status().seq, topic: Some(name(topic)), ..Watch::default() });
    while let Some(Ok(WatchItem::Event(request))) = watcher.next().await {
        let help = match ask_first {
            Some(other) => {
                let helped = tree.call(Actor::PERSON, to(other, "help"), Duration::from_secs(9)).await;
                format!(" with help {:?}", helped.map(|traced| traced.context.topic.to_string()))
            }
            None => String::new(),
        };
        if let Some(note) = reply(&request, format!("done{help}")) {
            let _ = tree.publish(Actor::PERSON, note).await;
        }
    }
}

/// L37 (300 of them), L38: requests get their replies, even from an agent that sends a request itself meanwhile, and
/// leave nothing behind.
#[tokio::test(start_paused = true)]
async fn l38_requests_find_their_replies_and_leave_nothing_behind() {
    let stage = TestHome::new(WAITING);
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=9").await;
    settled(&tree).await;
    let servers = [
        tokio::spawn(serve(tree.clone(), "left", Some("right"))),
        tokio::spawn(serve(tree.clone(), "right", None)),
    ];
    // Both watch once they have answered.
    for topic in ["right", "left"] {
        while tree.call(Actor::PERSON, to(topic, "ready?"), Duration::from_millis(50)).await.is_err() {}
    }
    let before = tree.watchers();
    let correlations: Vec<_> = futures::future::join_all(
        (0..300).map(|_| tree.call(Actor::PERSON, to("right", "now"), Duration::from_secs(9))),
    )
    .await;
    assert!(correlations.iter().all(Result::is_ok));
    let deep = tree.call(Actor::PERSON, to("left", "now"), Duration::from_secs(9)).await.unwrap();
    let Event::MessagePublished { body, .. } = &deep.recorded.event else { panic!("{deep:?}") };
    assert_eq!(body.text, "done with help Ok(\"reply.right\")");
    let late = tree.call(Actor::PERSON, to("nowhere", "hello?"), Duration::from_millis(10)).await;
    assert_eq!(late, Err(ReplyError::TooLong { timeout: Duration::from_millis(10) }));
    let (watchers, places) = tree.watchers();
    assert_eq!(watchers, before.0);
    assert!(places <= watchers, "{places}");
    tree.cancel(name("root"), "enough").await.unwrap();
    for server in servers {
        server.await.unwrap();
    }
    assert_eq!(tree.watchers(), (0, 0));
}

/// L34: only the first of two replies counts; a majority is more than half with the same answer.
#[tokio::test(start_paused = true)]
async fn l34_replies_are_counted_once_per_sender() {
    let stage = TestHome::new(
        SCRIPT
            .replace(
                "say: I have looked twice now.",
                "call: [ { tool: ask_human, args: { question: Which? } } ]",
            )
            .as_str(),
    );
    let home = stage.home();
    let tree = stage.start(&home, TREE).await;
    settled(&tree).await;
    let cases = [
        (Quorum::First(2), vec![("a", "x"), ("a", "y"), ("b", "z")], vec![("a", "x"), ("b", "z")], true),
        (
            Quorum::Majority(3),
            vec![("a", "x"), ("b", "y"), ("root", "x")],
            vec![("a", "x"), ("root", "x")],
            true,
        ),
        (Quorum::Majority(4), vec![("a", "x"), ("a", "x"), ("b", "x")], vec![("a", "x"), ("b", "x")], false),
        (Quorum::All(3), vec![("a", "x"), ("b", "y")], vec![("a", "x"), ("b", "y")], false),
    ];
    for (number, (need, replies, counted, is_complete)) in cases.into_iter().enumerate() {
        let correlation = Some(name(&format!("poll-{number}")));
        let envelope =
            Envelope { topic: Some(name("poll")), correlation: correlation.clone(), ..Envelope::default() };
        let note = Note { to: None, envelope, text: "What do you say?".to_owned() };
        let answers = async {
            for (agent, text) in replies {
                let envelope = Envelope {
                    topic: Some(name::<Topic>("reply.poll")),
                    correlation: correlation.clone(),
                    ..Envelope::default()
                };
                let note = Note { to: None, envelope, text: text.to_owned() };
                tree.publish(Actor::Agent(name(agent)), note).await.unwrap();
            }
        };
        let (gathered, ()) =
            tokio::join!(tree.gather(Actor::PERSON, note, need, Duration::from_secs(1)), answers);
        let gathered = gathered.unwrap();
        let counted: Vec<(Option<AgentId>, String)> =
            counted.into_iter().map(|(agent, text)| (Some(name(agent)), text.to_owned())).collect();
        assert_eq!((gathered.replies, gathered.is_complete), (counted, is_complete), "{need:?}");
    }
}
