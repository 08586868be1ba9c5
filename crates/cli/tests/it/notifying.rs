//! The command that a user wants to be started when a run ends, halts or asks a person.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::configuration::configure;
use crate::exec::{exec, lives, nap, nap_seconds, until_gone, used};
use crate::scripts::{ASKS, SAYS, SPENDS};
use crate::test_folder::{Ended, TestFolder, steady};
use crate::upstream::Upstream;

/// Makes a command of the user that does this; it writes to `told` in its own folder.
fn notify(stage: &TestFolder, script: &str) {
    let path = stage.file("notify.sh", &format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    configure(stage, &format!("notify = ['{path}', 'a word', '$HOME; exit 1']\n"));
}

const WRITES: &str = r#"echo "$SPINNEY_EVENT $SPINNEY_TREE $SPINNEY_NAME $SPINNEY_STATE" >> told"#;

/// What the command wrote, in the folder that it runs in.
fn told(stage: &TestFolder) -> String {
    steady(&fs::read_to_string(stage.folder().join("user/config/spinney/told")).unwrap_or_default())
}

fn run(stage: &TestFolder, args: &[&str], code: i32) -> Ended {
    let ended = stage.spinney(args);
    assert_eq!(ended.code, Some(code), "{args:?}: {}", ended.err);
    ended
}

#[test]
fn a_command_is_started_when_a_tree_ends_halts_or_asks() {
    let stage = TestFolder::new();
    notify(&stage, WRITES);
    run(&stage, &["run", &stage.tree("", SAYS)], 0);
    assert_eq!(told(&stage), "ended [tree] test completed\n");
    run(&stage, &["run", &stage.tree("", "rules: [ { fail: { kind: auth } } ]")], 1);
    assert_eq!(told(&stage).lines().last(), Some("ended [tree] test failed"));
    run(&stage, &["run", &stage.tree("ask_human", ASKS)], 5);
    assert_eq!(told(&stage).lines().last(), Some("asked [tree] test waiting"));
    run(&stage, &["answer", "2", "blue"], 0);
    run(&stage, &["resume"], 0);
    assert_eq!(
        told(&stage).lines().skip(3).collect::<Vec<_>>(),
        ["ended [tree] test completed"],
        "and asked only once"
    );
    let halts = stage.tree_with("budget: { cost_usd: 0.0022 }", "look", SPENDS);
    run(&stage, &["run", &halts], 3);
    assert_eq!(told(&stage).lines().skip(4).collect::<Vec<_>>(), ["halted [tree] test halted"]);
    // Nothing new happened.
    run(&stage, &["resume"], 3);
    assert_eq!(told(&stage).lines().count(), 5);
}

/// It gets its own words, a few variables and the home, and no key, whatever that is called.
#[test]
fn the_command_has_no_key_in_its_environment() {
    let stage = TestFolder::new();
    notify(&stage, "{ env | sort; echo \"words: $# $1 $2\"; pwd; } > told; cat; echo out; echo err >&2");
    let tree = stage.tree("", SAYS);
    let secret = [
        ("OPENAI_API_KEY", "sk-secret"),
        ("MY_TOKEN", "secret"),
        ("SSH_AUTH_SOCK", "/secret"),
        ("LANG", "C"),
    ];
    let ended = stage.play_in(&["run", &tree, "--json"], &secret).end();
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.err, "SCRIPTED: answers come from a file, no model is called\n", "it says nothing here");
    assert_eq!(ended.result()["state"], "completed");
    let told = told(&stage);
    assert!(!told.contains("secret"), "{told}");
    let home = stage.home().display().to_string();
    for line in [
        "LANG=C".to_owned(),
        "SPINNEY_EVENT=ended".to_owned(),
        format!("SPINNEY_HOME={home}"),
        "words: 2 a word $HOME; exit 1".to_owned(),
    ] {
        assert!(told.lines().any(|found| found == line), "{line}\n{told}");
    }
    assert!(told.trim_end().ends_with("/user/config/spinney"), "{told}");
    // Only these, and what a shell sets itself.
    let known = [
        "DBUS_", "DISPLAY", "HOME", "LANG", "LC_", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ",
        "USER", "WAYLAND_", "XAUTH", "XDG_", "SPINNEY_", "PWD", "OLDPWD", "SHLVL", "_=",
    ];
    for line in told.lines().filter(|line| line.contains('=')) {
        assert!(known.iter().any(|known| line.starts_with(known)), "{line}");
    }
}

