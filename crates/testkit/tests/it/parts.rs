//! Images and files of messages, in whole trees: what a model is shown, also after a restart, and how long their bytes
//! are kept.

use std::sync::Arc;

use spinney::tree::{BranchOff, RequestError, verify};
use spinney_journal::{Blocking, Journal, JournalFault, Shared};
use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::context::Shown;
use spinney_kernel::definition::{Definition, GivenMessage, Refusal, WindowSpec};
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{AttemptError, Deltas, Model, ModelAnswer, ModelAttempt};
use spinney_kernel::primitives::{
    Actor, BadPart, BlobRef, Body, Category, Enclosure, Part, RoleName, Seq, enclose, limit,
};
use spinney_kernel::rules::request::{Request, Send, SendReply, Spawn};
use spinney_testkit::spinney::function_tool::{Answered, FunctionTool, RawCall};
use spinney_testkit::{Scenario, TestHome, definition, recorded, settled};

use crate::observed::name;

pub(crate) fn image(called: &str) -> Enclosure {
    Enclosure::new(name("image/png"), name(called), format!("pixels of {called}").into_bytes())
}

fn file(called: &str) -> Enclosure {
    Enclosure::new(name("text/csv"), name(called), format!("rows of {called}").into_bytes())
}

/// The images of an attempt, in order: the name, or that it is left out.
fn images(attempt: &ModelAttempt) -> Vec<String> {
    let parts = attempt.packet.messages.iter().flat_map(|message| message.parts());
    let images = parts.filter(|shown| shown.part().is_image());
    images
        .map(|shown| match shown {
            Shown::Whole(part) => part.name().to_string(),
            Shown::LeftOut(part) => format!("({})", part.name()),
        })
        .collect()
}

fn shown(attempt: &ModelAttempt, called: &str) -> Part {
    let mut parts = attempt.packet.messages.iter().flat_map(|message| message.parts());
    parts.find(|shown| shown.part().name().as_str() == called).unwrap().part().clone()
}

/// A root with a window for this many images, and for this many tokens if that is limited.
fn windowed(images: u32, size: Option<u64>) -> Definition {
    let mut plan = definition("root $90.00 turns=40");
    let turns = plan.roles.get_mut(&name::<RoleName>("root")).and_then(|role| role.turns.as_mut()).unwrap();
    turns.window = Some(WindowSpec { images, size, ..WindowSpec::default() });
    plan
}

/// Looks again and again until a message arrives, then three times more.
const LOOKS: &str = r#"
rules:
  - when: { turn: 1 }
    call: [ { tool: ask_human, args: { question: Ready? } }, { tool: look, args: { slow: true } }, { tool: look, args: {} } ]
  - when: { turn: 2 }
    call: [ { tool: ask_human, args: { question: More? } } ]
  - when: { turn: 3 }
    call: [ { tool: ask_human, args: { question: Done? } } ]
  - say: seen
"#;

/// A tool that returns an image; the first request returns last.
fn look() -> FunctionTool {
    FunctionTool::new(async |RawCall(attempt)| {
        let is_slow = attempt.args.contains("slow");
        if is_slow {
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        }
        let called = if is_slow { "tool-1.png" } else { "tool-2.png" };
        Ok::<_, String>(Answered::new("found").with_parts([image(called)]))
    })
    .repeatable()
}

