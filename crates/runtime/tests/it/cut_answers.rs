//! Answers that were cut at their output cap, in running trees.

use spinney_kernel::definition::OutputSchema;
use spinney_kernel::port::model::Purpose;
use spinney_kernel::primitives::limit;
use spinney_kernel::record::{Exit, ExitKind};
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, settled};

/// G3: the answer continues in one more turn, and both texts are one answer.
#[tokio::test]
async fn g3_a_cut_answer_goes_on_and_its_texts_are_joined() {
    let stage = TestHome::new(
        "rules:
  - { when: { turn: 1 }, say: 'One, two, ', cut: output_cap }
  - { say: 'three.' }",
    );
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    let snapshot = settled(&tree).await;
    assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Completed));
    assert_eq!(snapshot.end.unwrap().shown.text, "One, two, three.");
    let attempts = stage.model().attempts();
    let purposes: Vec<Purpose> = attempts.iter().map(|attempt| attempt.purpose).collect();
    assert_eq!(purposes, [Purpose::Turn, Purpose::Continue]);
    let last = attempts[1].packet.messages.last().unwrap().text().into_owned();
    assert!(last.starts_with("Your answer was cut off at its output cap. Continue"), "{last}");
}

/// G3: an answer that is cut again is partial; its result has the text of both turns.
#[tokio::test]
async fn g3_an_answer_that_is_cut_twice_is_partial() {
    let stage = TestHome::new("rules: [{ say: 'More. ', cut: output_cap }]");
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    let snapshot = settled(&tree).await;
    assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Failed));
    assert_eq!(snapshot.end.unwrap().shown.text, "More. More. ");
    assert_eq!(stage.model().attempts().len(), 2);
}

/// Long answers are joined whole, not only the beginning that the event has.
#[tokio::test]
async fn the_whole_of_a_long_answer_is_joined() {
    let long = "x".repeat(limit::TEXT_BYTES_MAX + 10);
    let stage = TestHome::new(&format!(
        "rules:
  - {{ when: {{ turn: 1 }}, say: '{long}', cut: output_cap }}
  - {{ say: END }}"
    ));
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5 out=100000").await;
    let shown = settled(&tree).await.end.unwrap().shown;
    let whole = stage.journal().blob(shown.rest().unwrap()).await.unwrap().unwrap();
    assert_eq!(String::from_utf8(whole).unwrap(), long + "END");
}

/// G3 (thinking): an answer whose cap was used up by thinking has no text to continue from: the model is asked once more,
/// and nothing that it said before becomes a part of the answer.
#[tokio::test]
async fn a_model_that_only_thought_is_asked_once_more() {
    let long = "hm ".repeat(400);
    let stage = TestHome::new(&format!(
        "rules:
  - {{ when: {{ turn: 1 }}, say: I look., call: [ {{ tool: look }} ] }}
  - {{ when: {{ turn: 2 }}, think: '{long}', say: Lost. }}
  - {{ think: Hm., say: Found. }}
tools: {{ look: {{ say: seen }} }}"
    ));
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5 tools=look").await;
    let snapshot = settled(&tree).await;
    assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Completed));
    assert_eq!(snapshot.end.unwrap().shown.text, "Found.");
    let attempts = stage.model().attempts();
    assert_eq!((attempts.len(), attempts[2].purpose), (3, Purpose::Continue));
    let messages = &attempts[2].packet.messages;
    insta::assert_snapshot!(messages.last().unwrap().text(), @"You reached your output cap before you said anything. Think less this time, and answer briefly.");
    let empty = messages.iter().filter(|message| message.text().is_empty()).count();
    assert_eq!(empty, 0, "no empty answer goes back to a provider");
}

/// G3 (thinking): thought through twice, the answer is partial: what was said before it, and why. A schema asks for no
/// repair of an answer that is not there.
#[tokio::test]
async fn a_model_that_only_thinks_ends_with_what_it_said_before() {
    let long = "hm ".repeat(400);
    let stage = TestHome::new(&format!(
        "rules:
  - {{ when: {{ turn: 1 }}, say: I look., call: [ {{ tool: look }} ] }}
  - {{ think: '{long}', say: Lost. }}
tools: {{ look: {{ say: seen }} }}"
    ));
    let home = stage.home();
    for schema in [None, Some(r#"{"type":"object"}"#)] {
        let mut definition = spinney_testkit::definition("root $9.00 turns=9 tools=look");
        let turns = definition.roles.values_mut().find_map(|role| role.turns.as_mut()).unwrap();
        turns.output_schema = schema.map(|text| Box::new(OutputSchema::read(text).unwrap()));
        let tree = home.start(definition).await.unwrap();
        let end = settled(&tree).await.end.unwrap();
        let Exit::Failed { error } = &end.exit else { panic!("{end:?}") };
        assert_eq!((error.code.as_str(), end.shown.text.as_str()), ("output_truncated", "I look."));
    }
    assert_eq!(stage.model().attempts().len(), 6);
}
