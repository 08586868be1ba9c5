//! `run_command` in whole trees: what the user has to allow, what is refused, and what is left when a tree is cancelled or
//! its process is killed.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use spinney_testkit::processes::{HeldProcesses, processes_below};

use crate::test_folder::{Ended, Playing, TestFolder, steady};

/// A tree whose agents have this box.
fn tree(stage: &TestFolder, sandbox: &str, script: &str) -> String {
    let tree = stage.tree("run_command", script);
    let text = fs::read_to_string(&tree)
        .unwrap()
        .replace("tools: [run_command]", &format!("tools: [run_command], box: {sandbox}"));
    fs::write(&tree, text).unwrap();
    tree
}

/// Runs one command and says what came of it.
fn runs(command: &str) -> String {
    let call = json!([{ "tool": "run_command", "args": { "command": command } }]);
    format!("rules:\n  - {{ when: {{ turn: 1 }}, call: {call} }}\n  - {{ say: '{{{{ last }}}}' }}\n")
}

#[test]
fn what_a_command_printed_and_left_is_in_the_tree() {
    let stage = TestFolder::new();
    let script = runs("echo made > outputs/made.txt; echo so; exit 4");
    let ended = stage.spinney(&["run", &tree(&stage, "{ memory: 512MiB }", &script), "--json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let result = ended.result();
    assert_eq!(result["output"], json!("exit code 4\nkept: outputs/made.txt\n[stdout]\nso"));
    assert!(result["weak_boxes"].is_null());
    let outcomes: Vec<_> =
        ended.json().into_iter().filter(|event| event["outcome"]["exit"].is_object()).collect();
    let [outcome] = outcomes.as_slice() else { panic!("{}", ended.out) };
    assert_eq!(outcome["outcome"]["exit"], json!({ "code": 4 }));
    assert_eq!(outcome["outcome"]["files"][0]["path"], json!("made.txt"));
    assert_eq!(stage.spinney(&["files", "cat", "made.txt"]).out, "made\n");
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

/// A file alone neither weakens a box nor takes a variable: an option, the configuration or an answer allows it, and
/// every view shows it.
#[test]
fn a_weaker_box_needs_the_users_word_and_is_shown() {
    let stage = TestFolder::new();
    let tree = tree(&stage, "none", &runs("echo $COLOUR"));
    let refused = stage.spinney(&["run", &tree]);
    assert_eq!(refused.code, Some(2));
    insta::assert_snapshot!(steady(&refused.err).replace(&tree, "tree.yaml"), @"
    spinney: tree.yaml would
      - run commands of `lead` without a box: they may do everything that you may
      and you have not allowed that.
      Nothing was started. If you trust this file, add --allow-box none
    ");
    assert_eq!(stage.spinney(&["run", &tree, "--allow-box", "signals"]).code, Some(2));
    let allowed = stage.spinney(&["run", &tree, "--allow-box", "none", "--json"]);
    assert_eq!(allowed.code, Some(0), "{}", allowed.err);
    assert_eq!(allowed.result()["weak_boxes"], json!([{ "role": "lead", "walls": "none" }]));
    assert!(allowed.err.contains("WEAK BOX: commands of lead run without a box"), "{}", allowed.err);
    for view in [["tree", "last"], ["show", "lead"]] {
        let shown = stage.spinney(&view);
        assert!(shown.err.contains("WEAK BOX: commands of lead run without a box"), "{view:?} {}", shown.err);
    }
    assert_eq!(stage.spinney(&["config", "add", "allow_box", "none"]).code, Some(0));
    let shown = stage.spinney(&["run", &tree]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    assert!(shown.out.contains("\n  box     commands of lead run without a box\n"), "{}", shown.out);
    assert_eq!(stage.spinney(&["config", "remove", "allow_box", "none"]).code, Some(0));
    let mut asked = stage.terminal(&["run", &tree], 100, 30);
    asked.until("Allow this for this file?");
    asked.send("y\r");
    asked.until("completed");
    assert_eq!(asked.end().code, Some(0));
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(0));
    // Another text is another file.
    fs::write(&tree, fs::read_to_string(&tree).unwrap() + "\n# changed\n").unwrap();
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(2));
}

#[test]
fn variables_are_given_by_name_and_never_a_key() {
    let stage = TestFolder::new();
    let tree = tree(&stage, "{ env: [COLOUR, UNSET] }", &runs("echo $COLOUR/$UNSET/$SECRET"));
    let refused = stage.spinney(&["run", &tree]);
    assert!(refused.err.contains("add --allow-box env:COLOUR --allow-box env:UNSET"), "{}", refused.err);
    let words = ["run", &tree, "--json", "--allow-box", "env:COLOUR", "--allow-box", "env:UNSET"];
    let given = stage.play_in(&words, &[("COLOUR", "green"), ("SECRET", "x")]).end();
    assert_eq!(given.result()["output"], json!("exit code 0\n[stdout]\ngreen//"), "{}", given.err);
    let text = fs::read_to_string(&tree).unwrap().replace("COLOUR", "OPENAI_API_KEY");
    let key = stage.file("key.yaml", &text);
    let refused =
        stage.spinney(&["run", &key, "--allow-box", "env:OPENAI_API_KEY", "--allow-box", "env:UNSET"]);
    assert!(refused.err.contains("would give the key in OPENAI_API_KEY to commands"), "{}", refused.err);
}

/// P17 (commands): an agent without the tool is refused, and the journal says so.
#[test]
fn p17_an_agent_without_the_tool_runs_nothing() {
    let stage = TestFolder::new();
    let tree = stage.tree("write_file", &runs("echo out"));
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(0));
    let events = stage.spinney(&["events", "last"]).out;
    assert!(events.contains("run_command") && !events.contains("exit code"), "{events}");
    assert!(events.contains("is refused run_command") || events.contains("refused"), "{events}");
}

/// G23 (commands): what an agent starts counts as inside, also without a box: it changes no tree of its home.
#[test]
fn g23_a_command_without_a_box_changes_no_tree() {
    let stage = TestFolder::new();
    let (spinney, home) = (env!("CARGO_BIN_EXE_spinney"), stage.home().display().to_string());
    let line = format!(
        "for verb in 'cancel last' 'send last lead hello' 'budget last --add-usd 9'; do {spinney} --home {home} $verb 2>&1; echo code $?; done; setsid -f {spinney} --home {home} cancel last > apart 2>&1; true"
    );
    let ended = stage.spinney(&["run", &tree(&stage, "none", &runs(&line)), "--allow-box", "none", "--json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let output = ended.result()["output"].as_str().unwrap().to_owned();
    assert_eq!(output.matches("runs inside a run of `exec` or of an agent").count(), 3, "{output}");
    assert!(!output.contains("\ncode 0"), "{output}");
    assert_eq!(ended.result()["state"], json!("completed"));
}

const FOREVER: &str = "echo x >> ran; sleep 86400 & sleep 86400";

/// X10 (commands): kill -9 of Spinney leaves no process of a command. Resumed, it is reported lost and not run again.
#[test]
fn x10_a_killed_spinney_leaves_no_command_and_reports_it_lost() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &tree(&stage, "{ processes: 16 }", &runs(FOREVER))]);
    running.until("calls run_command");
    let ran = until_there(&mut running, stage.home(), "lead");
    let all = hold(&running, 4);
    running.kill();
    assert!(all.have_ended());
    let resumed = stage.spinney(&["resume", "last", "--json"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    let output = resumed.result()["output"].as_str().unwrap().to_owned();
    assert!(output.contains("unknown whether it happened") || output.contains("lost"), "{output}");
    assert_eq!(fs::read_to_string(ran).unwrap(), "x\n");
}

/// O15, L30 (processes): a cancelled tree ends its commands on all levels within a second, and every agent once.
#[test]
fn o15_l30_a_cancelled_tree_leaves_no_command() {
    let stage = TestFolder::new();
    let run = json!([{ "tool": "run_command", "args": { "command": FOREVER } }]);
    let spawn = |agent: &str, id: &str| json!({ "tool": "spawn_agent", "args": { "agent": agent, "goal": id, "id": id } });
    let both = json!([spawn("middle", "a"), run[0]]);
    let below = json!([spawn("coder", "b"), run[0]]);
    stage.file("tree.script.yaml", &format!("rules:\n  - {{ when: {{ agent: lead }}, call: {both} }}\n  - {{ when: {{ agent: middle }}, call: {below} }}\n  - {{ call: {run} }}\n"));
    let agent = "{ model: fast, tools: [run_command, spawn_agent] }";
    let tree = stage.file("tree.yaml", &format!("name: test\ngoal: Try it.\nbudget: {{ cost_usd: 1 }}\nmodels:\n  fast: {{ provider: scripted, script: tree.script.yaml, price: {{ input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 }} }}\nagents: {{ lead: {agent}, middle: {agent}, coder: {agent} }}\nentry: lead\n"));
    let mut running = stage.play(&["run", &tree, "--json"]);
    for agent in ["lead", "a", "b"] {
        until_there(&mut running, stage.home(), agent);
    }
    let all = hold(&running, 12);
    assert_eq!(stage.spinney(&["cancel", "last"]).code, Some(0));
    assert!(all.have_ended());
    let ended = running.end();
    assert_eq!(ended.result()["state"], json!("cancelled"), "{}", ended.out);
    let ends = ended.json().into_iter().filter(|event| event["type"] == json!("agent_ended")).count();
    assert_eq!(ends, 3, "{}", ended.out);
}

/// The file that a command of an agent makes first, once it is there.
fn until_there(running: &mut Playing, home: &Path, agent: &str) -> PathBuf {
    loop {
        assert!(!running.has_ended(), "it ended before its command began");
        let trees = fs::read_dir(home.join("workspace")).into_iter().flatten().flatten();
        let found = trees.map(|tree| tree.path().join(agent).join("scratch/ran")).find(|ran| ran.exists());
        match found {
            Some(ran) => return ran,
            None => std::thread::yield_now(),
        }
    }
}

/// The processes below a run, as soon as there are so many.
fn hold(running: &Playing, count: usize) -> HeldProcesses {
    loop {
        let all = HeldProcesses::new(&processes_below(running.pid()));
        if all.count() >= count {
            return all;
        }
        std::thread::yield_now();
    }
}

/// Whether the ordinary user of a test may make namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Namespaces {
    Allowed,
    /// By the kernel, as on systems that set `user.max_user_namespaces` to 0.
    Forbidden,
}

/// The binary as an ordinary user has it, also if the tests run as root.
fn ordinary(stage: &TestFolder, namespaces: Namespaces, args: &[&str]) -> Ended {
    let binary = stage.folder().join("spinney");
    if !binary.exists() {
        fs::copy(env!("CARGO_BIN_EXE_spinney"), &binary).unwrap();
    }
    let mut words: Vec<&str> = Vec::new();
    if rustix::process::geteuid().is_root() {
        own_all(stage.folder());
        words.extend(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    }
    if namespaces == Namespaces::Forbidden {
        let none = r#"echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-all --ambient-caps=-all "$@""#;
        words.extend(["unshare", "--user", "--map-current-user", "--keep-caps", "sh", "-c", none, "sh"]);
    }
    words.push(binary.to_str().unwrap());
    words.extend(args);
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env("SPINNEY_HOME", stage.home()).envs(stage.user_folders());
    Ended::from(command.current_dir(stage.folder()).stdin(Stdio::null()).output().unwrap())
}

/// Gives everything in a folder to the ordinary user.
fn own_all(folder: &Path) {
    lchown(folder, Some(65_534), Some(65_534)).unwrap();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            own_all(&entry.path());
        } else {
            lchown(entry.path(), Some(65_534), Some(65_534)).unwrap();
        }
    }
}

/// An ordinary user runs commands in both tiers, from the tree file to the journal. Without namespaces a folder that may be
/// written is refused with what helps. A machine on which one of the tiers does not work fails this test.
#[test]
fn an_ordinary_user_runs_commands_with_and_without_namespaces() {
    for (namespaces, of_processes) in
        [(Namespaces::Allowed, "Name:\thead"), (Namespaces::Forbidden, "no processes")]
    {
        let stage = TestFolder::new();
        fs::set_permissions(stage.folder(), fs::Permissions::from_mode(0o755)).unwrap();
        let secret = stage.file("secret.txt", "the user's");
        fs::create_dir(stage.folder().join("notes")).unwrap();
        let line = format!(
            "exec 2> /dev/null; id -u; cat {secret} || echo hidden; echo x > {secret}; head -n 1 /proc/self/status || echo no processes; echo made > outputs/made.txt"
        );
        let tree = tree(&stage, "{ memory: 512MiB }", &runs(&line));
        let ended = ordinary(&stage, namespaces, &["run", &tree, "--json"]);
        assert_eq!(ended.code, Some(0), "{namespaces:?}: {}", ended.err);
        let user = fs::metadata(stage.home()).unwrap().uid();
        assert_ne!(user, 0);
        let expected =
            format!("exit code 0\nkept: outputs/made.txt\n[stdout]\n{user}\nhidden\n{of_processes}");
        assert_eq!(ended.result()["output"], json!(expected), "{namespaces:?}");
        assert_eq!(fs::read_to_string(&secret).unwrap(), "the user's");
        assert_eq!(ordinary(&stage, namespaces, &["files", "cat", "made.txt"]).out, "made\n");
        assert_eq!(ordinary(&stage, namespaces, &["replay", "last", "--verify"]).code, Some(0));
        let notes = stage.folder().canonicalize().unwrap().join("notes").display().to_string();
        let script = runs(&format!("cd {notes} && echo milk > todo.md; mkdir .git/x || echo kept"));
        let tree = self::tree(&stage, "{ memory: 512MiB }", &script);
        let written = ordinary(&stage, namespaces, &["run", &tree, "--write", &notes, "--json"]);
        match namespaces {
            Namespaces::Allowed => {
                assert_eq!(written.code, Some(0), "{}", written.err);
                assert_eq!(fs::read_to_string(Path::new(&notes).join("todo.md")).unwrap(), "milk\n");
                assert!(written.result()["output"].as_str().unwrap().contains("[stdout]\nkept"));
            }
            Namespaces::Forbidden => {
                assert_eq!(written.code, Some(2), "{}", written.err);
                let says = |part: &str| written.err.contains(part);
                assert!(says("need namespaces") && says("allow user namespaces"), "{}", written.err);
                assert!(!Path::new(&notes).join("todo.md").exists());
            }
        }
    }
}
