//! Answers that were cut at their output cap, in running trees.

use spinney_kernel::port::model::Purpose;
use spinney_kernel::record::ExitKind;
use spinney_kernel::words::limit;
use spinney_kernel::world::TreeState;
use spinney_testkit::{Stage, settled};

/// G3: the answer continues in one more turn, and both texts are one answer.
#[tokio::test]
async fn g3_a_cut_answer_goes_on_and_its_texts_are_joined() {
    let stage = Stage::new(
        "rules:
  - { when: { turn: 1 }, say: 'One, two, ', cut: output_cap }
  - { say: 'three.' }",
    );
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    let look = settled(&tree).await;
    assert_eq!(look.state, TreeState::Ended(ExitKind::Completed));
    assert_eq!(look.end.unwrap().shown.text, "One, two, three.");
    let attempts = stage.model().attempts();
    let purposes: Vec<Purpose> = attempts.iter().map(|attempt| attempt.purpose).collect();
    assert_eq!(purposes, [Purpose::Turn, Purpose::Continue]);
    let last = attempts[1].packet.messages.last().unwrap().text().into_owned();
    assert!(last.starts_with("Your answer was cut at its output cap. Go on"), "{last}");
}

/// G3: an answer that is cut again is partial; its result has the text of both turns.
#[tokio::test]
async fn g3_an_answer_that_is_cut_twice_is_partial() {
    let stage = Stage::new("rules: [{ say: 'More. ', cut: output_cap }]");
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    let look = settled(&tree).await;
    assert_eq!(look.state, TreeState::Ended(ExitKind::Failed));
    assert_eq!(look.end.unwrap().shown.text, "More. More. ");
    assert_eq!(stage.model().attempts().len(), 2);
}

/// Long answers are joined whole, not only the beginning that the event has.
#[tokio::test]
async fn the_whole_of_a_long_answer_is_joined() {
    let long = "x".repeat(limit::TEXT_BYTES_MAX + 10);
    let stage = Stage::new(&format!(
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
