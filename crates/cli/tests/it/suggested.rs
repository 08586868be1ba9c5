//! Every command that any output suggests works when it is pasted into a shell: complete, with its home, and without a
//! placeholder that a shell or the command would refuse.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::rewritten::damage_sources;
use crate::scripts::{ASKS, HANGS, SAYS, SPENDS};
use crate::test_folder::{Ended, TestFolder, steady};
use crate::upstream::{Reply, Upstream};

const SLOW: &str = "
rules: [ { when: { turn: 1 }, call: [ { tool: look } ] }, { say: done } ]
tools: { look: { repeatable: true, think_ms: 500, say: seen } }
";

/// A home whose name needs quoting in a shell, and a tree file with the placeholder's name.
fn odd() -> TestFolder {
    let stage = TestFolder::new().at("it's a $HOME");
    fs::rename(stage.tree("", SAYS), stage.folder().join("your tree.yaml")).unwrap();
    stage
}

/// Every command in a text: from our name to the closing backtick or the end of the line.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with("Usage: ")) {
        let mut rest = line;
        while let Some(at) = rest.find("spinney ") {
            let (before, command) = rest.split_at(at);
            let end = match before.chars().next_back() {
                Some('`') => command.find('`').unwrap_or_else(|| panic!("no second backtick: {line}")),
                None | Some(' ') => command.len(),
                Some(_) => {
                    rest = &command["spinney ".len()..];
                    continue;
                }
            };
            found.push(command[..end].trim_end().to_owned());
            rest = &command[end..];
        }
    }
    found
}

/// Every command in the strings of a JSON value.
fn commands_of(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => commands(text),
        Value::Array(values) => values.iter().flat_map(commands_of).collect(),
        Value::Object(fields) => fields.values().flat_map(commands_of).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Makes a folder like another. The folder itself stays: a home is known by its inode.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(to).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }
    let copied = Command::new("cp").arg("-a").args([&from.join("."), to]).status().unwrap();
    assert!(copied.success());
}

/// Finds the printed commands, compares them with these, and runs each in the home as it was at that moment. Each must
/// exit with the given code. They are written here without their home and with `[id]` for an id.
fn suggests(stage: &TestFolder, printed: &Ended, expected: &[(&str, i32)]) {
    let texts = [commands(&printed.err), commands(&printed.out)].concat();
    runs(stage, texts, expected);
}

fn runs(stage: &TestFolder, mut found: Vec<String>, expected: &[(&str, i32)]) {
    let home = stage.home().display().to_string().replace('\'', r"'\''");
    let prefix = format!("spinney --home '{home}' ");
    found.sort();
    found.dedup();
    let mut plain: Vec<(String, &String)> =
        found.iter().map(|command| (steady(&command.replace(&prefix, "")), command)).collect();
    plain.sort();
    let mut wanted: Vec<&str> = expected.iter().map(|(command, _)| *command).collect();
    wanted.sort_unstable();
    assert_eq!(plain.iter().map(|(plain, _)| plain.as_str()).collect::<Vec<_>>(), wanted, "{found:?}");
    // With what is remembered of the home outside it.
    let state = stage.folder().join("user/state");
    let kept = [stage.home(), &state]
        .map(|folder| (folder, stage.folder().join("kept").join(folder.file_name().unwrap())));
    for (folder, kept) in kept.iter().filter(|(folder, _)| folder.exists()) {
        copy(folder, kept);
    }
    for (plain, command) in &plain {
        let ended = stage.shell(command);
        let code = expected.iter().find(|(wanted, _)| wanted == plain).map(|(_, code)| *code);
        assert_eq!(ended.code, code, "{command}\n{}{}", ended.out, ended.err);
        for (folder, kept) in kept.iter().filter(|(_, kept)| kept.exists()) {
            copy(kept, folder);
        }
    }
}

/// Runs a tree until a tool is running, and interrupts it.
fn stopped(stage: &TestFolder) -> Ended {
    let mut running = stage.play(&["run", &stage.tree("look", SLOW)]);
    running.until("calls look");
    running.signal("INT");
    running.end()
}

