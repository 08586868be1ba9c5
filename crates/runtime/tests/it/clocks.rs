//! Clocks on the real runtime, with tokio's paused time: active time, timeouts that stop while only a person can
//! continue the tree, wall-clock timeouts, added time, and crashes.

use std::time::Duration;

use spinney::bus::RecordedEvent;
use spinney::tree::{ApplyError, RequestError};
use spinney::{Home, Shutdown, Tree};
use spinney_kernel::budget::Amounts;
use spinney_kernel::primitives::{AgentId, CallId, Seq};
use spinney_kernel::record::{ClockKind, Event, Exit, ExitKind};
use spinney_kernel::rules::request::{Raise, Request};
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, recorded, settled};

pub(crate) const MINUTE_MS: u64 = 60_000;

/// Asks a person and repeats the answer.
const ASKS: &str = r#"
rules:
  - when: { agent: root, turn: 1 }
    call: [{ tool: ask_human, args: { question: "Which colour?" } }]
  - say: "{{ last }}"
"#;

/// Works for two seconds, and for two more when it may continue.
const WORKS: &str = r#"
rules:
  - when: { turn: 1 }
    call: [{ tool: work, args: {} }]
  - { think_ms: 2000, say: done }
tools:
  work: { think_ms: 2000, repeatable: true, say: worked }
"#;

/// A lead whose only child never ends.
const HANGS: &str = r#"
rules:
  - when: { agent: root, turn: 1 }
    call: [{ tool: spawn_agent, args: { agent: child, id: c, goal: Wait. } }]
  - when: { agent: child }
    hang: true
  - say: "{{ last }}"
"#;

pub(crate) fn id(agent: &str) -> AgentId {
    agent.parse().unwrap()
}

pub(crate) fn more_time(agent: &str, add_ms: u64) -> Raise {
    Raise { agent: id(agent), add: Amounts::ZERO, add_ms }
}

pub(crate) async fn pass(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// How long an agent lived, and how it ended.
pub(crate) fn life(recorded: &[RecordedEvent], agent: &str) -> (u64, Exit) {
    let born = recorded
        .iter()
        .find(|recorded| matches!(&recorded.event, Event::AgentSpawned(born) if born.agent == id(agent)));
    let end = recorded.iter().find_map(|recorded| match &recorded.event {
        Event::AgentEnded { agent: ended, exit, .. } if *ended == id(agent) => {
            Some((recorded.at, exit.clone()))
        }
        _ => None,
    });
    let (ended, exit) = end.unwrap();
    (ended.0 - born.unwrap().at.0, exit)
}

pub(crate) fn message(exit: &Exit) -> (&str, &str) {
    let Exit::Failed { error } = exit else { panic!("{exit:?}") };
    (error.code.as_str(), &error.message)
}

/// Each start and stop of a clock: what is left, and whether it runs afterwards.
pub(crate) fn turns_of(recorded: &[RecordedEvent], whose: &str, which: ClockKind) -> Vec<(u64, bool)> {
    let set = |recorded: &RecordedEvent| match &recorded.event {
        Event::ClockSet { agent, clock, left_ms, alarm, .. } if *agent == id(whose) && *clock == which => {
            if let Some(alarm) = alarm {
                assert_eq!(alarm.at, recorded.at.after_ms(*left_ms), "an alarm is what is left from now on");
            }
            Some((*left_ms, alarm.is_some()))
        }
        _ => None,
    };
    recorded.iter().filter_map(set).collect()
}

async fn waiting(stage: &TestHome, home: &Home, fixture: &str) -> Tree {
    let tree = stage.start(home, fixture).await;
    assert_eq!(settled(&tree).await.state, TreeState::Waiting);
    tree
}

/// G19 (clocks part): while all agents wait for a person no deadline passes, however long that takes; afterwards the
/// same time is left.
#[tokio::test(start_paused = true)]
async fn while_everybody_waits_for_a_person_no_deadline_passes() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let tree = waiting(&stage, &home, "root turns=5 timeout=300s").await;
    pass(20 * 60 * MINUTE_MS).await;
    assert_eq!(settled(&tree).await.state, TreeState::Waiting);
    tree.answer(CallId(2), "red").await.unwrap();
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
    let clock = turns_of(&recorded(&tree).await, "root", ClockKind::Timeout);
    let [(left, false), (again, true)] = clock.as_slice() else { panic!("{clock:?}") };
    assert_eq!(left, again);
    assert!((299_000..=300_000).contains(left), "{left}");
}

