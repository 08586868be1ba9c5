//! Long outputs of tools: a preview in the context, the whole in a file.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::sync::Arc;

use spinney_drivers::workspace::{StepWriter, Steps, Workspaces};
use spinney_kernel::context::offload::name;
use spinney_kernel::context::{Contexts, Message, Packet};
use spinney_kernel::definition::WindowSpec;
use spinney_kernel::primitives::{BlobHash, Seq, limit};
use spinney_kernel::record::{Event, Outcome};
use spinney_testkit::spinney::function_tool::{FunctionTool, RawCall};
use spinney_testkit::{TestHome, definition};

use crate::{Ran, files, names};

const MIB: usize = 1024 * 1024;

/// A text on one line.
fn line(letter: &str, bytes: usize) -> String {
    letter.repeat(bytes / letter.len())
}

/// A tool that returns as many bytes as it is asked for, of one letter.
fn dump() -> FunctionTool {
    FunctionTool::sync(|RawCall(attempt)| {
        let args: serde_json::Value = serde_json::from_str(&attempt.args).unwrap_or_default();
        let bytes = args["bytes"].as_u64().unwrap_or_default();
        Ok::<_, String>(line(args["letter"].as_str().unwrap_or("x"), bytes as usize))
    })
}

/// A root that dumps these and is done.
async fn dumped(dumps: &[(&str, usize)]) -> (Ran, Packet) {
    let call = |(letter, bytes): &(&str, usize)| {
        format!("{{ tool: dump, args: {{ letter: {letter}, bytes: {bytes} }} }}")
    };
    let calls: Vec<String> = dumps.iter().map(call).collect();
    let script =
        format!("rules:\n  - when: {{ turn: 1 }}\n    call: [ {} ]\n  - say: Done.\n", calls.join(", "));
    let stage = TestHome::new(&script).with_tool("dump", dump());
    let ran = Ran::play(&stage, "root $9.00 turns=20").await;
    let last = stage.model().attempts().pop().unwrap_or_else(|| panic!("nobody was asked"));
    (ran, last.packet.clone())
}

fn results(packet: &Packet) -> Vec<&str> {
    let text = |message: &'_ Arc<Message>| matches!(message.as_ref(), Message::Result { .. });
    let texts = packet.messages.iter().filter(|message| text(message));
    texts
        .map(|message| match message.as_ref() {
            Message::Result { text, .. } => text.as_str(),
            Message::System(_)
            | Message::Heard { .. }
            | Message::Said { .. }
            | Message::Shared { .. }
            | Message::Note(_)
            | Message::Mismatch(_)
            | Message::Repeated(_)
            | Message::Folded(_) => "",
        })
        .collect()
}

const LONG_AGO: &str = r#"
rules:
  - when: { turn: 1 }
    call: [ { tool: build } ]
  - when: { turn: 2 }
    call: [ { tool: dump, args: { letter: a, bytes: 1000000 } } ]
  - when: { turn: 62 }
    call: [ { tool: dump, args: { letter: b, bytes: 1000000 } } ]
  - when: { turn: 63 }
    say: Done.
  - call: [ { tool: look, args: { n: "{{ turn }}" } } ]
tools:
  build: { error: "the linker cc-7041 is not installed" }
  look: { say: "nothing new in {{ args.n }}" }
"#;

/// L40: after a failure, a megabyte on one line and sixty more steps, of which the last is a megabyte again, the packet
/// fits a small window, holds a bounded preview and both files' paths, still has the failure, and counts every step that
/// it leaves out. The files are what the tools returned, byte for byte.
#[tokio::test(start_paused = true)]
async fn l40_a_long_output_is_a_preview_and_a_file_and_an_early_failure_is_not_forgotten() {
    let stage = TestHome::new(LONG_AGO).with_tool("dump", dump());
    let mut definition = definition("root $9.00 turns=80");
    for turns in definition.roles.values_mut().filter_map(|role| role.turns.as_mut()) {
        turns.window = Some(WindowSpec { size: Some(4_250), ..WindowSpec::default() });
    }
    let tree = stage.home().start(definition).await.unwrap();
    tree.ended().await;
    let ran = Ran::from_tree(&stage, &tree).await;
    let last = stage.model().attempts().pop().unwrap();
    assert!(last.packet.tokens <= 4_250, "{}", last.packet.tokens);
    // A bounded preview and the file's path.
    let wholes = ["a", "b"].map(|letter| line(letter, 1_000_000));
    let names_of = wholes.each_ref().map(|whole| name(&BlobHash::digest(whole.as_bytes())));
    let shown = results(&last.packet);
    let words = format!("[998464 of 1000000 bytes left out; the whole is in offload/{}]", names_of[1]);
    assert_eq!(shown.last().unwrap(), &format!("{}\n{words}\n{}", line("b", 1_024), line("b", 512)));
    // The failure, and every step.
    let folded = last.packet.messages.iter().find_map(|message| match message.as_ref() {
        Message::Folded(folded) => Some(folded),
        Message::System(_)
        | Message::Heard { .. }
        | Message::Said { .. }
        | Message::Result { .. }
        | Message::Shared { .. }
        | Message::Note(_)
        | Message::Mismatch(_)
        | Message::Repeated(_) => None,
    });
    let folded = folded.unwrap();
    let text = folded.to_string();
    assert!(text.contains("- build {} failed: the linker cc-7041 is not installed"), "{text}");
    assert!(text.contains(&format!(": 1000000 bytes in offload/{}", names_of[0])), "{text}");
    assert_eq!(folded.steps() + shown.len(), 62);
    let omitted = folded.steps() - (text.lines().count() - 1);
    assert!(omitted > 0, "{text}");
    assert!(text.starts_with(&format!("Earlier steps in short ({omitted} more omitted):\n")), "{text}");
    // The files.
    let home = tempfile::tempdir().unwrap();
    ran.write(home.path());
    let offload = ran.agent(home.path(), "root").join("offload");
    for (whole, file) in wholes.iter().zip(&names_of) {
        assert!(fs::read(offload.join(file)).unwrap() == whole.as_bytes(), "{file}");
    }
    assert_eq!(names(&offload).len(), 2);
    assert_eq!(files(home.path()), ran.files(home.path()));
}

