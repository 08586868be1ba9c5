//! What agents write is in the journal: the folder on disk is a copy that is filled when a tree is resumed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use spinney_drivers::files::{FileTool, Files};
use spinney_journal::{blobs_of, checkpoints};
use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::definition::{FolderAccess, FolderGrants};
use spinney_kernel::port::model::AttemptError;
use spinney_kernel::primitives::limit;
use spinney_kernel::record::{Event, Outcome};
use spinney_testkit::spinney::tool::{
    OutputPath, Pending, Tool, ToolAnswer, ToolAttempt, ToolSpec, WrittenFile,
};
use spinney_testkit::spinney::tree::{BranchOff, verify};
use spinney_testkit::spinney::{ResumeError, Shutdown, Tree};
use spinney_testkit::{TestHome, definition, recorded, settled};
use tokio::sync::watch;

/// Writes two versions of a file and another one, asks a person, and reads them.
const WRITES: &str = "
rules:
  - { when: { turn: 1 }, call: [{ tool: write_file, args: { path: outputs/a/plan.md, text: First. } }] }
  - { when: { turn: 2 }, call: [{ tool: write_file, args: { path: outputs/a/plan.md, text: Second. } }, { tool: write_file, args: { path: outputs/b.md, text: Beside. } }] }
  - { when: { turn: 3 }, call: [{ tool: ask_human, args: { question: Which? } }] }
  - { when: { turn: 4 }, call: [{ tool: read_file, args: { path: outputs/a/plan.md } }] }
  - { say: 'I read: {{ last }}' }
";
const FIXTURE: &str = "root $9.00 turns=9";

fn outputs(folder: &Path, tree: &Tree) -> PathBuf {
    folder.join("workspace").join(tree.id().to_string()).join("root/outputs")
}

/// A tree that waits for an answer, in a home that is shut down.
async fn waiting(stage: &TestHome) -> Tree {
    let home = stage.home();
    let tree = stage.start(&home, FIXTURE).await;
    assert_eq!(settled(&tree).await.questions.len(), 1);
    home.shutdown(Shutdown::Kill).await;
    tree
}

/// Resumes a tree, answers it, and returns what it says in the end.
async fn answered(stage: &TestHome, tree: &Tree) -> String {
    let home = stage.home();
    let tree = home.resume(tree.id()).await.unwrap();
    let question = settled(&tree).await.questions[0].question;
    tree.answer(question, "this one").await.unwrap();
    tree.ended().await;
    let said = recorded(&tree).await.into_iter().rev().find_map(|recorded| match recorded.event {
        Event::CallEnded { outcome: Outcome::Done { body, .. }, .. } => Some(body.text),
        _ => None,
    });
    assert!(verify(stage.journal().as_ref(), tree.id(), None).await.is_ok());
    said.unwrap()
}

/// G31, in part: on another machine, or after the folder was lost or changed, an agent finds what it wrote.
#[tokio::test(start_paused = true)]
async fn g31_the_files_of_an_agent_are_filled_in_from_the_journal() {
    let lost = |folder: &Path| fs::remove_dir_all(folder.join("workspace")).unwrap();
    let changed = |outputs: &Path| fs::write(outputs.join("a/plan.md"), "torn").unwrap();
    for is_lost in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let stage = TestHome::new(WRITES).with_files(folder.path());
        let tree = waiting(&stage).await;
        let outputs = outputs(folder.path(), &tree);
        assert_eq!(fs::read_to_string(outputs.join("a/plan.md")).unwrap(), "Second.");
        if is_lost {
            lost(folder.path());
        } else {
            changed(&outputs);
        }
        assert_eq!(answered(&stage, &tree).await, "I read: Second.");
        assert_eq!(fs::read_to_string(outputs.join("b.md")).unwrap(), "Beside.");
    }
}

/// A file that the journal does not name is left alone: an older release wrote it, or a person.
#[tokio::test(start_paused = true)]
async fn other_files_stay() {
    let folder = tempfile::tempdir().unwrap();
    let stage = TestHome::new(WRITES).with_files(folder.path());
    let tree = waiting(&stage).await;
    let other = outputs(folder.path(), &tree).join("other.md");
    fs::write(&other, "mine").unwrap();
    answered(&stage, &tree).await;
    assert_eq!(fs::read_to_string(other).unwrap(), "mine");
}