/// G19 (clocks part): a wall-clock timeout passes, whatever the tree waits for.
#[tokio::test(start_paused = true)]
async fn a_wall_clock_deadline_passes_while_a_person_is_awaited() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let tree = waiting(&stage, &home, "root turns=5 wall=300s").await;
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Failed));
    let recorded = recorded(&tree).await;
    let (took, exit) = life(&recorded, "root");
    assert_eq!(took, 5 * MINUTE_MS);
    assert_eq!(message(&exit), ("timeout", "it took longer than its timeout of 5 minutes"));
    assert_eq!(turns_of(&recorded, "root", ClockKind::Timeout), []);
}

/// An unanswered question times out although the tree's own timeout stands still.
#[tokio::test(start_paused = true)]
async fn the_time_of_a_question_runs_while_the_tree_waits() {
    let stage =
        TestHome::new(&ASKS.replace(r#""Which colour?""#, r#""Which colour?", timeout: 10m, default: blue"#));
    let home = stage.home();
    let tree = waiting(&stage, &home, "root turns=5 timeout=60s").await;
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
    assert!(life(&recorded(&tree).await, "root").0 >= 10 * MINUTE_MS);
}

/// A paused tree does not time out, and continues with the time that was left.
#[tokio::test(start_paused = true)]
async fn a_timeout_pauses_while_the_tree_is_paused() {
    let stage = TestHome::new(WORKS);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5 timeout=10s").await;
    pass(500).await;
    tree.pause(id("root")).await.unwrap();
    assert_eq!(settled(&tree).await.state, TreeState::Paused);
    pass(60 * MINUTE_MS).await;
    tree.unpause(id("root")).await.unwrap();
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
    let clock = turns_of(&recorded(&tree).await, "root", ClockKind::Timeout);
    assert_eq!(clock, [(8_000, false), (8_000, true)], "it worked for two of its ten seconds");
}

/// A tree that waits for a raised budget does not time out meanwhile.
#[tokio::test(start_paused = true)]
async fn a_timeout_pauses_while_the_tree_is_halted() {
    let stage = TestHome::new("rules: [{ say: done }]");
    let home = stage.home();
    let tree = stage.start(&home, "root $0.05 turns=5 timeout=10s").await;
    assert_eq!(settled(&tree).await.state, TreeState::Halted);
    pass(60 * MINUTE_MS).await;
    let add = Amounts::cost(9_000_000_000);
    tree.raise(Raise { agent: id("root"), add, add_ms: 0 }).await.unwrap();
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
    let clock = turns_of(&recorded(&tree).await, "root", ClockKind::Timeout);
    assert_eq!(clock, [(10_000, false), (10_000, true)]);
}

/// A clean shutdown stops the clocks of its trees; a wall-clock timeout keeps running.
#[tokio::test(start_paused = true)]
async fn a_timeout_pauses_while_a_tree_is_stopped() {
    for (terms, state) in [("timeout=10s", "completed"), ("wall=10s", "failed")] {
        let stage = TestHome::new(WORKS);
        let home = stage.home();
        let tree = stage.start(&home, &format!("root turns=5 {terms}")).await;
        pass(500).await;
        home.shutdown(Shutdown::Stop).await;
        pass(60 * MINUTE_MS).await;
        let home = stage.home();
        let tree = home.resume(tree.id()).await.unwrap();
        assert_eq!(tree.ended().await.state.as_str(), state, "{terms}");
    }
}

/// By default a sub-agent may work for ten minutes, and the root without limit.
#[tokio::test(start_paused = true)]
async fn a_sub_agent_works_for_ten_minutes_at_most_by_default() {
    let stage = TestHome::new(HANGS);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5 / child later turns=5").await;
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
    let recorded = recorded(&tree).await;
    let (took, exit) = life(&recorded, "c");
    assert_eq!(took, 10 * MINUTE_MS);
    assert_eq!(message(&exit), ("timeout", "it worked longer than its 10 minutes of active time"));
    assert_eq!(turns_of(&recorded, "root", ClockKind::Active), [], "the root has no such clock");

    let stage = TestHome::new("rules: [{ hang: true }]");
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5").await;
    pass(48 * 60 * MINUTE_MS).await;
    assert_eq!(tree.snapshot().await.unwrap().state, TreeState::Running);
    home.shutdown(Shutdown::Kill).await;
}

/// Active time counts while a model or tool of the agent itself runs, not its children or a person.
#[tokio::test(start_paused = true)]
async fn waiting_is_no_active_time() {
    let stage = TestHome::new(
        r#"
rules:
  - when: { agent: root, turn: 1 }
    call: [{ tool: spawn_agent, args: { agent: lead, id: l, goal: Ask around. } }]
  - when: { agent: lead, turn: 1 }
    think_ms: 1000
    call: [{ tool: spawn_agent, args: { agent: child, id: c, goal: Ask. } }]
  - when: { agent: child, turn: 1 }
    think_ms: 1000
    call: [{ tool: ask_human, args: { question: "Which?" } }]
  - { think_ms: 1000, say: "{{ last }}" }
"#,
    );
    let home = stage.home();
    let fixture = "root turns=5 / lead later turns=5 active=5s / child later turns=5 active=5s";
    let tree = waiting(&stage, &home, fixture).await;
    pass(60 * MINUTE_MS).await;
    let question = tree.snapshot().await.unwrap().questions[0].question;
    tree.answer(question, "red").await.unwrap();
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
    let recorded = recorded(&tree).await;
    for agent in ["l", "c"] {
        let clock = turns_of(&recorded, agent, ClockKind::Active);
        assert_eq!(clock, [(5_000, true), (4_000, false), (4_000, true)], "{agent}");
    }
}

/// Kill and resume: active time counts up to the last batch, however long no process ran the tree, and however often
/// that happens.
#[tokio::test(start_paused = true)]
async fn active_time_counts_up_to_the_last_batch_before_a_crash() {
    let stage = TestHome::new(HANGS);
    let mut home = stage.home();
    let mut tree = stage.start(&home, "root turns=5 / child later turns=5").await;
    stage.model().until_out(1).await;
    for _ in 0..3 {
        pass(2 * MINUTE_MS).await;
        // An unrelated batch records how far the process came.
        tree.send(id("root"), "Still there?").await.unwrap();
        pass(30_000).await;
        home.shutdown(Shutdown::Kill).await;
        pass(60 * MINUTE_MS).await;
        home = stage.home();
        tree = home.resume(tree.id()).await.unwrap();
        stage.model().until_out(1).await;
    }
    let resumed = tree.snapshot().await.unwrap().seq;
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
    let recorded = recorded(&tree).await;
    let (_, exit) = life(&recorded, "c");
    assert_eq!(message(&exit), ("timeout", "it worked longer than its 10 minutes of active time"));
    let clock = turns_of(&recorded, "c", ClockKind::Active);
    let minutes: Vec<(u64, bool)> = clock.iter().map(|(left, runs)| (left / MINUTE_MS, *runs)).collect();
    assert_eq!(minutes, [(10, true), (8, true), (6, true), (4, true)]);
    let at = |seq: Seq| recorded[seq.0 as usize - 1].at;
    assert_eq!(recorded.last().unwrap().at.0 - at(resumed).0, 4 * MINUTE_MS);
}

/// Adds time to a working agent, to a waiting tree, and to one that no process runs.
#[tokio::test(start_paused = true)]
async fn a_person_gives_more_time() {
    let stage = TestHome::new("rules: [{ hang: true }]");
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5 timeout=10s").await;
    pass(5_000).await;
    tree.raise(more_time("root", 20_000)).await.unwrap();
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Failed));
    let (took, exit) = life(&recorded(&tree).await, "root");
    assert_eq!((took, message(&exit).1), (30_000, "it took longer than its timeout of 30 seconds"));

    let stage = TestHome::new(&ASKS.replace("  - say", "  - think_ms: 15000\n    say"));
    let home = stage.home();
    let tree = waiting(&stage, &home, "root turns=5 timeout=10s").await;
    home.shutdown(Shutdown::Stop).await;
    let home = stage.home();
    home.apply(tree.id(), Request::Raise(more_time("root", 10_000))).await.unwrap();
    let tree = home.resume(tree.id()).await.unwrap();
    tree.answer(CallId(2), "red").await.unwrap();
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));

    let stage = TestHome::new(HANGS);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5 / child later turns=5 active=60s").await;
    stage.model().until_out(1).await;
    tree.raise(more_time("c", 60_000)).await.unwrap();
    tree.ended().await;
    assert_eq!(life(&recorded(&tree).await, "c").0, 2 * MINUTE_MS);
}

