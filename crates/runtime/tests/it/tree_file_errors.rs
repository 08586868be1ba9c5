//! The errors for a tree file that cannot be read: place, reason and what to write instead. This is the complete list,
//! word for word.

use spinney::tree_file::{FileError, ModelCatalog, TreeFile};
use spinney_kernel::budget::Price;

const GOOD: &str = "\
name: research
goal: Compare.
budget: { cost_usd: 0.50, timeout: 5m }
limits: { depth: 3 }
models:
  fast:
    provider: scripted
    script: fast.yaml
    price: { input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 }
agents:
  lead:
    model: fast
    prompt: You lead.
    tools: [spawn_agent]
    subagents: [writer]
  writer:
    model: fast
entry: lead
";

/// The error for a text.
fn error(text: &str) -> String {
    told_of("tree.yaml", text)
}

fn told_of(file: &str, text: &str) -> String {
    match TreeFile::parse(file, text) {
        Ok(tree) => format!("read as {:?}", tree.definition),
        Err(error) => error.to_string(),
    }
}

/// The error for the good file with one replacement.
fn edited(from: &str, to: &str) -> String {
    assert_eq!(GOOD.matches(from).count(), 1, "`{from}` is there once");
    error(&GOOD.replacen(from, to, 1))
}

#[test]
fn the_good_file_is_good() {
    assert!(TreeFile::parse("tree.yaml", GOOD).is_ok());
}

#[test]
fn an_error_has_its_parts() {
    let error = TreeFile::parse("tree.yaml", &GOOD.replace("budget", "buget")).unwrap_err();
    let parts = FileError {
        file: "tree.yaml".to_owned(),
        line: 3,
        column: 1,
        message: "unknown key `buget`".to_owned(),
        help: Some("did you mean `budget`?".to_owned()),
    };
    assert_eq!(error, parts);
    assert_eq!(error.to_string(), "tree.yaml:3:1: unknown key `buget`: did you mean `budget`?");
}

/// Words of other systems are errors that name ours.
#[test]
fn a_key_of_another_system_names_ours() {
    insta::assert_snapshot!(edited("limits: { depth: 3 }", "limits: { max_subagent_depth: 3 }"), @"tree.yaml:4:11: unknown key `max_subagent_depth`: here that is `limits.depth`");
    insta::assert_snapshot!(edited("    subagents: [writer]", "    subagent_allowed_models: [fast]"), @"tree.yaml:15:5: unknown key `subagent_allowed_models`: here that is `subagent_models`");
    insta::assert_snapshot!(edited("    prompt: You lead.", "    run_single_turn: true"), @"tree.yaml:13:5: unknown key `run_single_turn`: here that is an agent's `limits: { max_steps: 1 }`");
    insta::assert_snapshot!(edited("cost_usd: 0.50", "max_cost_usd: 0.50"), @"tree.yaml:3:11: unknown key `max_cost_usd`: here that is `budget.cost_usd`");
}

#[test]
fn an_unknown_key_names_its_place_and_the_nearest_key() {
    insta::assert_snapshot!(edited("budget: {", "buget: {"), @"tree.yaml:3:1: unknown key `buget`: did you mean `budget`?");
    insta::assert_snapshot!(edited("    prompt: You", "    promt: You"), @"tree.yaml:13:5: unknown key `promt`: did you mean `prompt`?");
    insta::assert_snapshot!(edited("timeout: 5m", "timout: 5m"), @"tree.yaml:3:27: unknown key `timout`: did you mean `timeout`?");
    insta::assert_snapshot!(edited("script: fast", "scirpt: fast"), @"tree.yaml:8:5: unknown key `scirpt`: did you mean `script`?");
    insta::assert_snapshot!(edited("input_per_mtok_usd", "input_per_mtok"), @"tree.yaml:9:14: unknown key `input_per_mtok`: did you mean `input_per_mtok_usd`?");
    insta::assert_snapshot!(edited("limits: { depth: 3 }", "limits: { deep: 3 }"), @"tree.yaml:4:11: unknown key `deep`: known keys: depth, children, agents, parallel, rate");
    insta::assert_snapshot!(edited("name: research", "colour: red"), @"tree.yaml:1:1: unknown key `colour`: known keys: name, goal, budget, limits, models, agents, entry, pipeline, box, read, write, durability, unpriced, thread, tags, shared, …");
    insta::assert_snapshot!(edited("name: research", "Name: research"), @"tree.yaml:1:1: unknown key `Name`: did you mean `name`?");
}

#[test]
fn a_key_of_a_later_release_is_unknown_today() {
    insta::assert_snapshot!(edited("entry: lead", "schedule: {}"), @"tree.yaml:18:1: unknown key `schedule`: known keys: name, goal, budget, limits, models, agents, entry, pipeline, box, read, write, durability, unpriced, thread, tags, shared, …");
    insta::assert_snapshot!(edited("script: fast", "batch: fast"), @"tree.yaml:8:5: unknown key `batch`: known keys: provider, model, base_url, key_env, params, script, max_output, context, attempts_lost_max, cache_wait, price, rate, fallback");
    insta::assert_snapshot!(edited("prompt: You lead.", "schedule: { at: 1m }"), @"tree.yaml:13:5: unknown key `schedule`: known keys: model, program, prompt, tools, subagents, subagent_models, approvals, limits, budget, rate, recursive, share, output_schema, window, box, read, …");
}

