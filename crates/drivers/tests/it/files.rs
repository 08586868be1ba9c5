//! The file tools as a model uses them: what they do, what they say, and where they stop.

use std::fmt::Debug;
use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use serde_json::{Value, json};
use spinney_drivers::files::{FileTool, Files};
use spinney_drivers::workspace::Workspaces;
use spinney_journal::Blocking;
use spinney_kernel::context::Origin;
use spinney_kernel::definition::OutputLimits;
use spinney_kernel::port::AgentFolder;
use spinney_kernel::port::tool::{ToolAnswer, ToolAttempt};
use spinney_kernel::primitives::{AgentId, CallId, TreeId};

use crate::scene::with;

pub(crate) const TREE: TreeId = TreeId::new([8; 16]);

/// Calls a file tool for the last of these agents.
pub(crate) async fn called(home: &Path, path: &[&str], tool: FileTool, args: &Value) -> ToolAnswer {
    let attempt = attempt(TREE, path, tool, args);
    let attempt = with(attempt, |it| it.workspace = Some(folder(home, &it.origin)));
    let called = Files::default().tool(tool).call(attempt).await;
    called.unwrap_or_else(|missed| panic!("{missed:?}"))
}

/// An agent that writes files, with the limits that it has.
pub(crate) struct Author<'a> {
    pub(crate) home: &'a Path,
    pub(crate) files: Files,
    pub(crate) tree: TreeId,
    pub(crate) agent: &'a str,
    pub(crate) limits: OutputLimits,
}

impl Author<'_> {
    /// Writes a file as the agent's tool does; the error is what its model reads.
    pub(crate) fn write(&self, path: &str, text: &str) -> Result<String, String> {
        let args = json!({ "path": path, "text": text });
        let attempt = with(attempt(self.tree, &[self.agent], FileTool::Write, &args), |it| {
            it.outputs = self.limits;
            it.workspace = Some(folder(self.home, &it.origin));
        });
        let called = self.files.tool(FileTool::Write).call(attempt).wait();
        let answer = called.unwrap_or_else(|missed| panic!("{missed:?}"));
        if answer.is_error { Err(answer.text) } else { Ok(answer.text) }
    }
}

fn attempt(tree: TreeId, path: &[&str], tool: FileTool, args: &Value) -> ToolAttempt {
    let path = path.iter().copied().map(parsed::<AgentId>).collect();
    let origin = Origin { tree, path, role: parsed("helper"), goal: "Write.".into() };
    ToolAttempt::new(Arc::new(origin), CallId(1), String::new(), tool.name(), args.to_string())
}

fn folder(home: &Path, origin: &Arc<Origin>) -> AgentFolder {
    AgentFolder::new(Workspaces::root(home).into(), Arc::clone(origin))
}

fn parsed<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().unwrap_or_else(|error| panic!("{error:?}"))
}

/// What a tool says, with `!` before it if it could not do what it was asked.
async fn says(home: &Path, tool: FileTool, args: Value) -> String {
    let answer = called(home, &["lead", "helper"], tool, &args).await;
    format!("{}{}", if answer.is_error { "!" } else { "" }, answer.text)
}

async fn write(home: &Path, path: &str, text: &str) -> String {
    says(home, FileTool::Write, json!({ "path": path, "text": text })).await
}

async fn read(home: &Path, path: &str) -> String {
    says(home, FileTool::Read, json!({ "path": path })).await
}

#[tokio::test]
async fn what_was_written_is_read_and_listed() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    insta::assert_snapshot!(says(home, FileTool::List, json!({})).await, @"outputs/ is empty");
    insta::assert_snapshot!(write(home, "outputs/Überblick (1).md", "Grüße").await, @"wrote 7 bytes to outputs/Überblick (1).md");
    insta::assert_snapshot!(write(home, "outputs/parts/a.txt", "one").await, @"wrote 3 bytes to outputs/parts/a.txt");
    insta::assert_snapshot!(write(home, "outputs/parts/a.txt", "two more").await, @"wrote 8 bytes to outputs/parts/a.txt");
    insta::assert_snapshot!(read(home, "outputs/Überblick (1).md").await, @"Grüße");
    insta::assert_snapshot!(read(home, "outputs/parts/a.txt").await, @"two more");
    insta::assert_snapshot!(says(home, FileTool::List, json!({})).await, @r"
    outputs/parts/
    outputs/parts/a.txt  8 bytes
    outputs/Überblick (1).md  7 bytes
    ");
    insta::assert_snapshot!(says(home, FileTool::List, json!({ "path": "outputs/parts/" })).await, @"outputs/parts/a.txt  8 bytes");
    insta::assert_snapshot!(says(home, FileTool::List, json!({ "path": "offload" })).await, @"offload/ is empty");
    let agent = home.join("workspace").join(TREE.to_string()).join("helper");
    assert!(!agent.join(".unfinished-file").exists());
}

