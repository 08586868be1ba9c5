//! What is wrong is named, with its place and a remedy; nothing is started, and the exit code is 2.

use crate::stage::Stage;

fn refused(stage: &Stage, args: &[&str]) -> String {
    let ended = stage.spinney(args);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{}", ended.err);
    ended.err.replace(&stage.folder().display().to_string(), "[folder]")
}

#[test]
fn bad_tree_files_are_refused_with_their_place() {
    let stage = Stage::new();
    let tree = stage.tree("serach", "rules: [ { say: hi } ]\ntools: { search: { say: x } }");
    insta::assert_snapshot!(refused(&stage, &["run", &tree]), @"spinney: [folder]/tree.yaml:7:32: unknown tool `serach`: did you mean `search`?");
    let tree = stage.file("typo.yaml", "name: x\nbuget: { cost_usd: 1 }\n");
    insta::assert_snapshot!(refused(&stage, &["run", &tree]), @"spinney: [folder]/typo.yaml:2:1: unknown key `buget`: did you mean `budget`?");
    let tree = stage.file("tree.txt", "name: x\n");
    insta::assert_snapshot!(refused(&stage, &["run", &tree]), @"spinney: [folder]/tree.txt:1:1: the file's name does not tell its format: end it in .yaml, .yml, .json or .toml");
    assert!(!stage.home().exists(), "nothing was started, so there is no home");
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let stage = Stage::new();
    insta::assert_snapshot!(refused(&stage, &["run", "nowhere.yaml"]), @"spinney: cannot read nowhere.yaml: No such file or directory (os error 2)");
    insta::assert_snapshot!(refused(&stage, &["run", "."]), @"spinney: cannot read .: it is a folder");
    let tree = stage.tree("", "rules: [ { say: hi, sya: ho } ]");
    insta::assert_snapshot!(refused(&stage, &["run", &tree]), @"spinney: [folder]/tree.script.yaml:1:21: unknown key `sya`: write one of `when`, `think_ms`, `chunk_ms`, `say`, `call`, `usage`, `fail`, `hang`, `cut`");
    std::fs::remove_file(stage.folder().join("tree.script.yaml")).unwrap();
    insta::assert_snapshot!(refused(&stage, &["run", &tree]), @"spinney: [folder]/tree.yaml:5:39: cannot read [folder]/tree.script.yaml: No such file or directory (os error 2)");
    std::fs::write(stage.folder().join("bytes.yaml"), [b'n', 0xff, 0xfe]).unwrap();
    insta::assert_snapshot!(refused(&stage, &["run", "bytes.yaml"]), @"spinney: cannot read bytes.yaml: it is not UTF-8 at byte 1");
    std::fs::write(stage.folder().join("huge.yaml"), vec![b'#'; 2 * 1024 * 1024]).unwrap();
    insta::assert_snapshot!(refused(&stage, &["run", "huge.yaml"]), @"spinney: cannot read huge.yaml: it has 2097152 bytes, more than 1048576");
}

#[test]
fn a_tree_without_a_goal_is_refused() {
    let stage = Stage::new();
    let tree = stage.tree("", "rules: [ { say: hi } ]");
    insta::assert_snapshot!(refused(&stage, &["run", &tree, "--goal", " "]), @"spinney: [folder]/tree.yaml has no goal: give it a `goal`, or write --goal");
}

#[test]
fn two_scripts_may_not_have_the_same_tool() {
    let stage = Stage::new();
    let script = "rules: [ { say: hi } ]\ntools: { look: { say: x } }";
    stage.file("a.script.yaml", script);
    stage.file("b.script.yaml", script);
    let tree = stage.file(
        "two.yaml",
        "name: two\ngoal: Go.\nmodels:\n  a: { provider: scripted, script: a.script.yaml }\n  \
         b: { provider: scripted, script: b.script.yaml }\nagents: { lead: { model: a, tools: [look] } }\n",
    );
    insta::assert_snapshot!(refused(&stage, &["run", &tree]), @"spinney: tool `look` is in a.script.yaml and in b.script.yaml: keep one of them");
}

#[test]
fn wrong_usage_exits_with_two() {
    let stage = Stage::new();
    assert!(refused(&stage, &["evnts", "x"]).contains("'events'"));
    assert!(refused(&stage, &["run"]).contains("<FILE>"));
    assert!(refused(&stage, &["budget", "last", "--add-usd", "-1"]).contains("--add-usd"));
    assert!(refused(&stage, &["budget", "last", "--add-usd", "lots"]).contains("not an amount in USD"));
    assert!(refused(&stage, &["answer", "last", "first", "x"]).contains("named by its number"));
    assert!(refused(&stage, &["cancel", "last", "No Such"]).contains("agent id"));
}

#[test]
fn trees_that_are_not_there_are_named() {
    let stage = Stage::new();
    insta::assert_snapshot!(refused(&stage, &["ps"]), @"spinney: no home at .spinney: nothing was run there yet; --home or SPINNEY_HOME names another");
    stage.spinney(&["run", &stage.tree("", "rules: [ { say: hi } ]")]);
    insta::assert_snapshot!(refused(&stage, &["resume", "ffff"]), @"spinney: no tree begins with `ffff`: `spinney ps` lists those there are");
    insta::assert_snapshot!(refused(&stage, &["events", "first"]), @"spinney: `first` is no tree id: write the beginning of one that `spinney ps` shows, or `last`");
    insta::assert_snapshot!(refused(&stage, &["events", "last", "--agent", "nobody"]), @"spinney: no agent `nobody` in this tree: known agents: lead");
    insta::assert_snapshot!(refused(&stage, &["replay", "last", "--expect", "12"]), @"spinney: `12` is no hash: write the 64 hex digits of an `event_hash`");
}
