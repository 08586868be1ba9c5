//! Secrets in what is shown, and what watchers without the right to everything see.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::configuration::configure;
use crate::test_folder::{Ended, TestFolder};
use crate::upstream::{Reply, Upstream};

const KEY: &str = "sk-ant-api03-AbCdEfGhIjKlMnOp12";
const PHRASE: &str = "correct horse \"battery\" staple";
/// The phrase comes in as the value of another variable: a tree whose goal has that of a secret one is refused.
const VARIABLES: [(&str, &str); 2] = [("TEST_PHRASE", PHRASE), ("TEST_WORD", PHRASE)];

/// `deep` streams slowly and repeats what it was told to `mid`, and that to `lead`.
const SCRIPT: &str = "
rules:
  - when: { agent: lead, turn: 1 }
    say: 'I was told {{ goal }}.'
    call: [ { tool: spawn_agent, args: { agent: mid, goal: '{{ goal }}' } } ]
  - when: { agent: mid, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: deep, goal: '{{ goal }}' } } ]
  - when: { agent: deep }
    chunk_ms: 40
    say: 'I begin. It is {{ goal }}, and now I say more of it, and more.'
  - when: { agent: mid, tool_result_contains: 'correct horse' }
    say: 'Read as it is: {{ last }}'
  - when: { agent: lead, tool_result_contains: 'correct horse' }
    say: 'Done: {{ goal }}'
  - say: Only a mark was read.
";

fn tree(stage: &TestFolder, redact: &str, deep: &str) -> String {
    stage.file("tree.script.yaml", SCRIPT);
    let model = "provider: scripted, script: tree.script.yaml, price: { input_per_mtok_usd: 1, output_per_mtok_usd: 1 }";
    stage.file(
        "tree.yaml",
        &format!(
            "name: test\ngoal: 'Say {{{{ inputs.word }}}}'\ninputs: {{ word: {{ env: TEST_WORD }} }}\n\
             entry: lead\nbudget: {{ cost_usd: 1 }}\n{redact}\nmodels: {{ fast: {{ {model} }} }}\nagents:\n  \
             lead: {{ model: fast, tools: [spawn_agent] }}\n  mid: {{ model: fast, tools: [spawn_agent] }}\n  \
             deep: {{ model: fast{deep} }}\n"
        ),
    )
}

fn shown(stage: &TestFolder, args: &[&str]) -> Ended {
    stage.play_in(args, &VARIABLES).end()
}

/// Whether a text has the secret, also as JSON escapes it.
fn has_secret(text: &str) -> bool {
    text.contains("correct horse") || text.contains("battery")
}

/// Issue 42: a declared secret is in nothing that people and programs are shown, and in everything that models read.
#[test]
fn a_secret_is_shown_nowhere_and_read_as_it_is() {
    for in_file in [true, false] {
        let stage = TestFolder::new();
        let redact = if in_file { "redact: { env: [TEST_PHRASE] }" } else { "" };
        if !in_file {
            configure(&stage, "redact_env = ['TEST_PHRASE']\n");
        }
        let file = tree(&stage, redact, "");
        let mut all = vec![shown(&stage, &["run", &file])];
        for args in [
            vec!["run", &file, "--json", "--text"],
            vec!["events", "last"],
            vec!["events", "last", "--json"],
            vec!["show", "lead"],
            vec!["show", "lead", "--full"],
            vec!["show", "mid", "--json"],
            vec!["show", "deep", "--full"],
            vec!["window", "lead"],
            vec!["window", "lead", "--json"],
            vec!["tree"],
            vec!["tree", "--json"],
            vec!["costs"],
            vec!["questions"],
            vec!["shared"],
            vec!["top", "--json"],
            vec!["replay", "last"],
            vec!["replay", "last", "--json"],
            vec!["resume", "last"],
            vec!["attach", "last"],
        ] {
            // An agent that a model spawns has a random name.
            let agent =
                args.get(1).filter(|_| matches!(args[0], "show" | "window")).map(|role| id(&stage, role));
            let agent = agent.unwrap_or_default();
            let args: Vec<&str> = args
                .iter()
                .enumerate()
                .map(|(at, arg)| if at == 1 && !agent.is_empty() { agent.as_str() } else { *arg })
                .collect();
            all.push(shown(&stage, &args));
        }
        for ended in &all {
            assert!(!has_secret(&ended.out) && !has_secret(&ended.err), "{}{}", ended.out, ended.err);
            assert!(matches!(ended.code, Some(0)), "{}{}", ended.out, ended.err);
        }
        assert!(all[0].out.contains("Done: Say [redacted: TEST_PHRASE]"), "{}", all[0].out);
        // The variable is not set here: whoever opens the home sees what is in it.
        let opened = stage.spinney(&["events", "last", "--json"]).out;
        assert!(opened.contains("correct horse") && opened.contains("Read as it is"), "{opened}");
    }
}