#[tokio::test]
async fn what_cannot_be_done_returns_advice() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    write(home, "outputs/parts/a.txt", "one").await;
    insta::assert_snapshot!(read(home, "outputs/none.txt").await, @"!`outputs/none.txt` does not exist: `list_files` shows what does");
    insta::assert_snapshot!(read(home, "outputs/parts").await, @"!`outputs/parts` is a folder: name a file in it");
    insta::assert_snapshot!(read(home, "outputs/parts/a.txt/b").await, @"!`outputs/parts/a.txt/b` goes through something that is not a folder");
    insta::assert_snapshot!(read(home, "report.md").await, @"!`report.md` is outside your folders: files are below `outputs/` (yours to write), `history/` and `offload/` (to read)");
    insta::assert_snapshot!(read(home, "/etc/passwd").await, @"!`/etc/passwd` is absolute: write it as `outputs/NAME`");
    insta::assert_snapshot!(read(home, "../lead/outputs/a.txt").await, @"!`../lead/outputs/a.txt` contains `.` or `..`: use letters, digits and `. _ - + = @ , ( )` with `/` between folders, and no name that begins or ends with a dot or a space");
    insta::assert_snapshot!(write(home, "outputs", "x").await, @"!`outputs` is a folder: name a file in it, such as `outputs/report.md`");
    insta::assert_snapshot!(write(home, "outputs/parts", "x").await, @"!`outputs/parts` is a folder: name a file in it");
    insta::assert_snapshot!(write(home, "history/step_001.json", "x").await, @"!`history/step_001.json` is not yours to write: write below `outputs/`");
    insta::assert_snapshot!(says(home, FileTool::Write, json!({ "path": "outputs/a" })).await, @"!bad arguments for `write_file`: missing field `text` at line 1 column 20");
    insta::assert_snapshot!(says(home, FileTool::Read, json!({ "path": "outputs/a", "mode": 7 })).await, @"!bad arguments for `read_file`: unknown field `mode`, expected one of `path`, `offset`, `bytes` at line 1 column 26");
}

/// L12: a write that would pass a limit is refused before anything is written, folders below counted; writing over a file
/// counts what it will be and not what it was.
#[tokio::test]
async fn l12_what_passes_a_limit_is_not_written() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    write(home, "outputs/big.txt", &"x".repeat(999_990)).await;
    insta::assert_snapshot!(write(home, "outputs/deep/er/b.txt", "01234567890").await, @"!max_output_size_bytes would be exceeded: limit 1000000, used 999990, asked 11: write less, or overwrite what is no longer needed");
    insta::assert_snapshot!(write(home, "outputs/big.txt", &"y".repeat(1_000_000)).await, @"wrote 1000000 bytes to outputs/big.txt");
    insta::assert_snapshot!(write(home, "outputs/big.txt", &"z".repeat(1_000_001)).await, @"!max_output_size_bytes would be exceeded: limit 1000000, used 0, asked 1000001: write less, or overwrite what is no longer needed");
    assert!(read(home, "outputs/big.txt").await.starts_with("yyy"));
    write(home, "outputs/big.txt", "").await;
    for number in 2..=10 {
        write(home, &format!("outputs/d{number}/a.txt"), "x").await;
    }
    insta::assert_snapshot!(write(home, "outputs/one-more.txt", "x").await, @"!max_output_files would be exceeded: limit 10, used 10, asked 1: write less, or overwrite what is no longer needed");
    insta::assert_snapshot!(write(home, "outputs/d2/a.txt", "over").await, @"wrote 4 bytes to outputs/d2/a.txt");
}

