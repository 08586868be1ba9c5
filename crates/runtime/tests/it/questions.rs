//! Questions to people on the real runtime: they survive restarts, and after their timeout their policy applies,
//! whether or not a process runs the tree.

use spinney_journal::Blocking;
use std::time::Duration;

use spinney::bus::RecordedEvent;
use spinney::tree::{ApplyError, RequestError};
use spinney::{Shutdown, Tree};
use spinney_kernel::context::Message;
use spinney_kernel::primitives::{CallId, Seq};
use spinney_kernel::record::{Event, ExitKind};
use spinney_kernel::rules::request::{Answer, Cancel, Request};
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, recorded, settled};

const TREE: &str = "root turns=5 tools=ask_human";

/// A root that asks once, with these further arguments, and then repeats what it read.
fn asks(args: &str) -> TestHome {
    TestHome::new(&format!(
        r#"
rules:
  - when: {{ turn: 1 }}
    call: [{{ tool: ask_human, args: {{ question: "Which colour?", timeout: 10m{args} }} }}]
  - say: "{{{{ last }}}}"
"#
    ))
}

fn answer(question: u64) -> Request {
    Request::Answer(Answer::new(CallId(question), "red"))
}

/// The result of the last tool, as the model read it.
fn read_by(stage: &TestHome) -> String {
    let attempts = stage.model().attempts();
    let last = attempts.last().unwrap().packet.messages.last().unwrap();
    let Message::Result { text, .. } = last.as_ref() else { panic!("{last:?}") };
    text.lines().next().unwrap_or_default().to_owned()
}

/// The end of a question in the journal.
fn question_end(recorded: &[RecordedEvent], question: u64) -> serde_json::Value {
    let ended = |event: &Event| matches!(event, Event::CallEnded { call, .. } if *call == CallId(question));
    let end = recorded.iter().find(|recorded| ended(&recorded.event)).unwrap();
    serde_json::to_value(&end.event).unwrap()["outcome"].clone()
}

/// Starts the tree and kills the process while the question is open.
async fn killed(stage: &TestHome) -> Tree {
    let home = stage.home();
    let tree = stage.start(&home, TREE).await;
    assert_eq!(settled(&tree).await.state, TreeState::Waiting);
    home.shutdown(Shutdown::Kill).await;
    tree
}

async fn resumed(stage: &TestHome, tree: &Tree) -> (Tree, TreeState) {
    let tree = stage.home().resume(tree.id()).await.unwrap();
    let state = tree.ended().await.state;
    (tree, state)
}

/// O14 (answerable): a question that was open when the process died is open after the restart, and its answer reaches
/// the agent.
#[tokio::test(start_paused = true)]
async fn a_pending_question_is_answerable_after_a_restart() {
    let stage = asks("");
    let tree = killed(&stage).await;
    let home = stage.home();
    let tree = home.resume(tree.id()).await.unwrap();
    tree.answer(CallId(2), "red").await.unwrap();
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
    assert_eq!(read_by(&stage), "red");
    let end = question_end(&recorded(&tree).await, 2);
    assert_eq!((&end["answer"]["text"], end.get("is_default")), (&serde_json::json!("red"), None));
}

/// O14 (policies): after the timeout the question's policy applies: it fails, its default counts and is marked as a
/// default, or the agent is cancelled. The timeout passes while no process runs.
#[tokio::test(start_paused = true)]
async fn after_its_timeout_a_question_ends_by_its_policy() {
    for (args, state, reads) in [
        ("", "completed", "no answer in time: decide yourself, or ask another person"),
        (", on_timeout: fail", "completed", "no answer in time: decide yourself, or ask another person"),
        (", default: blue", "completed", "no answer in time; your default answer is used: blue"),
        (
            ", on_timeout: default, default: blue",
            "completed",
            "no answer in time; your default answer is used: blue",
        ),
        (", on_timeout: cancel", "cancelled", ""),
    ] {
        let stage = asks(args);
        let tree = killed(&stage).await;
        tokio::time::sleep(Duration::from_secs(11 * 60)).await;
        let (tree, ended) = resumed(&stage, &tree).await;
        assert_eq!(ended.as_str(), state, "{args}");
        let recorded = recorded(&tree).await;
        if reads.is_empty() {
            let exit = serde_json::to_value(&recorded.last().unwrap().event).unwrap()["exit"].clone();
            assert_eq!(exit["reason"], "no answer in time", "{args}");
            continue;
        }
        assert_eq!(read_by(&stage), reads, "{args}");
        let end = question_end(&recorded, 2);
        assert_eq!(
            end["is_default"],
            serde_json::json!(args.contains("blue").then_some(true)),
            "{args}: {end}"
        );
    }
}