/// The id of the agent of a role.
fn id(stage: &TestFolder, role: &str) -> String {
    let agents = shown(stage, &["tree", "--json"]).json();
    let found = agents.iter().find(|agent| agent["role"] == role);
    found.unwrap_or_else(|| panic!("{agents:?}"))["agent"].as_str().unwrap().to_owned()
}

/// O17: pieces of a deep agent's text reach the root's consumer before the agent ends, with its path and the tree, redacted
/// although the secret is cut into pieces, and filtered for a watcher that only reads.
#[test]
fn o17_a_deep_agent_streams_to_the_consumer_of_the_root() {
    let stage = TestFolder::new();
    let file = tree(&stage, "redact: { env: [TEST_PHRASE] }", "");
    let lines = shown(&stage, &["run", &file, "--json", "--text"]).json();
    let deep = |line: &Value| line["path"].as_str().is_some_and(|path| path.split('/').count() == 3);
    let ended = lines.iter().position(|line| line["type"] == "agent_ended" && deep(line)).unwrap();
    let pieces: Vec<&Value> =
        lines[..ended].iter().filter(|line| line["type"] == "text" && deep(line)).collect();
    assert!(pieces.len() > 2, "{lines:?}");
    let (mut text, tree) = (String::new(), &lines[0]["tree"]);
    for piece in pieces {
        assert_eq!(piece["offset"], text.len(), "offsets count what was shown");
        assert_eq!(&piece["tree"], tree);
        assert!(piece["path"].as_str().unwrap().starts_with("lead/mid-"), "{piece}");
        text += piece["text"].as_str().unwrap();
    }
    assert_eq!(text, "I begin. It is Say [redacted: TEST_PHRASE], and now I say more of it, and more.");
}

/// O17: what a watcher is shown follows its right and what roles and tools say. Costs add up for all of them.
#[test]
fn o17_watchers_see_what_roles_show_them() {
    for (visibility, has_texts, has_calls) in
        [("full", true, true), ("summary", false, true), ("hidden", false, false)]
    {
        let stage = TestFolder::new();
        let file = tree(&stage, "", &format!(", visibility: {visibility}"));
        let mut running = stage.play_in(&["run", &file, "--json"], &VARIABLES);
        running.until("\"role\":\"deep\"");
        let follow = |right| ["events", "last", "--json", "--follow", "--text", "--as", right];
        let read = stage.play_in(&follow("read"), &VARIABLES);
        let steer = stage.play_in(&follow("steer"), &VARIABLES);
        let (read, steer, owner) = (read.end(), steer.end(), running.end());
        assert_eq!(
            (read.code, steer.code, owner.code),
            (Some(0), Some(0), Some(0)),
            "{}{}",
            read.err,
            steer.err
        );
        let deep = |line: &&Value| line["path"].as_str().is_some_and(|path| path.split('/').count() == 3);
        let of = |ended: &Ended| -> Vec<Value> { ended.json().iter().filter(deep).cloned().collect() };
        let (read, steer) = (of(&read), of(&steer));
        let texts = |lines: &[Value]| serde_json::to_string(lines).unwrap().contains("I begin");
        assert_eq!(texts(&read), has_texts, "{visibility}: {read:?}");
        assert!(texts(&steer), "{visibility}: {steer:?}");
        assert_eq!(read.iter().any(|line| line["type"] == "call_ended"), has_calls, "{visibility}: {read:?}");
        let piece = |line: &Value| line["type"] == "text";
        assert!(has_texts || !read.iter().any(piece), "{visibility}: {read:?}");
        // What it spent is in its end, whatever else is shown.
        let end = |lines: &[Value]| {
            lines.iter().find(|line| line["type"] == "agent_ended").unwrap()["spent"].clone()
        };
        assert_eq!(end(&read), end(&steer));
        assert!(end(&read) != Value::Null);
    }
}

