//! Keys of a tree file: runs the same script with and without a key, and compares the outcome.

use std::collections::BTreeSet;

use serde_json::json;

use crate::test_folder::{Ended, TestFolder};

/// Where a key is written.
#[derive(Clone, Copy)]
enum At {
    Tree,
    Lead,
    Helper,
}

/// A lead spawns two helpers, and each calls `snapshot` once.
const TEAM: &str = "
rules:
  - when: { agent: lead, turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: helper, id: a, goal: Help here., model: slow } }
      - { tool: spawn_agent, args: { agent: helper, id: b, goal: Help there., model: slow } }
  - when: { agent: lead }
    say: 'I have it: {{ last }}'
  - when: { agent: helper, turn: 1 }
    say: I look.
    call: [ { tool: look } ]
  - when: { agent: helper }
    say: 'helped, {{ last }}'
tools: { look: { description: Looks., say: seen } }
";

/// The tree file with a key added in one place.
fn file(stage: &TestFolder, script: &str, at: At, key: &str) -> String {
    stage.file("config.script.yaml", script);
    let (rules, _) = script.split_once("tools:").unwrap();
    stage.file("slow.script.yaml", rules);
    let [tree, lead, helper] = match at {
        At::Tree => [key, "", ""],
        At::Lead => ["", key, ""],
        At::Helper => ["", "", key],
    };
    let price = "price: { input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 }";
    let text = format!(
        "name: config
goal: Try it.
entry: lead
models:
  fast: {{ provider: scripted, script: config.script.yaml, {price} }}
  slow: {{ provider: scripted, script: slow.script.yaml, {price} }}
agents:
  lead:
    model: fast
    tools: [spawn_agent, look, write_file]
    {lead}
  helper:
    model: fast
    tools: [look]
    {helper}
{tree}
"
    );
    stage.file("config.yaml", &text)
}

fn run(stage: &TestFolder, script: &str, at: At, key: &str) -> Ended {
    let ended = stage.spinney(&["run", &file(stage, script, at, key), "--json"]);
    assert_ne!(ended.code, Some(2), "{key}: {}", ended.err);
    ended
}

/// A run as text: exit code, the results that the lead read, and how it ended.
fn seen(script: &str, at: At, key: &str) -> String {
    let stage = TestFolder::new();
    let ended = run(&stage, script, at, key);
    let result = ended.result();
    let mut lines = format!("exit {}", ended.code.unwrap());
    for message in stage.results("lead") {
        lines += &format!("\n  told: {}", message["text"].as_str().unwrap());
    }
    if let Some(text) = result["output"].as_str().filter(|text| !text.is_empty()) {
        lines += &format!("\n  answer: {text}");
    }
    if let Some(text) = result["error"]["message"].as_str() {
        lines += &format!("\n  error: {text}");
    }
    without_sums(&lines)
}