/// The folder has its own bound. What is beyond it is in the journal only, and model and person are told so.
#[tokio::test(start_paused = true)]
async fn what_has_no_room_is_no_file_and_the_step_says_so() {
    let (ran, packet) =
        dumped(&[("a", 10 * MIB), ("b", 10 * MIB), ("a", 10 * MIB), ("c", 6 * MIB), ("d", 3_000)]).await;
    let home = tempfile::tempdir().unwrap();
    ran.write(home.path());
    let refs: Vec<String> =
        ran.all_steps()["root"].iter().filter_map(|step| step.outcome_ref.clone()).collect();
    let hash = |letter, bytes| BlobHash::digest(line(letter, bytes).as_bytes());
    let file = |letter, bytes| format!("offload/{}", name(&hash(letter, bytes)));
    let (a, b, c) = (file("a", 10 * MIB), format!("blob:{}", hash("b", 10 * MIB)), file("c", 6 * MIB));
    assert_eq!(refs, [a.clone(), b, a, c, format!("blob:{}", hash("d", 3_000))]);
    let shown = results(&packet);
    let steps = &ran.all_steps()["root"];
    for (step, shown) in steps.iter().zip(&shown) {
        assert_eq!(step.observation, *shown);
    }
    assert!(shown[4].contains("\n[1464 of 3000 bytes left out; offload/ has no room for the whole]\n"));
    let offload = ran.agent(home.path(), "root").join("offload");
    assert_eq!(names(&offload).len(), 2);
    let bytes: u64 = files(&offload).values().map(|bytes| bytes.len() as u64).sum();
    assert_eq!(bytes, limit::OFFLOAD_BYTES_MAX);
}

/// What is larger than a blob may be is cut, and is not presented as the whole.
#[tokio::test(start_paused = true)]
async fn an_output_that_is_larger_than_a_blob_does_not_claim_to_be_whole() {
    let (ran, packet) = dumped(&[("ä", 17 * MIB)]).await;
    let kept = line("ä", limit::BLOB_BYTES_MAX);
    let file = name(&BlobHash::digest(kept.as_bytes()));
    let words = format!("[at least 16775680 bytes left out; the first 16777216 are in offload/{file}]");
    assert_eq!(results(&packet), [format!("{}\n{words}\n{}", line("ä", 1_024), line("ä", 512))]);
    let home = tempfile::tempdir().unwrap();
    ran.write(home.path());
    assert!(fs::read(ran.agent(home.path(), "root").join("offload").join(file)).unwrap() == kept.as_bytes());
}

/// The folder is ours: what is missing or wrong is written again, what is right is left, and the rest goes.
#[tokio::test(start_paused = true)]
async fn long_outputs_are_mended_from_the_journal() {
    let (ran, _) = dumped(&[("a", 3_000), ("b", 4_000), ("c", 5_000)]).await;
    let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    ran.write(home.path());
    let offload = ran.agent(home.path(), "root").join("offload");
    let [a, b, c] = [("a", 3_000), ("b", 4_000), ("c", 5_000)]
        .map(|(letter, bytes)| offload.join(name(&BlobHash::digest(line(letter, bytes).as_bytes()))));
    let right = fs::metadata(&c).unwrap().ino();
    fs::write(elsewhere.path().join("kept"), "mine").unwrap();
    fs::remove_file(&a).unwrap();
    symlink(elsewhere.path().join("kept"), &a).unwrap();
    fs::write(&b, line("x", 4_000)).unwrap();
    fs::write(offload.join(".unfinished-0123456789abcdef.txt"), "left over").unwrap();
    fs::write(offload.join("notes.txt"), "left over").unwrap();
    fs::create_dir_all(offload.join("deep/er")).unwrap();
    ran.mend(home.path()).unwrap();
    assert_eq!(files(home.path()), ran.files(home.path()));
    assert_eq!((names(&offload).len(), fs::metadata(&c).unwrap().ino()), (3, right));
    // A link in the folder's own place leads nowhere.
    fs::remove_dir_all(&offload).unwrap();
    symlink(elsewhere.path(), &offload).unwrap();
    ran.mend(home.path()).unwrap();
    assert_eq!(files(home.path()), ran.files(home.path()));
    assert_eq!(fs::read(elsewhere.path().join("kept")).unwrap(), b"mine");
    assert_eq!(names(elsewhere.path()), ["kept"]);
    // An agent without long outputs has nothing there.
    let other = Ran::play(&TestHome::new("rules: [ { say: Done. } ]"), "root $9.00 turns=20").await;
    assert_eq!(other.tree, ran.tree);
    other.mend(home.path()).unwrap();
    assert_eq!(files(home.path()), other.files(home.path()));
}

