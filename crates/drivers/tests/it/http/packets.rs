//! A packet of the kernel, as a provider is asked with it.

use std::sync::Arc;

use spinney_drivers::http::wire_request;
use spinney_drivers::wire::{Thinking, WireFormat, WireMessage, WireParams, WirePart, WireToolCall, write};
use spinney_kernel::context::{Attachments, Message};
use spinney_kernel::port::blobs::BlobReader;
use spinney_kernel::port::model::Purpose;
use spinney_kernel::primitives::{Actor, BlobHash, Body, Category, Enclosure, PartKind, enclose};
use spinney_kernel::record::ToolAsk;

use spinney_testkit::{TestHome, settled};

use crate::scene::{attempt, packet, with};

fn text(text: &str) -> WirePart {
    WirePart::Text(text.to_owned())
}

#[tokio::test]
async fn messages_keep_their_order_their_senders_and_their_parts() {
    let enclosure = |kind, media: &str, name: &str| Enclosure {
        kind,
        media: media.parse().unwrap(),
        name: name.parse().unwrap(),
        bytes: name.as_bytes().to_vec(),
    };
    let enclosed = vec![
        enclosure(PartKind::Image, "image/png", "old.png"),
        enclosure(PartKind::Image, "image/png", "new.png"),
        enclosure(PartKind::File, "text/plain", "notes.txt"),
    ];
    let (parts, _) = enclose(enclosed).unwrap();
    let lines: Vec<String> = parts.iter().map(ToString::to_string).collect();
    // The oldest image is not shown any more.
    let along = Some(Box::new(Attachments { parts, blank: 1, ..Attachments::default() }));
    let heard = |from, text: &str, along| Message::Heard {
        from,
        text: text.into(),
        category: Category::Dialog,
        along,
    };
    let ask =
        ToolAsk { id: "c1".into(), tool: "now".into(), args: "{}".into(), tokens: None, told_tokens: None };
    let messages = vec![
        heard(Actor::PERSON, "hello", along),
        heard(Actor::Agent("helper-1".parse().unwrap()), "I am done", None),
        Message::Said { body: Body::text("let me see"), asks: vec![ask] },
        Message::Result {
            id: "c1".into(),
            tool: "now".into(),
            text: "noon".into(),
            is_error: true,
            along: None,
        },
        Message::Note("be quick".into()),
    ];
    let read = |blob: &spinney_kernel::primitives::BlobRef, _: &str| {
        let names: [&[u8]; 2] = [b"new.png", b"notes.txt"];
        let bytes = names.into_iter().find(|name| BlobHash::digest(name) == blob.hash).unwrap().to_vec();
        Box::pin(std::future::ready(Ok(bytes))) as spinney_kernel::port::Pending<_>
    };
    let attempt = with(attempt(), |it| {
        it.packet = packet(messages);
        it.blobs = BlobReader::new(read);
        it.output_cap = 77;
    });
    let request = wire_request(&attempt, "some-model", WireParams::default()).await.unwrap();
    let image = WirePart::Image { media: "image/png".into(), bytes: b"new.png".to_vec() };
    let file =
        WirePart::File { name: "notes.txt".into(), media: "text/plain".into(), bytes: b"notes.txt".to_vec() };
    let left_out = format!("{}", attempt.packet.messages[0].parts().next().unwrap());
    let call = WireToolCall { id: "c1".into(), name: "now".into(), arguments: "{}".into(), is_whole: true };
    let expected = vec![
        WireMessage::User(vec![
            text("hello"),
            text(&left_out),
            text(&lines[1]),
            image,
            text(&lines[2]),
            file,
        ]),
        WireMessage::User(vec![text("helper-1: I am done")]),
        WireMessage::Assistant { text: "let me see".into(), calls: vec![call], continuation: None },
        WireMessage::Result {
            id: "c1".into(),
            tool: "now".into(),
            text: "noon".into(),
            is_error: true,
            parts: vec![],
        },
        WireMessage::User(vec![text("be quick")]),
    ];
    assert_eq!(request.messages, expected);
    assert_eq!((request.model.as_str(), request.output_cap), ("some-model", 77));
}

#[tokio::test]
async fn a_part_that_cannot_be_read_is_a_fault() {
    let bytes = b"x".to_vec();
    let name = "a.txt".parse().unwrap();
    let enclosure = Enclosure { kind: PartKind::File, media: "text/plain".parse().unwrap(), name, bytes };
    let along =
        Some(Box::new(Attachments { parts: enclose(vec![enclosure]).unwrap().0, ..Attachments::default() }));
    let heard = Message::Heard { from: Actor::PERSON, text: "hi".into(), category: Category::Dialog, along };
    let attempt = with(attempt(), |it| it.packet = packet(vec![heard]));
    let missed = wire_request(&Arc::new(attempt), "m", WireParams::default()).await.unwrap_err();
    assert_eq!(missed.fault.message, "`a.txt` has no bytes here");
}

/// G1 (thinking): a last call, and one that continues or sums up, is asked for a text: thinking leaves it half of the cap.
#[tokio::test]
async fn a_call_that_must_end_with_a_text_thinks_with_half_of_its_cap() {
    let thinking = |purpose, thinking| async move {
        let attempt = with(attempt(), |it| {
            it.packet = packet(Vec::new());
            it.purpose = purpose;
            it.output_cap = 3_000;
        });
        let params = WireParams { thinking: Some(thinking), ..WireParams::default() };
        wire_request(&attempt, "m", params).await.unwrap().params.thinking.unwrap()
    };
    let budget = Thinking::Budget(9_000);
    assert_eq!(thinking(Purpose::Turn, budget).await, budget);
    for purpose in [Purpose::WrapUp, Purpose::Continue, Purpose::Summary] {
        assert_eq!(thinking(purpose, budget).await, Thinking::Budget(1_500));
        assert_eq!(thinking(purpose, Thinking::Budget(1_100)).await, Thinking::Budget(1_100));
        assert_eq!(thinking(purpose, Thinking::Adaptive).await, Thinking::Adaptive);
    }
}

/// A provider is given the role of a briefed child as its instructions, then what its parent shares as background, and
/// then the child's own task, in every format.
#[tokio::test(start_paused = true)]
async fn a_briefed_child_is_given_its_own_task_last() {
    let stage = TestHome::new(
        "rules: [{ when: { agent: root, turn: 1 }, call: [{ tool: spawn_agent, args: { agent: helper, goal: Find the door., share: briefing } }] }, { say: done }]",
    );
    let home = stage.home();
    settled(&stage.start(&home, "root $9.00 turns=5 / helper later turns=5").await).await;
    let attempts = stage.model().attempts();
    let attempt = attempts.iter().find(|attempt| attempt.origin.role.as_str() == "helper").unwrap();
    let request = wire_request(attempt, "some-model", WireParams::default()).await.unwrap();
    assert!(!request.system.is_empty() && !request.system.contains(" task: "), "{}", request.system);
    let background = "[background: what root knows]\nIts task: Grow.";
    let expected = [background, "Your task: Find the door."].map(|said| WireMessage::User(vec![text(said)]));
    assert_eq!(request.messages, expected);
    for format in [
        WireFormat::OpenAiChat,
        WireFormat::CompatibleChat,
        WireFormat::OpenAiResponses,
        WireFormat::AnthropicMessages,
        WireFormat::Gemini,
    ] {
        let body = String::from_utf8(write(format, &request).unwrap()).unwrap();
        let place = |text: &str| body.find(text).unwrap_or_else(|| panic!("{body}"));
        assert!(place("Its task: Grow.") < place("Your task: Find the door."), "{body}");
    }
}
