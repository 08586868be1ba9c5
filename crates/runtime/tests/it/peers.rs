//! Waiting for messages: agents without a master wait for each other, and end together when no message can come.

use spinney_kernel::context::Message;
use spinney_kernel::record::{Event, ExitKind, Outcome};
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, recorded, settled};

const TREE: &str = "root turns=9 tools=wait_message,ask_human";

fn ends_of_waits(recorded: &[spinney::bus::RecordedEvent]) -> usize {
    let nobody = |event: &Event| matches!(event, Event::CallEnded { outcome: Outcome::NobodyLeft, .. });
    recorded.iter().filter(|recorded| nobody(&recorded.event)).count()
}

/// O23 (peers): an agent that waits for a message when no other could write is told so at once, not after a day.
#[tokio::test(start_paused = true)]
async fn o23_a_wait_for_a_message_ends_when_nobody_is_left() {
    let stage = TestHome::new(
        "rules: [ { when: { turn: 1 }, call: [ { tool: wait_message } ] }, { say: '{{ last }}' } ]",
    );
    let tree = stage.start(&stage.home(), TREE).await;
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
    assert_eq!(ends_of_waits(&recorded(&tree).await), 1);
    let attempts = stage.model().attempts();
    let last = attempts.last().unwrap().packet.messages.last().unwrap();
    let Message::Result { text, is_error, .. } = last.as_ref() else { panic!("{last:?}") };
    assert!(*is_error && text.starts_with("no message can come"), "{text}");
}

/// While a person may still answer somebody, a wait goes on; a message from outside ends it.
#[tokio::test(start_paused = true)]
async fn a_wait_goes_on_while_a_question_is_open() {
    let stage = TestHome::new(
        "rules: [ { when: { turn: 1 }, call: [ { tool: wait_message }, { tool: ask_human, args: { question: Go on? } } ] }, { say: '{{ last }}' } ]",
    );
    let tree = stage.start(&stage.home(), TREE).await;
    let waiting = settled(&tree).await;
    assert_eq!((waiting.state, waiting.questions.len()), (TreeState::Waiting, 1));
    tree.send("root".parse().unwrap(), "Yes, go on.").await.unwrap();
    tree.answer(waiting.questions[0].question, "yes").await.unwrap();
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
    assert_eq!(ends_of_waits(&recorded(&tree).await), 0);
}