/// A blob that is gone is told, and everything else is written.
#[tokio::test(start_paused = true)]
async fn a_missing_blob_is_a_fault_that_names_the_file() {
    let (ran, _) = dumped(&[("a", 3_000)]).await;
    let home = tempfile::tempdir().unwrap();
    let mut step_writer =
        StepWriter::new(Workspaces::open(home.path(), ran.tree).unwrap(), Seq(0), |_| Ok(None));
    let taken =
        ran.recorded.iter().map(|recorded| step_writer.take(recorded.seq, recorded.at, &recorded.event));
    let faults: Vec<String> = taken.filter_map(Result::err).map(|fault| fault.to_string()).collect();
    let hash = BlobHash::digest(line("a", 3_000).as_bytes());
    assert_eq!(
        faults,
        [format!(
            "cannot write {}/root/offload/{}: the journal has no blob {hash} of 3000 bytes",
            ran.tree,
            name(&hash)
        )]
    );
    assert_eq!(names(&ran.agent(home.path(), "root").join("history")), ["step_001.json", "step_002.json"]);
}

/// A journal is not trusted: a gap that is in no text, or in the middle of a character, is none.
#[tokio::test(start_paused = true)]
async fn a_hostile_gap_is_ignored() {
    let (ran, _) = dumped(&[("ä", 6_000)]).await;
    for gap in [0, 1, 513, 1_535, 1_536, 1_537, u32::MAX] {
        let (mut contexts, mut steps) = (Contexts::new(ran.tree), Steps::new(ran.tree));
        let mut shown = 0;
        for recorded in &ran.recorded {
            let mut event = recorded.event.clone();
            if let Event::CallEnded { outcome: Outcome::Done { body, .. }, .. } = &mut event
                && let Some(beside) = body.beside.as_mut().filter(|beside| beside.rest.is_some())
            {
                beside.gap = Some(gap);
                shown += 1;
            }
            contexts.apply(&event);
            steps.take(recorded.seq, recorded.at, &event);
        }
        assert_eq!(shown, 1);
    }
}

/// A long shared value is shown to its reader as head and tail, and the whole is a file of the reader's workspace, once,
/// however often it is read.
#[tokio::test(start_paused = true)]
async fn a_long_shared_value_is_a_file_of_its_reader() {
    let value = line("v", limit::TEXT_BYTES_MAX);
    let script = format!(
        "
rules:
  - when: {{ agent: root, turn: 1 }}
    call: [ {{ tool: write_context, args: {{ key: k, value: {value} }} }} ]
  - when: {{ agent: root, turn: 2 }}
    call: [ {{ tool: spawn_agent, args: {{ agent: reader, id: reader, goal: Read. }} }} ]
  - when: {{ agent: reader, turn: 1 }}
    call: [ {{ tool: read_context, args: {{ key: k }} }}, {{ tool: read_context, args: {{ key: k }} }} ]
  - say: Done.
"
    );
    let stage = TestHome::new(&script);
    let ran = Ran::play(&stage, "root turns=9 out=40000 / reader later turns=9").await;
    let json = format!("\"{value}\"");
    let file = name(&BlobHash::digest(json.as_bytes()));
    let attempts = stage.model().attempts();
    let read = attempts.iter().rfind(|attempt| attempt.origin.agent().as_str() == "reader").unwrap();
    let left_out = json.len() - limit::OFFLOAD_HEAD_BYTES - limit::OFFLOAD_TAIL_BYTES;
    let shown = format!(
        "k version 1, {bytes} bytes, written by root:\n\"{}\n[{left_out} of {bytes} bytes left out; the whole is in offload/{file}]\n{}\"",
        line("v", limit::OFFLOAD_HEAD_BYTES - 1),
        line("v", limit::OFFLOAD_TAIL_BYTES - 1),
        bytes = json.len(),
    );
    assert_eq!(results(&read.packet), [shown.as_str(), shown.as_str()]);
    let home = tempfile::tempdir().unwrap();
    ran.write(home.path());
    assert_eq!(files(home.path()), ran.files(home.path()));
    assert_eq!(
        fs::read_to_string(ran.agent(home.path(), "reader").join("offload").join(file)).unwrap(),
        json
    );
}
