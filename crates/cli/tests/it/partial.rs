//! Partial results are marked and say what is missing; a long result is shown as its beginning and a reference.

use serde_json::json;
use spinney_kernel::primitives::BlobHash;

use crate::test_folder::TestFolder;

const PRICE: &str = "price: { input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 }";

/// A lead and a helper with a high output limit.
fn tree(stage: &TestFolder, script: &str) -> String {
    stage.file("partial.script.yaml", script);
    let text = format!(
        "name: partial
goal: Try it.
budget: {{ cost_usd: 5 }}
models: {{ fast: {{ provider: scripted, script: partial.script.yaml, {PRICE} }} }}
entry: lead
agents:
  lead: {{ model: fast, tools: [spawn_agent, wait_agent, look] }}
  helper: {{ model: fast, tools: [look], limits: {{ max_tokens_per_step: 100000 }} }}
"
    );
    stage.file("partial.yaml", &text)
}

fn results(stage: &TestFolder, script: &str) -> Vec<String> {
    let ended = stage.spinney(&["run", &tree(stage, script), "--json"]);
    assert_eq!(ended.code, Some(0), "{} {}", ended.out, ended.err);
    stage.results("lead").iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect()
}

/// X5 (ceiling): a child at its ceiling reports which ceiling, and its progress.
#[test]
fn a_child_at_its_ceiling_says_so_with_what_it_has() {
    let script = "
rules:
  - when: { agent: lead, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: helper, id: a, goal: Help., budget: { steps: 1 } } } ]
  - when: { agent: lead, turn: 2 }
    call:
      - { tool: spawn_agent, args: { agent: helper, id: b, goal: Help., budget: { steps: 1 }, detach: true } }
      - { tool: spawn_agent, args: { agent: helper, id: c, goal: Help., detach: true } }
  - when: { agent: lead, turn: 3 }
    call: [ { tool: wait_agent, args: { agents: [b, c] } } ]
  - when: { agent: lead }
    say: done
  - when: { agent: helper, turn: 1 }
    think_ms: 300
    say: Half of it.
    call: [ { tool: look } ]
  - when: { agent: helper }
    say: All of it.
tools: { look: { say: seen } }
";
    let stage = TestFolder::new();
    let mut results = results(&stage, script);
    insta::assert_snapshot!(results.remove(0), @"
    a exhausted (steps ceiling of `a`: limit 1, spent 1, held 0, asked 1); partial result:
    Half of it.
    ");
    insta::assert_snapshot!(results.pop().unwrap(), @"
    [b exhausted, used $0.000023, 76 tokens, 1 step, 1 tool call]
    b exhausted (steps ceiling of `b`: limit 1, spent 1, held 0, asked 1); partial result:
    Half of it.

    [c completed, used $0.00006425, 229 tokens, 2 steps, 1 tool call]
    All of it.
    ");
}

/// G3 (without continuing), X5 (cut answer): an answer cut at its output cap is a partial result, and its parent sees
/// that.
#[test]
fn a_childs_answer_that_was_cut_at_its_output_cap_is_partial() {
    let script = "
rules:
  - when: { agent: lead, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: helper, id: a, goal: Help. } } ]
  - when: { agent: lead }
    say: done
  - when: { agent: helper }
    say: Half of
    cut: output_cap
tools: { look: { say: seen } }
";
    let stage = TestFolder::new();
    let results = results(&stage, script);
    insta::assert_snapshot!(results.join("\n"), @"
    a failed (output_truncated: the answer was cut at its output cap of 100000 tokens: raise `limits.max_tokens_per_step`, or ask for less); partial result:
    Half ofHalf of
    ");
}