/// O17: what a tool was asked and answered is shown as its role says, also in the answer that asks for it.
#[test]
fn o17_calls_of_single_tools_are_shown_as_their_role_says() {
    const LOOKS: &str = "
rules:
  - when: { turn: 1 }
    say: I look.
    call: [ { tool: look, args: { where: in the drawer } } ]
  - say: I am done.
tools: { look: { say: a green box } }
";
    for (visibility, has_texts, has_calls) in
        [("full", true, true), ("summary", false, true), ("hidden", false, false)]
    {
        let stage = TestFolder::new();
        let file = stage.tree("look", LOOKS);
        let text = fs::read_to_string(&file).unwrap();
        let with = format!("tools: [look], tool_visibility: {{ look: {visibility} }}");
        fs::write(&file, text.replace("tools: [look]", &with)).unwrap();
        assert_eq!(stage.spinney(&["run", &file]).code, Some(0));
        let as_seen = |right| stage.spinney(&["events", "last", "--json", "--as", right]).out;
        let (read, owner) = (as_seen("read"), as_seen("owner"));
        for text in ["in the drawer", "a green box"] {
            assert!(owner.contains(text), "{owner}");
            assert_eq!(read.contains(text), has_texts, "{visibility}: {read}");
        }
        assert_eq!(read.contains("\"topic\":\"tool.call\""), has_calls, "{visibility}: {read}");
        assert!(read.contains("I am done."), "{read}");
    }
}

/// O17: what an agent says to another one, and what steps pass on, is shown as the less visible of them is.
#[test]
fn o17_the_texts_of_hidden_agents_are_shown_nowhere() {
    const MODELS: &str = "
budget: { cost_usd: 1 }
models: { m: { provider: scripted, script: script.yaml, price: { input_per_mtok_usd: 1, output_per_mtok_usd: 1 } } }
";
    const LEAD: &str = "
name: led
goal: Begin.
agents:
  lead: { model: m, tools: [spawn_agent, run_pipeline, followup_task] }
  inner: { model: m, visibility: WHICH }
entry: lead
";
    const STEPS: &str = "
name: steps
goal: Begin.
agents:
  lead: { model: m }
  inner: { model: m, visibility: WHICH }
pipeline:
  steps:
    - { id: first, agent_id: inner, task_description: SECRET-TASK., output_to: first }
    - { id: second, agent_id: lead, task_description: 'Use {{ first }}.', output_to: second }
    - { id: last, agent_id: inner, task_description: SECRET-TASK., output_to: last }
";
    const SCRIPT: &str = "
rules:
  - { when: { agent: inner, turn: 1 }, say: SECRET-WORDS, call: [ { tool: SECRETTOOL } ] }
  - { when: { agent: inner }, say: SECRET-ANSWER }
  - { when: { agent: lead, turn: 1, last_contains: Begin }, say: I start., call: [ { tool: spawn_agent, args: { agent: inner, id: one, goal: SECRET-GOAL } } ] }
  - { when: { agent: lead, turn: 2 }, call: [ { tool: run_pipeline, args: { steps: [ { agent_id: inner, task_description: SECRET-STEP, output_to: v } ] } } ] }
  - { when: { agent: lead, turn: 3 }, call: [ { tool: followup_task, args: { agent: one, task: SECRET-FOLLOWUP } } ] }
  - { say: I am done. }
";
    for (file, visibility) in [(LEAD, "hidden"), (LEAD, "summary"), (STEPS, "hidden"), (STEPS, "summary")] {
        let stage = TestFolder::new();
        let tree = format!("{}{MODELS}", file.replace("WHICH", visibility));
        stage.file("tree.yaml", &tree);
        stage.file("script.yaml", SCRIPT);
        let ran = stage.spinney(&["run", "tree.yaml"]);
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        let as_seen = |right| stage.spinney(&["events", "last", "--json", "--as", right]).out;
        let (read, owner) = (as_seen("read"), as_seen("owner"));
        assert!(owner.contains("SECRET-ANSWER") && owner.contains("I am done."), "{owner}");
        let shown: Vec<&str> = read.lines().filter(|line| line.contains("SECRET")).collect();
        assert!(shown.is_empty(), "{visibility}: {shown:#?}");
        assert!(read.contains("I am done."), "{read}");
    }
}