/// A branch has the files of the moment at which it leaves its origin.
#[tokio::test(start_paused = true)]
async fn g31_a_branch_has_the_files_of_its_origin() {
    let folder = tempfile::tempdir().unwrap();
    let stage = TestHome::new(WRITES).with_files(folder.path());
    let tree = waiting(&stage).await;
    let home = stage.home();
    let tree = home.resume(tree.id()).await.unwrap();
    let name = tree.checkpoint("root".parse().unwrap(), None).await.unwrap();
    let listed = checkpoints(stage.journal().as_ref(), None).await.unwrap();
    let known = &listed.iter().find(|listed| listed.name == name).unwrap().known;
    let budget = Ceilings::NONE.with(Resource::Cost, 1_000_000_000);
    let off = BranchOff { from: tree.id(), at: known.seq, agent: known.agent.clone(), budget };
    let branch = home.draw_id();
    home.branch(branch, off).await.unwrap();
    home.shutdown(Shutdown::Kill).await;
    let home = stage.home();
    fs::remove_dir_all(folder.path().join("workspace")).unwrap();
    let branch = home.resume(branch).await.unwrap();
    settled(&branch).await;
    assert_eq!(fs::read_to_string(outputs(folder.path(), &branch).join("b.md")).unwrap(), "Beside.");
    assert!(!outputs(folder.path(), &tree).exists());
    home.shutdown(Shutdown::Kill).await;
}

/// A tree whose agents cannot have their files does not continue without them.
#[tokio::test(start_paused = true)]
async fn a_folder_that_cannot_be_filled_keeps_its_tree_from_being_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let stage = TestHome::new(WRITES).with_files(folder.path());
    let tree = waiting(&stage).await;
    let outputs = outputs(folder.path(), &tree);
    fs::remove_dir_all(&outputs).unwrap();
    std::os::unix::fs::symlink(folder.path(), &outputs).unwrap();
    let Err(refused) = stage.home().resume(tree.id()).await else { panic!("it was resumed") };
    assert!(
        matches!(&refused, ResumeError::Files { reason, .. } if reason.contains("root/outputs/a/plan.md")),
        "{refused}"
    );
    assert!(!folder.path().join("a").exists());
    fs::remove_file(&outputs).unwrap();
    assert_eq!(answered(&stage, &tree).await, "I read: Second.");
}

/// Writes two files, edits one and deletes the other, asks a person, and looks.
const CHANGES: &str = "
rules:
  - { when: { turn: 1 }, call: [{ tool: write_file, args: { path: outputs/a/plan.md, text: First. } }, { tool: write_file, args: { path: outputs/b.md, text: Beside. } }] }
  - { when: { turn: 2 }, call: [{ tool: delete_file, args: { path: outputs/a/plan.md } }, { tool: edit_file, args: { path: outputs/b.md, old_text: Beside, new_text: Alone } }] }
  - { when: { turn: 3 }, call: [{ tool: ask_human, args: { question: Which? } }] }
  - { when: { turn: 4 }, call: [{ tool: search_files, args: { pattern: . } }] }
  - { say: 'I found: {{ last }}' }
";

/// G31, in part: an agent that deleted a file does not find it again, whatever became of the folder and on whichever
/// machine: not in a folder that is filled from nothing, and not in an older copy that still has the file.
#[tokio::test(start_paused = true)]
async fn g31_a_deleted_file_stays_deleted_and_an_edited_one_edited() {
    for has_older_copy in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let stage = TestHome::new(CHANGES).with_files(folder.path());
        let tree = waiting(&stage).await;
        let outputs = outputs(folder.path(), &tree);
        assert!(!outputs.join("a").exists());
        fs::remove_dir_all(folder.path().join("workspace")).unwrap();
        if has_older_copy {
            fs::create_dir_all(outputs.join("a")).unwrap();
            fs::write(outputs.join("a/plan.md"), "First.").unwrap();
            fs::write(outputs.join("b.md"), "Beside.").unwrap();
        }
        let said = answered(&stage, &tree).await;
        assert_eq!(said, "I found: outputs/b.md:1: Alone.\n[1 matching line; 1 file searched]");
        assert!(!outputs.join("a").exists());
    }
}