/// G3 (CLI and JSON): a root's answer that its cap cut is marked as such in text and JSON, and the exit code is not
/// that of a completed tree.
#[test]
fn an_answer_that_was_cut_at_its_output_cap_is_not_completed() {
    let stage = TestFolder::new();
    stage.file("cut.script.yaml", "rules: [ { say: One two three four five six seven. } ]");
    let tree = stage.file(
        "cut.yaml",
        "name: cut
goal: Count.
models: { fast: { provider: scripted, script: cut.script.yaml } }
agents:
  lead: { model: fast, limits: { max_tokens_per_step: 3 } }
",
    );
    let ended = stage.spinney(&["run", &tree, "--json"]);
    assert_eq!(ended.code, Some(1), "{} {}", ended.out, ended.err);
    let result = ended.json().pop().unwrap();
    assert_eq!(result["state"], "failed");
    assert_eq!(result["output"], "One two threOne two thre", "it went on once, and was cut again");
    assert_eq!(result["error"]["code"], "output_truncated");
    insta::assert_snapshot!(result["error"]["message"].as_str().unwrap(), @"the answer was cut at its output cap of 3 tokens: raise `limits.max_tokens_per_step`, or ask for less");
    insta::assert_snapshot!(result["error"]["remedy"].as_str().unwrap(), @"raise `limits.max_tokens_per_step` of the agent, or ask for a shorter answer, and run it again");
    let plain = stage.spinney(&["run", &tree]);
    assert_eq!(plain.code, Some(1));
    assert!(plain.out.contains("so far  One two threOne two thre\n"), "{}", plain.out);
    assert!(plain.out.contains("why     the answer was cut at its output cap of 3 tokens"), "{}", plain.out);
}

/// G2 (CLI and JSON): an agent that was stopped in a loop says why, in words and as JSON, and keeps what it said;
/// `repeats` of the tree turns that off.
#[test]
fn an_agent_in_a_loop_says_so_with_what_it_has() {
    let stage = TestFolder::new();
    let script = "
rules: [ { say: 'Look {{ turn }}.', call: [ { tool: look } ] } ]
tools: { look: { say: nothing new } }
";
    stage.file("loop.script.yaml", script);
    let tree = |name: &str, budget: &str| {
        let text = format!(
            "name: loop
goal: Look.
{budget}
models: {{ fast: {{ provider: scripted, script: loop.script.yaml }} }}
agents:
  lead: {{ model: fast, tools: [look], limits: {{ max_steps: 9 }} }}
"
        );
        stage.file(name, &text)
    };
    let looped = tree("loop.yaml", "");
    let ended = stage.spinney(&["run", &looped, "--json"]);
    assert_eq!(ended.code, Some(1), "{} {}", ended.out, ended.err);
    let result = ended.json().pop().unwrap();
    assert_eq!((&result["state"], &result["output"]), (&"failed".into(), &"Look 6.".into()));
    assert_eq!(result["error"]["code"], "loop_detected");
    insta::assert_snapshot!(result["error"]["message"].as_str().unwrap(), @"it called `look` 6 times in a row with the same arguments, and the result was the same each time: say in its prompt what to do instead, or raise `budget.repeats`");
    insta::assert_snapshot!(result["error"]["remedy"].as_str().unwrap(), @"say in the agent's prompt what to do instead of calling the tool again, or raise `budget.repeats` (0 turns it off), and run it again");
    let plain = stage.spinney(&["run", &looped]);
    let told =
        "lead is warned that it called look 3 times in a row with the same arguments and the same result";
    assert!(plain.out.contains(told), "{}", plain.out);
    assert!(plain.out.contains("so far  Look 6.\n"), "{}", plain.out);
    assert!(plain.out.contains("why     it called `look` 6 times in a row"), "{}", plain.out);
    let off =
        stage.spinney(&["run", &tree("off.yaml", "budget: { repeats: { notice: 0, end: 0 } }"), "--json"]);
    assert_eq!(off.json().pop().unwrap()["error"]["code"], "max_steps");
}

/// X5 (waits): a wait that times out returns what there is and names the missing agents.
#[test]
fn a_wait_that_ran_out_of_time_says_who_is_missing() {
    let script = "
rules:
  - when: { agent: lead, turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: helper, id: a, goal: Help quickly., detach: true } }
      - { tool: spawn_agent, args: { agent: helper, id: b, goal: Help for ever., detach: true } }
  - when: { agent: lead, turn: 2 }
    call: [ { tool: wait_agent, args: { agents: [b, a], timeout: 1s } } ]
  - when: { agent: lead }
    say: done
  - when: { agent: helper, goal_contains: for ever }
    hang: true
  - when: { agent: helper }
    think_ms: 300
    say: All of it.