/// O14 (forms): an answer is one of the choices, or JSON that its schema accepts. Another one is refused with what counts, the
/// question stays open, also after a kill, and the agent reads only what fits.
#[tokio::test(start_paused = true)]
async fn o14_only_an_answer_of_its_form_ends_a_question() {
    let schema = r#"{ type: object, properties: { count: { type: integer } }, required: [count] }"#;
    for (args, wrong, refused, right, read) in [
        (", choices: [red, blue]".to_owned(), "Red", "not_a_choice", "red", "red"),
        (
            format!(", answer_schema: {schema}"),
            "three",
            "answer_mismatch",
            " {\"count\": 3}\n",
            "{\"count\": 3}",
        ),
        (
            format!(", answer_schema: {schema}"),
            r#"{"count":"3"}"#,
            "answer_mismatch",
            r#"{"count":3}"#,
            r#"{"count":3}"#,
        ),
    ] {
        let stage = asks(&args);
        let tree = killed(&stage).await;
        let home = stage.home();
        // Also in a process that does not run the tree.
        let applied = home.apply(tree.id(), Answer::new(CallId(2), wrong)).await.unwrap_err();
        assert!(matches!(&applied, ApplyError::Refused(refusal) if refusal.code() == refused), "{applied}");
        let tree = home.resume(tree.id()).await.unwrap();
        let answered = tree.answer(CallId(2), wrong).await.unwrap_err();
        assert!(
            matches!(&answered, RequestError::Refused(refusal) if refusal.code() == refused),
            "{answered}"
        );
        tree.answer(CallId(2), right).await.unwrap();
        assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed), "{args}");
        assert_eq!(read_by(&stage), read, "{args}");
    }
}

/// A question that nobody could answer is refused to the model that asks it.
#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_can_answer_is_refused() {
    for (args, reason) in [
        (", choices: [red]", "write 2 to 50 choices, not 1"),
        (", choices: [red, Red]", "is there twice"),
        (", choices: [red, blue], default: green", "`green` is not one of the choices"),
        (", choices: [red, blue], answer_schema: {}", "exclude each other"),
        (", answer_schema: '[1]'", "not a JSON object"),
        (", answer_schema: { type: 5 }", "`answer_schema` cannot be used"),
        (", answer_schema: { $ref: 'file:///etc/passwd' }", "`answer_schema` cannot be used"),
        (", answer_schema: { type: integer }, default: many", "the default answer does not fit its schema"),
    ] {
        let stage = asks(args);
        let tree = stage.start(&stage.home(), TREE).await;
        assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed), "{args}");
        assert!(read_by(&stage).contains(reason), "{args}: {}", read_by(&stage));
    }
}

/// An empty default, and one that the policy does not use, are refused to the model with the reason.
#[tokio::test(start_paused = true)]
async fn a_policy_and_a_default_that_contradict_each_other_are_refused() {
    for (args, reason) in [
        (", on_timeout: default", "`on_timeout: default` needs `default`"),
        (", on_timeout: cancel, default: blue", "`default` is for `on_timeout: default`"),
        (", on_timeout: shout", "unknown variant `shout`"),
    ] {
        let stage = asks(args);
        let tree = stage.start(&stage.home(), TREE).await;
        assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
        assert!(read_by(&stage).contains(reason), "{args}: {}", read_by(&stage));
    }
}

/// O14 (late answers): an answer after the timeout is refused although no process runs the tree, and the question's
/// policy applies when one does.
#[tokio::test(start_paused = true)]
async fn an_answer_after_the_timeout_is_refused_when_the_tree_is_not_running() {
    let stage = asks(", default: blue");
    let tree = killed(&stage).await;
    tokio::time::sleep(Duration::from_secs(11 * 60)).await;
    let home = stage.home();
    let refused = home.apply(tree.id(), answer(2)).await.unwrap_err();
    let ApplyError::Refused(refusal) = &refused else { panic!("{refused}") };
    assert_eq!(
        refusal.to_string(),
        "question 2 timed out 1 minute ago: its `on_timeout` applied, so your answer has no effect"
    );
    let (tree, state) = resumed(&stage, &tree).await;
    assert_eq!(state, TreeState::Ended(ExitKind::Completed));
    assert_eq!(read_by(&stage), "no answer in time; your default answer is used: blue");
    assert_eq!(question_end(&recorded(&tree).await, 2)["is_default"], true);
}

/// Expired timers come before any request to a tree that is not running, and count even if the request is refused: a
/// tree whose question cancels it is cancelled by that, not by a later request.
#[tokio::test(start_paused = true)]
async fn due_timers_are_decided_before_a_request_to_a_tree_that_is_not_running() {
    let stage = asks(", on_timeout: cancel");
    let tree = killed(&stage).await;
    tokio::time::sleep(Duration::from_secs(11 * 60)).await;
    let home = stage.home();
    let cancel = Request::Cancel(Cancel { agent: "root".parse().unwrap(), reason: "too late".to_owned() });
    let refused = home.apply(tree.id(), cancel).await.unwrap_err();
    assert!(matches!(&refused, ApplyError::Refused(_)), "{refused}");
    let head = stage.journal().head(tree.id()).wait().unwrap().unwrap();
    assert_eq!(head.state, TreeState::Ended(ExitKind::Cancelled));
    let last = stage.journal().read(tree.id(), Seq(0), 100).wait().unwrap().pop().unwrap();
    let end = serde_json::to_value(last.batch.events.last().unwrap()).unwrap();
    assert_eq!(end["exit"]["reason"], "no answer in time");
}