/// A deleted file makes room for another one, and a journal that names neither is refused nothing.
#[tokio::test(start_paused = true)]
async fn a_deleted_file_no_longer_counts() {
    let mut rules = String::from("rules:\n");
    for turn in (1..25).step_by(2) {
        let path = format!("outputs/{turn}.md");
        rules += &format!(
            "  - {{ when: {{ turn: {turn} }}, call: [{{ tool: write_file, args: {{ path: {path}, text: x }} }}] }}\n  - {{ when: {{ turn: {} }}, call: [{{ tool: delete_file, args: {{ path: {path} }} }}] }}\n",
            turn + 1
        );
    }
    rules += "  - { say: done }\n";
    let folder = tempfile::tempdir().unwrap();
    let stage = TestHome::new(&rules).with_files(folder.path());
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=40").await;
    tree.ended().await;
    let events = recorded(&tree).await;
    assert_eq!(events.iter().map(|recorded| recorded.event.removed_files().len()).sum::<usize>(), 12);
    let failed = events.iter().any(|recorded| {
        matches!(&recorded.event, Event::CallEnded { outcome: Outcome::Done { is_error: true, .. }, .. })
    });
    assert!(!failed);
    assert!(verify(stage.journal().as_ref(), tree.id(), None).await.is_ok());
    home.shutdown(Shutdown::Kill).await;
}