/// Runs a tree that hangs, and kills it.
fn interrupted(stage: &TestFolder) {
    let mut running = stage.play(&["run", &stage.tree("look", SLOW)]);
    running.until("calls look");
    running.kill();
}

#[test]
fn a_tree_that_has_ended_suggests_commands_that_work() {
    let stage = odd();
    let done = stage.spinney(&["run", &stage.tree("", SAYS)]);
    suggests(&stage, &done, &[("events [id]", 0)]);
    suggests(&stage, &stage.spinney(&["resume", "last"]), &[("events [id]", 0)]);
    suggests(&stage, &stage.spinney(&["ps"]), &[]);
    suggests(&stage, &stage.spinney(&["cancel", "last"]), &[("resume [id]", 0)]);
    suggests(&stage, &stage.spinney(&["checkpoint", "ls"]), &[]);
    for budget in ["budget: { cost_usd: 1, timeout: { wall: 1ms } }", "budget: { cost_usd: 1 }"] {
        let failed = stage.tree_with(budget, "", "rules: [ { think_ms: 50, fail: { kind: auth } } ]");
        let failed = stage.spinney(&["run", &failed]);
        assert_eq!(failed.code, Some(1), "{failed:?}");
        suggests(&stage, &failed, &[("events [id]", 0)]);
    }
}

/// G17: a tree that moved away, and a copy of one, suggest nothing that is refused. `--take-back` asks at a terminal; without
/// one it suggests the option that says yes.
#[test]
fn a_sealed_tree_suggests_commands_that_work() {
    let stage = odd();
    let asked = stage.spinney(&["run", &stage.tree("ask_human", ASKS)]);
    assert_eq!(asked.code, Some(5), "{}", asked.err);
    let copy = stage.folder().join("copy.trees").display().to_string();
    stage.spinney(&["export", "--copy", "-o", &copy]);
    let moved = stage.spinney(&["export", "-o", &stage.folder().join("oak.trees").display().to_string()]);
    assert_eq!(moved.code, Some(0), "{}", moved.err);
    let back = ("export [id] --take-back", 2);
    suggests(&stage, &stage.spinney(&["rm"]), &[back, ("rm [id] --force", 0)]);
    suggests(&stage, &stage.spinney(&["questions"]), &[back]);
    suggests(&stage, &stage.spinney(&["attach"]), &[back, ("events [id]", 0)]);
    suggests(&stage, &stage.spinney(&["answer", "blue"]), &[back]);
    suggests(&stage, &stage.spinney(&["resume"]), &[back]);
    suggests(&stage, &stage.spinney(&["export", "--take-back"]), &[("export [id] --take-back --yes", 0)]);

    assert_eq!(stage.spinney(&["rm", "--force"]).code, Some(0));
    assert_eq!(stage.spinney(&["import", &copy]).code, Some(0));
    let ls = ("checkpoint ls", 0);
    suggests(&stage, &stage.spinney(&["rm"]), &[ls, ("rm [id] --force", 0)]);
    suggests(&stage, &stage.spinney(&["questions"]), &[ls]);
    suggests(&stage, &stage.spinney(&["attach"]), &[ls, ("events [id]", 0)]);
    suggests(&stage, &stage.spinney(&["answer", "blue"]), &[ls]);
    suggests(&stage, &stage.spinney(&["resume"]), &[ls]);
}

#[test]
fn a_halted_tree_suggests_commands_that_work() {
    let stage = odd();
    let tree = stage.tree_with("budget: { cost_usd: 0.0022 }", "look", SPENDS);
    let halted = stage.spinney(&["run", &tree]);
    let raise = "budget [id] --add-usd 0.019 && resume [id]";
    suggests(&stage, &halted, &[(raise, 0), ("events [id]", 0)]);
    let halted = stage.spinney(&["resume", "last", "--json"]).result();
    runs(&stage, commands_of(&halted), &[(raise, 0)]);
    let raised = stage.spinney(&["budget", "last", "--add-usd", "1"]);
    suggests(&stage, &raised, &[("resume [id]", 0)]);
}