tools: { look: { say: seen } }
";
    let stage = TestFolder::new();
    insta::assert_snapshot!(results(&stage, script).pop().unwrap(), @"
    partial, time is up: 1 of 2 ended; still working: b; wait again, or cancel the agents you no longer need

    [a completed, used $0.00002225, 77 tokens, 1 step]
    All of it.
    ");
}

/// L33: of three children one hangs. When the time of the wait is over, the lead reads the two that completed in spawn
/// order, that the result is partial and who is missing, and each source once with every agent that names it.
#[test]
fn l33_a_wait_brings_two_of_three_marked_as_partial_with_each_source_once() {
    let script = "
rules:
  - when: { agent: lead, turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: helper, id: ash, goal: Ash., detach: true } }
      - { tool: spawn_agent, args: { agent: helper, id: elm, goal: Elm for ever., detach: true } }
      - { tool: spawn_agent, args: { agent: helper, id: oak, goal: Oak., detach: true } }
  - when: { agent: lead, turn: 2 }
    call: [ { tool: wait_agent, args: { agents: [oak, elm, ash], timeout: 2s, sources: true } } ]
  - { when: { agent: lead }, say: done }
  - { when: { agent: helper, goal_contains: for ever }, hang: true }
  - { when: { agent: helper, goal_contains: Ash }, think_ms: 200, say: 'See https://trees.example/wood/ and https://trees.example/ash' }
  - { when: { agent: helper }, say: 'See https://www.trees.example/wood.' }
tools: { look: { say: seen } }
";
    let stage = TestFolder::new();
    let results = results(&stage, script).pop().unwrap();
    let without_usage: Vec<&str> =
        results.lines().map(|line| line.split_once(", used ").map_or(line, |(before, _)| before)).collect();
    insta::assert_snapshot!(without_usage.join("\n"), @"
    partial, time is up: 2 of 3 ended; still working: elm; wait again, or cancel the agents you no longer need

    [ash completed
    See https://trees.example/wood/ and https://trees.example/ash

    [oak completed
    See https://www.trees.example/wood.

    Sources:
    - https://trees.example/wood/ (ash, oak)
    - https://trees.example/ash (ash)
    ");
}

/// X5: a wait for four children says that it is partial and who is missing, which ceiling stopped one and its progress;
/// a long answer is shown as its beginning and a reference, and complete answers are unchanged.
#[test]
fn x5_a_partial_result_says_what_is_missing_and_a_long_one_is_a_beginning_and_a_reference() {
    let script = "
rules:
  - when: { agent: lead, turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: helper, id: short, goal: Help., detach: true } }
      - { tool: spawn_agent, args: { agent: helper, id: long, goal: Talk., detach: true } }
      - { tool: spawn_agent, args: { agent: helper, id: spent, goal: Look., budget: { steps: 1 }, detach: true } }
      - { tool: spawn_agent, args: { agent: helper, id: late, goal: Help for ever., detach: true } }
  - when: { agent: lead, turn: 2 }
    call: [ { tool: wait_agent, args: { agents: [short, long, spent, late], timeout: 2s } } ]
  - { when: { agent: lead }, say: done }
  - { when: { agent: helper, goal_contains: for ever }, hang: true }
  - { when: { agent: helper, goal_contains: Look }, say: Half of it., call: [ { tool: look } ] }
  - when: { agent: helper, goal_contains: Talk }
    say: '{% for i in range(900) %}a sentence that is long enough to be one of nine hundred, namely number {{ i }}. {% endfor %}end'
  - { when: { agent: helper }, say: All of it. }
tools: { look: { say: seen } }
";
    let stage = TestFolder::new();
    let results = results(&stage, script).pop().unwrap();
    let first = results.lines().next().unwrap();
    assert_eq!(
        first,
        "partial, time is up: 3 of 4 ended; still working: late; wait again, or cancel the agents you no longer need"
    );
    assert!(results.contains("[short completed, ") && results.contains("]\nAll of it.\n"), "{first}");
    let spent = "spent exhausted (steps ceiling of `spent`: limit 1, spent 1, held 0, asked 1); partial result:\nHalf of it.";
    assert!(results.contains(spent), "{}", results.lines().rev().take(5).collect::<Vec<_>>().join("\n"));
    let whole = stage.spinney(&["show", "last", "long", "--json"]).result();
    let whole = whole["text"].as_str().unwrap();
    assert!(whole.len() > 64 * 1024 && whole.ends_with("number 899. end"), "{} bytes", whole.len());
    let hash = &BlobHash::digest(whole.as_bytes()).as_str()[..16].to_owned();
    assert!(results.contains(&format!("{} bytes in all; the whole is blob {hash}]", whole.len())), "{hash}");
    assert!(results.len() < 40 * 1024, "{} bytes", results.len());
}

/// X5 (long answers): for an answer above 32 KiB the parent reads its beginning, its full size and a reference; the
/// journal has the whole answer, and `show` prints it.
#[test]
fn a_long_answer_is_bounded_and_the_rest_is_a_reference() {
    let script = "
rules:
  - when: { agent: lead, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: helper, id: a, goal: Talk. } } ]
  - when: { agent: lead }
    say: done
  - when: { agent: helper }
    say: '{% for i in range(900) %}a sentence that is long enough to be one of nine hundred, namely number {{ i }}. {% endfor %}end'