/// Without amounts spent and asked for, which change with every word of a tool's description.
fn without_sums(text: &str) -> String {
    let is_sum = |word: &str| matches!(word, "spent" | "held" | "asked" | "less");
    let mut before = "";
    let words = text.split(' ').map(|word| {
        let rest = word.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '$' | '.'));
        let is_shown = !is_sum(std::mem::replace(&mut before, word));
        if is_shown { word.to_owned() } else { format!("N{rest}") }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The outcome for each key. All must differ from the outcome without.
fn each(script: &str, keys: &[(At, &str)]) -> String {
    let without = seen(script, At::Tree, "");
    let mut lines = format!("without: {without}\n");
    for (at, key) in keys {
        let with = seen(script, *at, key);
        assert_ne!(with, without, "{key} makes no difference");
        let place = match at {
            At::Tree => "tree",
            At::Lead => "lead",
            At::Helper => "helper",
        };
        lines += &format!("{place} {key}: {with}\n");
    }
    lines
}

/// L32: depth, models and roles that an agent may use.
#[test]
fn l32_depth_models_and_roles_below_an_agent() {
    let keys = [
        (At::Tree, "limits: { depth: 0 }"),
        (At::Lead, "limits: { depth: 0 }"),
        (At::Lead, "subagent_models: [fast]"),
        (At::Lead, "subagents: []"),
        (At::Lead, "subagents: [lead]"),
    ];
    insta::assert_snapshot!(each(TEAM, &keys), @"
    without: exit 0
      told: helped, seen
      told: helped, seen
      answer: I have it: helped, seen
    tree limits: { depth: 0 }: exit 0
      told: depth limit 0 reached at depth 0: do this part yourself
      told: depth limit 0 reached at depth 0: do this part yourself
      answer: I have it: depth limit 0 reached at depth 0: do this part yourself
    lead limits: { depth: 0 }: exit 0
      told: depth limit 0 reached at depth 0: do this part yourself
      told: depth limit 0 reached at depth 0: do this part yourself
      answer: I have it: depth limit 0 reached at depth 0: do this part yourself
    lead subagent_models: [fast]: exit 0
      told: model `slow` is not allowed here: choose one of `fast`
      told: model `slow` is not allowed here: choose one of `fast`
      answer: I have it: model `slow` is not allowed here: choose one of `fast`
    lead subagents: []: exit 0
      told: this agent may not spawn role `helper`: there are none
      told: this agent may not spawn role `helper`: there are none
      answer: I have it: this agent may not spawn role `helper`: there are none
    lead subagents: [lead]: exit 0
      told: this agent may not spawn role `helper`: choose one of `lead`
      told: this agent may not spawn role `helper`: choose one of `lead`
      answer: I have it: this agent may not spawn role `helper`: choose one of `lead`
    ");
}

/// L32: every ceiling of a budget, where it halts the tree and where it ends a child.
#[test]
fn l32_budgets_of_the_tree_and_of_an_agent() {
    let keys = [
        (At::Tree, "budget: { cost_usd: 0.003 }"),
        (At::Tree, "budget: { tokens: 3200 }"),
        (At::Tree, "budget: { steps: 2 }"),
        (At::Tree, "budget: { tool_calls: 0 }"),
        (At::Helper, "budget: { cost_usd: 0.001 }"),
        (At::Helper, "budget: { tokens: 1000 }"),
        (At::Helper, "budget: { steps: 1 }"),
        (At::Helper, "budget: { steps: 2 }"),
        (At::Helper, "budget: { tool_calls: 0 }"),
    ];
    insta::assert_snapshot!(each(TEAM, &keys), @"
    without: exit 0
      told: helped, seen
      told: helped, seen
      answer: I have it: helped, seen
    tree budget: { cost_usd: 0.003 }: exit 0
      told: its first call needs $0.00129925 and $0.00127625 are left (cost ceiling of `lead`: limit $0.003 less N in reserve, spent N, held N, asked N): do this part yourself, or ask for less
      told: its first call needs $0.00129925 and $0.00127625 are left (cost ceiling of `lead`: limit $0.003 less N in reserve, spent N, held N, asked N): do this part yourself, or ask for less
      answer: I have it: its first call needs $0.00129925 and $0.00127625 are left (cost ceiling of `lead`: limit $0.003 less N in reserve, spent N, held N, asked N): do this part yourself, or ask for less
    tree budget: { tokens: 3200 }: exit 0
      told: its first call needs 1101 tokens and 833 tokens are left (tokens ceiling of `lead`: limit 3200 less N in reserve, spent N, held N, asked N): do this part yourself, or ask for less
      told: its first call needs 1101 tokens and 833 tokens are left (tokens ceiling of `lead`: limit 3200 less N in reserve, spent N, held N, asked N): do this part yourself, or ask for less
      answer: I have it: its first call needs 1101 tokens and 833 tokens are left (tokens ceiling of `lead`: limit 3200 less N in reserve, spent N, held N, asked N): do this part yourself, or ask for less
    tree budget: { steps: 2 }: exit 3
      told: steps ceiling of `lead`: limit 2 less N in reserve, spent N, held N: answer with what you have, or ask for less
      told: steps ceiling of `lead`: limit 2 less N in reserve, spent N, held N: answer with what you have, or ask for less
      answer: I have it: steps ceiling of `lead`: limit 2 less N in reserve, spent N, held N: answer with what you have, or ask for less
      error: steps ceiling of `lead`: limit 2, spent N, held N, asked N
    tree budget: { tool_calls: 0 }: exit 0
      told: helped, tool_calls ceiling of `lead`: limit 0, spent N, held N, asked N: answer with what you have, or ask for less
      told: helped, tool_calls ceiling of `lead`: limit 0, spent N, held N, asked N: answer with what you have, or ask for less
      answer: I have it: helped, tool_calls ceiling of `lead`: limit 0, spent N, held N, asked N: answer with what you have, or ask for less
    helper budget: { cost_usd: 0.001 }: exit 0
      told: its first call needs $0.00129925 and $0.001 are left (cost ceiling of `a`: limit $0.001, spent N, held N, asked N): do this part yourself, or ask for less
      told: its first call needs $0.00129925 and $0.001 are left (cost ceiling of `b`: limit $0.001, spent N, held N, asked N): do this part yourself, or ask for less
      answer: I have it: its first call needs $0.00129925 and $0.001 are left (cost ceiling of `b`: limit $0.001, spent N, held N, asked N): do this part yourself, or ask for less
    helper budget: { tokens: 1000 }: exit 0
      told: its first call needs 1101 tokens and 1000 tokens are left (tokens ceiling of `a`: limit 1000, spent N, held N, asked N): do this part yourself, or ask for less
      told: its first call needs 1101 tokens and 1000 tokens are left (tokens ceiling of `b`: limit 1000, spent N, held N, asked N): do this part yourself, or ask for less
      answer: I have it: its first call needs 1101 tokens and 1000 tokens are left (tokens ceiling of `b`: limit 1000, spent N, held N, asked N): do this part yourself, or ask for less
    helper budget: { steps: 1 }: exit 0
      told: a exhausted (steps ceiling of `a`: limit 1, spent N, held N, asked N); partial result:
    I look.
      told: b exhausted (steps ceiling of `b`: limit 1, spent N, held N, asked N); partial result:
    I look.
      answer: I have it: b exhausted (steps ceiling of `b`: limit 1, spent N, held N, asked N); partial result:
    I look.
    helper budget: { steps: 2 }: exit 0
      told: a exhausted (steps ceiling of `a`: limit 2, spent N, held N, asked N); partial result:
    helped, seen
      told: b exhausted (steps ceiling of `b`: limit 2, spent N, held N, asked N); partial result:
    helped, seen
      answer: I have it: b exhausted (steps ceiling of `b`: limit 2, spent N, held N, asked N); partial result:
    helped, seen
    helper budget: { tool_calls: 0 }: exit 0
      told: helped, tool_calls ceiling of `a`: limit 0, spent N, held N, asked N: answer with what you have, or ask for less
      told: helped, tool_calls ceiling of `b`: limit 0, spent N, held N, asked N: answer with what you have, or ask for less
      answer: I have it: helped, tool_calls ceiling of `b`: limit 0, spent N, held N, asked N: answer with what you have, or ask for less
    ");
}

/// L32: the keys of a budget other than ceilings.
#[test]
fn l32_reserves_loans_and_what_to_do_when_it_is_low() {
    let halted = "budget: { cost_usd: 0.003 }";
    let mut lines = String::new();
    for (at, without, with) in [
        (At::Tree, halted, "budget: { cost_usd: 0.003, answer_reserve: 0 }"),
        (At::Tree, "budget: { cost_usd: 0.0013 }", "budget: { cost_usd: 0.0013, on_low: shrink }"),
        (At::Helper, "budget: { steps: 2 }", "budget: { steps: 2, wrap_up: off }"),
        // The second line is the tree's: one dollar can lend sixty cents to only one child.
        (
            At::Helper,
            "budget: { cost_usd: 0.6 }\nbudget: { cost_usd: 1 }",
            "budget: { cost_usd: 0.6, lend: true }\nbudget: { cost_usd: 1 }",
        ),
    ] {
        let [before, after] = [without, with].map(|key| seen(TEAM, at, key));
        assert_ne!(before, after, "{with} makes no difference");
        lines += &format!("{with}: {after}\n");
    }
    insta::assert_snapshot!(lines, @"
    budget: { cost_usd: 0.003, answer_reserve: 0 }: exit 0
      told: helped, seen
      told: helped, seen
      answer: I have it: helped, seen
    budget: { cost_usd: 0.0013, on_low: shrink }: exit 0
      told: its first call needs $0.00129925 and $0.00042625 are left (cost ceiling of `lead`: limit $0.0013 less N in reserve, spent N, held N, asked N): do this part yourself, or ask for less
      told: its first call needs $0.00129925 and $0.00042625 are left (cost ceiling of `lead`: limit $0.0013 less N in reserve, spent N, held N, asked N): do this part yourself, or ask for less
      answer: I have it: its first call needs $0.00129925 and $0.00042625 are left (cost ceiling of `lead`: limit $0.0013 less N in reserve, spent N, held N, asked N): do this part yourself, or ask for less
    budget: { steps: 2, wrap_up: off }: exit 0
      told: helped, seen
      told: helped, seen
      answer: I have it: helped, seen
    budget: { cost_usd: 0.6, lend: true }
    budget: { cost_usd: 1 }: exit 0
      told: helped, seen
      told: cost ceiling of `lead`: limit $1.00 less N in reserve, spent N, held N, lent $0.60, asked N: answer with what you have, or ask for less
      answer: I have it: cost ceiling of `lead`: limit $1.00 less N in reserve, spent N, held N, lent $0.60, asked N: answer with what you have, or ask for less
    ");
}

/// L32: limits on children, agents, turns and the length of an answer.
#[test]
fn l32_limits_of_the_tree_and_of_an_agent() {
    let keys = [
        (At::Tree, "limits: { children: 1 }"),
        (At::Lead, "limits: { children: 1 }"),
        (At::Tree, "limits: { agents: 2 }"),
        (At::Helper, "limits: { max_steps: 1 }"),
        (At::Helper, "limits: { max_tokens_per_step: 2 }"),
    ];
    insta::assert_snapshot!(each(TEAM, &keys), @"
    without: exit 0
      told: helped, seen
      told: helped, seen
      answer: I have it: helped, seen
    tree limits: { children: 1 }: exit 0
      told: helped, seen
      told: 1 children are alive, and the limit is 1: wait for one to end
      answer: I have it: 1 children are alive, and the limit is 1: wait for one to end
    lead limits: { children: 1 }: exit 0
      told: helped, seen
      told: 1 children are alive, and the limit is 1: wait for one to end
      answer: I have it: 1 children are alive, and the limit is 1: wait for one to end
    tree limits: { agents: 2 }: exit 0
      told: helped, seen
      told: the tree has had 2 agents and the limit is 2: do this part yourself
      answer: I have it: the tree has had 2 agents and the limit is 2: do this part yourself
    helper limits: { max_steps: 1 }: exit 0
      told: a failed (max_steps: no answer after 1 turn, the most allowed: raise `limits.max_steps`, or ask for less); partial result:
    I look.
      told: b failed (max_steps: no answer after 1 turn, the most allowed: raise `limits.max_steps`, or ask for less); partial result:
    I look.
      answer: I have it: b failed (max_steps: no answer after 1 turn, the most allowed: raise `limits.max_steps`, or ask for less); partial result:
    I look.
    helper limits: { max_tokens_per_step: 2 }: exit 0
      told: a failed (output_truncated: the answer was cut at its output cap of 2 tokens: raise `limits.max_tokens_per_step`, or ask for less); partial result:
    I look.helped, 
      told: b failed (output_truncated: the answer was cut at its output cap of 2 tokens: raise `limits.max_tokens_per_step`, or ask for less); partial result:
    I look.helped, 
      answer: I have it: b failed (output_truncated: the answer was cut at its output cap of 2 tokens: raise `limits.max_tokens_per_step`, or ask for less); partial result:
    I look.helped,
    ");
}

/// L32: a timeout, in each place where it may be written.
#[test]
fn l32_a_timeout_of_an_agent_and_of_the_tree() {
    let keys = [
        (At::Helper, "limits: { timeout: 400ms }"),
        (At::Helper, "budget: { timeout: 400ms }"),
        (At::Tree, "budget: { timeout: 400ms }"),
    ];
    let script = TEAM.replace("say: seen", "think_ms: 1500, say: seen");
    insta::assert_snapshot!(each(&script, &keys), @"
    without: exit 0
      told: helped, seen
      told: helped, seen
      answer: I have it: helped, seen
    helper limits: { timeout: 400ms }: exit 0
      told: a failed (timeout: it worked longer than its 400 ms of active time); partial result:
    I look.
      told: b failed (timeout: it worked longer than its 400 ms of active time); partial result:
    I look.
      answer: I have it: b failed (timeout: it worked longer than its 400 ms of active time); partial result:
    I look.
    helper budget: { timeout: 400ms }: exit 0
      told: a failed (timeout: it took longer than its timeout of 400 ms); partial result:
    I look.
      told: b failed (timeout: it took longer than its timeout of 400 ms); partial result:
    I look.
      answer: I have it: b failed (timeout: it took longer than its timeout of 400 ms); partial result:
    I look.
    tree budget: { timeout: 400ms }: exit 1
      told: cancelled
      told: cancelled
      error: it took longer than its timeout of 400 ms
    ");
}

/// A lead that writes two files.
const WRITES: &str = "
rules:
  - when: { turn: 1 }
    call: [ { tool: write_file, args: { path: outputs/a.txt, text: oak } } ]
  - when: { turn: 2 }
    call: [ { tool: write_file, args: { path: outputs/b.txt, text: hornbeam } } ]
  - say: written
tools: { look: { description: Looks., say: seen } }
";

/// L32: the limits on files.
#[test]
fn l32_how_many_and_how_large_outputs_may_be() {
    let keys =
        [(At::Lead, "limits: { max_output_files: 1 }"), (At::Lead, "limits: { max_output_size_bytes: 10 }")];
    insta::assert_snapshot!(each(WRITES, &keys), @"
    without: exit 0
      told: wrote 3 bytes to outputs/a.txt
      told: wrote 8 bytes to outputs/b.txt
      answer: written
    lead limits: { max_output_files: 1 }: exit 0
      told: wrote 3 bytes to outputs/a.txt
      told: max_output_files would be exceeded: limit 1, used 1, asked N: write less, or overwrite what is no longer needed
      answer: written
    lead limits: { max_output_size_bytes: 10 }: exit 0
      told: wrote 3 bytes to outputs/a.txt
      told: max_output_size_bytes would be exceeded: limit 10, used 3, asked N: write less, or overwrite what is no longer needed
      answer: written
    ");
}

/// L32: what is denied to an agent is also denied below it.
#[test]
fn l32_approvals_that_deny_hold_below_too() {
    let keys = [(At::Lead, "approvals: { look: deny }"), (At::Helper, "approvals: { look: deny }")];
    insta::assert_snapshot!(each(TEAM, &keys), @"
    without: exit 0
      told: helped, seen
      told: helped, seen
      answer: I have it: helped, seen
    lead approvals: { look: deny }: exit 0
      told: helped, `look` is denied here by the tree's author: do without it
      told: helped, `look` is denied here by the tree's author: do without it
      answer: I have it: helped, `look` is denied here by the tree's author: do without it
    helper approvals: { look: deny }: exit 0
      told: helped, `look` is denied here by the tree's author: do without it
      told: helped, `look` is denied here by the tree's author: do without it
      answer: I have it: helped, `look` is denied here by the tree's author: do without it
    ");
}

/// L32: `ask` waits for a person, and the helper reads the answer.
#[test]
fn l32_an_approval_that_asks_waits_for_a_person() {
    let stage = TestFolder::new();
    let asked = run(&stage, TEAM, At::Helper, "approvals: { look: ask }");
    assert_eq!((asked.code, &asked.result()["state"]), (Some(5), &json!("waiting")));
    let questions = asked.result()["questions"].as_array().unwrap().clone();
    let mut paths: Vec<&str> = questions.iter().map(|question| question["path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["lead/a", "lead/b"]);
    for question in &questions {
        let (number, is_a) = (question["question"].to_string(), question["path"] == json!("lead/a"));
        let answer = if is_a { "yes" } else { "not there" };
        let answered = stage.spinney(&["answer", "last", &number, answer]);
        assert_eq!(answered.code, Some(0), "{}", answered.err);
    }
    let resumed = stage.spinney(&["resume", "last", "--json"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    let results: Vec<String> =
        stage.results("lead").iter().map(|result| result["text"].as_str().unwrap().to_owned()).collect();
    let no =
        "helped, a person refused your call of `look`: not there; do without it, or ask for something else";
    assert_eq!(results, ["helped, seen", no]);
    let allowed = run(&stage, TEAM, At::Helper, "approvals: { look: allow }");
    assert_eq!(allowed.code, Some(0), "what is allowed asks nobody");
}

/// The largest number of calls that ran at the same time.
fn running_at_once(ended: &Ended) -> usize {
    let (mut open, mut most) = (BTreeSet::new(), 0);
    for event in ended.json() {
        match event["type"].as_str() {
            Some("call_started") => open.insert(event["call"].to_string()),
            Some("call_ended") => open.remove(&event["call"].to_string()),
            Some(_) | None => continue,
        };
        most = most.max(open.len());
    }
    most
}

/// L32: the order of events shows `parallel`.
#[test]
fn l32_parallel_calls_wait_for_each_other() {
    let script = TEAM.replace("say: I look.", "say: I look.\n    think_ms: 300");
    let [without, with] = ["", "limits: { parallel: 1 }"]
        .map(|key| running_at_once(&run(&TestFolder::new(), &script, At::Tree, key)));
    assert_eq!((without, with), (2, 1));
}

/// L32: without retries the first failure is the last.
#[test]
fn l32_retries_of_the_tree_and_of_an_agent() {
    let script =
        TEAM.replace("say: I look.", "say: I look.\n    fail: { kind: server, times: 1, retry_after_ms: 5 }");
    let keys = [(At::Tree, "budget: { retries: 0 }"), (At::Helper, "budget: { retries: 0 }")];
    insta::assert_snapshot!(each(&script, &keys), @"
    without: exit 0
      told: helped, seen
      told: helped, seen
      answer: I have it: helped, seen
    tree budget: { retries: 0 }: exit 0
      told: a failed (model_server: the model call failed: rule 3 of slow.script.yaml: attempt 1 fails as scripted)
      told: b failed (model_server: the model call failed: rule 3 of slow.script.yaml: attempt 1 fails as scripted)
      answer: I have it: b failed (model_server: the model call failed: rule 3 of slow.script.yaml: attempt 1 fails as scripted)
    helper budget: { retries: 0 }: exit 0
      told: a failed (model_server: the model call failed: rule 3 of slow.script.yaml: attempt 1 fails as scripted)
      told: b failed (model_server: the model call failed: rule 3 of slow.script.yaml: attempt 1 fails as scripted)
      answer: I have it: b failed (model_server: the model call failed: rule 3 of slow.script.yaml: attempt 1 fails as scripted)
    ");
}

/// L32: `shared` says which roles may write a value.
#[test]
fn l32_who_may_write_a_shared_value() {
    let script = "
rules:
  - when: { agent: lead, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: helper, id: a, goal: Help. } } ]
  - { when: { agent: lead }, say: done }
  - { when: { agent: helper, turn: 1 }, call: [ { tool: look }, { tool: write_context, args: { key: plan, value: 1 } } ] }
  - { say: helped }
tools: { look: { description: Looks., say: seen } }
";
    let stage = TestFolder::new();
    let written = |key: &str| {
        let file = file(&stage, script, At::Tree, key);
        let text =
            std::fs::read_to_string(&file).unwrap().replace("tools: [look]", "tools: [look, write_context]");
        let file = stage
            .file("shared.yaml", &text.replace("tools: [spawn_agent", "tools: [write_context, spawn_agent"));
        let run = stage.spinney(&["run", &file, "--json"]);
        assert_eq!(run.code, Some(0), "{}", run.err);
        let events = run.json();
        events.iter().filter(|event| event["type"] == json!("value_written")).count()
    };
    assert_eq!(written(""), 1);
    assert_eq!(written("shared: { plan: { write: [lead] } }"), 0);
    assert_eq!(written("shared: { 'p*': { write: [] }, plan: { write: [helper] } }"), 1);
    let bad = file(&stage, script, At::Tree, "shared: { plan: { write: [helpers] } }");
    let refused = stage.spinney(&["run", &bad]);
    assert!(refused.code == Some(2) && refused.err.contains("unknown agent `helpers`"), "{refused:?}");
}

/// L32: an unknown key is refused anywhere, with its place, and nothing is started.
#[test]
fn l32_an_unknown_key_is_refused_with_its_place() {
    let stage = TestFolder::new();
    let mut lines = String::new();
    for (at, key) in [
        (At::Tree, "max_subagent_depth: 2"),
        (At::Tree, "budget: { cost: 1 }"),
        (At::Tree, "limits: { depths: 2 }"),
        (At::Tree, "limits: { max_steps: 2 }"),
        (At::Lead, "subagent: [helper]"),
        (At::Lead, "subagent_allowed_models: [fast]"),
        (At::Lead, "approval: { look: ask }"),
        (At::Lead, "approvals: { look: maybe }"),
        (At::Lead, "approvals: { lok: deny }"),
        (At::Lead, "subagent_models: [quick]"),
        (At::Lead, "subagents: [nobody]"),
        (At::Helper, "budget: { step: 2 }"),
        (At::Helper, "limits: { parallel: 2 }"),
    ] {
        let ended = stage.spinney(&["run", &file(&stage, TEAM, at, key)]);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{key}: {}", ended.err);
        lines += &ended.err.replace(&format!("{}/", stage.folder().display()), "");
    }
    insta::assert_snapshot!(lines, @"
    spinney: config.yaml:16:1: unknown key `max_subagent_depth`: here that is `limits.depth`
    spinney: config.yaml:16:11: unknown key `cost`: known keys: cost_usd, tokens, steps, tool_calls, retries, timeout, lend, answer_reserve, on_low, wrap_up, repeats
    spinney: config.yaml:16:11: unknown key `depths`: did you mean `depth`?
    spinney: config.yaml:16:11: unknown key `max_steps`: known keys: depth, children, agents, parallel, rate
    spinney: config.yaml:11:5: unknown key `subagent`: did you mean `subagents`?
    spinney: config.yaml:11:5: unknown key `subagent_allowed_models`: here that is `subagent_models`
    spinney: config.yaml:11:5: unknown key `approval`: did you mean `approvals`?
    spinney: config.yaml:11:24: unknown value `maybe`: known values: allow, ask, deny
    spinney: config.yaml:11:23: unknown tool `lok`: did you mean `look`?
    spinney: config.yaml:11:23: unknown model `quick`: known models: fast, slow
    spinney: config.yaml:11:17: unknown agent `nobody`: known agents: lead, helper
    spinney: config.yaml:15:15: unknown key `step`: did you mean `steps`?
    spinney: config.yaml:15:15: unknown key `parallel`: known keys: max_steps, max_tokens_per_step, max_output_files, max_output_size_bytes, timeout, depth, children
    ");
    assert!(!stage.home().exists(), "nothing was started");
}

/// A call that waits says what holds it back: the rate of its role is not the model's fault.
#[test]
fn a_call_that_a_rate_holds_back_names_the_rate() {
    for (tree, role, whose) in [
        ("", "rate: { requests_per_min: 1 }", "the rate of its role"),
        ("limits: { rate: { requests_per_min: 1 } }\n", "tools: [look]", "the rate of the tree"),
    ] {
        let stage = TestFolder::new();
        stage.file("s.yaml", "rules: [ { when: { turn: 1 }, call: [ { tool: look } ] }, { say: done } ]\ntools: { look: { say: seen } }\n");
        let text = format!(
            "name: t\ngoal: Go.\nbudget: {{ cost_usd: 1, timeout: 500ms }}\n{tree}models: {{ fast: {{ provider: scripted, script: s.yaml, price: {{ input_per_mtok_usd: 1, output_per_mtok_usd: 1 }} }} }}\nagents: {{ lead: {{ model: fast, {role} }} }}\n"
        );
        let text = if role.contains("tools") {
            text
        } else {
            text.replace("model: fast,", "model: fast, tools: [look],")
        };
        let ended = stage.spinney(&["run", &stage.file("t.yaml", &text), "--plain"]);
        assert!(
            ended.out.contains(&format!("waits to call model fast: {whose} is used up")),
            "{} {}",
            ended.out,
            ended.err
        );
        assert!(!ended.out.contains("accepts calls again"), "{}", ended.out);
    }
}
