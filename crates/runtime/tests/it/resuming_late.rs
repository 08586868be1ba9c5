//! Trees that are resumed after a timer expired: the expiry is decided before the tree is shown.

use std::time::Duration;

use spinney::Shutdown;
use spinney::bus::Watch;
use spinney::tree::Tree;
use spinney_kernel::primitives::{Actor, CallId};
use spinney_kernel::record::{Event, ExitKind, OnTimeout, Outcome, Question};
use spinney_kernel::rules::request::{Ask, Request};
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, settled};

const ASKS: &str = "rules:
  - when: { turn: 1 }
    call: [{ tool: ask_human, args: { question: Which?, timeout: 20s, default: blue } }]
  - { say: '{{ last }} it is' }";

/// A tree that no process runs, resumed this many seconds later.
async fn resumed_after(stage: &TestHome, tree: &Tree, seconds: u64) -> Tree {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    stage.home().resume(tree.id()).await.unwrap()
}

/// How a question ended.
async fn outcome(tree: &Tree, question: CallId) -> String {
    let mut events = tree.watch(Watch::default());
    loop {
        let event = events.next_event().await.unwrap().unwrap().recorded.event.clone();
        if let Event::CallEnded { call, outcome, .. } = event
            && call == question
        {
            return if let Outcome::Answered { answer, .. } = outcome {
                format!("answered {}", answer.text)
            } else {
                format!("{outcome:?}")
            };
        }
    }
}

/// O14: a question survives its process and can be answered; once it has expired, its own policy applies.
#[tokio::test(start_paused = true)]
async fn a_question_is_answerable_after_a_restart_until_its_timeout_and_ends_by_its_policy_then() {
    let policies = [
        (OnTimeout::Fail, "Expired { ended: [] }", TreeState::Running),
        (OnTimeout::answer("blue"), "answered blue", TreeState::Running),
        (OnTimeout::Cancel, "Cancelled", TreeState::Ended(ExitKind::Cancelled)),
    ];
    for (on_timeout, expired, after) in policies {
        for (seconds, expected) in [(19, None), (20, Some(expired))] {
            let stage = TestHome::new("rules: [{ hang: true }]");
            let home = stage.home();
            let tree = stage.start(&home, "root").await;
            let question = Question::new("Which?", on_timeout.clone());
            let ask = Ask { agent: "root".parse().unwrap(), question, timeout_ms: Some(20_000) };
            tree.request(Actor::PERSON, Request::Ask(ask)).await.unwrap();
            let question = settled(&tree).await.questions[0].question;
            home.shutdown(Shutdown::Kill).await;
            let tree = resumed_after(&stage, &tree, seconds).await;
            let Some(expected) = expected else {
                assert_eq!(tree.snapshot().await.unwrap().questions[0].question, question);
                tree.answer(question, "red").await.unwrap();
                assert_eq!(outcome(&tree, question).await, "answered red");
                continue;
            };
            assert_ne!(tree.status().state, TreeState::Waiting, "{on_timeout:?}");
            let snapshot = tree.snapshot().await.unwrap();
            assert_eq!((snapshot.state, snapshot.questions), (after, Vec::new()), "{on_timeout:?}");
            assert_eq!(outcome(&tree, question).await, expected);
        }
    }
}

/// After a clean stop and after a kill alike, the tree waits as before.
#[tokio::test(start_paused = true)]
async fn a_deadline_that_passed_while_no_process_ran_ends_the_tree_first() {
    for how in [Shutdown::Stop, Shutdown::Kill] {
        let stage = TestHome::new(ASKS);
        let home = stage.home();
        let tree = stage.start(&home, "root turns=3 wall=10s").await;
        assert_eq!(tree.settled().await.state, TreeState::Waiting);
        home.shutdown(how).await;
        let tree = resumed_after(&stage, &tree, 10).await;
        assert_ne!(tree.status().state, TreeState::Waiting);
        assert_eq!(tree.snapshot().await.unwrap().state, TreeState::Ended(ExitKind::Failed));
        assert_eq!(stage.model().model().calls(), 1, "nothing starts after the deadline");
    }
}

/// A tree that was stopped during a model call stays stopped until it is resumed. If its deadline passes meanwhile, it
/// ends without another call.
#[tokio::test(start_paused = true)]
async fn a_stopped_tree_whose_deadline_passed_makes_no_call_when_it_is_resumed() {
    let stage = TestHome::new(
        "rules: [{ when: { turn: 1 }, think_ms: 50, call: [{ tool: list_agents }] }, { say: done }]",
    );
    let home = stage.home();
    let tree = stage.start(&home, "root turns=3 wall=10s").await;
    home.shutdown(Shutdown::Stop).await;
    let tree = resumed_after(&stage, &tree, 10).await;
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Failed));
    assert_eq!(stage.model().model().calls(), 1);
}

/// After a question's default the tree continues and ends as if a person had answered.
#[tokio::test(start_paused = true)]
async fn a_tree_that_is_resumed_late_continues_with_the_default_answer() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=3").await;
    assert_eq!(tree.settled().await.state, TreeState::Waiting);
    home.shutdown(Shutdown::Stop).await;
    let tree = resumed_after(&stage, &tree, 20).await;
    let snapshot = settled(&tree).await;
    assert_eq!(
        snapshot.end.unwrap().shown.text,
        "no answer in time; your default answer is used: blue it is"
    );
}
