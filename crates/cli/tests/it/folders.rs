//! Folders of the user in whole trees: one line gives an agent a folder, a file that names one is asked about, and every view
//! shows it.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::test_folder::{TestFolder, steady};

/// Makes one call with the path of the folder `notes`, and says what came of it.
fn calls(stage: &TestFolder, tool: &str, args: &str) -> String {
    let notes = stage.folder().canonicalize().unwrap().join("notes").display().to_string();
    let args = args.replace("NOTES", &notes);
    format!(
        "rules:\n  - {{ when: {{ turn: 1 }}, call: [{{ tool: {tool}, args: {args} }}] }}\n  - {{ say: '{{{{ last }}}}' }}\n"
    )
}

fn notes(stage: &TestFolder) {
    fs::create_dir_all(stage.folder().join("notes/.git/hooks")).unwrap();
    fs::write(stage.folder().join("notes/todo.md"), "bread\n").unwrap();
}

/// Without what differs between runs.
fn shown(stage: &TestFolder, text: &str) -> String {
    let folder = stage.folder().canonicalize().unwrap().display().to_string();
    steady(&text.replace(&folder, "/m"))
}

fn at(stage: &TestFolder, name: &str) -> String {
    stage.folder().join(name).display().to_string()
}

/// A newcomer gives an agent a folder in one line, and needs no question.
#[test]
fn one_line_gives_a_tree_a_folder() {
    let stage = TestFolder::new();
    notes(&stage);
    let edit = "{ path: NOTES/todo.md, old_text: bread, new_text: milk }";
    let tree = stage.tree("edit_file", &calls(&stage, "edit_file", edit));
    let refused = stage.spinney(&["run", &tree, "--json"]);
    assert!(refused.result()["output"].as_str().unwrap().contains("is absolute"), "{}", refused.out);
    let read = stage.spinney(&["run", &tree, "--read", &at(&stage, "notes"), "--json"]);
    assert!(read.result()["output"].as_str().unwrap().contains("may only be read"), "{}", read.out);
    let written = stage.spinney(&["run", &tree, "--write", &at(&stage, "notes"), "--json"]);
    assert_eq!(written.code, Some(0), "{}", written.err);
    assert_eq!(fs::read_to_string(stage.folder().join("notes/todo.md")).unwrap(), "milk\n");
    assert!(written.result()["files"].is_null(), "it is the user's");
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
    let prompt = stage.spinney(&["show", "lead"]).out;
    assert!(shown(&stage, &prompt).contains("- /m/notes (read and write)"), "{prompt}");
}

/// Commands have the same folder, and the same in it is only read.
#[test]
fn commands_have_the_folder_as_well() {
    let stage = TestFolder::new();
    notes(&stage);
    let line = "{ command: 'cd NOTES && echo milk >> todo.md; (echo x > .git/hooks/pre-commit; mkdir .vscode/x) 2> /dev/null || echo kept' }";
    let tree = stage.tree("run_command", &calls(&stage, "run_command", line));
    let ran = stage.spinney(&["run", &tree, "--write", &at(&stage, "notes"), "--json"]);
    if ran.code != Some(0) {
        // This machine has no namespaces for this user.
        assert!(
            ran.err.contains("need namespaces") && ran.err.contains("allow user namespaces"),
            "{}",
            ran.err
        );
        return;
    }
    assert_eq!(ran.result()["output"], json!("exit code 0\n[stdout]\nkept"), "{}", ran.err);
    assert_eq!(fs::read_to_string(stage.folder().join("notes/todo.md")).unwrap(), "bread\nmilk\n");
    assert_eq!(names(&stage.folder().join("notes")), [".git", "todo.md"]);
    assert!(names(&stage.folder().join("notes/.git/hooks")).is_empty());
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

/// A folder that a file names needs the user's word: an option, the configuration, or an answer for that text.
#[test]
fn a_folder_in_a_file_needs_the_users_word() {
    let stage = TestFolder::new();
    notes(&stage);
    let tree = stage.tree("read_file", &calls(&stage, "read_file", "{ path: NOTES/todo.md }"));
    let text =
        fs::read_to_string(&tree).unwrap().replace("tools: [read_file]", "tools: [read_file], read: [notes]");
    fs::write(&tree, text).unwrap();
    let refused = stage.spinney(&["run", &tree]);
    assert_eq!(refused.code, Some(2));
    insta::assert_snapshot!(shown(&stage, &refused.err.replace(&tree, "tree.yaml")), @"
    spinney: tree.yaml would
      - let `lead` read /m/notes
      and you have not allowed that.
      Nothing was started. If you trust this file, add --read /m/notes
    ");
    let checked = stage.spinney(&["check", &tree]);
    assert_eq!(checked.code, Some(0), "{}", checked.out);
    let out = shown(&stage, &checked.out);
    assert!(out.contains("would let `lead` read /m/notes, and you have not allowed that"), "{out}");
    assert!(out.contains("folders: read `/m/notes`"), "{out}");
    let explained = shown(&stage, &stage.spinney(&["run", &tree, "--explain"]).out);
    assert!(explained.contains("/m/notes"), "{explained}");
    let notes = at(&stage, "notes");
    let allowed = stage.spinney(&["run", &tree, "--write", &notes, "--json"]);
    assert_eq!(allowed.result()["output"], json!("bread\n"), "{}", allowed.err);
    let setting = format!("read:{}", stage.folder().canonicalize().unwrap().display());
    assert_eq!(stage.spinney(&["config", "add", "allow_box", &setting]).code, Some(0));
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(0));
    assert_eq!(stage.spinney(&["config", "remove", "allow_box", &setting]).code, Some(0));
    let mut asked = stage.terminal(&["run", &tree], 100, 30);
    asked.until("Allow this for this file?");
    asked.send("y\r");
    asked.until("completed");
    assert_eq!(asked.end().code, Some(0));
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(0));
    fs::write(&tree, fs::read_to_string(&tree).unwrap() + "\n# changed\n").unwrap();
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(2));
}

