//! Prices as people see them: the list of models, and tree files that take a price from the table.

use serde_json::json;

use crate::stage::Stage;

#[test]
fn models_are_listed_with_their_sizes_and_prices() {
    let stage = Stage::new();
    let listed = stage.spinney(&["models", "anthropic/claude-3"]);
    insta::assert_snapshot!(listed.out, @"
    MODEL                                   CONTEXT  MAX OUTPUT   INPUT  OUTPUT  CACHED        DATE
    anthropic/claude-3-5-haiku-latest        200000           –   $0.80   $4.00   $0.08  2026-10-30
    anthropic/claude-3-5-sonnet              200000           –   $3.00  $15.00   $0.30  2026-10-30
    anthropic/claude-3-7-sonnet-latest       200000           –   $3.00  $15.00   $0.30  2026-10-30
    anthropic/claude-3-haiku                 200000           –   $0.25   $1.25   $0.03  2026-10-30
    anthropic/claude-3-opus-latest           200000           –  $15.00  $75.00   $1.50  2026-10-30
    anthropic/claude-3-sonnet                200000           –   $3.00  $15.00   $0.30  2026-10-30
    openrouter/anthropic/claude-3-haiku      200000           –       –       –       –  2026-10-30
    openrouter/anthropic/claude-3-opus            –           –       –       –       –  2026-10-30
    openrouter/anthropic/claude-3-sonnet          –           –       –       –       –  2026-10-30
    openrouter/anthropic/claude-3.5-haiku         –           –       –       –       –  2026-10-30
    openrouter/anthropic/claude-3.5-sonnet        –           –       –       –       –  2026-10-30
    openrouter/anthropic/claude-3.7-sonnet        –           –       –       –       –  2026-10-30
    ");
    insta::assert_snapshot!(listed.err, @"prices in dollars per million tokens, from genai-prices 0.2.1; ↑: dearer for long inputs or at other times; –: unknown, see --json");
    assert_eq!(listed.code, Some(0));
    assert!(!stage.home().exists(), "a list needs no home");
}

#[test]
fn every_word_of_a_filter_counts_and_unknown_prices_are_a_dash() {
    let stage = Stage::new();
    insta::assert_snapshot!(stage.spinney(&["models", "PERPLEXITY/SONAR", "reasoning"]).out, @"
    MODEL                                      CONTEXT  MAX OUTPUT  INPUT  OUTPUT  CACHED        DATE
    openrouter/perplexity/sonar-reasoning            –           –      –       –       –  2026-10-30
    openrouter/perplexity/sonar-reasoning-pro   128000           –      –       –       –  2026-10-30
    perplexity/sonar-reasoning                       –           –      –       –       –  2026-10-30
    perplexity/sonar-reasoning-pro              128000           –      –       –       –  2026-10-30
    ");
    let none = stage.spinney(&["models", "no-such-model", "at-all"]);
    assert_eq!((none.code, none.out.as_str()), (Some(0), ""));
    insta::assert_snapshot!(none.err, @"no model has a name with: no-such-model at-all");
    let all = stage.spinney(&["models"]).out.lines().count();
    assert!(all > 2_000, "{all}");
}

/// A price that depends on length or time is marked, and JSON has all of it.
#[test]
fn programs_get_every_tier_and_change_of_a_price() {
    let stage = Stage::new();
    let lines = stage.spinney(&["models", "google/gemini-2.5-pro", "--json"]).json();
    let pro = lines.iter().find(|line| line["model"] == "google/gemini-2.5-pro").unwrap();
    assert_eq!(pro["rates"]["input_per_mtok"], json!(1_250_000_000));
    assert_eq!(pro["price"]["tiers"][0]["input_above"], json!(200_000));
    assert_eq!(pro["max_output"], json!(null));
    assert_eq!(pro["date"].as_str().unwrap().len(), 10);
    assert!(stage.spinney(&["models", "google/gemini-2.5-pro"]).out.contains("$1.25↑"));
    let lines = stage.spinney(&["models", "perplexity/sonar-pro", "--json"]).json();
    let sonar = lines.iter().find(|line| line["model"] == "perplexity/sonar-pro").unwrap();
    assert_eq!(sonar["unpriced"], json!("it is also billed by requests_kcount"));
    assert!(sonar.get("price").is_none() && sonar.get("rates").is_none());
}

/// A tree of one agent whose model has this price.
fn tree(stage: &Stage, price: &str) -> String {
    stage.file("tree.script.yaml", "rules: [ { say: done, usage: { input: 1000, output: 100 } } ]");
    let model = format!("{{ provider: scripted, script: tree.script.yaml{price} }}");
    let text = format!(
        "name: test\ngoal: Try it.\nbudget: {{ cost_usd: 1 }}\nmodels:\n  fast: {model}\nagents:\n  lead: {{ model: fast }}\n"
    );
    stage.file("tree.yaml", &text)
}

#[test]
fn a_file_takes_the_price_of_a_model_of_the_table_and_the_tree_keeps_it() {
    let stage = Stage::new();
    let ended =
        stage.spinney(&["run", &tree(&stage, ", price: anthropic/claude-3-5-sonnet-20241022"), "--json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(ended.result()["spent"]["cost_usd"], json!(0.0045), "{}", ended.result());
    let started = &stage.spinney(&["events", "last", "--json"]).json()[0];
    assert_eq!(
        started["definition"]["models"]["fast"]["price"]["cache_write_1h_per_mtok"],
        json!(6_000_000_000_u64)
    );
}

/// V19 (unpriced): a model needs a known price, or the file must allow it without.
#[test]
fn v19_an_unknown_price_is_refused_with_the_remedy() {
    let stage = Stage::new();
    let error = |price: &str| {
        let ended = stage.spinney(&["run", &tree(&stage, price)]);
        assert_eq!(ended.code, Some(2), "{}", ended.out);
        ended.err.replace(&stage.folder().display().to_string(), "…")
    };
    insta::assert_snapshot!(error(", price: anthropic/claude-0"), @"spinney: …/tree.yaml:5:64: the price table has no model `claude-0` of `anthropic`: write `provider/model` as the price table has it, or the keys of a price");
    insta::assert_snapshot!(error(", price: perplexity/sonar-pro"), @"spinney: …/tree.yaml:5:64: what `sonar-pro` costs at most is unknown: it is also billed by requests_kcount: write `provider/model` as the price table has it, or the keys of a price");
    insta::assert_snapshot!(error(", price: nobody/m"), @"spinney: …/tree.yaml:5:64: the price table has no provider `nobody`: write `provider/model` as the price table has it, or the keys of a price");
    insta::assert_snapshot!(error(", price: cheap"), @"spinney: …/tree.yaml:5:64: `cheap` is no provider and model: write `provider/model` as the price table has it, or the keys of a price");
    insta::assert_snapshot!(error(""), @"spinney: …/tree.yaml:5:9: model `fast` has no known price and cost has a ceiling: give it a price, or set `unpriced: allow`");
    assert!(!stage.home().exists(), "nothing was started");
}