/// P5: of seven images in a packet for five the two oldest are placeholders with their reference, and the five newest
/// are whole, with their bytes. The next packets show the same, also after a restart.
#[tokio::test(start_paused = true)]
async fn p5_the_two_oldest_of_seven_images_are_placeholders() {
    for size in [None, Some(100_000)] {
        let stage = TestHome::new(LOOKS).with_tool("look", look());
        let home = stage.home();
        let tree = home.start(windowed(5, size)).await.unwrap();
        settled(&tree).await;
        let sent = vec![image("a.png"), file("rows.csv"), image("b.png"), image("c.png"), image("d.png")];
        tree.send_with(name("root"), "Look at these.", sent).await.unwrap();
        tree.send_with(name("root"), "", vec![image("e.png")]).await.unwrap();
        let question = tree.snapshot().await.unwrap().questions[0].question;
        tree.answer(question, "yes").await.unwrap();
        settled(&tree).await;
        let second = stage.model().attempts().pop().unwrap();
        let seven = ["(tool-1.png)", "(tool-2.png)", "a.png", "b.png", "c.png", "d.png", "e.png"];
        assert_eq!(images(&second), seven);
        let part = shown(&second, "tool-1.png");
        let hash = &part.blob().hash.as_str()[..16];
        assert_eq!(
            Shown::LeftOut(&part).to_string(),
            format!(
                "[image tool-1.png, image/png, 20 bytes, blob {hash}: left out, only newer images are shown]"
            )
        );
        assert_eq!(second.bytes(&shown(&second, "e.png")).await.unwrap(), b"pixels of e.png");
        assert_eq!(second.bytes(&shown(&second, "rows.csv")).await.unwrap(), b"rows of rows.csv");
        let missed = second.bytes(&part).await.unwrap_err();
        assert_eq!(missed.fault.message, "`tool-1.png` is not shown in this packet");

        // Between two cuts only the end changes, whichever process runs the tree.
        home.shutdown(spinney::Shutdown::Stop).await;
        let home = stage.home();
        let tree = home.resume(tree.id()).await.unwrap();
        settled(&tree).await;
        let question = tree.snapshot().await.unwrap().questions[0].question;
        tree.answer(question, "yes").await.unwrap();
        settled(&tree).await;
        let third = stage.model().attempts().pop().unwrap();
        assert_eq!(third.packet.messages[..second.packet.messages.len()], second.packet.messages[..]);
        assert_eq!(images(&third), seven);

        // One more image: one more placeholder, and earlier ones stay.
        tree.send_with(name("root"), "And this.", vec![image("f.png")]).await.unwrap();
        let question = tree.snapshot().await.unwrap().questions[0].question;
        tree.answer(question, "yes").await.unwrap();
        tree.ended().await;
        let last = stage.model().attempts().pop().unwrap();
        let eight = ["(tool-1.png)", "(tool-2.png)", "(a.png)", "b.png", "c.png", "d.png", "e.png", "f.png"];
        assert_eq!(images(&last), eight);
        assert!(verify(stage.journal().as_ref(), tree.id(), None).wait().unwrap().decided);
        let held = last.packet.tokens;
        assert!((5 * limit::IMAGE_TOKENS..8 * limit::IMAGE_TOKENS).contains(&held), "{held} tokens");
    }
}

/// P5: with no image allowed each becomes a placeholder at once; a file is not an image.
#[tokio::test(start_paused = true)]
async fn p5_a_window_for_no_image_shows_placeholders_and_files() {
    let stage = TestHome::new(
        "rules: [ { when: { turn: 1 }, call: [ { tool: ask_human, args: { question: A? } } ] }, { say: done } ]",
    );
    let home = stage.home();
    let tree = home.start(windowed(0, None)).await.unwrap();
    settled(&tree).await;
    tree.send_with(name("root"), "Look.", vec![image("a.png"), file("b.csv")]).await.unwrap();
    let question = tree.snapshot().await.unwrap().questions[0].question;
    tree.answer(question, "yes").await.unwrap();
    tree.ended().await;
    let attempts = stage.model().attempts();
    let [first, .., last] = attempts.as_slice() else { panic!("{}", attempts.len()) };
    assert_eq!(images(last), ["(a.png)"]);
    assert_eq!(last.bytes(&shown(last, "b.csv")).await.unwrap(), b"rows of b.csv");
    let more = last.packet.tokens - first.packet.tokens;
    assert!(more < limit::IMAGE_TOKENS, "{more} tokens");
}

