//! The result of a run: an exit code for each way to end, and with `--json` a consistent result.

use serde_json::{Value, json};

use crate::scripts::{ASKS, SAYS, SPENDS};
use crate::test_folder::{TestFolder, steady};

#[test]
fn a_tree_that_answers_exits_with_zero() {
    let stage = TestFolder::new();
    let ended = stage.spinney(&["run", &stage.tree("", SAYS)]);
    assert_eq!(ended.code, Some(0));
    insta::assert_snapshot!(steady(&ended.out), @"
    test · tree [id]
    SCRIPTED: answers come from a file, no model is called

      0.00s  lead starts: Try it.
      0.00s  lead answers: done
      0.00s  lead completed; spent $0.0000125, 46 tokens, 1 step

    completed after 0.00s
      answer  done
      spent   $0.0000125 · 46 tokens · 1 step · 0 tool calls · 0 retries
      agents  1
      tree    [tree]
      look    spinney events [id]
    ");
}

/// Issue 34: a run with ten calls of built-in tools said "0 tool calls". No budget counts them, because they cost nothing.
#[test]
fn calls_of_built_in_tools_are_counted_beside_those_of_budgets() {
    let stage = TestFolder::new();
    let script = "
rules:
  - when: { turn: 1 }
    call: [ { tool: list_agents }, { tool: write_context, args: { key: a, value: 1 } }, { tool: read_context, args: { key: a } } ]
  - { when: { turn: 2, goal_contains: both }, call: [ { tool: look } ] }
  - say: done
tools: { look: { description: looks, say: seen } }
";
    let tree = stage.tree("list_agents, write_context, read_context, look", script);
    let spent = |goal: &str| {
        let ended = stage.spinney(&["run", &tree, "--goal", goal]);
        let line = ended.out.lines().find(|line| line.contains("  spent ")).unwrap().to_owned();
        let result = stage.spinney(&["resume", "--json"]).result();
        let counts = (result["spent"]["tool_calls"].as_u64(), result["builtin_calls"].as_u64());
        (line.split(" · ").nth(3).unwrap().to_owned(), counts)
    };
    assert_eq!(spent("Use one kind."), ("3 built-in tool calls".to_owned(), (Some(0), Some(3))));
    assert_eq!(spent("Use both."), ("1 tool call and 3 built-in".to_owned(), (Some(1), Some(3))));
}

#[test]
fn every_line_is_json_and_the_last_is_the_result() {
    let stage = TestFolder::new();
    let ended = stage.spinney(&["run", &stage.tree("look", SPENDS), "--json"]);
    let lines = ended.json();
    let (result, events) = lines.split_last().unwrap();
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=events.len() as u64).collect::<Vec<_>>());
    for event in events {
        let keys: Vec<&String> = event.as_object().unwrap().keys().take(5).collect();
        assert_eq!(keys, ["type", "tree", "seq", "at", "path"]);
        assert_eq!(event["tree"], result["tree"]);
    }
    let keys: Vec<&String> = result.as_object().unwrap().keys().collect();
    let wanted = "type tree state output outputs succeeded failed skipped spent builtin_calls agents elapsed_ms event_hash scripted";
    assert_eq!(keys, wanted.split(' ').collect::<Vec<_>>());
    assert_eq!(
        (&result["type"], &result["state"], &result["output"]),
        (&json!("result"), &json!("completed"), &json!("done"))
    );
    assert_eq!(
        (&result["outputs"], &result["succeeded"], &result["agents"]),
        (&json!({}), &json!([]), &json!(1))
    );
}