#[test]
fn a_wrong_type_says_what_was_expected_and_found() {
    insta::assert_snapshot!(edited("name: research", "name: 2024"), @"tree.yaml:1:7: expected text, found the number 2024: put it in quotes");
    insta::assert_snapshot!(edited("name: research", "name: [a]"), @"tree.yaml:1:7: expected text, found a list");
    insta::assert_snapshot!(edited("name: research", "name: true"), @"tree.yaml:1:7: expected text, found `true`: put it in quotes");
    insta::assert_snapshot!(edited("goal: Compare.", "goal: 3.10"), @"tree.yaml:2:7: expected text, found the number 3.1: put it in quotes");
    insta::assert_snapshot!(edited("tools: [spawn_agent]", "tools: spawn_agent"), @"tree.yaml:14:12: expected a list, found text `spawn_agent`");
    insta::assert_snapshot!(edited("tools: [spawn_agent]", "tools: [1]"), @"tree.yaml:14:13: expected text, found the number 1: put it in quotes");
    insta::assert_snapshot!(edited("tools: [spawn_agent]", "tools: [{ a: b }]"), @"tree.yaml:14:13: expected text, found a map");
    insta::assert_snapshot!(edited("prompt: You lead.", "recursive: yes"), @"tree.yaml:13:16: expected `true` or `false`, found text `yes`");
    insta::assert_snapshot!(edited("budget: { cost_usd: 0.50, timeout: 5m }", "budget: 10"), @"tree.yaml:3:9: expected the keys of a budget, found the number 10");
    insta::assert_snapshot!(edited("budget: { cost_usd: 0.50, timeout: 5m }", "budget: [10]"), @"tree.yaml:3:9: expected the keys of a budget, found a list");
    insta::assert_snapshot!(edited("limits: { depth: 3 }", "limits: deep"), @"tree.yaml:4:9: expected the limits of a tree, found text `deep`");
    insta::assert_snapshot!(edited("models:\n  fast:", "models:\n  - fast:"), @"tree.yaml:6:3: expected a map, found a list");
    insta::assert_snapshot!(edited("entry: lead", "entry: [lead]"), @"tree.yaml:18:8: expected text, found a list");
    insta::assert_snapshot!(edited("entry: lead", "durability: { full: 1 }"), @"tree.yaml:18:21: `full` takes no value");
    insta::assert_snapshot!(edited("entry: lead", "durability: 1"), @"tree.yaml:18:13: expected one of off, normal, full, found the number 1");
    insta::assert_snapshot!(error("just text"), @"tree.yaml:1:1: expected the keys of a tree, found text `just text`");
    insta::assert_snapshot!(error("- a\n- b\n"), @"tree.yaml:1:1: expected the keys of a tree, found a list");
    insta::assert_snapshot!(error("42"), @"tree.yaml:1:1: expected the keys of a tree, found the number 42");
}

#[test]
fn a_key_with_nothing_behind_it_is_an_error() {
    insta::assert_snapshot!(edited("goal: Compare.", "goal:"), @"tree.yaml:2:5: the value is missing: write a value, or delete the key");
    insta::assert_snapshot!(edited("cost_usd: 0.50", "cost_usd:"), @"tree.yaml:3:19: the value is missing: write a value, or delete the key");
    insta::assert_snapshot!(edited("entry: lead", "entry: ~"), @"tree.yaml:18:8: the value is missing: write a value, or delete the key");
    insta::assert_snapshot!(edited("prompt: You lead.", "prompt:"), @"tree.yaml:13:11: expected text, found nothing");
    insta::assert_snapshot!(edited("    model: fast\nentry", "entry"), @"tree.yaml:16:9: expected the keys of an agent, found nothing");
    insta::assert_snapshot!(edited("{ depth: 3 }", "\n"), @"tree.yaml:4:7: expected the limits of a tree, found nothing");
}