/// What cannot be granted is an error at its place, before anything starts.
#[test]
fn folders_that_cannot_be_granted_are_errors() {
    let stage = TestFolder::new();
    notes(&stage);
    let tree = stage.tree("read_file", "rules: [{ say: done }]\n");
    let text = fs::read_to_string(&tree).unwrap();
    fs::create_dir_all(stage.home().join("workspace")).unwrap();
    let top = "read: [absent, notes/todo.md, .spinney, .spinney/workspace, /, /proc]\nwrite: [notes/.git]\n";
    let bad = stage.file("bad.yaml", &format!("{text}{top}"));
    let refused = stage.spinney(&["check", &bad]);
    assert_eq!(refused.code, Some(2));
    let errors: Vec<String> = shown(&stage, &refused.out)
        .lines()
        .filter(|line| line.contains(": error: "))
        .map(str::to_owned)
        .collect();
    let errors: Vec<&str> =
        errors.iter().filter_map(|line| line.split_once(": error: ")).map(|(_, it)| it).collect();
    insta::assert_snapshot!(errors.join("\n"), @"
    folder `absent` does not exist
    folder `notes/todo.md` is not a folder, or its path contains a link
    folder `.spinney` is in the home or in Spinney's settings, which agents may not see
    folder `.spinney/workspace` is in the home or in Spinney's settings, which agents may not see
    folder `/` cannot be granted: name another folder
    folder `/proc` is a system folder: grant another one
    folder `notes/.git` is in `.git`, which agents may not write to: grant it for reading, or grant a folder above it
    ");
    let given = stage.spinney(&["run", &tree, "--read", &at(&stage, "absent")]);
    assert!(given.err.contains("absent` does not exist"), "{}", given.err);
}

/// L8: a child with more folders than its parent is not started, and `check` says so before.
#[test]
fn l8_a_child_cannot_have_more_folders_than_its_parent() {
    let stage = TestFolder::new();
    notes(&stage);
    let script = "rules:\n  - { when: { agent: lead, turn: 1 }, call: [{ tool: spawn_agent, args: { agent: writer, goal: Write. } }] }\n  - { say: '{{ last }}' }\n";
    stage.file("tree.script.yaml", script);
    let tree = stage.file("tree.yaml", "name: two\ngoal: Work.\nbudget: { cost_usd: 1 }\nmodels:\n  fast: { provider: scripted, script: tree.script.yaml, price: { input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 } }\nagents:\n  lead: { model: fast, tools: [spawn_agent, write_file], subagents: [writer] }\n  writer: { model: fast, tools: [write_file], write: [notes] }\nread: [notes]\nentry: lead\n");
    let checked = shown(&stage, &stage.spinney(&["check", &tree]).out);
    assert!(checked.contains("`writer` can never be started: `lead` may not write `/m/notes`"), "{checked}");
    let notes = at(&stage, "notes");
    let setting = format!("write:{}", stage.folder().canonicalize().unwrap().display());
    assert_eq!(stage.spinney(&["config", "add", "allow_box", &setting]).code, Some(0));
    let ran = stage.spinney(&["run", &tree, "--json"]);
    let output = shown(&stage, ran.result()["output"].as_str().unwrap());
    insta::assert_snapshot!(output, @"not granted here: write `/m/notes`; granted here is read `/m/notes`: do without, or ask a person to grant it");
    let wider = stage.spinney(&["run", &tree, "--write", &notes, "--json"]);
    assert_eq!(wider.code, Some(0), "{}", wider.err);
    assert!(!wider.result()["output"].as_str().unwrap().contains("not granted"), "{}", wider.out);
}

/// G31: folders do not move; they are named where a tree leaves and where it comes, and asked for before it continues.
#[test]
fn g31_folders_of_a_moved_tree_are_named_and_asked_for() {
    let (here, there) = (TestFolder::new(), TestFolder::new());
    notes(&here);
    let tree = here.tree("ask_human", "rules:\n  - { when: { turn: 1 }, call: [{ tool: ask_human, args: { question: Which? } }] }\n  - { say: done }\n");
    here.spinney(&["run", &tree, "--read", &at(&here, "notes")]);
    let file = at(&there, "oak.trees");
    let exported = here.spinney(&["export", "-o", &file]);
    assert_eq!(exported.code, Some(0), "{}", exported.err);
    let imported = there.spinney(&["import", &file]);
    for said in [&exported.err, &imported.err] {
        assert!(shown(&here, said).contains("the folder /m/notes, to read"), "{said}");
    }
    assert_eq!(there.spinney(&["answer", "blue"]).code, Some(0));
    let refused = there.spinney(&["resume", "--trust-home"]);
    assert_eq!(refused.code, Some(2), "{}", refused.out);
    assert!(shown(&here, &refused.err).contains("add --read /m/notes"), "{}", refused.err);
    let resumed = there.spinney(&["resume", "--trust-home", "--read", &at(&here, "notes")]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
}
