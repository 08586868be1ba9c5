//! Follow-ups to trees that have ended (`send`, `ask`, `chat`), and changes of a pipeline that runs.

use serde_json::json;

use crate::test_folder::TestFolder;

const TREE: &str = "
name: shop
goal: Find the cheapest chair.
budget: { cost_usd: 1 }
models: { m: { provider: scripted, script: script.yaml, price: { input_per_mtok_usd: 1, output_per_mtok_usd: 1 } } }
agents:
  lead: { model: m, tools: [write_file] }
entry: lead
";
const SCRIPT: &str = "
rules:
- { when: { last_contains: winter }, say: In winter as well. }
- { when: { last_contains: table }, call: [{ tool: write_file, args: { path: outputs/table.md, text: oak } }] }
- { say: The red one. }
";

fn shop() -> TestFolder {
    let stage = TestFolder::new();
    stage.file("tree.yaml", TREE);
    stage.file("script.yaml", SCRIPT);
    let ended = stage.spinney(&["run", "tree.yaml"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    stage
}

#[test]
fn ask_continues_a_tree_that_has_ended_and_prints_the_answer_alone() {
    let stage = shop();
    let first = stage.spinney(&["resume", "--json"]).result();
    let asked = stage.spinney(&["ask", "last", "lead", "And in winter?"]);
    assert_eq!((asked.code, asked.out.as_str()), (Some(0), "In winter as well.\n"), "{}", asked.err);
    let second = stage.spinney(&["resume", "--json"]).result();
    assert_ne!(first["tree"], second["tree"]);
    assert_eq!(second["output"], json!("In winter as well."));
    // The tree that ended still has its own answer.
    let old = stage.spinney(&["resume", first["tree"].as_str().unwrap(), "--json"]).result();
    assert_eq!(old, first);
    // A message to the first one belongs to the end of the chain.
    let asked = stage.spinney(&["ask", first["tree"].as_str().unwrap(), "lead", "And a table?"]);
    assert_eq!((asked.code, asked.out.as_str()), (Some(0), "The red one.\n"), "{}", asked.err);
    let window = stage.spinney(&["window", "last", "lead"]);
    assert_eq!(window.code, Some(0), "{}", window.err);
    let shown = stage.spinney(&["show", "last", "lead"]);
    for text in ["Find the cheapest chair.", "And in winter?", "In winter as well.", "And a table?"] {
        assert!(shown.out.contains(text), "{text}: {}", shown.out);
    }
    for word in
        [&["replay", "last", "--verify"][..], &["costs", "last"], &["tree", "last"], &["events", "last"]]
    {
        let done = stage.spinney(word);
        assert_eq!(done.code, Some(0), "{word:?} {}{}", done.out, done.err);
    }
    assert!(stage.spinney(&["events", "last"]).out.contains("which had ended, with the rest of its budget"));
    // Its folder goes on.
    let third = stage.spinney(&["resume", "--json"]).result();
    let file = format!(".spinney/workspace/{}/lead/outputs/table.md", third["tree"].as_str().unwrap());
    assert_eq!(std::fs::read_to_string(stage.folder().join(file)).unwrap(), "oak");
    let removed = stage.spinney(&["rm", first["tree"].as_str().unwrap()]);
    assert_eq!(removed.code, Some(2), "{}{}", removed.out, removed.err);
}

#[test]
fn send_to_a_tree_that_has_ended_makes_the_tree_that_continues_it() {
    let stage = shop();
    let sent = stage.spinney(&["send", "last", "lead", "And in winter?"]);
    assert_eq!(sent.code, Some(0), "{}", sent.err);
    assert!(sent.err.contains("which continues") && sent.err.contains("spinney resume"), "{}", sent.err);
    let ended = stage.spinney(&["resume"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("In winter as well."), "{}", ended.out);
    let unknown = stage.spinney(&["send", "last", "nobody", "Hello?"]);
    assert_eq!(unknown.code, Some(2), "{}{}", unknown.out, unknown.err);
}

#[test]
fn chat_makes_a_conversation_of_a_tree_that_has_ended() {
    let stage = shop();
    let mut terminal = stage.terminal(&["chat"], 80, 40);
    terminal.until("The red one.\n\n>");
    terminal.send("And in winter?\n");
    terminal.until("In winter as well.\n\n>");
    terminal.send("/finish\n");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

#[test]
fn a_tree_that_cannot_be_continued_says_why() {
    let stage = TestFolder::new();
    let pipeline = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/scenarios/s01-sequence.yaml");
    assert_eq!(stage.spinney(&["run", pipeline]).code, Some(0));
    let refused = stage.spinney(&["send", "last", "pipeline", "Once more."]);
    assert_eq!(refused.code, Some(2), "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("not an agent that takes turns"), "{}", refused.err);
    let redirected = stage.spinney(&["redirect", "last", "--end"]);
    assert_eq!(redirected.code, Some(2), "{}{}", redirected.out, redirected.err);
}

const PIPELINE: &str = "
name: report
goal: Write it.
budget: { cost_usd: 1 }
models: { m: { provider: scripted, script: script.yaml, price: { input_per_mtok_usd: 1, output_per_mtok_usd: 1 } } }
agents:
  worker: { model: m }
pipeline:
  steps:
    - { id: outline, agent_id: worker, task_description: Outline it., output_to: outline }
    - { id: approve, ask: 'Go on?', output_to: approved }
    - { id: draft, agent_id: worker, task_description: Draft it., output_to: draft }
    - { id: polish, agent_id: worker, task_description: Polish it., output_to: polished }
";

/// O18 at the command line: an instruction for one step, a step that is skipped, and an end.
#[test]
fn a_pipeline_is_redirected_from_another_terminal() {
    let stage = TestFolder::new();
    stage.file("tree.yaml", PIPELINE);
    stage.file(
        "script.yaml",
        "rules: [{ when: { last_contains: children }, say: for children }, { say: plain }]",
    );
    assert_eq!(stage.spinney(&["run", "tree.yaml"]).code, Some(5));
    let said = |words: &[&str]| {
        let done = stage.spinney(words);
        assert_eq!(done.code, Some(0), "{words:?} {}{}", done.out, done.err);
        done.err
    };
    assert!(
        said(&["redirect", "Write it for children.", "--step", "draft"]).contains("read the instruction")
    );
    assert!(said(&["redirect", "last", "--skip", "polish"]).contains("skips `polish`"));
    let wrong = stage.spinney(&["redirect", "last", "--skip", "polisch"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.err);
    assert!(wrong.err.contains("outline") && wrong.err.contains("no step `polisch`"), "{}", wrong.err);
    for words in
        [&["redirect", "last"][..], &["redirect", "last", "--now"], &["redirect", "last", "--step", "draft"]]
    {
        let missing = stage.spinney(words);
        assert_eq!(missing.code, Some(2), "{words:?} {}", missing.err);
        assert!(missing.err.contains("the instruction is missing"), "{words:?} {}", missing.err);
    }
    let both = stage.spinney(&["redirect", "last", "--skip", "polish", "--end"]);
    assert_eq!(both.code, Some(2), "{}", both.err);
    said(&["answer", "yes"]);
    let ended = stage.spinney(&["resume"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("polish is skipped: a person does not want it"), "{}", ended.out);
    assert_eq!(stage.spinney(&["resume", "--json"]).result()["output"], json!("for children"));
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

/// Nobody answers while the tree is paused, an agent that does not exist never does, and a question has to be answered first.
#[test]
fn ask_says_why_there_is_no_answer() {
    let stage = TestFolder::new();
    stage.file("tree.yaml", &TREE.replace("[write_file]", "[ask_human]"));
    stage.file(
        "script.yaml",
        "rules: [{ when: { last_contains: colour }, call: [{ tool: ask_human, args: { question: Which red? } }] }, { say: The red one. }]",
    );
    assert_eq!(stage.spinney(&["run", "--keep", "tree.yaml"]).code, Some(5));
    let unknown = stage.spinney(&["ask", "leed", "And now?"]);
    assert_eq!(unknown.code, Some(2), "{}", unknown.err);
    assert!(
        unknown.err.contains("no agent is called `leed`") && unknown.err.contains("`lead`"),
        "{}",
        unknown.err
    );
    let asks = stage.spinney(&["ask", "lead", "Which colour?"]);
    assert_eq!((asks.code, asks.out.as_str()), (Some(5), ""), "{}", asks.err);
    assert!(asks.err.contains("Which red?") && asks.err.contains("spinney answer"), "{}", asks.err);
    let stage = TestFolder::new();
    stage.file("tree.yaml", TREE);
    stage.file("script.yaml", SCRIPT);
    assert_eq!(stage.spinney(&["run", "--keep", "tree.yaml"]).code, Some(5));
    assert_eq!(stage.spinney(&["pause", "last"]).code, Some(0));
    let paused = stage.spinney(&["ask", "lead", "And now?"]);
    assert_eq!((paused.code, paused.out.as_str()), (Some(5), ""), "{}", paused.err);
    assert!(paused.err.contains("unpause"), "{}", paused.err);
}