#[test]
fn a_bad_value_says_what_to_write() {
    insta::assert_snapshot!(edited("cost_usd: 0.50", "cost_usd: -1"), @"tree.yaml:3:21: `-1` is not an amount in USD: write a plain positive number such as 0.25, at most nine decimals");
    insta::assert_snapshot!(edited("cost_usd: 0.50", "cost_usd: .nan"), @"tree.yaml:3:21: `.nan` is not an amount in USD: write a plain positive number such as 0.25, at most nine decimals");
    insta::assert_snapshot!(edited("cost_usd: 0.50", "cost_usd: .inf"), @"tree.yaml:3:21: `.inf` is not an amount in USD: write a plain positive number such as 0.25, at most nine decimals");
    insta::assert_snapshot!(edited("cost_usd: 0.50", "cost_usd: lots"), @"tree.yaml:3:21: `lots` is not an amount in USD: write a plain positive number such as 0.25, at most nine decimals");
    insta::assert_snapshot!(edited("cost_usd: 0.50", "cost_usd: 2000000"), @"tree.yaml:3:21: `2000000` USD is above the largest amount, 1000000 USD");
    insta::assert_snapshot!(edited("cost_usd: 0.50", "cost_usd: 1e99"), @"tree.yaml:3:21: `1000000000000000000000000000000000000000` is not an amount in USD: write a plain positive number such as 0.25, at most nine decimals");
    insta::assert_snapshot!(edited("cost_usd: 0.50", "tokens: -5"), @"tree.yaml:3:19: `-5` is not a count: write a whole number from 0 to 1000000000000000, without quotes");
    insta::assert_snapshot!(edited("cost_usd: 0.50", "steps: 1.5"), @"tree.yaml:3:18: `1.5` is not a count: write a whole number from 0 to 1000000000000000, without quotes");
    insta::assert_snapshot!(edited("cost_usd: 0.50", "retries: \"3\""), @"tree.yaml:3:20: `3` is not a count: write a whole number from 0 to 1000000000000000, without quotes");
    insta::assert_snapshot!(edited("cost_usd: 0.50", "tool_calls: 99999999999999999999"), @"tree.yaml:3:23: `100000000000000000000` is not a count: write a whole number from 0 to 1000000000000000, without quotes");
    insta::assert_snapshot!(edited("timeout: 5m", "timeout: 5 minutes"), @"tree.yaml:3:36: `5 minutes` is not a time: write a whole number and its unit, such as 200ms, 90s, 5m, 2h or 1d; a number alone is seconds");
    insta::assert_snapshot!(edited("timeout: 5m", "timeout: { wall: soon }"), @"tree.yaml:3:36: `soon` is not a time: write a whole number and its unit, such as 200ms, 90s, 5m, 2h or 1d; a number alone is seconds");
    insta::assert_snapshot!(edited("timeout: 5m", "timeout: { clock: 5m }"), @r#"tree.yaml:3:36: `{"clock":"5m"}` is not a time: write a whole number and its unit, such as 200ms, 90s, 5m, 2h or 1d; a number alone is seconds"#);
    insta::assert_snapshot!(edited("timeout: 5m", "timeout: 0"), @"tree.yaml:3:36: a time of `0` is out of bounds: write at least 1ms and at most 365d");
    insta::assert_snapshot!(edited("timeout: 5m", "timeout: 400d"), @"tree.yaml:3:36: a time of `400d` is out of bounds: write at least 1ms and at most 365d");
    insta::assert_snapshot!(edited("timeout: 5m", "answer_reserve: 95"), @r#"tree.yaml:3:43: `95` is not a percent: write a whole number from 0 to 90, such as 10 or "10%""#);
    insta::assert_snapshot!(edited("timeout: 5m", "answer_reserve: 0.1"), @r#"tree.yaml:3:43: `0.1` is not a percent: write a whole number from 0 to 90, such as 10 or "10%""#);
    insta::assert_snapshot!(edited("timeout: 5m", "repeats: { notice: 3, end: 3 }"), @"tree.yaml:3:36: `repeats.end` of 3 is not above `repeats.notice` of 3, so no agent could act on the notice: raise `end`, or write 0 to turn one of them off");
    insta::assert_snapshot!(edited("timeout: 5m", "repeats: { notice: -1 }"), @"tree.yaml:3:46: `-1` is not a count: write a whole number from 0 to 1000000000000000, without quotes");
    insta::assert_snapshot!(edited("timeout: 5m", "repeats: { stop: 9 }"), @"tree.yaml:3:38: unknown key `stop`: known keys: notice, end");
    insta::assert_snapshot!(edited("timeout: 5m", "repeats: 6"), @"tree.yaml:3:36: expected the keys of `repeats`, found the number 6: write it like `{ notice: 3, end: 6 }`");
    insta::assert_snapshot!(edited("timeout: 5m", "on_low: stop"), @"tree.yaml:3:35: unknown value `stop`: known values: halt, shrink, downgrade");
    insta::assert_snapshot!(edited("timeout: 5m", "on_low: downgrade"), @"tree.yaml:3:35: `downgrade` needs a value: write `{ downgrade: … }`");
    insta::assert_snapshot!(edited("timeout: 5m", "on_low: { halt: now }"), @"tree.yaml:3:43: `halt` takes no value");
    insta::assert_snapshot!(edited("timeout: 5m", "on_low: [halt]"), @"tree.yaml:3:35: expected one of halt, shrink, downgrade, found a list");
    insta::assert_snapshot!(edited("timeout: 5m", "on_low: { downgrade: a b }"), @"tree.yaml:3:48: `a b` is not a valid model name: 1 to 128 characters of A-Z, a-z, 0-9 and `._:/-`, the first a letter or digit");
    insta::assert_snapshot!(edited("timeout: 5m", "lend: true"), @"tree.yaml:3:33: a tree has no parent to lend it anything: write `lend` in the budget of an agent");
    insta::assert_snapshot!(edited("input_per_mtok_usd: 0.25", "input_per_mtok_usd: free"), @"tree.yaml:9:34: `free` is not an amount in USD: write a plain positive number such as 0.25, at most nine decimals");
    let price = "{ input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 }";
    insta::assert_snapshot!(edited(price, "[1]"), @"tree.yaml:9:12: expected the keys of a price, or `provider/model`, found a list");
    insta::assert_snapshot!(edited(price, "cheap"), @"tree.yaml:9:12: `cheap` is not a provider and model: write `provider/model` as the price table has it, or the keys of a price");
    insta::assert_snapshot!(edited(price, "acme/pro"), @"tree.yaml:9:12: there is no price table here: write `provider/model` as the price table has it, or the keys of a price");
    insta::assert_snapshot!(edited("input_per_mtok_usd: 0.25, ", ""), @"tree.yaml:9:12: `input_per_mtok_usd` is missing: write `input_per_mtok_usd: …`");
    insta::assert_snapshot!(edited("entry: lead", "durability: fully"), @"tree.yaml:18:13: unknown value `fully`: did you mean `full`?");
    insta::assert_snapshot!(edited("entry: lead", "unpriced: maybe"), @"tree.yaml:18:11: unknown value `maybe`: known values: refuse, allow");
    insta::assert_snapshot!(edited("entry: lead", "thread: a b"), @"tree.yaml:18:9: `a b` is not a valid thread id: 1 to 128 characters of A-Z, a-z, 0-9 and `._:/-`, the first a letter or digit");
}

#[test]
fn a_number_out_of_bounds_says_the_bounds() {
    insta::assert_snapshot!(edited("depth: 3", "depth: 100001"), @"tree.yaml:4:18: `depth` of 100001 is out of bounds: write a number from 0 to 100000");
    insta::assert_snapshot!(edited("depth: 3", "agents: 0"), @"tree.yaml:4:19: `agents` of 0 is out of bounds: write a number from 1 to 1000000");
    insta::assert_snapshot!(edited("depth: 3", "parallel: 0"), @"tree.yaml:4:21: `parallel` of 0 is out of bounds: write a number from 1 to 1000000");
    insta::assert_snapshot!(edited("depth: 3", "children: 1000001"), @"tree.yaml:4:21: `children` of 1000001 is out of bounds: write a number from 0 to 1000000");
    insta::assert_snapshot!(edited("depth: 3", "depth: -1"), @"tree.yaml:4:18: `-1` is not a count: write a whole number from 0 to 1000000000000000, without quotes");
    insta::assert_snapshot!(edited("prompt: You lead.", "limits: { max_steps: 0 }"), @"tree.yaml:13:26: `max_steps` of 0 is out of bounds: write a number from 1 to 1000000");
    insta::assert_snapshot!(edited("prompt: You lead.", "limits: { max_tokens_per_step: 0 }"), @"tree.yaml:13:36: `max_tokens_per_step` of 0 is out of bounds: write a number from 1 to 1000000000000000");
    insta::assert_snapshot!(edited("prompt: You lead.", "limits: { depth: 200000 }"), @"tree.yaml:13:22: `depth` of 200000 is out of bounds: write a number from 0 to 100000");
    insta::assert_snapshot!(edited("script: fast", "max_output: 0\n    script: fast"), @"tree.yaml:8:17: `max_output` of 0 is out of bounds: write a number from 1 to 1000000000000000");
}

#[test]
fn no_role_may_have_a_reserved_name() {
    insta::assert_snapshot!(error(&GOOD.replace("writer", "person")), @"tree.yaml:17:5: an agent cannot be called `person`, which is reserved: choose a name other than person, system, tree, user");
}

#[test]
fn an_unknown_name_is_reported_with_the_nearest() {
    insta::assert_snapshot!(edited("entry: lead", "entry: laed"), @"tree.yaml:18:8: unknown agent `laed`: did you mean `lead`?");
    insta::assert_snapshot!(edited("entry: lead", "entry: boss"), @"tree.yaml:18:8: unknown agent `boss`: known agents: lead, writer");
    insta::assert_snapshot!(edited("    model: fast\n    prompt", "    model: fats\n    prompt"), @"tree.yaml:12:12: unknown model `fats`: did you mean `fast`?");
    insta::assert_snapshot!(edited("subagents: [writer]", "subagents: [lead, wroter]"), @"tree.yaml:15:23: unknown agent `wroter`: did you mean `writer`?");
    insta::assert_snapshot!(edited("timeout: 5m", "on_low: { downgrade: slow }"), @"tree.yaml:3:48: unknown model `slow`: known models: fast");
    insta::assert_snapshot!(edited("script: fast", "fallback: [fastt]\n    script: fast"), @"tree.yaml:8:16: unknown model `fastt`: did you mean `fast`?");
    insta::assert_snapshot!(edited("script: fast", "fallback: [fast]\n    script: fast"), @"tree.yaml:8:16: `fast` is its own fallback: name another model");
    insta::assert_snapshot!(edited("prompt: You lead.", "budget: { on_low: { downgrade: tiny } }"), @"tree.yaml:13:36: unknown model `tiny`: known models: fast");
    insta::assert_snapshot!(edited("provider: scripted", "provider: azure"), @"tree.yaml:7:15: unknown provider `azure`: write one of scripted, openai, openai_chat, anthropic, gemini, ollama, openai_compatible");
    insta::assert_snapshot!(edited("provider: scripted", "provider: script"), @"tree.yaml:7:15: unknown provider `script`: write one of scripted, openai, openai_chat, anthropic, gemini, ollama, openai_compatible");
    insta::assert_snapshot!(edited("    script: fast.yaml\n", ""), @"tree.yaml:7:15: `script` of model `fast` is missing: a scripted model answers from a file: name it");
    insta::assert_snapshot!(edited("script: fast.yaml", "script: ''"), @"tree.yaml:8:13: `script` is empty: write something");
}

#[test]
fn an_invalid_name_reports_the_rule() {
    insta::assert_snapshot!(edited("  lead:", "  Lead:"), @"tree.yaml:11:3: `Lead` is not a valid role: 1 to 48 characters of a-z, 0-9, `_` and `-`, the first a letter or digit");
    insta::assert_snapshot!(edited("  fast:", "  'fast model':"), @"tree.yaml:6:3: `fast model` is not a valid model name: 1 to 128 characters of A-Z, a-z, 0-9 and `._:/-`, the first a letter or digit");
    insta::assert_snapshot!(edited("entry: lead", "entry: The Lead"), @"tree.yaml:18:8: `The Lead` is not a valid role: 1 to 48 characters of a-z, 0-9, `_` and `-`, the first a letter or digit");
    insta::assert_snapshot!(edited("tools: [spawn_agent]", "tools: ['spawn agent']"), @"tree.yaml:14:13: `spawn agent` is not a valid tool name: 1 to 128 characters of A-Z, a-z, 0-9 and `._:/-`, the first a letter or digit");
    insta::assert_snapshot!(edited("subagents: [writer]", "subagents: ['']"), @"tree.yaml:15:17: `` is not a valid role: 1 to 48 characters of a-z, 0-9, `_` and `-`, the first a letter or digit");
}

#[test]
fn what_is_missing_is_named() {
    insta::assert_snapshot!(edited("name: research\n", ""), @"tree.yaml:1:1: `name` is missing: write `name: …`");
    insta::assert_snapshot!(edited("entry: lead\n", ""), @"tree.yaml:1:1: `entry` is missing: say which agent is the root, one of lead, writer");
    insta::assert_snapshot!(edited("    provider: scripted\n", ""), @"tree.yaml:7:5: `provider` is missing: write `provider: …`");
    insta::assert_snapshot!(edited("name: research", "name: ' '"), @"tree.yaml:1:7: `name` is empty: write something");
    insta::assert_snapshot!(edited("goal: Compare.", "goal: ''"), @"tree.yaml:2:7: `goal` is empty: write something");
    insta::assert_snapshot!(edited("models:\n  fast:", "models: {}\nbudget2:\n  fast:"), @"tree.yaml:6:1: unknown key `budget2`: did you mean `budget`?");
    insta::assert_snapshot!(error("name: n\nmodels: {}\nagents: {a: {model: m}}\n"), @"tree.yaml:2:9: `models` is empty: write at least one");
    insta::assert_snapshot!(error("name: n\nmodels: {m: {provider: scripted, script: s}}\nagents: {}\n"), @"tree.yaml:3:9: `agents` is empty: write at least one");
    insta::assert_snapshot!(error("name: n\nagents: {a: {model: m}}\n"), @"tree.yaml:1:1: `models` is missing: write `models: …`");
    insta::assert_snapshot!(error("name: n\nmodels: {m: {provider: scripted, script: s}}\n"), @"tree.yaml:1:1: `agents` is missing: write `agents: …`");
    insta::assert_snapshot!(error(""), @"tree.yaml:1:1: the file is empty: a tree needs a name, models and agents");
    insta::assert_snapshot!(error(" \n\n"), @"tree.yaml:1:1: the file is empty: a tree needs a name, models and agents");
    insta::assert_snapshot!(error("# only a comment\n"), @"tree.yaml:2:1: the file is empty: a tree needs a name, models and agents");
    insta::assert_snapshot!(error("~\n"), @"tree.yaml:1:1: the file is empty: a tree needs a name, models and agents");
}

#[test]
fn broken_yaml_names_its_place() {
    insta::assert_snapshot!(edited("    prompt", "\tprompt"), @"tree.yaml:13:1: a tab indents this line: indent with spaces");
    insta::assert_snapshot!(edited("goal: Compare.", "goal: 'Compare."), @"tree.yaml:3:1: invalid indentation in multiline quoted scalar");
    insta::assert_snapshot!(edited("goal: Compare.", "goal: a: b"), @"tree.yaml:2:8: mapping values are not allowed in this context");
    insta::assert_snapshot!(edited("budget: { cost", "budget: { { cost"), @"tree.yaml:3:11: a key must be text");
    insta::assert_snapshot!(edited("entry: lead", "entry: lead\nentry: writer"), @"tree.yaml:19:1: duplicate key `entry`: delete one of them");
    insta::assert_snapshot!(edited("    model: fast\nentry", "    model: fast\n    model: fast\nentry"), @"tree.yaml:18:5: duplicate key `model`: delete one of them");
    insta::assert_snapshot!(edited("entry: lead", "entry: *lead"), @"tree.yaml:18:8: unknown alias: no `&` with this name comes before it");
    insta::assert_snapshot!(edited("entry: lead", "entry: !role lead"), @"tree.yaml:18:14: unknown tag `!role`: delete it");
    insta::assert_snapshot!(edited("entry: lead", "--- \nentry: lead"), @"tree.yaml:19:1: a second document begins here: keep one");
    insta::assert_snapshot!(edited("entry: lead", "? [a]\n: b"), @"tree.yaml:18:3: a key must be text");
}

/// The parser places an error behind the tab, or at the text before it.
#[test]
fn a_tab_is_reported_where_it_is() {
    let begin = "name: n\nmodels: {m: {provider: scripted, script: s}}\n";
    let tab = |text: &str| error(&format!("{begin}{text}"));
    let place = |line: usize, column: usize| {
        format!("tree.yaml:{line}:{column}: a tab indents this line: indent with spaces")
    };
    assert_eq!(tab("agents:\n\ta: {model: m}\n"), place(4, 1));
    assert_eq!(tab("agents:\n  a:\n  \tmodel: m\n"), place(5, 3));
    assert_eq!(tab("agents:\n  a:\n    model: m\n\n\t  prompt: x\n"), place(7, 1));
    assert_eq!(tab("goal: some\n\ttext\nagents: {a: {model: m}}\n"), place(4, 1));
    assert_eq!(tab("agents:\n  a:\n    model: m\n    tools:\n    \t- read_file\n"), place(7, 5));
    assert_eq!(tab("goal: |\n  some\n\ttext\nagents: {a: {model: m}}\n"), place(5, 1));
    let inside = "goal: |\n  some\n  \ttext\nagents: {a: {model: m}}\n";
    assert!(TreeFile::parse("tree.yaml", &format!("{begin}{inside}")).is_ok(), "a text may have tabs");
}

/// What to write is in the format of the file.
#[test]
fn toml_files_get_their_hints_in_toml() {
    let begin = "name = \"n\"\n[models.m]\nprovider = \"scripted\"\nscript = \"s\"\n[agents.a]\n";
    let toml = |text: &str| told_of("tree.toml", &format!("{begin}{text}"));
    insta::assert_snapshot!(toml("prompt = \"p\"\n"), @"tree.toml:5:1: `model` is missing: write the name of a model, or a `program`");
    insta::assert_snapshot!(toml("model = \"m\"\nshare = \"fork\"\n"), @"tree.toml:7:9: `fork` needs a value: write `{ fork = … }`");
    insta::assert_snapshot!(toml("model = \"m\"\nbudget = { repeats = 6 }\n"), @"tree.toml:7:22: expected the keys of `repeats`, found the number 6: write it like `{ notice = 3, end = 6 }`");
    insta::assert_snapshot!(toml("model = \"m\"\nrun_single_turn = true\n"), @"tree.toml:7:1: unknown key `run_single_turn`: here that is an agent's `limits = { max_steps = 1 }`");
}

#[test]
fn broken_json_names_its_place() {
    insta::assert_snapshot!(told_of("tree.json", ""), @"tree.json:1:1: the file is empty: a tree needs a name, models and agents");
    insta::assert_snapshot!(told_of("tree.json", "{"), @"tree.json:1:1: EOF while parsing an object");
    insta::assert_snapshot!(told_of("tree.json", "{\"name\": \"n\",}"), @"tree.json:1:14: key must be a string");
    insta::assert_snapshot!(told_of("tree.json", "{\"name\": \"n\"} x"), @"tree.json:1:15: trailing characters");
    insta::assert_snapshot!(told_of("tree.json", "{\n  \"name\": \"n\",\n  \"nmae\": 1\n}"), @"tree.json:3:3: unknown key `nmae`: did you mean `name`?");
    insta::assert_snapshot!(told_of("tree.json", "{\n  \"name\": 5\n}"), @"tree.json:2:11: expected text, found the number 5: put it in quotes");
    insta::assert_snapshot!(told_of("tree.json", "{\"name\": \"a\", \"name\": \"b\"}"), @"tree.json:1:15: duplicate key `name`: first on line 1");
    insta::assert_snapshot!(told_of("tree.json", "{\"name\": \"n\", \"models\": {\"m\": {\"provider\": \"scripted\", \"script\": \"s\"}},\n \"agents\": {\"a\": {\"model\": \"m\", \"budget\": {\"cost_usd\": 1e999}}}}"), @"tree.json:2:56: number out of range");
    insta::assert_snapshot!(told_of("tree.json", "{\"name\": \"n\", \"models\": {\"m\": {\"provider\": \"scripted\", \"script\": \"s\"}},\n \"agents\": {\"a\": {\"model\": \"m\", \"budget\": {\"cost_usd\": 1e99}}}}"), @"tree.json:2:56: `1000000000000000000000000000000000000000` is not an amount in USD: write a plain positive number such as 0.25, at most nine decimals");
    insta::assert_snapshot!(told_of("tree.json", "{\"é\": 1, \"name\": null}"), @"tree.json:1:2: unknown key `é`: known keys: name, goal, budget, limits, models, agents, entry, pipeline, box, read, write, durability, unpriced, thread, tags, shared, …");
    insta::assert_snapshot!(told_of("tree.json", "[\"name\"]"), @"tree.json:1:1: expected the keys of a tree, found a list");
    insta::assert_snapshot!(told_of("tree.json", "{\"name\": \"\\ud800\"}"), @"tree.json:1:10: unexpected end of hex escape");
    insta::assert_snapshot!(told_of("tree.json", "{\"name\": NaN}"), @"tree.json:1:10: expected value");
    insta::assert_snapshot!(told_of("tree.json", "nul"), @"tree.json:1:3: EOF while parsing a value");
    insta::assert_snapshot!(told_of("tree.json", "{\"name\": \"n\", \"models\": {\"m\": {\"provider\": \"scripted\", \"script\": \"s\"}}, \"agents\": {\"a\": {\"model\": \"x\"}}}"), @"tree.json:1:99: unknown model `x`: known models: m");
}

#[test]
fn broken_toml_names_its_place() {
    insta::assert_snapshot!(told_of("tree.toml", ""), @"tree.toml:1:1: the file is empty: a tree needs a name, models and agents");
    insta::assert_snapshot!(told_of("tree.toml", "name"), @"tree.toml:1:5: key with no value, expected `=`");
    insta::assert_snapshot!(told_of("tree.toml", "name = "), @"tree.toml:1:8: string values must be quoted, expected literal string");
    insta::assert_snapshot!(told_of("tree.toml", "name = \"n\"\nname = \"m\"\n"), @"tree.toml:2:1: duplicate key `name`: delete one of them");
    insta::assert_snapshot!(told_of("tree.toml", "name = \"n\"\nnmae = \"m\"\n"), @"tree.toml:2:1: unknown key `nmae`: did you mean `name`?");
    insta::assert_snapshot!(told_of("tree.toml", "name = 5"), @"tree.toml:1:8: expected text, found the number 5: put it in quotes");
    insta::assert_snapshot!(told_of("tree.toml", "name = 1979-05-27"), @"tree.toml:1:1: `models` is missing: write `models = …`");
    insta::assert_snapshot!(told_of("tree.toml", "name = \"n\"\nbudget = { cost_usd = nan }\nmodels = {}\nagents = {}\n"), @"tree.toml:2:23: `nan` is not an amount in USD: write a plain positive number such as 0.25, at most nine decimals");
    insta::assert_snapshot!(told_of("tree.toml", "name = \"n\"\n[budget]\ntokens = 99999999999999999999\n"), @"tree.toml:3:10: the number 99999999999999999999 is too large");
    insta::assert_snapshot!(told_of("tree.toml", "name = \"n\"\n[models.m]\nprovider = \"scripted\"\nscript = \"s\"\n[agents.a]\nmodel = \"x\"\n"), @"tree.toml:6:9: unknown model `x`: known models: m");
    insta::assert_snapshot!(told_of("tree.toml", "name = \"n\"\n[budget]\ntimeout = 5.5\n"), @"tree.toml:3:11: `5.5` is not a time: write a whole number and its unit, such as 200ms, 90s, 5m, 2h or 1d; a number alone is seconds");
    insta::assert_snapshot!(told_of("tree.toml", "name = \"n\"\n[models.m]\nprovider = \"llama\"\n[agents.a]\nmodel = \"m\"\n"), @"tree.toml:3:12: unknown provider `llama`: write one of scripted, openai, openai_chat, anthropic, gemini, ollama, openai_compatible");
    insta::assert_snapshot!(told_of("tree.toml", "[budget]\n[budget]\n"), @"tree.toml:2:2: duplicate key `budget`: delete one of them");
}

#[test]
fn a_name_without_a_known_ending_is_refused() {
    insta::assert_snapshot!(told_of("tree.txt", "name: n"), @"tree.txt:1:1: the file's name does not show its format: end it in .yaml, .yml, .json or .toml");
    insta::assert_snapshot!(told_of("tree", "name: n"), @"tree:1:1: the file's name does not show its format: end it in .yaml, .yml, .json or .toml");
    insta::assert_snapshot!(told_of("a.yaml/tree", "name: n"), @"a.yaml/tree:1:1: the file's name does not show its format: end it in .yaml, .yml, .json or .toml");
    insta::assert_snapshot!(told_of("tree.yaml.bak", "name: n"), @"tree.yaml.bak:1:1: the file's name does not show its format: end it in .yaml, .yml, .json or .toml");
    insta::assert_snapshot!(told_of("", "name: n"), @":1:1: the file's name does not show its format: end it in .yaml, .yml, .json or .toml");
}

#[test]
fn a_wrong_word_is_shown_on_one_short_line() {
    let word = format!("\"\\n\\e[31m{}\"", "x".repeat(500));
    let shown = edited("entry: lead", &format!("durability: {word}"));
    assert!(shown.len() < 200 && !shown.contains(char::is_control), "{shown}");
    let shown = edited("entry: lead", &format!("{word}: 1"));
    assert!(shown.len() < 400 && !shown.contains(char::is_control), "{shown}");
}

#[test]
fn too_many_names_and_too_long_texts_are_reported() {
    let names: Vec<String> = (0..257).map(|n| format!("a{n}")).collect();
    let tools = format!("tools: [{}]", names.join(", "));
    insta::assert_snapshot!(edited("tools: [spawn_agent]", &tools), @"tree.yaml:14:12: `tools` has 257 entries, more than 256");
    let prompt = format!("prompt: {}", "x".repeat(32 * 1024 + 1));
    insta::assert_snapshot!(edited("prompt: You lead.", &prompt), @"tree.yaml:13:13: `prompt` has 32769 bytes, more than 32768");
    let name = format!("name: {}", "x".repeat(1_025));
    insta::assert_snapshot!(edited("name: research", &name), @"tree.yaml:1:7: `name` has 1025 bytes, more than 1024");
    let goal = format!("goal: {}", "x".repeat(32 * 1024 + 1));
    insta::assert_snapshot!(edited("goal: Compare.", &goal), @"tree.yaml:2:7: `goal` has 32769 bytes, more than 32768");
}

#[test]
fn an_error_in_an_alias_is_reported_where_it_was_written() {
    let text = "\
name: n
models: {m: {provider: scripted, script: s}}
agents:
  one: {model: m, budget: &small {cost_usd: 1, tokns: 5}}
  two: {model: m, budget: *small}
entry: two
";
    insta::assert_snapshot!(error(text), @"tree.yaml:4:48: unknown key `tokns`: did you mean `tokens`?");
}

/// An invalid schema, or one that refers outside itself, is an error with its place.
#[test]
fn a_bad_schema_is_reported_at_its_place() {
    let edited = |schema: &str| edited("prompt: You lead.", &format!("output_schema: {schema}"));
    insta::assert_snapshot!(edited("{ type: strin }"), @r#"tree.yaml:13:28: bad `output_schema` at /type: value is not one of "array", "boolean" or 5 other candidates, and value is not of type "array": write a JSON Schema; `docs/tree-file.md` says what is supported"#);
    insta::assert_snapshot!(edited("\n      properties:\n        a: { items: [{ minimum: x }] }"), @r#"tree.yaml:15:21: bad `output_schema` at /properties/a/items: value is not of types "boolean", "object": write a JSON Schema; `docs/tree-file.md` says what is supported"#);
    insta::assert_snapshot!(edited("{ items: { $ref: 'https://example.com/x' } }"), @"tree.yaml:13:37: bad `output_schema` at /items/$ref: expected a reference inside the schema, such as `#/$defs/name`: nothing is fetched: write a JSON Schema; `docs/tree-file.md` says what is supported");
    insta::assert_snapshot!(edited("{ $ref: '#/$defs/a' }"), @"tree.yaml:13:28: bad `output_schema` at /$ref: expected a reference to a part of this schema: there is none: write a JSON Schema; `docs/tree-file.md` says what is supported");
    insta::assert_snapshot!(edited("'{\"type\": \"strin\"}'"), @r#"tree.yaml:13:20: bad `output_schema` at /type: value is not one of "array", "boolean" or 5 other candidates, and value is not of type "array": write a JSON Schema; `docs/tree-file.md` says what is supported"#);
    insta::assert_snapshot!(edited("'{\"type\": '"), @"tree.yaml:13:20: bad `output_schema`: EOF while parsing a value at line 1 column 9; write a JSON Schema, which is a JSON object");
    insta::assert_snapshot!(edited("[string]"), @"tree.yaml:13:20: bad `output_schema`: it is not a JSON object; write a JSON Schema, which is a JSON object");
    insta::assert_snapshot!(edited("5"), @"tree.yaml:13:20: bad `output_schema`: it is not a JSON object; write a JSON Schema, which is a JSON object");
    insta::assert_snapshot!(edited(""), @"tree.yaml:13:18: the value is missing: write a value, or delete the key");
    insta::assert_snapshot!(edited(&format!("{{ title: {} }}", "x".repeat(20_000))), @"tree.yaml:13:20: the output_schema has 20012 bytes and the limit is 16384: shorten it or pass a reference");
}

/// A window that is too small, and impossible turn limits, are named with the numbers that make sense.
#[test]
fn a_window_reports_its_content_and_limits() {
    insta::assert_snapshot!(edited("prompt: You lead.", "window: { size: 5 }"), @"tree.yaml:13:21: `size` of 5 is out of bounds: write a number from 256 to 4294967295");
    insta::assert_snapshot!(edited("prompt: You lead.", "window: { preset: wide }"), @"tree.yaml:13:23: unknown value `wide`: known values: dialog, tools");
    insta::assert_snapshot!(edited("prompt: You lead.", "window: { clamp_note: maybe }"), @"tree.yaml:13:27: unknown value `maybe`: known values: on, off");
    insta::assert_snapshot!(edited("prompt: You lead.", "window: { images: 900 }"), @"tree.yaml:13:23: `images` of 900 is out of bounds: write a number from 0 to 255");
    insta::assert_snapshot!(edited("prompt: You lead.", "share: everything"), @"tree.yaml:13:12: unknown value `everything`: known values: goal, briefing, thread, fork");
    insta::assert_snapshot!(edited("prompt: You lead.", "share: { fork: 0 }"), @"tree.yaml:13:12: `fork` of 0 turns is out of bounds: write a number from 1 to 1000");
}

/// Tags are words by name, few and short.
#[test]
fn tags_are_texts_by_name() {
    let tagged = |tags: &str| edited("entry: lead", &format!("entry: lead\n{tags}"));
    insta::assert_snapshot!(tagged("tags: [a]"), @"tree.yaml:19:7: expected a map, found a list");
    insta::assert_snapshot!(tagged("tags: acme"), @"tree.yaml:19:7: expected a map, found text `acme`");
    insta::assert_snapshot!(tagged("tags:"), @"tree.yaml:19:5: expected a map, found nothing");
    insta::assert_snapshot!(tagged("tags: { customer: 42 }"), @"tree.yaml:19:19: expected text, found the number 42: put it in quotes");
    insta::assert_snapshot!(tagged("tags: { customer: { id: a } }"), @"tree.yaml:19:19: expected text, found a map");
    insta::assert_snapshot!(tagged("tags: { customer: a, customer: b }"), @"tree.yaml:19:22: duplicate key `customer`: delete one of them");
    insta::assert_snapshot!(tagged("tags: { \" \": a }"), @"tree.yaml:19:14: a tag has no name: write one");
    insta::assert_snapshot!(tagged(&format!("tags: {{ a: {} }}", "x".repeat(257))), @"tree.yaml:19:12: `a` has 257 bytes, more than 256");
    insta::assert_snapshot!(tagged(&format!("tags: {{ {}: x }}", "a".repeat(65))), @"tree.yaml:19:76: the name of tag `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…` has 65 bytes, more than 64");
    let many: String = (0..33).map(|number| format!("a{number}: x, ")).collect();
    insta::assert_snapshot!(tagged(&format!("tags: {{ {many} }}")), @"tree.yaml:19:7: `tags` has 33 entries, more than 32");
}

/// A model with these keys, and a table that refuses a parameter.
fn model(keys: &str) -> String {
    struct Table;
    impl ModelCatalog for Table {
        fn price(&self, _: &str, model: &str) -> Result<Price, String> {
            Err(format!("no {model}"))
        }

        fn context(&self, _: &str, _: &str) -> Option<u64> {
            None
        }

        fn refused_param(&self, name: &str) -> Option<&'static str> {
            (name == "service_tier").then_some("service tiers have separate prices")
        }
    }
    let text = format!("name: n\nmodels:\n  m: {{ {keys} }}\nagents: {{ solo: {{ model: m }} }}\n");
    match TreeFile::parse_with("tree.yaml", &text, &Table) {
        Ok(_) => panic!("{text} was read"),
        Err(error) => error.to_string(),
    }
}

/// L32 (models): errors in a provider's model name the place, and do not repeat an API key that is in the file.
#[test]
fn l32_keys_of_a_providers_model_are_checked() {
    insta::assert_snapshot!(model("provider: openai"), @"tree.yaml:3:18: `model` of model `m` is missing: write the provider's name for it");
    insta::assert_snapshot!(model("provider: openai_compatible, model: m"), @"tree.yaml:3:18: `base_url` of model `m` is missing: write the address of the server, such as http://127.0.0.1:8000/v1");
    insta::assert_snapshot!(model("provider: scripted, script: s, params: { seed: 1 }"), @"tree.yaml:3:47: a scripted model has no `params`: delete it, or name another `provider`");
    insta::assert_snapshot!(model("provider: openai, model: m, key_env: sk-live-0123"), @"tree.yaml:3:45: this is not the name of an environment variable: keys do not belong in files: write a name such as MY_API_KEY, and set it in the shell");
    insta::assert_snapshot!(model("provider: openai, model: m, params: { service_tier: flex }"), @"tree.yaml:3:46: `service_tier` is refused: service tiers have separate prices");
    insta::assert_snapshot!(model("provider: openai, model: m, params: { temprature: 1 }"), @"tree.yaml:3:46: unknown key `temprature`: did you mean `temperature`?");
    insta::assert_snapshot!(model("provider: openai, model: m, params: { temperature: 3 }"), @"tree.yaml:3:59: 3 is out of bounds: write a number from 0 to 2");
    insta::assert_snapshot!(model("provider: openai, model: m, params: { top_p: 1.5 }"), @"tree.yaml:3:53: 1.5 is out of bounds: write a number from 0 to 1");
    insta::assert_snapshot!(model("provider: openai, model: m, params: { stop: [''] }"), @"tree.yaml:3:52: a text of `stop` is empty: write something");
    insta::assert_snapshot!(model("provider: openai, model: m, params: { thinking_budget: 0 }"), @"tree.yaml:3:63: `thinking_budget` of 0 is out of bounds: write a number from 1 to 1000000000000000");
    insta::assert_snapshot!(model("provider: anthropic, model: m, params: { thinking: adaptive, thinking_budget: 2000 }"), @"tree.yaml:3:59: `thinking: adaptive` has no `thinking_budget`: delete one of them");
    insta::assert_snapshot!(model("provider: anthropic, model: m, params: { cache: 4m }"), @"tree.yaml:3:56: `4m` is not a time for a cache: write off, 5m or 1h");
    insta::assert_snapshot!(model("provider: anthropic, model: m, params: { cache: 5 }"), @"tree.yaml:3:56: `5` is not a time for a cache: write off, 5m or 1h");
    insta::assert_snapshot!(model("provider: openai, model: m, params: { headers: { 'x y': TEAM } }"), @"tree.yaml:3:64: `x y` is not a valid header name: write letters, digits and dashes");
    insta::assert_snapshot!(model("provider: openai, model: m, params: { headers: { Authorization: TEAM } }"), @"tree.yaml:3:72: the header `Authorization` carries a secret: name the variable of the key as `key_env`");
    insta::assert_snapshot!(model("provider: openai, model: m, params: { headers: { x-team: trees } }"), @"tree.yaml:3:65: this is not the name of an environment variable: keys do not belong in files: write a name such as MY_API_KEY, and set it in the shell");
}

/// Every word of another system that we have under another name. The ones that name a key of ours are right about it.
#[test]
fn every_word_of_another_system_is_translated() {
    let words = [
        "max_cost_usd",
        "max_budget_usd",
        "max_retries_total",
        "max_steps_total",
        "max_tokens",
        "resource_budget",
        "timeout_ms",
        "timeout_s",
        "max_subagent_depth",
        "max_depth",
        "max_children",
        "max_output_size",
        "max_parallel_agents",
        "subagent_allowed_models",
        "default_tools",
        "system_prompt",
        "instructions",
        "trace_id",
        "chain_id",
        "thread_id",
        "model_max_tokens",
        "max_context_tokens",
        "shared_cw_max_tokens",
        "max_output_tokens",
        "run_single_turn",
        "run_task",
        "process_message",
        "master_agent",
        "task",
    ];
    let told = words.map(|word| edited("goal: Compare.", &format!("goal: Compare.\n{word}: 1")) + "\n");
    insta::assert_snapshot!(told.concat());
}

#[test]
fn a_file_beyond_a_bound_names_the_bound() {
    let deep = format!("name: {}x{}\n", "[".repeat(60), "]".repeat(60));
    let deep_json = format!("{{\"name\": {}1{}}}", "[".repeat(60), "]".repeat(60));
    let outputs: String = (0..1_025)
        .map(|n| format!("    - {{ agent_id: writer, task_description: x, output_to: v{n} }}\n"))
        .collect();
    let outputs = GOOD
        .replace("entry: lead", &format!("limits: {{ agents: 2000 }}\npipeline:\n  steps:\n{outputs}"))
        .replacen("limits: { depth: 3 }\n", "", 1);
    let low =
        edited("budget: { cost_usd: 0.50, timeout: 5m }", "budget: { cost_usd: 0.50, on_low: downgrade }");
    let told = [error(&deep), told_of("tree.json", &deep_json), error(&outputs), low];
    insta::assert_snapshot!(told.join("\n"));
}