/// Every line has the tags, whichever command prints it; a switch names its origin and reason.
#[test]
fn every_event_has_the_tags_of_its_tree_and_a_switch_its_reason() {
    let stage = TestFolder::new();
    stage.file("busy.yaml", "rules: [ { fail: { kind: server } } ]");
    stage.file("says.yaml", SAYS);
    let tree = stage.file(
        "tagged.yaml",
        "name: n
goal: g
tags: { customer: acme, ticket: \"42\" }
models:
  m: { provider: scripted, script: busy.yaml, fallback: [other] }
  other: { provider: scripted, script: says.yaml }
agents: { lead: { model: m } }
",
    );
    let run = stage.spinney(&["run", &tree, "--json"]).json();
    let (result, events) = run.split_last().unwrap();
    assert_eq!(result["state"], "completed");
    let again = stage.spinney(&["events", "last", "--json"]).json();
    let late = stage.spinney(&["events", "last", "--json", "--from", "4"]).json();
    assert_eq!((again.as_slice(), late.as_slice()), (events, &events[3..]));
    for event in events {
        assert_eq!(event["tags"], json!({ "customer": "acme", "ticket": "42" }), "{event}");
    }
    let switch = events.iter().find(|event| event["type"] == "call_switched").unwrap();
    assert_eq!(
        (&switch["from"], &switch["model"], &switch["reason"]),
        (&json!("m"), &json!("other"), &json!("server"))
    );
    let plain = stage.spinney(&["run", &stage.tree("", SAYS), "--json"]).json();
    assert!(plain.iter().all(|line| line.get("tags").is_none()));
}

#[test]
fn what_the_result_spent_is_the_sum_of_its_events() {
    let stage = TestFolder::new();
    let ended = stage.spinney(&["run", &stage.tree("look", SPENDS), "--json"]);
    let lines = ended.json();
    let (result, events) = lines.split_last().unwrap();
    let settled = ["call_ended", "attempt_failed"];
    for name in ["cost_nanos", "tokens", "steps", "tool_calls", "retries"] {
        let of = |event: &&Value| settled.contains(&event["type"].as_str().unwrap());
        let sum: u64 = events.iter().filter(of).filter_map(|event| event["spent"][name].as_u64()).sum();
        assert_eq!(result["spent"][name], json!(sum), "{name}");
    }
    let nanos = result["spent"]["cost_nanos"].as_u64().unwrap();
    let dollars = format!("\"cost_usd\":0.{}", format!("{nanos:09}").trim_end_matches('0'));
    assert!(ended.out.contains(&dollars), "{dollars} in {}", ended.out);
}

#[test]
fn a_tree_that_fails_exits_with_one_and_says_why() {
    let stage = TestFolder::new();
    let ended = stage.spinney(&["run", &stage.tree("", "rules: [ { fail: { kind: auth } } ]"), "--json"]);
    assert_eq!((ended.code, ended.result()["state"].clone()), (Some(1), json!("failed")));
    assert_eq!(ended.result()["error"]["code"], json!("model_auth"));
    assert_eq!(ended.result()["error"]["remedy"], json!("give the model a valid key, and run it again"));
}

/// Each kind of provider failure gets a fitting remedy.
#[test]
fn every_failure_of_a_provider_has_a_remedy() {
    let stage = TestFolder::new();
    let kinds = ["out_of_credit", "context_too_long", "content_filter", "declined", "invalid", "overloaded"];
    let said: Vec<String> = kinds
        .iter()
        .map(|kind| {
            let script = format!("rules: [ {{ say: So., fail: {{ kind: {kind}, retry_after_ms: 1 }} }} ]");
            let error = stage.spinney(&["run", &stage.tree("", &script), "--json"]).result()["error"].clone();
            let remedy = error["remedy"].as_str().unwrap().split(": ").next().unwrap().to_owned();
            format!("{}: {remedy}", error["code"].as_str().unwrap())
        })
        .collect();
    insta::assert_snapshot!(said.join("\n"), @"
    model_out_of_credit: add credit to the provider's account, or give the model a `fallback`, and run it again
    model_context_too_long: set the model's `context` to what it takes, or give the agent a smaller `window.size`, and run it again
    model_content_filter: change the prompt or the goal, or give the model a `fallback`, and run it again
    model_declined: change the prompt or the goal, or give the model a `fallback`, and run it again
    model_invalid: check the model's `base_url`, `model` and `params`, and run it again; see what led to it
    model_overloaded: try again later, or give the model a `fallback`
    ");
}

#[test]
fn a_tree_at_its_ceiling_exits_with_three_and_continues_after_a_raise() {
    let stage = TestFolder::new();
    let tree = stage.tree_with("budget: { cost_usd: 0.0022 }", "look", SPENDS);
    let halted = stage.spinney(&["run", &tree, "--json"]);
    assert_eq!((halted.code, halted.result()["state"].clone()), (Some(3), json!("halted")));
    let error = halted.result()["error"].clone();
    let numbers: Vec<&Value> =
        ["code", "account", "resource", "limit", "spent"].iter().map(|key| &error[key]).collect();
    assert_eq!(json!(numbers), json!(["ceiling", "lead", "cost", 2_200_000, 1_096_000]));
    let again = stage.spinney(&["resume", "last"]);
    assert_eq!(again.code, Some(3));
    insta::assert_snapshot!(steady(&again.out), @"
    test · tree [id] · resumed at event 17
    SCRIPTED: answers come from a file, no model is called

    halted after 0.00s
      so far  done
      why     `lead` has spent $0.001096 of its $0.0022, and its next call may need $0.020072
      remedy  lower output caps to what fits (`on_low: shrink` in the file), or raise the ceiling by at least this: spinney budget [id] --add-usd 0.019 && spinney resume [id]
      spent   $0.001096 · 1,180 tokens · 2 steps · 1 tool call · 0 retries
      agents  1
      tree    [tree]
      look    spinney events [id]
    ");
    // The remedy is a command that works, to the last digit.
    let remedy = error["remedy"].as_str().unwrap().split_once("this: ").unwrap().1;
    let resumed = stage.shell(remedy);
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert!(resumed.out.contains("  answer  done\n"), "{}", resumed.out);
}

#[test]
fn a_tree_that_needs_a_person_exits_with_five_and_says_how_to_answer() {
    let stage = TestFolder::new();
    let ended = stage.spinney(&["run", &stage.tree("ask_human", ASKS)]);
    assert_eq!(ended.code, Some(5));
    insta::assert_snapshot!(steady(&ended.out), @"
    test · tree [id]
    SCRIPTED: answers come from a file, no model is called

      0.00s  lead starts: Try it.
      0.00s  lead asks a person (question 2): Which colour?

    waiting after 0.00s
      spent   $0.0000795 · 290 tokens · 1 step · 1 built-in tool call · 0 retries
      agents  1
      tree    [tree]
      look    spinney events [id]

    1 question to answer:
      lead asks: Which colour?
        spinney answer [id] 2 'your answer'
    then: spinney resume [id]
    ");
    let json = stage.spinney(&["run", &stage.tree("ask_human", ASKS), "--json"]);
    assert_eq!((json.code, json.result()["state"].clone()), (Some(5), json!("waiting")));
    assert!(json.err.contains("spinney answer"), "{}", json.err);
    let asked = json!([{ "question": 2, "path": "lead", "text": "Which colour?" }]);
    assert_eq!(json.result()["questions"], asked);
    let answered = stage.spinney(&["answer", "last", "2", "blue"]);
    assert_eq!(answered.code, Some(0), "{}", answered.err);
    let resumed = stage.spinney(&["resume", "last", "--json"]);
    assert_eq!((resumed.code, resumed.result()["output"].clone()), (Some(0), json!("You said blue")));
}

#[test]
fn a_tree_that_was_cancelled_exits_with_four() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("", "rules: [ { hang: true } ]"), "--json"]);
    running.until("call_started");
    assert_eq!(stage.spinney(&["cancel", "last", "--reason", "enough"]).code, Some(0));
    let ended = running.end();
    assert_eq!((ended.code, ended.result()["state"].clone()), (Some(4), json!("cancelled")));
    assert!(ended.out.contains(r#""exit":{"state":"cancelled","reason":"enough"}"#), "{}", ended.out);
}

#[test]
fn the_whole_answer_is_shown_however_long_it_is() {
    let stage = TestFolder::new();
    let script = "rules: [ { say: \"{% for i in range(900) %}a sentence that is long enough to be one of nine hundred, namely number {{ i }}. {% endfor %}end\", usage: { output: 9 } } ]";
    let tree = stage.file(
        "long.yaml",
        "name: long\ngoal: Talk.\nmodels: { m: { provider: scripted, script: long.script.yaml } }\n\
         agents: { lead: { model: m, limits: { max_tokens_per_step: 100000 } } }\n",
    );
    stage.file("long.script.yaml", script);
    let output = stage.spinney(&["run", &tree, "--json"]).result()["output"].as_str().unwrap().to_owned();
    assert!(output.len() > 64 * 1024 && output.ends_with("number 899. end"), "{} bytes", output.len());
}

#[test]
fn goal_and_budget_of_the_command_line_win() {
    let stage = TestFolder::new();
    let tree = stage.tree("", "rules: [ { say: 'I was asked: {{ goal }}' } ]");
    let ended = stage.spinney(&["run", &tree, "--goal", "Sing.", "--json"]);
    assert_eq!(ended.result()["output"], json!("I was asked: Sing."));
    let poor = stage.spinney(&["run", &tree, "--budget-usd", "0.0001", "--json"]);
    assert_eq!((poor.code, poor.result()["error"]["limit"].clone()), (Some(3), json!(100_000)));
}
