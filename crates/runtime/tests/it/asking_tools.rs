//! A tool asks a person while it runs: the question is its agent's, and ends with the call.

use std::time::Duration;

use spinney::bus::Watch;
use spinney::function_tool::RawCall;
use spinney::tree::ApplyError;
use spinney::{FunctionTool, Shutdown, Tree};
use spinney_kernel::context::Message;
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{CallId, Seq};
use spinney_kernel::record::{Event, ExitKind, Outcome};
use spinney_kernel::rules::request::Answer;
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, recorded};

const TREE: &str = "root turns=5";
const SCRIPT: &str =
    "rules: [{ when: { turn: 1 }, call: [{ tool: paint, args: {} }] }, { say: '{{ last }}' }]";

/// A tree with a tool that asks for a colour.
fn stage(timeout_ms: u64) -> TestHome {
    let tool = FunctionTool::new(move |RawCall(attempt): RawCall| async move {
        let answered = attempt.person.ask("Which colour?".to_owned(), 600_000).await;
        answered.map(|colour| format!("painted {colour}")).map_err(|why| format!("{why:?}"))
    });
    TestHome::new(SCRIPT).with_tool("paint", tool.timeout_ms(timeout_ms))
}

/// The question, once it is asked.
async fn question(tree: &Tree) -> CallId {
    let asked = Watch { after: Seq(0), kind: Some("question_asked".to_owned()), ..Watch::default() };
    let traced = tree.watch(asked).next_event().await.unwrap().unwrap();
    let Event::QuestionAsked { call, question, .. } = &traced.recorded.event else { panic!("{traced:?}") };
    assert_eq!((question.text.as_str(), question.call.is_some()), ("Which colour?", true));
    *call
}

fn read_by(stage: &TestHome) -> String {
    let attempts = stage.model().attempts();
    let last = attempts.last().unwrap().packet.messages.last().unwrap();
    let Message::Result { text, .. } = last.as_ref() else { panic!("{last:?}") };
    text.lines().next().unwrap_or_default().to_owned()
}

async fn outcome(tree: &Tree, question: CallId) -> Outcome {
    let recorded = recorded(tree).await;
    let end = recorded.iter().find_map(|recorded| match &recorded.event {
        Event::CallEnded { call, outcome, .. } if *call == question => Some(outcome.clone()),
        _ => None,
    });
    end.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_running_tool_asks_a_person_and_reads_the_answer() {
    let stage = stage(600_000);
    let home = stage.home();
    let tree = stage.start(&home, TREE).await;
    let asked = question(&tree).await;
    tree.answer(asked, "red").await.unwrap();
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
    assert_eq!(read_by(&stage), "painted red");
    assert_eq!(stage.model().attempts().len(), 2, "the agent itself was not told of the answer");
}

/// G28 (requests without end): a call that takes too long takes its question with it.
#[tokio::test(start_paused = true)]
async fn g28_a_question_ends_with_the_call_that_asked_it() {
    let stage = stage(5_000);
    let home = stage.home();
    let tree = stage.start(&home, TREE).await;
    let asked = question(&tree).await;
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
    assert_eq!(outcome(&tree, asked).await, Outcome::Cancelled);
    assert!(read_by(&stage).contains("no end after"), "{}", read_by(&stage));
}

/// A call that is lost with its process leaves no question behind that nothing would read.
#[tokio::test(start_paused = true)]
async fn a_question_of_a_lost_call_is_not_asked_any_more() {
    let stage = stage(600_000);
    let home = stage.home();
    let tree = stage.start(&home, TREE).await;
    let asked = question(&tree).await;
    home.shutdown(Shutdown::Kill).await;
    let home = stage.home();
    // Nor would anything read an answer before it is resumed.
    let answered = home.apply(tree.id(), Answer::new(asked, "red")).await;
    let unknown = Refusal::UnknownQuestion { question: asked, open: Vec::new() };
    assert_eq!(answered, Err(ApplyError::Refused(unknown)));
    let tree = home.resume(tree.id()).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(60), tree.ended()).await.unwrap();
    assert_eq!(ended.state, TreeState::Ended(ExitKind::Completed));
    assert_eq!(outcome(&tree, asked).await, Outcome::Cancelled);
}