/// Time is not added without a timeout, nor more than a year of it; a tree whose time was up has ended.
#[tokio::test(start_paused = true)]
async fn more_time_is_refused_without_a_clock_to_extend() {
    let stage = TestHome::new("rules: [{ hang: true }]");
    let home = stage.home();
    let refused = |asked: Result<(), RequestError>| match asked {
        Err(RequestError::Refused(refusal)) => refusal.to_string(),
        other => panic!("{other:?}"),
    };
    let tree = stage.start(&home, "root turns=5").await;
    assert_eq!(
        refused(tree.raise(more_time("root", 1_000)).await),
        "`root` has no timeout to extend: name the agent that has one"
    );
    let tree = stage.start(&home, "root turns=5 timeout=10s").await;
    assert!(refused(tree.raise(more_time("root", u64::MAX)).await).starts_with("a timeout of"));
    tree.ended().await;
    home.shutdown(Shutdown::Kill).await;
    let late = stage.home().apply(tree.id(), Request::Raise(more_time("root", 1_000))).await;
    assert!(matches!(late, Err(ApplyError::Refused(_))), "{late:?}");
}

/// A tool that must not be repeated is lost with its process; the agent and its active time continue.
#[tokio::test(start_paused = true)]
async fn a_lost_tool_costs_only_the_time_that_it_was_seen_to_run() {
    let script = r#"
rules:
  - when: { agent: root, turn: 1 }
    call: [{ tool: spawn_agent, args: { agent: child, id: c, goal: Work. } }]
  - when: { agent: child, turn: 1 }
    call: [{ tool: once, args: {} }]
  - { think_ms: 3000, say: "{{ last }}" }
tools:
  once: { think_ms: 4000, say: worked }
"#;
    let stage = TestHome::new(script);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5 / child later turns=5 active=5s").await;
    pass(2_000).await;
    home.shutdown(Shutdown::Kill).await;
    pass(60 * MINUTE_MS).await;
    let home = stage.home();
    let tree = home.resume(tree.id()).await.unwrap();
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
    let recorded = recorded(&tree).await;
    let lost = |recorded: &RecordedEvent| {
        matches!(&recorded.event, Event::CallEnded { outcome: spinney_kernel::record::Outcome::Lost, .. })
    };
    assert!(recorded.iter().any(lost));
    assert_eq!(life(&recorded, "c").1, Exit::Completed);
}
