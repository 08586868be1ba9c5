//! Tags of runs and trees, and what a home spent by tag, program and day.

use serde_json::{Value, json};

use crate::exec::{exec, used};
use crate::test_folder::TestFolder;
use crate::upstream::Upstream;

const SCRIPT: &str = "rules: [{ say: done, usage: { input: 1000, output: 100 } }]";

/// Rows of a table of a home, as name and cost.
fn rows(stage: &TestFolder, by: &str) -> (Vec<(String, u64)>, Value) {
    let costs = stage.spinney(&["costs", "--by", by, "--json"]).result();
    assert_eq!((&costs["type"], &costs["by"]), (&json!("home_costs"), &json!(by)), "{costs}");
    let row = |row: &Value| {
        (row["name"].as_str().unwrap().to_owned(), row["spent"]["cost_nanos"].as_u64().unwrap())
    };
    (costs["rows"].as_array().unwrap().iter().map(row).collect(), costs)
}

/// Tags are in the journal with their tree, and every table of a home sums up to what its trees spent.
#[test]
fn a_home_says_what_was_spent_by_tag_program_and_day() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(100), used(20), used(3)]));
    for (options, tokens) in [
        (&["--tag", "pr=123", "--tag", "team=search"][..], 100),
        (&["--tag", "pr=124", "--max-agents", "1"], 20),
        (&[], 3),
    ] {
        let options = [&["--budget-usd", "1"], options].concat();
        let ended = exec(&stage, &upstream, &options, &format!("call {tokens} one")).end();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
    }
    let tree = stage.tree("", SCRIPT);
    let ran = stage.spinney(&["run", &tree, "--tag", "pr=123", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let tagged = ran.json().into_iter().find(|line| line["type"] == "tree_started").unwrap();
    assert_eq!(tagged["tags"]["pr"], json!("123"), "{tagged}");
    let of_tree = ran.result()["spent"]["cost_nanos"].as_u64().unwrap();

    let (cent, all) = (1_000_000, 123 * 1_000_000 + of_tree);
    let (mut by_tag, costs) = rows(&stage, "tag");
    by_tag.sort();
    let expected = [
        ("(no tag)", 3 * cent),
        ("pr=123", 100 * cent + of_tree),
        ("pr=124", 20 * cent),
        ("team=search", 100 * cent),
    ];
    assert_eq!(by_tag, expected.map(|(name, cost)| (name.to_owned(), cost)));
    assert_eq!((&costs["trees"], &costs["total"]["spent"]["cost_nanos"]), (&json!(4), &json!(all)));
    for by in ["program", "day"] {
        let (rows, costs) = rows(&stage, by);
        assert_eq!(rows.iter().map(|(_, cost)| cost).sum::<u64>(), all, "{by}: {costs}");
    }
    let (by_program, _) = rows(&stage, "program");
    assert_eq!(by_program.len(), 2, "{by_program:?}");
    let shown = stage.said(&["costs", "--by", "tag"]);
    assert!(shown.contains("4 trees") && shown.contains("pr=123"), "{shown}");
}

/// What is wrong is said before anything starts.
#[test]
fn tags_that_cannot_be_kept_are_refused() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(Vec::new()));
    let long = format!("a={}", "x".repeat(257));
    for (tag, part) in [
        ("pr", "write NAME=VALUE"),
        ("=123", "the tag has no name"),
        (long.as_str(), "257 bytes, more than 256"),
        ("k=sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789", "tag `k`"),
    ] {
        let ended = exec(&stage, &upstream, &["--tag", tag], "call 1 one").end();
        assert_eq!(ended.code, Some(2), "{tag}: {}", ended.err);
        assert!(ended.err.contains(part), "{tag}: {}", ended.err);
        let tree = stage.tree("", SCRIPT);
        let ended = stage.spinney(&["run", &tree, "--tag", tag]);
        assert_eq!(ended.code, Some(2), "{tag}: {}", ended.err);
        assert!(ended.err.contains(part), "{tag}: {}", ended.err);
    }
    assert!(!stage.home().exists(), "nothing was started");
    let ended = stage.spinney(&["costs", "last", "--by", "day"]);
    assert!(ended.code == Some(2) && ended.err.contains("leave out `last`"), "{}", ended.err);
}

/// G10 (most agents): the sub-agent beyond the most is refused with a text that its program gets, and a resumed run keeps
/// the limit.
#[test]
fn g10_a_program_reads_that_it_may_have_no_more_agents() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(100), used(20)]));
    let options = ["--budget-usd", "1", "--max-agents", "1"];
    let ended = exec(&stage, &upstream, &options, "call 100 one\nas_agent 20 two").end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("used 100") && !ended.out.contains("used 20"), "{}", ended.out);
    assert!(ended.out.contains("this run may have 1 agent, and agent a would be one more"), "{}", ended.out);
    let explained = stage.said(&["exec", "--explain", "--max-agents", "7", "--tag", "pr=1", "--", "true"]);
    assert!(explained.contains("max_agents") && explained.contains("pr=1"), "{explained}");
}
