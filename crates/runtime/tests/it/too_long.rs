//! Packets that are longer than their model takes, on the real runtime.

use spinney_kernel::budget::Resource;
use spinney_kernel::context::Message;
use spinney_kernel::record::{Exit, ExitKind};
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, settled};

fn script(times: u32) -> String {
    let long = "word ".repeat(100);
    format!(
        "
rules:
  - {{ when: {{ turn: 5 }}, fail: {{ kind: context_too_long, times: {times} }}, say: Enough. }}
  - {{ say: 'Look {{{{ turn }}}}.', call: [ {{ tool: look, args: {{ turn: '{{{{ turn }}}}' }} }} ] }}
tools: {{ look: {{ say: '{long}' }} }}
"
    )
}

/// L31 (context too long): the second attempt has a shorter packet that still begins with the task, it costs a retry,
/// and the tree completes.
#[tokio::test(start_paused = true)]
async fn a_packet_that_is_too_long_is_cut_and_tried_again() {
    let stage = TestHome::new(&script(1));
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 retries=3 turns=20 tools=look").await;
    let snapshot = settled(&tree).await;
    assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Completed));
    assert_eq!(snapshot.end.unwrap().shown.text, "Enough.");
    let attempts = stage.model().attempts();
    let [long, short] = &attempts[4..] else { panic!("{}", attempts.len()) };
    assert_eq!((long.attempt, short.attempt, short.model.as_str()), (1, 2, "m"));
    assert!(
        short.packet.tokens * 100 <= long.packet.tokens * 75,
        "{} of {}",
        short.packet.tokens,
        long.packet.tokens
    );
    assert!(short.packet.messages.len() < long.packet.messages.len());
    assert_eq!(short.packet.messages[0], long.packet.messages[0]);
    assert!(matches!(short.packet.messages[1].as_ref(), Message::Folded(_)), "it is told what was left out");
    assert_eq!(snapshot.agents[0].spent.get(Resource::Retries), 1);
}

/// L31 (context too long): the second time, without a fallback that takes it, the error names the remedy.
#[tokio::test(start_paused = true)]
async fn a_packet_that_stays_too_long_fails_with_the_remedy() {
    let stage = TestHome::new(&script(9));
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=20 tools=look").await;
    let end = settled(&tree).await.end.unwrap();
    let Exit::Failed { error } = &end.exit else { panic!("{end:?}") };
    assert_eq!(error.code, "model_context_too_long");
    assert!(error.message.contains("give the agent a smaller `window.size`"), "{}", error.message);
    let tried: Vec<(String, u32)> =
        stage.model().attempts()[4..].iter().map(|tried| (tried.model.to_string(), tried.attempt)).collect();
    assert_eq!(tried, [("m".to_owned(), 1), ("m".to_owned(), 2), ("cheap".to_owned(), 3)]);
    assert_eq!(end.shown.text, "Look 4.");
}