tools: { look: { say: seen } }
";
    let stage = TestFolder::new();
    let results = results(&stage, script).pop().unwrap();
    let shown = stage.spinney(&["show", "last", "a", "--json"]).result();
    let whole = shown["text"].as_str().unwrap();
    assert!(whole.len() > 64 * 1024 && whole.ends_with("number 899. end"), "{} bytes", whole.len());
    let hash = &BlobHash::digest(whole.as_bytes()).as_str()[..16].to_owned();
    let (beginning, words) = results.rsplit_once('\n').unwrap();
    assert_eq!(
        words,
        format!("[only the beginning: {} bytes in all; the whole is blob {hash}]", whole.len())
    );
    assert!(beginning.len() <= 32 * 1024 && whole.starts_with(beginning), "{} bytes", beginning.len());
    assert!(beginning.len() > 31 * 1024, "as much as has room");
    // The event has the beginning and a reference to the whole: hash and size.
    let events = stage.spinney(&["events", "last", "--agent", "a", "--json"]).json();
    let said = events.iter().find(|event| event["type"] == "call_ended").unwrap();
    let rest = json!({ "hash": BlobHash::digest(whole.as_bytes()), "bytes": whole.len() });
    assert_eq!(said["outcome"]["body"]["rest"], rest);
}

/// A model's reasoning is shown to people, and no other agent reads it.
#[test]
fn what_a_model_thought_is_shown_and_stays_with_it() {
    let script = "
rules:
  - when: { agent: lead, turn: 1 }
    think: I need help with this.
    say: Wait.
    call: [ { tool: spawn_agent, args: { agent: helper, id: a, goal: Help. } } ]
  - when: { agent: lead }
    say: 'I know: {{ last }}'
  - when: { agent: helper }
    think: A SECRET thought.
    say: helped
tools: { look: { say: seen } }
";
    let stage = TestFolder::new();
    let results = results(&stage, script);
    assert_eq!(results, ["helped"]);
    let shown = stage.spinney(&["show", "a"]).out;
    assert!(shown.contains("    thinks: A SECRET thought.\n    helped\n"), "{shown}");
    let of_lead = stage.spinney(&["show", "lead", "--json"]).out;
    assert!(of_lead.contains(r#""reasoning":"I need help with this.""#), "{of_lead}");
    assert!(!of_lead.contains("SECRET"), "{of_lead}");
    let step = stage.spinney(&["events", "last", "--json"]).out;
    assert!(!step.contains("SECRET"), "it stands in a blob: {step}");
}