/// Issue 42: with `redact: journal` nothing in the home has the key, and a resumed model reads what the live one read.
#[test]
fn a_redacted_journal_has_no_secret_and_resumes_alike() {
    let stage = TestFolder::new();
    let note = json!({ "path": "outputs/note.md", "text": format!("the key is {KEY}") });
    let first = Reply::says(&format!("I found {KEY} and keep it."), &[("write_file", note)]);
    let upstream = Upstream::new(vec![first, Reply::held(), Reply::says(&format!("It was {KEY}."), &[])]);
    let file = stage.tree_on(&upstream);
    fs::write(&file, fs::read_to_string(&file).unwrap() + "redact: journal\n").unwrap();
    let running = stage.play(&["run", &file]);
    upstream.was_asked(2);
    running.kill();
    let resumed = stage.play(&["resume", "last"]);
    upstream.was_asked(3);
    upstream.release();
    let resumed = resumed.end();
    assert_eq!(resumed.code, Some(0), "{}{}", resumed.out, resumed.err);
    assert!(resumed.out.contains("It was [redacted: key]."), "{}", resumed.out);
    let asked = upstream.asked();
    let (live, again) = (&asked[1].body["messages"], &asked[2].body["messages"]);
    assert_eq!(live, again);
    let read = live.to_string();
    assert!(read.contains("I found [redacted: key]") && !read.contains(KEY), "{read}");
    let found = files_with(stage.home(), KEY);
    assert!(found.is_empty(), "{found:?}");
    let note = stage.spinney(&["files", "cat", "note.md"]);
    assert_eq!(note.out.trim_end(), "the key is [redacted: key]", "{} {:?}", note.err, stage.results("lead"));
}

/// The files of a folder that have a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if path.is_file() {
            let bytes = fs::read(&path).unwrap();
            let has = bytes.windows(text.len()).any(|window| window == text.as_bytes());
            found.extend(has.then(|| path.display().to_string()));
        }
    }
    found
}

#[test]
fn what_is_wrong_with_redaction_and_visibility_is_named() {
    let stage = TestFolder::new();
    for (line, message) in [
        ("redact: all", "the keys of a redaction, or `journal`"),
        ("redact: { env: [hunter2-hunter2] }", "this is not the name of an environment variable"),
        ("redact: { env: [], keys: true }", "keys"),
    ] {
        let checked = stage.spinney(&["check", &tree(&stage, line, "")]);
        assert_eq!(checked.code, Some(2), "{}", checked.out);
        assert!((checked.out + &checked.err).contains(message), "{line}");
    }
    for (keys, message) in [
        (", visibility: none", "known values: full, summary, hidden"),
        (", tool_visibility: { fetch: hidden }", "`deep` has no tool `fetch`"),
    ] {
        let checked = stage.spinney(&["check", &tree(&stage, "", keys)]);
        assert_eq!(checked.code, Some(2), "{}", checked.out);
        let said = checked.out + &checked.err;
        assert!(said.contains(message), "{said}");
    }
    let refused = stage.spinney(&["config", "add", "redact_env", "hunter2-hunter2"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("not the name of a variable"), "{}", refused.err);
}
