//! Agents that repeat a tool call that brings nothing new, on the real runtime.

use spinney::Shutdown;
use spinney::bus::Watch;
use spinney_kernel::context::Message;
use spinney_kernel::record::{Event, Exit, ExitKind, Outcome};
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, recorded, settled};

const LOOKS: &str = "
rules: [ { think_ms: 50, say: 'Look {{ turn }}.', call: [ { tool: look, args: { at: door } } ] } ]
tools: { look: { say: nothing new } }
";

/// G2: with a result that says the same each time but for what is left of the budget, the model reads a notice before
/// its fourth turn, and after the sixth call the agent ends as `loop_detected` with what it said last.
#[tokio::test(start_paused = true)]
async fn g2_a_loop_is_told_and_then_ended_whatever_is_left_of_the_budget() {
    let stage = TestHome::new(LOOKS);
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 tokens=90000 turns=20 repeats=3,6 tools=look").await;
    let snapshot = settled(&tree).await;
    assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Failed));
    let end = snapshot.end.unwrap();
    let Exit::Failed { error } = &end.exit else { panic!("{end:?}") };
    assert_eq!((error.code.as_str(), end.shown.text.as_str()), ("loop_detected", "Look 6."));
    let attempts = stage.model().attempts();
    assert_eq!(attempts.len(), 6);
    let notices = |at: usize| {
        let messages = attempts[at].packet.messages.iter();
        messages.filter(|message| matches!(message.as_ref(), Message::Repeated(_))).count()
    };
    assert_eq!([2, 3, 4, 5].map(notices), [0, 1, 1, 1]);
    let last = attempts[3].packet.messages.last().unwrap();
    insta::assert_snapshot!(last.text(), @"You have called `look` 3 times in a row with the same arguments, and the result was the same each time. Do something else, or answer with what you have. After 6 such calls in a row you will be stopped.");
    let left: Vec<String> =
        attempts[5].packet.messages.iter().filter_map(|message| Some(message.facts()?.to_string())).collect();
    assert!(left.len() == 5 && left.windows(2).all(|two| two[0] != two[1]), "{left:?}");
}

/// G2 (crash): killed in the middle of a row and resumed, the agent is told once and ends after the same number of calls.
#[tokio::test(start_paused = true)]
async fn a_row_goes_on_after_a_crash() {
    for killed_after in 1..6 {
        let stage = TestHome::new(LOOKS);
        let first = stage.home();
        let tree = stage.start(&first, "root $9.00 turns=20 repeats=3,6 tools=look").await;
        let mut events = tree.watch(Watch::default());
        let mut calls = 0;
        while calls < killed_after {
            let event = events.next_event().await.unwrap().unwrap();
            let is_tool = matches!(&event.recorded.event, Event::CallEnded { outcome: Outcome::Done { asks, .. }, .. } if asks.is_empty());
            calls += usize::from(is_tool);
        }
        drop(events);
        first.shutdown(Shutdown::Kill).await;
        let home = stage.home();
        let tree = home.resume(tree.id()).await.unwrap();
        let end = settled(&tree).await.end.unwrap();
        let Exit::Failed { error } = &end.exit else { panic!("{end:?}") };
        assert_eq!(error.code, "loop_detected", "killed after {killed_after}");
        home.shutdown(Shutdown::Stop).await;
        let events = recorded(&tree).await;
        let told =
            events.iter().filter(|event| matches!(event.event, Event::RepeatsNoticed { count: 3, .. }));
        assert_eq!(told.count(), 1, "killed after {killed_after}");
        let ended = events.iter().filter(|event| {
            matches!(&event.event, Event::CallEnded { outcome: Outcome::Done { asks, .. }, .. } if asks.is_empty())
        });
        assert_eq!(ended.count(), 6, "killed after {killed_after}");
    }
}

/// X5 (loop): the parent of a child that was stopped in a loop reads why, and how far it got.
#[tokio::test(start_paused = true)]
async fn a_parent_reads_that_its_child_was_in_a_loop() {
    let stage = TestHome::new(
        "
rules:
  - when: { agent: root, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: child, id: child, goal: Look., share: goal } } ]
  - { when: { agent: root }, say: '{{ last }}' }
  - { say: 'Look {{ turn }}.', call: [ { tool: look } ] }
tools: { look: { say: nothing new } }
",
    );
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=9 / child later turns=20 repeats=3,6 tools=look").await;
    let snapshot = settled(&tree).await;
    assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Completed));
    insta::assert_snapshot!(snapshot.end.unwrap().shown.text, @"
    child failed (loop_detected: it called `look` 6 times in a row with the same arguments, and the result was the same each time: say in its prompt what to do instead, or raise `budget.repeats`); partial result:
    Look 6.
    ");
}