/// A tool that returns invalid parts keeps its text and the valid ones; a note tells the model about the others.
#[tokio::test(start_paused = true)]
async fn a_tools_parts_above_a_limit_are_left_out_and_reported() {
    let script = "rules: [ { when: { turn: 1 }, call: [ { tool: look, args: {} } ] }, { say: done } ]";
    let many = |count: usize| (0..count).map(|nth| image(&format!("{nth}.png"))).collect::<Vec<_>>();
    let huge = Enclosure { bytes: vec![0; limit::PART_BYTES_MAX as usize + 1], ..file("huge.bin") };
    let empty = Enclosure { bytes: Vec::new(), ..file("empty.txt") };
    let wrong = Enclosure { media: name("image/tiff"), ..image("scan.tiff") };
    let half = |called: &str| Enclosure { bytes: vec![7; limit::PART_BYTES_MAX as usize], ..file(called) };
    let heavy = ["1", "2", "3", "4", "5"].map(half).to_vec();
    let cases = [
        (many(17), 16, "17 parts are too many"),
        (vec![image("a.png"), huge], 1, "`huge.bin` has 8388609 bytes and the limit is 8388608"),
        (vec![empty, image("a.png")], 1, "`empty.txt` is empty"),
        (vec![wrong], 0, "`scan.tiff` is not an image type that models accept (image/tiff)"),
        (heavy, 4, "41943040 bytes together"),
    ];
    for (returned, kept, words) in cases {
        let tool = FunctionTool::sync(move |_: RawCall| {
            Ok::<_, String>(Answered::new("found").with_parts(returned.clone()))
        });
        let stage = TestHome::new(script).with_tool("look", tool);
        let tree = stage.home().start(windowed(255, None)).await.unwrap();
        tree.ended().await;
        let last = stage.model().attempts().pop().unwrap();
        let result = last.packet.messages.last().unwrap();
        assert_eq!(result.parts().count(), kept, "{words}");
        let text = result.text();
        assert!(text.starts_with("found\n[a part was left out: ") && text.contains(words), "{text}");
    }
}

/// A message carries the bytes of its parts: naming a hash gives no access to bytes of another tree, and empty or
/// oversized parts are refused before anything is written.
#[tokio::test(start_paused = true)]
async fn parts_without_their_bytes_or_beyond_a_bound_are_refused() {
    let stage = TestHome::new("rules: [ { call: [ { tool: ask_human, args: { question: A? } } ] } ]");
    let home = stage.home();
    let (other, tree) =
        (home.start(windowed(5, None)).await.unwrap(), home.start(windowed(5, None)).await.unwrap());
    settled(&other).await;
    settled(&tree).await;
    other.send_with(name("root"), "Mine.", vec![image("mine.png")]).await.unwrap();
    let (parts, bytes) = enclose(vec![image("mine.png")]).unwrap();
    let send = |parts: Vec<Part>| Send::plain(name("root"), Body::text("x").with_parts(parts));
    let refused = |ended: Result<_, RequestError>| match ended {
        Err(RequestError::Refused(Refusal::Part { part })) => part,
        other => panic!("{other:?}"),
    };
    let before = tree.status().seq;
    let stolen = BadPart::NoBytes { name: name("mine.png") };
    assert_eq!(refused(tree.request(Actor::PERSON, send(parts.clone())).await), stolen);
    let others = vec![b"other bytes".to_vec()];
    assert_eq!(refused(tree.request_with(Actor::PERSON, send(parts.clone()), others).await), stolen);
    let many = vec![parts[0].clone(); 17];
    let recorded = refused(tree.request_with(Actor::PERSON, send(many), bytes.clone()).await);
    assert_eq!(recorded, BadPart::TooMany { count: 17, count_max: limit::PARTS_MAX });
    let empty = Enclosure { bytes: Vec::new(), ..image("none.png") };
    let recorded =
        refused(tree.send_with(name("root"), "x", vec![empty]).await.map(|()| SendReply::Delivered));
    assert_eq!(recorded, BadPart::Empty { name: name("none.png") });
    assert_eq!(tree.status().seq, before);
    // With its bytes it is accepted, and the same image twice is one blob.
    let twice = vec![parts[0].clone(); 2];
    tree.request_with(Actor::PERSON, send(twice), bytes).await.unwrap();
}