/// A tool that writes these files, whatever its limits are.
struct Writes(Vec<(&'static str, usize)>);

impl Tool for Writes {
    fn spec(&self) -> ToolSpec {
        ToolSpec::default()
    }

    fn call(&self, _: ToolAttempt) -> Pending<Result<ToolAnswer, AttemptError>> {
        let file = |(path, bytes): &(&str, usize)| {
            let path: OutputPath = path.parse().unwrap();
            WrittenFile { path, bytes: vec![b'x'; *bytes] }
        };
        let files = self.0.iter().map(file).collect();
        Box::pin(std::future::ready(Ok(ToolAnswer::text("wrote").with_files(files))))
    }
}

/// Files come with the batch that ends their call, within the limits of their agent; a tool that passes these has failed.
#[tokio::test(start_paused = true)]
async fn what_a_tool_writes_beyond_its_limits_is_a_failure() {
    let script = "rules: [{ when: { turn: 1 }, call: [{ tool: fill }] }, { when: { turn: 2 }, call: [{ tool: fill }] }, { say: done }]";
    let many: Vec<(&str, usize)> = vec![("same.md", 1); limit::CALL_FILES_MAX + 1];
    for (files, failure) in [
        (vec![("a.md", 400_000), ("b/c.md", 600_000)], None),
        (vec![("a.md", 400_001), ("b/c.md", 600_000)], Some("max_output_size_bytes")),
        (
            vec![
                ("1", 1),
                ("2", 1),
                ("3", 1),
                ("4", 1),
                ("5", 1),
                ("6", 1),
                ("7", 1),
                ("8", 1),
                ("9", 1),
                ("10", 1),
                ("11", 1),
            ],
            Some("max_output_files"),
        ),
        (vec![("a.md", limit::BLOB_BYTES_MAX + 1)], Some("in one call")),
        (many, Some("in one call")),
    ] {
        let stage = TestHome::new(script).with_tool("fill", Writes(files.clone()));
        let home = stage.home();
        let tree = stage.start(&home, FIXTURE).await;
        tree.ended().await;
        let events = recorded(&tree).await;
        let failures: Vec<String> = events
            .iter()
            .filter_map(|recorded| match &recorded.event {
                Event::CallEnded { outcome: Outcome::Failed { fault }, .. } => Some(fault.message.clone()),
                _ => None,
            })
            .collect();
        match failure {
            Some(words) => assert!(
                failures.len() == 2 && failures.iter().all(|message| message.contains(words)),
                "{failures:?}"
            ),
            None => assert_eq!(failures, Vec::<String>::new()),
        }
        for blob in events.iter().flat_map(|recorded| blobs_of(&recorded.event)) {
            assert!(stage.journal().blob(blob).await.unwrap().is_some());
        }
        let named: usize = events.iter().map(|recorded| recorded.event.files().len()).sum();
        assert_eq!(named, if failure.is_some() { 0 } else { 2 * files.len() });
        assert!(verify(stage.journal().as_ref(), tree.id(), None).await.is_ok());
        home.shutdown(Shutdown::Kill).await;
    }
}

/// No path of a journal leads out of the outputs of its agent.
#[test]
fn the_path_of_an_output_is_plain() {
    let long = format!("{}/x", ["n"; limit::FILE_PATH_NAMES_MAX].join("/"));
    for bad in [
        "",
        "/",
        "/etc/passwd",
        "..",
        "../x",
        "a/../b",
        "a//b",
        "a/",
        ".hidden",
        "a/.",
        "a\\b",
        "a\nb",
        "a\0b",
        "x ",
        &long,
        &"y".repeat(129),
    ] {
        assert!(bad.parse::<OutputPath>().is_err(), "{bad:?}");
    }
    for good in ["plan.md", "a/b c (1).md", "über/日本.txt"] {
        assert_eq!(good.parse::<OutputPath>().unwrap().as_str(), good);
    }
}

/// A file tool whose process dies after it has acted and before its answer is recorded.
struct DiesAfter {
    inner: Arc<dyn Tool>,
    acted: watch::Sender<usize>,
}

impl Tool for DiesAfter {
    fn spec(&self) -> ToolSpec {
        self.inner.spec()
    }

    fn call(&self, attempt: ToolAttempt) -> Pending<Result<ToolAnswer, AttemptError>> {
        let (call, acted) = (self.inner.call(attempt), self.acted.clone());
        Box::pin(async move {
            let answer = call.await.unwrap();
            assert!(!answer.is_error, "{}", answer.text);
            acted.send_modify(|count| *count += 1);
            std::future::pending().await
        })
    }
}

/// What becomes of a call that acted in a process that died: what the agent is told by the one after it.
async fn said_after_death(folder: &Path, tool: FileTool, args: &Value) -> String {
    let call = json!([{ "tool": tool.as_str(), "args": args }]);
    let script =
        format!("rules:\n  - {{ when: {{ turn: 1 }}, call: {call} }}\n  - {{ say: '{{{{ last }}}}' }}\n");
    let stage = TestHome::new(&script).with_files(folder);
    let (acted, mut seen) = watch::channel(0);
    let dying = DiesAfter { inner: Files::default().tool(tool), acted };
    let home = stage.home_with(|drivers| drivers.with_tool(tool.name(), Arc::new(dying)));
    let mut definition = definition(FIXTURE);
    let user = folder.join("user").canonicalize().unwrap();
    let user = user.to_str().unwrap().parse().unwrap();
    definition.folders = Some(FolderGrants::default().with(user, FolderAccess::Write));
    let tree = home.start(definition).await.unwrap();
    seen.wait_for(|count| *count == 1).await.unwrap();
    home.shutdown(Shutdown::Kill).await;
    let home = stage.home();
    let tree = home.resume(tree.id()).await.unwrap();
    tree.ended().await;
    let ended = recorded(&tree).await.into_iter().rev().find_map(|recorded| match recorded.event {
        Event::CallEnded { outcome: Outcome::Done { body, .. }, .. } => Some(body.text),
        _ => None,
    });
    assert!(verify(stage.journal().as_ref(), tree.id(), None).await.is_ok());
    ended.unwrap()
}

/// X2: outputs are what the journal has before a tree continues, so a call that changes one is repeated. Files of the user
/// are as the dead process left them, and may have changed since: a call that changes one is reported lost.
#[tokio::test]
async fn x2_only_changes_of_outputs_are_repeated() {
    let folder = tempfile::Builder::new().prefix("spinney-lost-").tempdir_in("/var/tmp").unwrap();
    let user = |name: &str| folder.path().canonicalize().unwrap().join("user").join(name);
    fs::create_dir(folder.path().join("user")).unwrap();
    fs::write(user("todo.md"), "a").unwrap();
    fs::write(user("old.md"), "old").unwrap();
    let is_lost = |said: &str| said.contains("it is unknown whether it happened");
    let edit = json!({ "path": user("todo.md"), "old_text": "a", "new_text": "aa" });
    assert!(is_lost(&said_after_death(folder.path(), FileTool::Edit, &edit).await));
    assert_eq!(fs::read_to_string(user("todo.md")).unwrap(), "aa", "once");
    let delete = json!({ "path": user("old.md") });
    assert!(is_lost(&said_after_death(folder.path(), FileTool::Delete, &delete).await));
    let write = json!({ "path": user("new.md"), "text": "new" });
    assert!(is_lost(&said_after_death(folder.path(), FileTool::Write, &write).await));
    let read = json!({ "path": user("todo.md") });
    assert_eq!(said_after_death(folder.path(), FileTool::Read, &read).await, "aa");
    let own = json!({ "path": "outputs/plan.md", "text": "mine" });
    let said = said_after_death(folder.path(), FileTool::Write, &own).await;
    assert_eq!(said, "wrote 4 bytes to outputs/plan.md");
}
