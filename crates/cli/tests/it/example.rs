//! The examples of the README.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::test_folder::{TestFolder, steady};

fn example() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hello.yaml").to_owned()
}

#[test]
fn the_example_tells_its_story_and_completes() {
    let ended = TestFolder::new().spinney(&["run", &example()]);
    insta::assert_snapshot!(steady(&ended.out), @r#"
    hello · tree [id]
    SCRIPTED: answers come from a file, no model is called

      0.00s  lead starts: Why is a small wood called a spinney?
      0.00s  lead says: I look the word up first.
      0.00s  lead calls look_up {"word":"spinney"}
      0.00s  lead gets from look_up: spinney: a small wood with undergrowth; from Old French espinei, from Latin spinetum, a thorn thicket
      0.00s  lead says: The word comes from thorns. A helper finds out how many trees make one.
      0.00s    helper starts: How many trees make a spinney?
      0.00s    helper tried model fast, which failed (rate_limit): rule 4 of hello.script.yaml: attempt 1 fails as scripted; spent nothing
      0.00s    helper retries model fast in a moment
      0.00s    helper calls count_trees {"of":"spinney"}
      0.00s    helper gets from count_trees: between 5 and 500 in what people call a spinney
      0.00s    helper answers: There is no fixed number: between 5 and 500 in what people call a spinney.
      0.00s    helper completed; spent $0.00011025, 349 tokens, 2 steps, 1 tool call, 1 retry
      0.00s  lead answers: A spinney is a small wood. The word goes back to the Latin spina, a thorn: once it meant a thicket of thorn bushes. How many trees it takes …
      0.00s  lead completed; spent $0.000874, 2,988 tokens, 5 steps, 2 tool calls, 1 retry

    completed after 0.00s
      answer  A spinney is a small wood. The word goes back to the Latin spina, a thorn: once it meant a thicket of thorn bushes.
              How many trees it takes nobody has fixed; fewer than a forest, more than a row.
      spent   $0.000874 · 2,988 tokens · 5 steps · 2 tool calls and 1 built-in · 1 retry
      agents  2
      tree    [tree]
      look    spinney events [id]
    "#);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
}

#[test]
fn the_example_does_the_same_in_every_run() {
    let stage = TestFolder::new();
    let what = |ended: crate::test_folder::Ended| {
        let words = |line: &Value| (line["type"].to_string(), line["path"].to_string());
        ended.json().iter().map(words).collect::<Vec<_>>()
    };
    let (first, second) =
        (stage.spinney(&["run", &example(), "--json"]), stage.spinney(&["run", &example(), "--json"]));
    assert_eq!(first.result()["output"], second.result()["output"]);
    assert_eq!(what(first), what(second));
}

fn research() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/research.yaml").to_owned()
}

/// Three levels, parallel children, a refused spawn, a ceiling that is reached, and an answer based on all of it.
#[test]
fn the_research_team_comes_to_an_answer_from_what_it_gathered() {
    let stage = TestFolder::new();
    let run = stage.spinney(&["run", &research(), "--json"]);
    let (events, result) = (run.json(), run.result());
    assert_eq!((run.code, &result["agents"]), (Some(0), &json!(6)), "{}", run.err);
    assert!(result["output"].as_str().unwrap().starts_with("Take PyTorch"), "{result}");
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).collect::<Vec<&Value>>();
    let depth = |event: &&Value| event["path"].as_str().unwrap().split('/').count();
    assert_eq!(of("agent_spawned").iter().map(depth).max(), Some(3));
    let first_end = of("agent_ended")[0]["seq"].as_u64();
    let researchers = of("agent_spawned").into_iter().filter(|event| event["role"] == "researcher");
    assert!(researchers.map(|event| event["seq"].as_u64()).all(|seq| seq < first_end), "at the same time");
    let refused = of("tool_answered").into_iter().find(|event| event["is_error"] == json!(true)).unwrap();
    assert_eq!(refused["body"]["text"], json!("depth limit 2 reached at depth 2: do this part yourself"));
    let exits: BTreeMap<&str, &Value> = of("agent_ended")
        .into_iter()
        .map(|event| (event["agent"].as_str().unwrap(), &event["exit"]["state"]))
        .collect();
    assert_eq!(exits["tensorflow"], "exhausted");
    assert_eq!(
        (exits["torch"], exits["jax"], exits["lead"]),
        (&json!("completed"), &json!("completed"), &json!("completed"))
    );
    let texts =
        stage.results("lead").into_iter().filter_map(|result| result["text"].as_str().map(str::to_owned));
    let gathered = texts.into_iter().find(|text| text.contains("Sources:")).unwrap();
    let heads: Vec<&str> = gathered
        .lines()
        .filter(|line| line.starts_with('['))
        .map(|line| line.split(',').next().unwrap())
        .collect();
    assert_eq!(heads, ["[torch completed", "[tensorflow exhausted", "[jax completed"]);
    assert!(gathered.ends_with("- https://lib.example/survey (torch, tensorflow, jax)\n- https://torch.example/papers (torch)\n- https://jax.example/speed (jax)"), "{gathered}");
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

/// Each agent has the same events in every run, whichever was faster.
#[test]
fn the_research_team_does_the_same_in_every_run() {
    let stage = TestFolder::new();
    let per_agent = || {
        let run = stage.spinney(&["run", &research(), "--json"]);
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for event in run.json() {
            // Names of readers are random, and waiting times for slots or budget are not part of the script.
            let path = event["path"].as_str().unwrap_or_default();
            let path =
                path.split('/').map(|id| id.split('-').next().unwrap_or(id)).collect::<Vec<_>>().join("/");
            let kind = event["type"].as_str().unwrap_or_default();
            if kind != "call_waiting" {
                all.entry(path).or_default().push(kind.to_owned());
            }
        }
        all
    };
    assert_eq!(per_agent(), per_agent());
}