fn blobs(parts: &[Part]) -> Vec<BlobRef> {
    parts.iter().map(|part| part.blob().clone()).collect()
}

/// The bytes of parts are kept as long as a tree or a branch shows them.
#[tokio::test(start_paused = true)]
async fn bytes_of_parts_live_as_long_as_a_tree_that_names_them() {
    let script = "rules: [ { when: { turn: 1 }, call: [ { tool: look, args: {} }, { tool: ask_human, args: { question: A? } } ] }, { say: done } ]";
    let stage = TestHome::new(script).with_tool("look", look());
    let home = stage.home();
    let journal: &dyn Journal = stage.journal().as_ref();
    let tree = home.start(windowed(5, None)).await.unwrap();
    settled(&tree).await;
    tree.send_with(name("root"), "Look.", vec![image("a.png"), file("b.csv")]).await.unwrap();
    let (sent, _) = enclose(vec![image("a.png"), file("b.csv"), image("tool-2.png")]).unwrap();
    let all = blobs(&sent);
    assert!(all.iter().all(|blob| journal.blob(blob).wait().unwrap().is_some()));
    let at = tree.checkpoint(name("root"), None).await.unwrap();
    let at = spinney_journal::checkpoints(journal, None)
        .wait()
        .unwrap()
        .into_iter()
        .find(|listed| listed.name == at)
        .unwrap();
    let branch = home.draw_id();
    let budget = Ceilings::NONE.with(Resource::Cost, 90_000_000_000);
    let off = BranchOff { from: tree.id(), at: at.known.seq, agent: name("root"), budget };
    home.branch(branch, off).await.unwrap();
    home.shutdown(spinney::Shutdown::Stop).await;
    let home = stage.home();
    home.remove(tree.id(), Shared::HandOver).await.unwrap();
    assert!(all.iter().all(|blob| journal.blob(blob).wait().unwrap().is_some()), "the branch has them");
    let branched = home.resume(branch).await.unwrap();
    settled(&branched).await;
    let question = branched.snapshot().await.unwrap().questions[0].question;
    branched.answer(question, "yes").await.unwrap();
    branched.ended().await;
    let last = stage.model().attempts().pop().unwrap();
    assert_eq!(images(&last), ["tool-2.png", "a.png"]);
    assert_eq!(last.bytes(&sent[0]).await.unwrap(), b"pixels of a.png");
    assert!(verify(journal, branch, None).wait().is_ok());
    home.remove(branch, Shared::Refuse).await.unwrap();
    assert_eq!(
        all.iter().map(|blob| journal.blob(blob).wait()).collect::<Vec<_>>(),
        vec![Ok::<_, JournalFault>(None); 3]
    );
}

