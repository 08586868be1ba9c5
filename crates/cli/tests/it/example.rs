//! The example that the README shows.

use crate::stage::{Stage, steady};

fn example() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hello.yaml").to_owned()
}

#[test]
fn the_example_tells_its_story_and_completes() {
    let ended = Stage::new().spinney(&["run", &example()]);
    insta::assert_snapshot!(steady(&ended.out), @r#"
    hello · tree [id]
    SCRIPTED: answers come from a file, no model is called

      0.00s  lead starts: Why is a small wood called a spinney?
      0.00s  lead says: I look the word up first.
      0.00s  lead calls look_up {"word":"spinney"}
      0.00s  lead gets from look_up: spinney: a small wood with undergrowth; from Old French espinei, from Latin spinetum, a thorn thicket
      0.00s  lead says: The word comes from thorns. A helper finds out how many trees make one.
      0.00s    helper starts: How many trees make a spinney?
      0.00s    helper has no luck with model fast (rate_limit): rule 4 of hello.script.yaml: attempt 1 fails as scripted; spent nothing
      0.00s    helper tries model fast again in a moment
      0.00s    helper calls count_trees {"of":"spinney"}
      0.00s    helper gets from count_trees: between 5 and 500 in what people call a spinney
      0.00s    helper answers: There is no fixed number: between 5 and 500 in what people call a spinney.
      0.00s    helper completed; spent $0.00011025, 349 tokens, 2 steps, 1 tool call, 1 retry
      0.00s  lead answers: A spinney is a small wood. The word goes back to the Latin spina, a thorn: once it meant a thicket of thorn bushes. How many trees it takes …
      0.00s  lead completed; spent $0.000829, 2,808 tokens, 5 steps, 2 tool calls, 1 retry

    completed after 0.00s
      answer  A spinney is a small wood. The word goes back to the Latin spina, a thorn: once it meant a thicket of thorn bushes.
              How many trees it takes nobody has fixed; fewer than a forest, more than a row.
      spent   $0.000829 · 2,808 tokens · 5 steps · 2 tool calls · 1 retry
      agents  2
      tree    [tree]
      look    spinney events [id]
    "#);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
}

#[test]
fn the_example_does_the_same_in_every_run() {
    let stage = Stage::new();
    let what = |ended: crate::stage::Ended| {
        let words = |line: &serde_json::Value| (line["type"].to_string(), line["path"].to_string());
        ended.json().iter().map(words).collect::<Vec<_>>()
    };
    let (first, second) =
        (stage.spinney(&["run", &example(), "--json"]), stage.spinney(&["run", &example(), "--json"]));
    assert_eq!(first.result()["output"], second.result()["output"]);
    assert_eq!(what(first), what(second));
}