#[test]
fn a_command_that_fails_is_one_note_and_no_error() {
    let stage = TestFolder::new();
    let tree = stage.tree("", SAYS);
    let note = |stage: &TestFolder| {
        let err = run(stage, &["run", &tree, "--json"], 0).err;
        err.strip_prefix("SCRIPTED: answers come from a file, no model is called\n")
            .unwrap()
            .replace(&stage.folder().display().to_string(), "[folder]")
    };
    notify(&stage, "exit 7");
    insta::assert_snapshot!(note(&stage), @"spinney: notify command `[folder]/notify.sh` failed with exit code 7");
    notify(&stage, "kill -9 $$");
    insta::assert_snapshot!(note(&stage), @"spinney: notify command `[folder]/notify.sh` was killed (signal: 9 (SIGKILL))");
    configure(&stage, "notify = ['/no/such/program']");
    insta::assert_snapshot!(note(&stage), @"spinney: notify command `/no/such/program` cannot be started: No such file or directory (os error 2)");
    configure(&stage, "notify = ['no-such-program']");
    insta::assert_snapshot!(note(&stage), @"spinney: notify command `no-such-program` cannot be started: No such file or directory (os error 2)");
}

/// It ends after ten seconds, with everything in its group.
#[test]
fn a_command_that_hangs_is_killed() {
    let stage = TestFolder::new();
    notify(&stage, &format!("sleep {} & sleep {}", nap_seconds(), nap_seconds()));
    let ended = run(&stage, &["run", &stage.tree("", SAYS)], 0);
    assert!(ended.err.contains("was killed after 10"), "{}", ended.err);
    until_gone(&nap());
}

/// The end of a program ends everything that it started, and not the command that says so.
#[test]
fn a_command_of_a_program_s_run_lives_as_long_as_it_needs() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(900)]);
    let gate = stage.folder().join("gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    // It waits at a halt until the run is over.
    notify(&stage, &format!("[ $SPINNEY_EVENT = halted ] && read line < '{}'\n{WRITES}", gate.display()));
    let mut running =
        exec(&stage, &upstream, &["--budget-usd", "1"], "call 900 one\ncall 900 two\necho finished");
    let note = running.until_noted("continue with: spinney budget");
    let raised = stage.shell(note.split_once("continue with: ").unwrap().1.trim());
    assert_eq!(raised.code, Some(0), "{}", raised.err);
    running.until("finished");
    running.until_noted("look at it with");
    assert!(lives("notify.sh"), "it was not killed with the program");
    fs::write(&gate, "go on\n").unwrap();
    let ended = running.end();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    let mut lines: Vec<String> = told(&stage).lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["ended [tree] bash completed", "halted [tree] bash halted"]);
}

/// Two helpers ask, and both are answered.
const TWO_ASK: &str = "
rules:
  - when: { agent: lead, turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: helper, id: one, goal: Ask for one. } }
      - { tool: spawn_agent, args: { agent: helper, id: two, goal: Ask for two. } }
  - when: { agent: helper, turn: 1 }
    call: [ { tool: ask_human, args: { question: Which one? } } ]
  - say: 'I heard {{ last }}'
";

/// G19: the command runs once for each time in which the tree waits for a person, however many questions are open then,
/// and once for its end; each with an id. `--notify` is used in place of the configuration.
#[test]
fn g19_the_command_runs_once_per_state() {
    let stage = TestFolder::new();
    notify(&stage, "exit 9");
    let path =
        stage.file("own.sh", "#!/bin/sh\necho \"$1 $SPINNEY_EVENT $SPINNEY_STATE $SPINNEY_ID\" >> told\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    stage.file("two.script.yaml", TWO_ASK);
    let tree = stage.file(
        "two.yaml",
        "name: two
goal: Ask around.
budget: { cost_usd: 1 }
models:
  fast: { provider: scripted, script: two.script.yaml, price: { input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 } }
agents:
  lead: { model: fast, tools: [spawn_agent, ask_human], subagents: [helper] }
  helper: { model: fast, tools: [ask_human] }
entry: lead
",
    );
    let own = ["--notify", "./own.sh word"];
    let ended = run(&stage, &[&["run", &tree][..], &own].concat(), 5);
    assert!(!ended.err.contains("notify"), "{}", ended.err);
    let ids: Vec<String> = stage
        .spinney(&["questions", "--json"])
        .json()
        .iter()
        .map(|open| open["question"].to_string())
        .collect();
    assert_eq!(ids.len(), 2);
    for id in &ids {
        run(&stage, &["answer", "last", id, "blue"], 0);
    }
    run(&stage, &[&["resume"][..], &own].concat(), 0);
    let told = fs::read_to_string(stage.folder().join("user/config/spinney/told")).unwrap();
    let lines: Vec<Vec<&str>> = told.lines().map(|line| line.split(' ').collect()).collect();
    let events: Vec<&[&str]> = lines.iter().map(|line| &line[..3]).collect();
    assert_eq!(events, [["word", "asked", "waiting"], ["word", "ended", "completed"]], "{told}");
    assert!(lines.iter().all(|line| line[3].contains(':')) && lines[0][3] != lines[1][3], "{told}");
    let wrong = stage.spinney(&["run", &tree, "--notify", ""]);
    assert!(wrong.code == Some(2) && wrong.err.contains("the program is missing"), "{}", wrong.err);
}