/// An event describes a part, never its content, and names the blobs that a replay needs.
#[tokio::test(start_paused = true)]
async fn events_name_parts_and_hold_no_bytes() {
    let script = "rules: [ { when: { turn: 1 }, call: [ { tool: look, args: {} }, { tool: ask_human, args: { question: A? } } ] }, { say: done } ]";
    let stage = TestHome::new(script).with_tool("look", look());
    let home = stage.home();
    let tree = home.start(windowed(5, None)).await.unwrap();
    settled(&tree).await;
    tree.send_with(name("root"), "Look.", vec![image("a.png")]).await.unwrap();
    tree.cancel(name("root"), "enough").await.unwrap();
    let recorded = recorded(&tree).await;
    let json =
        recorded.iter().map(|recorded| serde_json::to_string(&recorded.event).unwrap()).collect::<String>();
    assert!(json.contains("a.png") && json.contains("tool-2.png") && !json.contains("pixels of"), "{json}");
    let (parts, _) = enclose(vec![image("tool-2.png"), image("a.png")]).unwrap();
    let named: Vec<BlobRef> = recorded
        .iter()
        .flat_map(|recorded| {
            spinney_journal::blobs_of(&recorded.event).into_iter().cloned().collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(named, blobs(&parts));
    // Batches with parts are read back as they were appended.
    for entry in stage.journal().read(tree.id(), Seq(0), 99).wait().unwrap() {
        let json = serde_json::to_string(&entry.batch).unwrap();
        assert_eq!(serde_json::from_str::<spinney_journal::Batch>(&json).unwrap(), entry.batch);
    }
}

/// A child that is given images shows them in its first turn.
#[tokio::test(start_paused = true)]
async fn a_child_is_given_images_with_its_messages() {
    let stage = TestHome::new(
        "rules: [ { when: { agent: root }, call: [ { tool: ask_human, args: { question: A? } } ] }, { say: done } ]",
    );
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5 / b later turns=5").await;
    settled(&tree).await;
    let (parts, bytes) = enclose(vec![image("a.png"), image("b.png")]).unwrap();
    let given = |part: &Part| {
        let body = Body::text("See.").with_parts(vec![part.clone()]);
        GivenMessage { category: Category::Context, body }
    };
    let messages = parts.iter().map(given).collect();
    let spawn = Spawn { id: Some(name("child")), messages, ..Scenario::spawn("root", "b") };
    tree.request_with(Actor::PERSON, Request::Spawn(spawn), bytes).await.unwrap();
    stage.model().until_out(0).await;
    settled(&tree).await;
    let attempts = stage.model().attempts();
    let child = attempts.iter().find(|attempt| attempt.origin.agent().as_str() == "child").unwrap();
    assert_eq!(images(child), ["a.png", "b.png"]);
    assert_eq!(
        child.bytes(&Arc::clone(child).packet.messages[1].along().unwrap().parts[0]).await.unwrap(),
        b"pixels of a.png"
    );
}

/// A long text and an image in one answer are two blobs: the text is a preview with a file, the image is an image. When
/// the window is full, the digest mentions the attachment.
#[tokio::test(start_paused = true)]
async fn a_long_answer_with_an_image_keeps_both() {
    let script = "rules: [ { when: { turn: 12 }, say: done }, { call: [ { tool: look, args: {} } ] } ]";
    let tool = FunctionTool::sync(|_: RawCall| {
        Ok::<_, String>(Answered::new("many words ".repeat(400)).with_parts([image("a.png")]))
    });
    let stage = TestHome::new(script).with_tool("look", tool);
    let tree = stage.home().start(windowed(1, Some(5_800))).await.unwrap();
    tree.ended().await;
    let attempts = stage.model().attempts();
    let second = attempts[1].packet.messages.last().unwrap();
    let along = second.along().unwrap();
    assert_eq!((along.parts.len(), along.file.as_ref().map(|file| file.bytes)), (1, Some(4_400)));
    let folded = attempts[11].packet.messages[1].text().into_owned();
    assert!(folded.starts_with("Earlier steps in short") && folded.contains(" with 1 part"), "{folded}");
    assert!(attempts.iter().all(|attempt| attempt.packet.tokens <= 5_800));
}

/// A driver counts what it can; otherwise an image counts as its maximum, a text as its words, and the rest as its
/// bytes.
#[test]
fn parts_count_by_kind_unless_a_driver_knows_better() {
    struct Words;
    impl Model for Words {
        fn call(&self, _: Arc<ModelAttempt>, _: Deltas) -> Pending<Result<ModelAnswer, AttemptError>> {
            unreachable!("it only counts")
        }
        fn tokens(&self, text: &str) -> u64 {
            text.split_whitespace().count() as u64
        }
    }
    let counted = |enclosure: &Enclosure| {
        let part = enclosure.part().unwrap();
        (part.counted().bound(), Words.part_tokens(&part, &enclosure.bytes))
    };
    let pdf = Enclosure::new(name("application/pdf"), name("a.pdf"), b"a b c".to_vec());
    let broken = Enclosure { bytes: vec![0xff; 7], ..file("a.csv") };
    let all = [image("a.png"), file("a.csv"), pdf, broken];
    assert_eq!(all.each_ref().map(counted), [(1_600, 1_600), (13, 3), (5, 5), (7, 7)]);
}