#[tokio::test]
async fn a_long_file_is_read_in_parts_that_join() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let whole: String = (0..9_000).map(|number| format!("{number} äöü€\n")).collect();
    write(home, "outputs/long.txt", &whole).await;
    let (mut got, mut offset) = (String::new(), 0);
    loop {
        let part = says(
            home,
            FileTool::Read,
            json!({ "path": "outputs/long.txt", "offset": offset, "bytes": 16_001 }),
        )
        .await;
        let Some((text, more)) = part.rsplit_once("\n[bytes ") else {
            got += &part;
            break;
        };
        got += text;
        let (_, next) = more.trim_end_matches(']').rsplit_once("offset ").unwrap();
        offset = next.parse::<usize>().unwrap();
    }
    assert_eq!(got, whole);
    insta::assert_snapshot!(says(home, FileTool::Read, json!({ "path": "outputs/long.txt", "offset": 9_999_999 })).await, @"!`outputs/long.txt` has 133890 bytes: begin before byte 133890");
}

#[tokio::test]
async fn what_is_no_text_is_not_shown() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    write(home, "outputs/a.txt", "").await;
    insta::assert_snapshot!(read(home, "outputs/a.txt").await, @"");
    let outputs = home.join("workspace").join(TREE.to_string()).join("helper/outputs");
    fs::write(outputs.join("b.bin"), [0xff, 0xfe, 0x00, 0x01]).unwrap();
    insta::assert_snapshot!(read(home, "outputs/b.bin").await, @"!`outputs/b.bin` is not a text file: it has 4 bytes of other data");
    fs::write(outputs.join("c.bin"), "a\0b").unwrap();
    insta::assert_snapshot!(read(home, "outputs/c.bin").await, @"!`outputs/c.bin` is not a text file: it has 3 bytes of other data");
}

async fn edit(home: &Path, old_text: &str, new_text: &str) -> String {
    let args = json!({ "path": "outputs/a.md", "old_text": old_text, "new_text": new_text });
    says(home, FileTool::Edit, args).await
}