#[test]
fn a_waiting_question_suggests_commands_that_work() {
    let stage = odd();
    let waiting = stage.spinney(&["run", &stage.tree("ask_human", ASKS)]);
    let answer = ("answer [id] 2 'your answer'", 0);
    // There is no answer yet, so it still waits.
    suggests(&stage, &waiting, &[answer, ("resume [id]", 5), ("events [id]", 0)]);
    suggests(&stage, &stage.spinney(&["questions"]), &[answer]);
    let unknown = stage.spinney(&["answer", "last", "7", "blue"]);
    assert_eq!(unknown.code, Some(2));
    suggests(&stage, &unknown, &[("questions [id]", 0)]);
    let refused = stage.spinney(&["rm", "last"]);
    suggests(&stage, &refused, &[("resume [id]", 5), ("rm [id] --force", 0)]);
    let answered = stage.shell(&commands(&stage.spinney(&["questions"]).out)[0]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    suggests(&stage, &answered, &[("resume [id]", 0)]);
    let resumed = stage.shell(&commands(&answered.err)[0]);
    assert!(resumed.out.contains("You said your answer"), "{resumed:?}");
}

/// The placeholder for an answer is not an approval if it is pasted unchanged.
#[test]
fn an_approval_suggests_commands_that_work() {
    let stage = odd();
    let args = json!({ "text": "line\n".repeat(600) }).to_string();
    let script = format!(
        "rules:\n  - {{ when: {{ turn: 1 }}, call: [ {{ tool: put, args: {} }} ] }}\n  - {{ say: 'I read: {{{{ last }}}}' }}\ntools: {{ put: {{ say: ok }} }}\n",
        json!(args)
    );
    let tree = stage.tree("put", &script);
    let text = fs::read_to_string(&tree).unwrap();
    fs::write(&tree, text.replace("tools: [put]", "tools: [put], approvals: { put: ask }")).unwrap();
    let waiting = stage.spinney(&["run", &tree]);
    assert_eq!(waiting.code, Some(5), "{waiting:?}");
    let answer = ("answer [id] 2 'your answer'", 0);
    suggests(&stage, &waiting, &[answer, ("questions [id]", 0), ("resume [id]", 5), ("events [id]", 0)]);
    let pasted = commands(&waiting.out).into_iter().find(|command| command.contains("answer'")).unwrap();
    assert_eq!(stage.shell(&pasted).code, Some(0));
    let resumed = stage.spinney(&["resume", "last", "--json"]).result();
    let output = resumed["output"].as_str().unwrap();
    assert!(output.contains("a person refused your call of `put`: your answer"), "{output}");
}

/// Issue 16: after Ctrl-C `unpause` was suggested, and refused.
#[test]
fn a_stopped_tree_suggests_commands_that_work() {
    let stage = odd();
    let stopped = stopped(&stage);
    assert_eq!(stopped.code, Some(130), "{stopped:?}");
    suggests(&stage, &stopped, &[("resume [id]", 0), ("cancel [id]", 0), ("events [id]", 0)]);
    assert!(!stopped.err.contains("nothing runs"), "{}", stopped.err);
    let refused = stage.spinney(&["unpause", "last"]);
    assert_eq!(refused.code, Some(2));
    suggests(&stage, &refused, &[("resume [id]", 0)]);
    suggests(&stage, &stage.spinney(&["send", "last", "lead", "Hello."]), &[("resume [id]", 0)]);
    let refused = stage.spinney(&["rm", "last"]);
    suggests(&stage, &refused, &[("resume [id]", 0), ("rm [id] --force", 0)]);
    suggests(&stage, &stage.spinney(&["ps"]), &[]);
    suggests(&stage, &stage.spinney(&["checkpoint", "ls"]), &[("checkpoint make [id] lead", 0)]);
    suggests(&stage, &stage.spinney(&["checkpoint", "ls", "--agent", "nobody"]), &[]);
}

/// Issue 16: `resume` was suggested for a paused tree, and waited for its deadline.
#[test]
fn a_paused_tree_suggests_commands_that_work() {
    let stage = odd();
    let upstream = Upstream::new(vec![Reply::writes().late(), Reply::says("done", &[])]);
    let mut running = stage.play(&["run", &stage.tree_on(&upstream)]);
    upstream.was_asked(1);
    assert_eq!(stage.spinney(&["pause", "last"]).code, Some(0));
    upstream.release();
    // The process that runs it prints how to continue.
    let unpause = running.until_noted("paused, nothing runs");
    let again = stage.spinney(&["pause", "last"]);
    assert_eq!(again.code, Some(2));
    assert_eq!(commands(&again.err), [format!("{} lead", commands(&unpause)[0])]);
    running.signal("INT");
    let stopped = running.end();
    let go_on = ("resume [id] --unpause", 0);
    suggests(&stage, &stopped, &[go_on, ("cancel [id]", 0), ("events [id]", 0)]);
    suggests(&stage, &stage.spinney(&["send", "last", "lead", "Hello."]), &[go_on]);
    suggests(&stage, &stage.spinney(&["rm", "last"]), &[go_on, ("rm [id] --force", 0)]);
    let paused = stage.spinney(&["pause", "last"]);
    assert_eq!(paused.code, Some(2));
    suggests(&stage, &paused, &[("unpause [id] lead", 0)]);
    let unpaused = stage.shell(&commands(&paused.err)[0]);
    suggests(&stage, &unpaused, &[("resume [id]", 0)]);
}

/// A pause is a person's decision: `resume` alone does not end it, and prints the command that does.
#[test]
fn a_paused_tree_that_is_resumed_says_which_command_ends_the_pause() {
    let stage = odd();
    interrupted(&stage);
    let paused = stage.spinney(&["pause", "last"]);
    suggests(&stage, &paused, &[("resume [id] --unpause", 0)]);
    let mut resumed = stage.play(&["resume", "last"]);
    let unpause = commands(&resumed.until_noted("paused, nothing runs"));
    let unpaused = stage.shell(&unpause[0]);
    assert_eq!(unpaused.code, Some(0), "{unpause:?}: {unpaused:?}");
    assert_eq!(resumed.end().code, Some(0));
    let verified = stage.spinney(&["replay", "last", "--verify"]);
    assert_eq!(verified.code, Some(0), "{}", verified.err);
}

/// If an agent below the root is paused, the command names it: unpausing the root is refused.
#[test]
fn a_paused_child_is_named_by_the_command_that_ends_its_pause() {
    let stage = odd();
    let spawns = json!({ "agent": "helper", "id": "helper", "goal": "Help." });
    let upstream = Upstream::new(vec![
        Reply::says("I ask for help.", &[("spawn_agent", spawns)]),
        Reply::writes().late(),
        Reply::says("done", &[]),
    ]);
    let tree = stage.tree_on(&upstream);
    let text = fs::read_to_string(&tree).unwrap();
    let text = text.replace("tools: [write_file]", "tools: [spawn_agent, write_file], subagents: [helper]");
    fs::write(&tree, text + "  helper: { model: fast, tools: [write_file] }\nentry: lead\n").unwrap();
    let mut running = stage.play(&["run", &tree]);
    upstream.was_asked(2);
    assert_eq!(stage.spinney(&["pause", "last", "helper"]).code, Some(0));
    upstream.release();
    let unpause = commands(&running.until_noted("paused, nothing runs"));
    assert!(unpause[0].ends_with(" helper"), "{unpause:?}");
    let unpaused = stage.shell(&unpause[0]);
    assert_eq!(unpaused.code, Some(0), "{unpaused:?}");
    assert_eq!(running.end().code, Some(0));
}

#[test]
fn an_interrupted_tree_suggests_commands_that_work() {
    let stage = odd();
    interrupted(&stage);
    interrupted(&stage);
    let listed = stage.spinney(&["ps"]);
    suggests(&stage, &listed, &[("resume [id]", 0), ("resume [id]", 0)]);
    suggests(&stage, &stage.spinney(&["rm", "last"]), &[("resume [id]", 0), ("rm [id] --force", 0)]);
    let attached = stage.spinney(&["attach"]);
    assert_eq!(attached.code, Some(130), "{attached:?}");
    suggests(&stage, &attached, &[("resume [id]", 0), ("cancel [id]", 0), ("events [id]", 0)]);
    suggests(&stage, &stage.spinney(&["top"]), &[]);
    damage_sources(stage.home());
    let refused = stage.spinney(&["resume", "last"]);
    suggests(&stage, &refused, &[("cancel [id]", 0)]);
    let refused = stage.spinney(&["resume", "last", "--json"]).result();
    runs(&stage, commands_of(&refused["error"]["message"]), &[("cancel [id]", 0)]);
}

#[test]
fn a_running_tree_suggests_commands_that_work() {
    let stage = odd();
    let mut running = stage.play(&["run", &stage.tree("", HANGS)]);
    running.until("starts");
    let refused = stage.spinney(&["rm", "last", "--force"]);
    let cancelled = stage.shell(&commands(&refused.err)[0]);
    assert_eq!(cancelled.code, Some(0), "{refused:?}: {cancelled:?}");
    assert_eq!(running.end().code, Some(4));

    let mut running = stage.play(&["run", &stage.tree("look", SLOW)]);
    running.until("calls look");
    running.signal("INT");
    running.until_noted("Press Ctrl-C again to stop at once");
    running.signal("INT");
    let at_once = running.until_noted("stopped at once");
    running.end();
    runs(&stage, commands(&at_once), &[("resume [id]", 0)]);
}

fn suggests_nothing(refused: &Ended) {
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert_eq!([commands(&refused.err), commands(&refused.out)].concat(), [""; 0]);
}

#[test]
fn a_name_that_nothing_has_suggests_commands_that_work() {
    let stage = odd();
    assert_eq!(stage.spinney(&["run", "your tree.yaml"]).code, Some(0));
    let id = stage.spinney(&["ps", "--json"]).result()["tree"].as_str().unwrap().to_owned();
    suggests(&stage, &stage.spinney(&["events", "ffff"]), &[("ps", 0)]);
    suggests(&stage, &stage.spinney(&["events", "first"]), &[("ps", 0)]);
    suggests(&stage, &stage.spinney(&["checkpoint", "rollback", "then"]), &[("checkpoint ls", 0)]);
    // The ids of one year have the same beginning.
    assert_eq!(stage.spinney(&["run", "your tree.yaml"]).code, Some(0));
    suggests_nothing(&stage.spinney(&["events", &id[..2]]));
    suggests_nothing(&stage.spinney(&["events", "last", "--agent", "nobody"]));
    stage.file("unknown.yaml", "name: test\nprocess_message: x\n");
    suggests(&stage, &stage.spinney(&["run", "unknown.yaml"]), &[("check unknown.yaml", 2)]);
    let text = fs::read_to_string(stage.folder().join("your tree.yaml")).unwrap();
    let role = stage.file("role.yaml", &text.replace("model: fast,", "model: fast, subagents: [nobody],"));
    suggests_nothing(&stage.spinney(&["run", &role]));
    for tree in stage.spinney(&["ps", "--json"]).json() {
        assert_eq!(stage.spinney(&["rm", tree["tree"].as_str().unwrap()]).code, Some(0));
    }
    suggests(&stage, &stage.spinney(&["ps"]), &[("run 'your tree.yaml'", 0)]);
    suggests(&stage, &stage.spinney(&["events", "last"]), &[("run 'your tree.yaml'", 0)]);
}

#[test]
fn a_checkpoint_suggests_commands_that_work() {
    let stage = odd();
    assert_eq!(stage.spinney(&["run", &stage.tree("ask_human", ASKS)]).code, Some(5));
    let made = stage.spinney(&["checkpoint", "make", "lead", "--name", "then"]);
    suggests(&stage, &made, &[]);
    let rolled_back = stage.spinney(&["checkpoint", "rollback", "then"]);
    suggests(&stage, &rolled_back, &[("resume [id]", 0)]);
    assert_eq!(stage.spinney(&["resume", "last"]).code, Some(0));
    let over = stage.spinney(&["checkpoint", "rollback", "then"]);
    assert_eq!(over.code, Some(2), "{over:?}");
    suggests(&stage, &over, &[("checkpoint branch then --budget-usd 1", 0)]);
    let origin = stage.spinney(&["ps", "--json"]).result()["tree"].as_str().unwrap().to_owned();
    let branched = stage.shell(&commands(&over.err)[0]);
    suggests(&stage, &branched, &[("resume [id]", 5)]);
    suggests(&stage, &stage.spinney(&["rm", &origin]), &[("rm [id] --force", 0)]);
}

#[test]
fn a_home_that_lost_commits_suggests_the_command_that_accepts_it() {
    let stage = odd();
    interrupted(&stage);
    fs::remove_file(stage.home().join("journal.sqlite3-wal")).unwrap();
    let accept = [("ps --accept-loss", 0)];
    for verb in [&["ps"][..], &["resume", "last"], &["cancel", "last"], &["run", "your tree.yaml"]] {
        let lost = stage.spinney(verb);
        assert_eq!(lost.code, Some(1), "{lost:?}");
        suggests(&stage, &lost, &accept);
    }
    let lost = stage.spinney(&["run", "your tree.yaml", "--json"]).result();
    runs(&stage, commands_of(&lost["error"]["remedy"]), &accept);
}

/// Commands omit the home only if the shell would use the same one.
#[test]
fn the_default_home_is_named_where_the_environment_names_another() {
    let stage = TestFolder::new();
    let tree = stage.tree("", SAYS);
    let plain = stage.spinney(&["run", &tree]);
    assert!(commands(&plain.out)[0].starts_with("spinney events "), "{}", plain.out);
    let other = [("SPINNEY_HOME", "other")];
    let named = stage.play_in(&["--home", ".spinney", "resume", "last"], &other).end();
    assert!(commands(&named.out)[0].starts_with("spinney --home '.spinney' events "), "{named:?}");
}

/// Only `hint.rs` writes commands. Any other text that contains one would lack the home.
#[test]
fn no_other_place_writes_a_command() {
    // Agents read the refusal and journals contain it, so it cannot change under the rules of those trees. The other
    // text is part of a hash.
    const KEPT: [&str; 2] =
        ["raise it with `spinney budget`, or cancel the tree", r#"b"spinney checkpoint 1\0""#];
    let help = TestFolder::new().spinney(&["help"]).out;
    let listed = help.split_once("Commands:\n").unwrap().1;
    let verbs: Vec<&str> = listed
        .lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|verb| *verb != "help")
        .collect();
    assert!(verbs.len() > 15, "{verbs:?}");
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
    let (mut files, mut found) = (0, Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir()
                && !["tests", "benches", "examples", "target"].iter().any(|name| path.ends_with(name))
            {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|ending| ending != "rs") || path.ends_with("cli/src/hint.rs")
                // Its examples are run by a test below.
                || path.ends_with("cli/src/args/help.rs")
            {
                continue;
            }
            files += 1;
            let text = fs::read_to_string(&path).unwrap();
            let names_one = |line: &&str| verbs.iter().any(|verb| line.contains(&format!("spinney {verb}")));
            let lines = text.lines().filter(|line| {
                !line.trim_start().starts_with("//") && !KEPT.iter().any(|kept| line.contains(kept))
            });
            found.extend(lines.filter(names_one).map(|line| format!("{}: {line}", path.display())));
        }
    }
    assert!(files > 100, "{files}");
    assert_eq!(found, [""; 0]);
}

/// The README's commands can be pasted one after the other.
#[test]
fn every_command_of_the_readme_works() {
    let stage = TestFolder::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    copy(&root.join("examples"), &stage.folder().join("examples"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    // A program of somebody else is not there.
    let is_ours = |line: &&str| line.starts_with("spinney ") && !line.starts_with("spinney exec");
    let lines: Vec<&str> = readme.lines().filter(is_ours).collect();
    assert_eq!(lines.len(), 16, "{lines:?}");
    for line in lines {
        let ended = stage.shell(line);
        let code = if line.contains("halts at the ceiling") { 3 } else { 0 };
        assert_eq!(ended.code, Some(code), "{line}\n{}{}", ended.out, ended.err);
    }
}