#[tokio::test]
async fn a_text_that_is_there_once_is_replaced_and_the_difference_is_shown() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    write(home, "outputs/a.md", "# Plan\nfirst\nread\nwrite\nread\n").await;
    insta::assert_snapshot!(edit(home, "write", "write, then rest").await, @"
    replaced once
    --- outputs/a.md
    +++ outputs/a.md
    @@ -1,5 +1,5 @@
     # Plan
     first
     read
    -write
    +write, then rest
     read
    ");
    insta::assert_snapshot!(read(home, "outputs/a.md").await, @"
    # Plan
    first
    read
    write, then rest
    read
    ");
    insta::assert_snapshot!(edit(home, "read", "look").await, @"!`old_text` is in `outputs/a.md` 2 times, at lines 3, 5: add what is around the one you mean, or set `replace_all`");
    insta::assert_snapshot!(edit(home, "sleep", "look").await, @"!`old_text` is not in `outputs/a.md`: read the file and copy the text exactly, with its spaces and line breaks");
    insta::assert_snapshot!(edit(home, "", "look").await, @"!`old_text` is empty: give the text to replace, or write the whole file with `write_file`");
    insta::assert_snapshot!(edit(home, "read", "read").await, @"!`old_text` and `new_text` are the same: nothing would change");
    let all = json!({ "path": "outputs/a.md", "old_text": "read", "new_text": "look", "replace_all": true });
    insta::assert_snapshot!(says(home, FileTool::Edit, all).await, @"
    replaced 2 times
    --- outputs/a.md
    +++ outputs/a.md
    @@ -1,5 +1,5 @@
     # Plan
     first
    -read
    +look
     write, then rest
    -read
    +look
    ");
    let elsewhere = json!({ "path": "history/step_001.json", "old_text": "a", "new_text": "b" });
    insta::assert_snapshot!(says(home, FileTool::Edit, elsewhere).await, @"!`history/step_001.json` is not yours to write: write below `outputs/`");
    let missing = json!({ "path": "outputs/b.md", "old_text": "a", "new_text": "b" });
    insta::assert_snapshot!(says(home, FileTool::Edit, missing).await, @"!`outputs/b.md` does not exist: `list_files` shows what does");
}

/// L12: an edit that would pass a limit changes nothing; its result is computed before it is made.
#[tokio::test]
async fn l12_an_edit_keeps_to_the_limits_of_outputs() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    write(home, "outputs/a.md", &"a".repeat(900_000)).await;
    let args = json!({ "path": "outputs/a.md", "old_text": "a", "new_text": "b".repeat(60_000), "replace_all": true });
    insta::assert_snapshot!(says(home, FileTool::Edit, args).await, @"!`outputs/a.md` would have 54000000000 bytes, and all of your outputs may have 1000000: replace it with less");
    write(home, "outputs/b.md", "b").await;
    let args = json!({ "path": "outputs/b.md", "old_text": "b", "new_text": "b".repeat(200_000) });
    insta::assert_snapshot!(says(home, FileTool::Edit, args).await, @"!max_output_size_bytes would be exceeded: limit 1000000, used 900000, asked 200000: write less, or overwrite what is no longer needed");
    assert_eq!(read(home, "outputs/b.md").await, "b");
}

#[tokio::test]
async fn a_file_is_deleted_with_the_folders_that_are_empty_without_it() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    write(home, "outputs/a/b/c.md", "c").await;
    write(home, "outputs/a/d.md", "d").await;
    let delete = |path: &'static str| says(home, FileTool::Delete, json!({ "path": path }));
    insta::assert_snapshot!(delete("outputs/a/b").await, @"!`outputs/a/b` is a folder: name a file in it");
    insta::assert_snapshot!(delete("outputs/a/b/c.md").await, @"deleted outputs/a/b/c.md");
    insta::assert_snapshot!(delete("outputs/a/b/c.md").await, @"!`outputs/a/b/c.md` does not exist: `list_files` shows what does");
    insta::assert_snapshot!(delete("offload/x.txt").await, @"!`offload/x.txt` is not yours to write: write below `outputs/`");
    insta::assert_snapshot!(says(home, FileTool::List, json!({})).await, @"
    outputs/a/
    outputs/a/d.md  1 bytes
    ");
    insta::assert_snapshot!(delete("outputs/a/d.md").await, @"deleted outputs/a/d.md");
    insta::assert_snapshot!(says(home, FileTool::List, json!({})).await, @"outputs/ is empty");
}

async fn search(home: &Path, args: Value) -> String {
    says(home, FileTool::Search, args).await
}

#[tokio::test]
async fn a_search_shows_lines_with_their_files_and_numbers() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    insta::assert_snapshot!(search(home, json!({ "pattern": "x" })).await, @"[0 matching lines; 0 files searched]");
    write(home, "outputs/a.md", "alpha\nbeta\nAlpha beta\n").await;
    write(home, "outputs/notes/b.txt", "beta\n").await;
    insta::assert_snapshot!(search(home, json!({ "pattern": "beta$" })).await, @"
    outputs/a.md:2: beta
    outputs/a.md:3: Alpha beta
    outputs/notes/b.txt:1: beta
    [3 matching lines; 2 files searched]
    ");
    insta::assert_snapshot!(search(home, json!({ "pattern": "^alpha", "ignore_case": true })).await, @"
    outputs/a.md:1: alpha
    outputs/a.md:3: Alpha beta
    [2 matching lines; 2 files searched]
    ");
    insta::assert_snapshot!(search(home, json!({ "pattern": "beta", "glob": "*.txt" })).await, @"
    outputs/notes/b.txt:1: beta
    [1 matching line; 1 file searched]
    ");
    insta::assert_snapshot!(search(home, json!({ "pattern": "beta", "path": "outputs/notes" })).await, @"
    outputs/notes/b.txt:1: beta
    [1 matching line; 1 file searched]
    ");
    insta::assert_snapshot!(search(home, json!({ "pattern": "beta", "path": "outputs/a.md" })).await, @"
    outputs/a.md:2: beta
    outputs/a.md:3: Alpha beta
    [2 matching lines; 1 file searched]
    ");
    insta::assert_snapshot!(search(home, json!({ "glob": "notes/**" })).await, @"
    outputs/notes/b.txt
    [1 matching file]
    ");
    insta::assert_snapshot!(search(home, json!({ "pattern": "gamma" })).await, @"[0 matching lines; 2 files searched]");
    insta::assert_snapshot!(search(home, json!({})).await, @"!nothing to search for: give a `pattern`, a `glob` or both");
    insta::assert_snapshot!(search(home, json!({ "pattern": "(" })).await, @"
    !`pattern` is not a regular expression that can be used: regex parse error:
        (
        ^
    error: unclosed group
    ");
    insta::assert_snapshot!(search(home, json!({ "glob": "[" })).await, @"!`glob` is not a glob that can be used: error parsing glob '[': unclosed character class; missing ']'");
    insta::assert_snapshot!(search(home, json!({ "pattern": "a", "path": "outputs/none" })).await, @"!`outputs/none` does not exist: `list_files` shows what does");
    insta::assert_snapshot!(search(home, json!({ "pattern": "a", "path": "offload" })).await, @"nothing is in offload/");
}

#[tokio::test]
async fn a_search_respects_ignore_files_and_leaves_out_what_is_hidden_or_no_text() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    write(home, "outputs/a.md", "needle").await;
    let outputs = home.join("workspace").join(TREE.to_string()).join("helper/outputs");
    let put = |path: &str, text: &str| {
        let path = outputs.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put(".gitignore", "*.log\n/build/\n!keep.log\nbad[\n");
    put(".hidden", "needle");
    put("x.log", "needle");
    put("keep.log", "needle");
    put("build/a.md", "needle");
    put("sub/build/a.md", "needle");
    put("sub/.ignore", "only.md\n!x.log");
    put("sub/only.md", "needle");
    put("sub/x.log", "needle");
    put("sub/deep/y.log", "needle");
    put("binary", "needle\0");
    insta::assert_snapshot!(search(home, json!({ "pattern": "needle" })).await, @"
    outputs/a.md:1: needle
    outputs/keep.log:1: needle
    outputs/sub/build/a.md:1: needle
    outputs/sub/x.log:1: needle
    [4 matching lines; 5 files searched]
    ");
    insta::assert_snapshot!(search(home, json!({ "pattern": "needle", "path": "outputs/sub" })).await, @"
    outputs/sub/build/a.md:1: needle
    outputs/sub/x.log:1: needle
    [2 matching lines; 2 files searched]
    ");
}

/// G25, L12: what is found is bounded, and the answer says that there is more.
#[tokio::test]
async fn a_search_is_bounded() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    write(home, "outputs/a.md", "needle").await;
    let outputs = home.join("workspace").join(TREE.to_string()).join("helper/outputs");
    for folder in 0..40 {
        fs::create_dir(outputs.join(format!("{folder:02}"))).unwrap();
        for file in 0..50 {
            let text = format!("needle {}\n", "x".repeat(60)).repeat(4);
            fs::write(outputs.join(format!("{folder:02}/{file:02}.txt")), text).unwrap();
        }
    }
    let all = search(home, json!({ "pattern": "needle" })).await;
    assert!(all.len() < 16_000, "{}", all.len());
    assert!(all.starts_with("outputs/00/00.txt:1: needle"), "{all}");
    assert!(all.ends_with("; there are more: search for less, or in one folder]"), "{all}");
    let one = search(home, json!({ "pattern": "needle", "path": "outputs/07", "glob": "0?.txt" })).await;
    assert!(one.ends_with("[40 matching lines; 10 files searched]"), "{one}");
    let names = search(home, json!({ "glob": "49.txt" })).await;
    assert!(names.ends_with("[40 matching files]"), "{names}");
}

/// The folder comes with the call, so one driver serves the trees of many homes; a tree without workspaces has none.
#[tokio::test]
async fn one_driver_works_in_the_folder_that_each_call_brings() {
    let (files, homes) = (Files::default(), [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()]);
    for (home, (tree, agent)) in homes.iter().zip([(7, "a"), (8, "b")]) {
        let (home, tree, limits) = (home.path(), TreeId::new([tree; 16]), OutputLimits::default());
        let author = Author { home, files: files.clone(), tree, agent, limits };
        author.write("outputs/me.txt", agent).unwrap();
        let path = home.join("workspace").join(tree.to_string()).join(agent).join("outputs/me.txt");
        assert_eq!(fs::read_to_string(path).unwrap(), agent);
    }
    let attempt = attempt(TREE, &["a"], FileTool::Write, &json!({ "path": "outputs/me.txt", "text": "x" }));
    let answer = files.tool(FileTool::Write).call(attempt).await.unwrap();
    assert!(answer.is_error);
    insta::assert_snapshot!(answer.text, @"`write_file` has no folder: work without files");
}

/// What a model is told about each tool.
#[test]
fn names_and_schemas_of_file_tools_are_pinned() {
    let files = Files::default();
    let recorded: Vec<String> = FileTool::ALL
        .into_iter()
        .map(|tool| {
            let spec = files.tool(tool).spec();
            let schema: Value = serde_json::from_str(&spec.schema).unwrap();
            format!("{}: {}\n{schema:#}", tool.as_str(), spec.description)
        })
        .collect();
    insta::assert_snapshot!(recorded.join("\n\n"));
}
