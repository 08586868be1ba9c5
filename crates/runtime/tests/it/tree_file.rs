//! A tree file is read whole: every key has its effect, in all three formats, and no text causes a panic.

use std::sync::Arc;

use proptest::prelude::*;
use spinney::tree_file::{
    CacheTime, FILE_BYTES_MAX, ModelCatalog, ModelParams, ModelProvider, ModelSource, ProviderSource,
    Thinking, TreeFile,
};
use spinney_kernel::budget::{Ceilings, Price, Resource};
use spinney_kernel::definition::{
    Allow, Approval, BudgetSpec, Caps, Definition, HostRequests, Lend, ModelSpec, Network, OnLost, OnLow,
    OutputLimits, OutputSchema, RateLimit, Recursion, Refusal, Repeats, Role, SharedAccess, TokenCounter,
    TreeLimits, Turns, Unpriced, ValueAccess, WrapUp,
};
use spinney_kernel::primitives::{Actor, Body, ByName, Durability, ModelName, Time, ToolName, TreeId};
use spinney_kernel::rules::decide;
use spinney_kernel::rules::request::{Request, Start};
use spinney_kernel::rules::{Input, InputKind};
use spinney_kernel::world::World;

use spinney_kernel::primitives::limit;

use crate::name;

/// Every key, one per line.
pub(crate) const EVERY_KEY: &str = "\
name: research
goal: Compare three frameworks.
thread: team/7
entry: lead
durability: full
unpriced: allow
tags: { customer: acme }
shared: { plan: { read: [lead, researcher], write: [lead] }, 'notes.*': { write: [] } }
budget:
  cost_usd: 0.50
  tokens: 200000
  steps: 60
  tool_calls: 40
  retries: 10
  timeout: 5m
  answer_reserve: 20%
  on_low: { downgrade: small }
  wrap_up: on
  repeats: { notice: 4, end: 8 }
limits:
  depth: 2
  children: 5
  agents: 50
  parallel: 4
  rate: { requests_per_min: 300 }
models:
  fast:
    provider: scripted
    script: research.script.yaml
    max_output: 4000
    cache_wait: 2500ms
    rate: { requests_per_min: 60, tokens_per_min: 90000 }
    fallback: [small]
    price:
      input_per_mtok_usd: 0.25
      output_per_mtok_usd: \"$1.25\"
      cached_input_per_mtok_usd: 0.000000001
      cache_write_per_mtok_usd: 0.3
  small:
    provider: scripted
    script: small.yaml
agents:
  lead:
    model: fast
    prompt: You coordinate researchers.
    tools: [spawn_agent, wait_agent]
    subagents: [researcher]
    subagent_models: [small]
    approvals: { spawn_agent: ask }
    recursive: true
    rate: { requests_per_min: 5 }
    output_schema: { type: array, maxItems: 3 }
    limits:
      max_steps: 8
      max_tokens_per_step: 500
      max_output_files: 3
      max_output_size_bytes: 5000
      timeout: 90s
      depth: 1
      children: 2
    budget:
      cost_usd: 0.10
      tokens: 1000
      steps: 3
      tool_calls: 2
      retries: 1
      lend: true
      answer_reserve: 0
      on_low: shrink
      timeout: { wall: 2m }
      wrap_up: off
      repeats: { end: 0 }
  researcher:
    model: small
";

pub(crate) const EVERY_KEY_JSON: &str = r#"{
  "name": "research", "goal": "Compare three frameworks.", "thread": "team/7", "entry": "lead",
  "durability": "full", "unpriced": "allow", "tags": { "customer": "acme" },
  "shared": { "plan": { "read": ["lead", "researcher"], "write": ["lead"] }, "notes.*": { "write": [] } },
  "budget": {
    "cost_usd": 0.50, "tokens": 200000, "steps": 60, "tool_calls": 40, "retries": 10, "timeout": "5m",
    "answer_reserve": "20%", "on_low": { "downgrade": "small" }, "wrap_up": "on",
    "repeats": { "notice": 4, "end": 8 }
  },
  "limits": { "depth": 2, "children": 5, "agents": 50, "parallel": 4, "rate": { "requests_per_min": 300 } },
  "models": {
    "fast": {
      "provider": "scripted", "script": "research.script.yaml", "max_output": 4000, "cache_wait": "2500ms", "fallback": ["small"],
      "rate": { "requests_per_min": 60, "tokens_per_min": 90000 },
      "price": {
        "input_per_mtok_usd": 0.25, "output_per_mtok_usd": "$1.25", "cached_input_per_mtok_usd": 1e-9,
        "cache_write_per_mtok_usd": 0.3
      }
    },
    "small": { "provider": "scripted", "script": "small.yaml" }
  },
  "agents": {
    "lead": {
      "model": "fast", "prompt": "You coordinate researchers.", "tools": ["spawn_agent", "wait_agent"],
      "subagents": ["researcher"], "subagent_models": ["small"],
      "approvals": { "spawn_agent": "ask" }, "recursive": true, "rate": { "requests_per_min": 5 }, "output_schema": { "type": "array", "maxItems": 3 },
      "limits": { "max_steps": 8, "max_tokens_per_step": 500, "timeout": 90, "depth": 1,
        "children": 2, "max_output_files": 3, "max_output_size_bytes": 5000 },
      "budget": {
        "cost_usd": 0.10, "tokens": 1000, "steps": 3, "tool_calls": 2, "retries": 1, "lend": true,
        "answer_reserve": 0, "on_low": "shrink", "timeout": { "wall": 120 }, "wrap_up": "off",
        "repeats": { "end": 0 }
      }
    },
    "researcher": { "model": "small" }
  }
}"#;

pub(crate) const EVERY_KEY_TOML: &str = r#"
name = "research"
goal = "Compare three frameworks."
thread = "team/7"
entry = "lead"
durability = "full"
unpriced = "allow"
tags.customer = "acme"
shared.plan = { read = ["lead", "researcher"], write = ["lead"] }
shared."notes.*" = { write = [] }
budget.cost_usd = 0.50
budget.tokens = 200_000
budget.steps = 60
budget.tool_calls = 40
budget.retries = 10
budget.timeout = "5m"
budget.answer_reserve = "20%"
budget.on_low.downgrade = "small"
budget.wrap_up = "on"
budget.repeats = { notice = 4, end = 8 }
limits = { depth = 2, children = 5, agents = 50, parallel = 4, rate = { requests_per_min = 300 } }

[models.fast]
provider = "scripted"
script = "research.script.yaml"
max_output = 4000
cache_wait = "2500ms"
rate = { requests_per_min = 60, tokens_per_min = 90_000 }
fallback = ["small"]

[models.fast.price]
input_per_mtok_usd = 0.25
output_per_mtok_usd = "$1.25"
cached_input_per_mtok_usd = 0.000000001
cache_write_per_mtok_usd = 0.3

[models.small]
provider = "scripted"
script = "small.yaml"

[agents.lead]
model = "fast"
prompt = "You coordinate researchers."
tools = ["spawn_agent", "wait_agent"]
subagents = ["researcher"]
subagent_models = ["small"]
approvals.spawn_agent = "ask"
recursive = true
rate.requests_per_min = 5
output_schema = '{ "type": "array", "maxItems": 3 }'
limits = { max_steps = 8, max_tokens_per_step = 500, timeout = "90s", depth = 1, children = 2, max_output_files = 3, max_output_size_bytes = 5000 }

[agents.lead.budget]
cost_usd = 0.10
tokens = 1000
steps = 3
tool_calls = 2
retries = 1
lend = true
timeout.wall = "2m"
answer_reserve = 0
on_low = "shrink"
wrap_up = "off"
repeats = { end = 0 }

[agents.researcher]
model = "small"
"#;

/// What all three files mean.
fn every_key() -> Definition {
    let price = Price {
        cached_input_per_mtok: Some(1),
        cache_write_per_mtok: Some(300_000_000),
        ..Price::flat(250_000_000, 1_250_000_000)
    };
    let fast = ModelSpec {
        price: Some(price),
        output_max: Some(4_000),
        fallback: vec![name("small")],
        cache_wait_ms: Some(2_500),
        rate: RateLimit { requests_per_min: Some(60), tokens_per_min: Some(90_000) },
        lost: OnLost::default(),
        context: None,
        losses_max: None,
        counter: TokenCounter::Exact,
    };
    Definition {
        is_kept: false,
        visibility: Default::default(),
        redact: Default::default(),
        name: "research".to_owned(),
        goal: "Compare three frameworks.".to_owned(),
        entry: name("lead"),
        thread: Some(name("team/7")),
        budget: BudgetSpec {
            limit: limits([500_000_000, 200_000, 60, 40, 10]),
            timeout_ms: Some(300_000),
            timeout_wall: false,
            lend: None,
            answer_reserve: Some(20),
            on_low: Some(OnLow::Downgrade(name("small"))),
            wrap_up: Some(WrapUp::On),
            repeats: Some(Repeats { notice: 4, end: 8 }),
        },
        limits: TreeLimits {
            depth_max: 2,
            children_max: 5,
            agents_max: 50,
            parallel_max: 4,
            rate: RateLimit { requests_per_min: Some(300), tokens_per_min: None },
        },
        models: [(name("fast"), fast), (name("small"), ModelSpec::default())].into_iter().collect(),
        roles: [(name("lead"), lead()), (name("researcher"), plain("small", 2))].into_iter().collect(),
        tools: ByName::default(),
        shared: SharedAccess::from_iter([
            (
                name("plan"),
                ValueAccess {
                    read: Some([name("lead"), name("researcher")].into()),
                    write: Some([name("lead")].into()),
                },
            ),
            (name("notes.*"), ValueAccess { read: None, write: Some([].into()) }),
        ]),
        unpriced: Unpriced::Allow,
        durability: Durability::Full,
        graph: None,
        inputs: Default::default(),
        command_tools: Default::default(),
        servers: Default::default(),
        folders: None,
        tags: Arc::new([("customer".to_owned(), "acme".to_owned())].into()),
    }
}

fn limits(amounts: [u64; 5]) -> Ceilings {
    Resource::ALL
        .into_iter()
        .zip(amounts)
        .fold(Ceilings::NONE, |limits, (resource, amount)| limits.with(resource, amount))
}

/// The lead of all three files.
fn lead() -> Role {
    Role {
        model: name("fast"),
        caps: Caps {
            models: Allow::All,
            below: Allow::only([name("small")]),
            tools: Allow::only([name("spawn_agent"), name("wait_agent")]),
            spawn: Allow::only([name("researcher")]),
            network: Network::Denied,
            host_requests: HostRequests::Refused,
            folders: None,
            depth_max: 1,
        },
        budget: BudgetSpec {
            limit: limits([100_000_000, 1_000, 3, 2, 1]),
            timeout_ms: Some(120_000),
            timeout_wall: true,
            lend: Some(Lend::Yes),
            answer_reserve: Some(0),
            on_low: Some(OnLow::Shrink),
            wrap_up: Some(WrapUp::Off),
            repeats: Some(Repeats { notice: 3, end: 0 }),
        },
        recursive: Recursion::Allowed,
        rate: RateLimit { requests_per_min: Some(5), tokens_per_min: None },
        program: None,
        turns: Some(Turns {
            prompt: Body::text("You coordinate researchers."),
            turns_max: 8,
            output_cap: Some(500),
            approvals: [(name("spawn_agent"), Approval::Ask)].into_iter().collect(),
            outputs: OutputLimits { files_max: 3, bytes_max: 5_000 },
            active_ms: Some(90_000),
            children_max: Some(2),
            output_schema: OutputSchema::read(r#"{"type":"array","maxItems":3}"#).ok().map(Box::new),
            ..Turns::default()
        }),
    }
}

/// A role with only its model written.
fn plain(model: &str, depth_max: u32) -> Role {
    Role {
        model: name(model),
        caps: Caps {
            models: Allow::All,
            below: Allow::All,
            tools: Allow::only([]),
            spawn: Allow::All,
            network: Network::Denied,
            host_requests: HostRequests::Refused,
            folders: None,
            depth_max,
        },
        budget: BudgetSpec::default(),
        recursive: Recursion::Refused,
        rate: RateLimit::NONE,
        program: None,
        turns: Some(Turns::default()),
    }
}

fn read(file: &str, text: &str) -> TreeFile {
    TreeFile::parse(file, text).unwrap_or_else(|error| panic!("{error}"))
}

/// Everything that a file defines.
#[derive(Debug, PartialEq)]
struct Said {
    definition: Definition,
    models: ByName<ModelName, ModelSource>,
}

fn said(text: &str) -> Option<Said> {
    let TreeFile { definition, models, .. } = TreeFile::parse("tree.yaml", text).ok()?;
    Some(Said { definition, models })
}

/// Starts the tree in the kernel.
/// Whether a tree starts.
pub(crate) fn started(definition: &Definition) -> Result<(), Refusal> {
    let mut world = World::new(TreeId::new([7; 16]));
    let request = Request::Start(Start::new(definition.clone()));
    let what = InputKind::Request { by: Actor::PERSON, request: Box::new(request) };
    decide(&mut world, &Input { now: Time(1_000), draw: 0, what }).map(|_| ())
}

#[test]
fn every_key_lands_in_the_definition() {
    for (file, text) in [
        ("tree.yaml", EVERY_KEY),
        ("tree.yml", EVERY_KEY),
        ("TREE.YAML", EVERY_KEY),
        ("dir.d/tree.json", EVERY_KEY_JSON),
        ("tree.toml", EVERY_KEY_TOML),
    ] {
        let tree = read(file, text);
        assert_eq!(tree.definition, every_key(), "{file}");
        assert_eq!(tree.definition.durability, Durability::Full, "{file}");
        let scripted = |script: &str| ModelSource::Scripted { script: script.to_owned() };
        let sources: Vec<_> =
            tree.models.iter().map(|(name, source)| (name.as_str(), source.clone())).collect();
        assert_eq!(
            sources,
            [("fast", scripted("research.script.yaml")), ("small", scripted("small.yaml"))],
            "{file}"
        );
        assert_eq!(started(&tree.definition), Ok(()), "{file}");
    }
}

/// A line whose removal changes nothing would be a key without effect.
#[test]
fn no_key_is_without_effect() {
    let whole = said(EVERY_KEY);
    assert!(whole.is_some());
    let lines: Vec<&str> = EVERY_KEY.lines().collect();
    let mut optional = 0;
    for without in 0..lines.len() {
        let kept = lines.iter().enumerate().filter(|(at, _)| *at != without).map(|(_, line)| *line);
        let rest = said(&kept.collect::<Vec<_>>().join("\n"));
        assert_ne!(rest, whole, "`{}` changes nothing", lines[without]);
        optional += usize::from(rest.is_some());
    }
    assert_eq!(optional, 53, "keys that may be left out");
}

/// The documentation shows a file that works and names every key.
#[test]
fn the_documentation_names_every_key() {
    let page = include_str!("../../../../docs/tree-file.md");
    let example = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(started(&read("tree.yaml", example).definition), Ok(()));
    let names = ["fast", "small", "lead", "researcher"];
    for line in EVERY_KEY.lines() {
        let key = line.trim_start().split(':').next().unwrap();
        assert!(names.contains(&key) || page.contains(&format!("| `{key}` |")), "`{key}` is not on the page");
    }
}

/// Knows two models.
struct Table;

impl ModelCatalog for Table {
    fn price(&self, provider: &str, model: &str) -> Result<Price, String> {
        match (provider, model) {
            ("acme", "pro/max") | ("gemini", "big") => Ok(Price::flat(1, 2)),
            _ => Err(format!("no {model} of {provider}")),
        }
    }

    fn context(&self, provider: &str, model: &str) -> Option<u64> {
        (provider == "gemini" && model == "big").then_some(1_000_000)
    }

    fn refused_param(&self, _: &str) -> Option<&'static str> {
        None
    }
}

/// L32 (models): every key of a provider's model reaches its driver, and only its price and size reach the definition,
/// which the journal stores.
#[test]
fn l32_keys_of_a_providers_model_reach_its_driver_and_not_the_journal() {
    let text = |keys: &str| format!("name: n\nmodels: {{m: {{{keys}}}}}\nagents: {{solo: {{model: m}}}}\n");
    let params = "{temperature: 0.5, top_p: 1, reasoning_effort: low, thinking_budget: 2000, cache: 1h, stop: [END], seed: -1, \
                  headers: {x-team: TEAM}}";
    let keys = "provider: gemini, model: big, base_url: 'https://models.example/v1', key_env: MY_KEY, script: s.yaml";
    let file =
        TreeFile::parse_with("tree.yaml", &text(&format!("{keys}, params: {params}")), &Table).unwrap();
    let number = |number: f64| serde_json::Number::from_f64(number);
    let expected = ProviderSource {
        provider: ModelProvider::Gemini,
        model: "big".to_owned(),
        base_url: Some("https://models.example/v1".to_owned()),
        key_env: Some("MY_KEY".to_owned()),
        params: ModelParams {
            temperature: number(0.5),
            top_p: Some(1.into()),
            reasoning_effort: Some("low".to_owned()),
            thinking: Some(Thinking::Budget(2_000)),
            cache: Some(CacheTime::Hour),
            stop: vec!["END".to_owned()],
            seed: Some(-1),
            headers: vec![("x-team".to_owned(), "TEAM".to_owned())],
        },
        script: Some("s.yaml".to_owned()),
    };
    assert_eq!(file.models.get(&name::<ModelName>("m")), Some(&ModelSource::Provider(Box::new(expected))));
    assert_eq!(file.definition.models.get(&name::<ModelName>("m")), Some(&ModelSpec::default()));
    // Without a cache there is nothing to wait for, unless the file says so.
    let waits = |keys: &str| {
        let keys = format!("provider: anthropic, model: m, {keys}");
        let file = TreeFile::parse_with("tree.yaml", &text(&keys), &Table).unwrap();
        file.definition.models.get(&name::<ModelName>("m")).unwrap().cache_wait_ms
    };
    assert_eq!(waits("params: {cache: off}"), Some(0));
    assert_eq!(waits("params: {cache: off}, cache_wait: 2s"), Some(2_000));
    assert_eq!((waits("params: {cache: 5m}"), waits("params: {cache: 1h}")), (None, None));
    // With the provider's own URL it has the table's price and size, unless the file sets them.
    let file = TreeFile::parse_with("tree.yaml", &text("provider: gemini, model: big"), &Table).unwrap();
    let known = file.definition.models.get(&name::<ModelName>("m")).unwrap();
    assert_eq!((&known.price, known.context), (&Some(Price::flat(1, 2)), Some(1_000_000)));
    let written = text(
        "provider: gemini, model: big, context: 9000, price: {input_per_mtok_usd: 0, output_per_mtok_usd: 0}",
    );
    let file = TreeFile::parse_with("tree.yaml", &written, &Table).unwrap();
    let known = file.definition.models.get(&name::<ModelName>("m")).unwrap();
    assert_eq!((&known.price, known.context), (&Some(Price::flat(0, 0)), Some(9_000)));
}

/// A file may name a model with the same price, and the reader of the file supplies the table.
#[test]
fn a_price_by_name_is_looked_up_in_the_table_that_the_caller_brings() {
    let text = |price: &str| {
        format!(
            "name: n\nmodels: {{m: {{provider: scripted, script: s.yaml, price: {price}}}}}\nagents: {{solo: {{model: m}}}}\n"
        )
    };
    let file = TreeFile::parse_with("tree.yaml", &text("acme/pro/max"), &Table).unwrap();
    assert_eq!(file.definition.price(&name("m")), Some(&Price::flat(1, 2)));
    let error = TreeFile::parse_with("tree.yaml", &text("acme/mini"), &Table).unwrap_err();
    assert!(error.to_string().starts_with("tree.yaml:2:57: no mini of acme: "), "{error}");
}

/// V19 (unpriced): a model without a price under a cost ceiling is refused before anything starts.
#[test]
fn v19_a_model_without_a_price_is_refused_where_cost_has_a_ceiling() {
    let checked = |tree: &str, agent: &str| {
        let text = format!(
            "name: n\n{tree}\nmodels:\n  free: {{provider: scripted, script: s.yaml}}\n  other: {{provider: scripted, script: s.yaml}}\n\
             agents: {{solo: {{model: free{agent}}}}}\n"
        );
        let file = read("tree.yaml", &text);
        file.check_prices(&file.definition).map_err(|error| error.to_string())
    };
    let refused = "tree.yaml:4:9: model `free` has no known price, but cost has a ceiling: give it a price, or set `unpriced: allow`";
    assert_eq!(checked("budget: {cost_usd: 1}", ""), Err(refused.to_owned()));
    assert_eq!(checked("durability: full", ", budget: {cost_usd: 1}"), Err(refused.to_owned()));
    assert_eq!(checked("budget: {tokens: 1000}", ""), Ok(()));
    assert_eq!(checked("budget: {cost_usd: 1}\nunpriced: allow", ""), Ok(()));
}

/// V19 (unpriced): the price of a model at a URL of its own is unknown, and the error has what can be written.
#[test]
fn v19_an_error_about_a_missing_price_has_one_that_can_be_written() {
    let checked = |name: &str, model: &str| {
        let text = match name {
            "tree.toml" => format!(
                "name = 'n'\nbudget = {{cost_usd = 1}}\nmodels.m = {{{model}}}\nagents.solo = {{model = 'm'}}\n"
            ),
            _ => format!(
                "name: n\nbudget: {{cost_usd: 1}}\nmodels:\n  m: {{{model}}}\nagents: {{solo: {{model: m}}}}\n"
            ),
        };
        let file = TreeFile::parse_with(name, &text, &Table).unwrap();
        file.check_prices(&file.definition).map_err(|error| error.to_string())
    };
    let yaml = |model: &str| checked("tree.yaml", model);
    let url = "base_url: 'https://proxy.example/v1'";
    insta::assert_snapshot!(yaml(&format!("provider: gemini, model: big, {url}")).unwrap_err(), @"tree.yaml:4:6: model `m` has no known price, but cost has a ceiling: write `price: gemini/big` if its server charges the same, otherwise `price: { input_per_mtok_usd: …, output_per_mtok_usd: … }`, or set `unpriced: allow`");
    insta::assert_snapshot!(yaml(&format!("provider: openai_compatible, model: acme/pro/max, {url}")).unwrap_err(), @"tree.yaml:4:6: model `m` has no known price, but cost has a ceiling: write `price: acme/pro/max` if its server charges the same, otherwise `price: { input_per_mtok_usd: …, output_per_mtok_usd: … }`, or set `unpriced: allow`");
    insta::assert_snapshot!(yaml(&format!("provider: openai_compatible, model: mine, {url}")).unwrap_err(), @"tree.yaml:4:6: model `m` has no known price, but cost has a ceiling: write `price: { input_per_mtok_usd: …, output_per_mtok_usd: … }`, or set `unpriced: allow`");
    insta::assert_snapshot!(checked("tree.toml", "provider = 'gemini', model = 'big', base_url = 'https://proxy.example/v1'").unwrap_err(), @r#"tree.toml:3:12: model `m` has no known price, but cost has a ceiling: write `price = "gemini/big"` if its server charges the same, otherwise `price = { input_per_mtok_usd = …, output_per_mtok_usd = … }`, or set `unpriced = "allow"`"#);
    assert_eq!(yaml(&format!("provider: gemini, model: big, {url}, price: gemini/big")), Ok(()));
    assert_eq!(
        yaml(&format!("provider: openai_compatible, model: acme/pro/max, {url}, price: acme/pro/max")),
        Ok(())
    );
}

#[test]
fn what_is_left_out_has_its_default() {
    let text = "name: small\nmodels: {m: {provider: scripted, script: s.yaml}}\nagents: {solo: {model: m}}\n";
    let tree = read("tree.yaml", text);
    let definition = Definition {
        is_kept: false,
        visibility: Default::default(),
        redact: Default::default(),
        name: "small".to_owned(),
        goal: String::new(),
        entry: name("solo"),
        thread: None,
        budget: BudgetSpec::default(),
        limits: TreeLimits::default(),
        models: [(name("m"), ModelSpec::default())].into_iter().collect(),
        roles: [(name("solo"), plain("m", limit::DEPTH_MAX))].into_iter().collect(),
        tools: ByName::default(),
        shared: Default::default(),
        unpriced: Unpriced::Refuse,
        durability: Durability::Normal,
        graph: None,
        inputs: Default::default(),
        command_tools: Default::default(),
        servers: Default::default(),
        folders: None,
        tags: Default::default(),
    };
    assert_eq!(tree.definition, definition);
    assert_eq!(tree.definition.durability, Durability::Normal);
    assert!(matches!(started(&tree.definition), Err(Refusal::TextEmpty { .. })), "a tree needs a goal");
    let tree = tree.with_goal("Say hello.");
    assert_eq!(tree.definition.goal, "Say hello.");
    assert_eq!(started(&tree.definition), Ok(()));
}

#[test]
fn an_empty_list_of_subagents_allows_none_and_no_list_allows_all() {
    let spawn = |list: &str| {
        let text = format!(
            "name: n\nmodels: {{m: {{provider: scripted, script: s}}}}\nagents: {{solo: {{model: m{list}}}}}\n"
        );
        read("tree.yaml", &text).definition.roles[0].caps.spawn.clone()
    };
    assert_eq!(spawn(""), Allow::All);
    assert_eq!(spawn(", subagents: []"), Allow::only([]));
    assert_eq!(spawn(", subagents: [solo]"), Allow::only([name("solo")]));
}

#[test]
fn aliases_and_merge_keys_repeat_what_was_written_once() {
    let text = "\
name: n
models: {m: {provider: scripted, script: s}}
agents:
  one: &one {model: m, prompt: Be brief., tools: [a]}
  two: *one
  three: {<<: *one, prompt: Be long.}
entry: one
";
    let roles = read("tree.yaml", text).definition.roles;
    assert_eq!(roles[0], roles[1]);
    assert_eq!(roles[2].caps, roles[0].caps);
    assert_eq!(roles[2].turns.clone().unwrap().prompt, Body::text("Be long."));
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_change_nothing() {
    let windows = |text: &str| format!("\u{feff}{}", text.replace('\n', "\r\n"));
    assert_eq!(read("tree.yaml", &windows(EVERY_KEY)).definition, every_key());
    assert_eq!(read("tree.json", &windows(EVERY_KEY_JSON)).definition, every_key());
    assert_eq!(read("tree.toml", &windows(EVERY_KEY_TOML)).definition, every_key());
}

#[test]
fn an_unknown_tool_is_reported_where_it_was_written() {
    let known: [ToolName; 2] = [name("spawn_agent"), name("wait_agents")];
    for (file, text, place) in [
        ("tree.yaml", EVERY_KEY, "46:26"),
        ("tree.json", EVERY_KEY_JSON, "24:90"),
        ("tree.toml", EVERY_KEY_TOML, "44:25"),
    ] {
        let tree = read(file, text);
        let mentions: Vec<_> = tree.tools().map(|(role, tool)| format!("{role} {tool}")).collect();
        assert_eq!(mentions, ["lead spawn_agent", "lead wait_agent", "lead spawn_agent"]);
        let unknown = tree.tools().find(|(_, tool)| !known.contains(tool)).unwrap();
        let error = tree.unknown_tool(unknown.0, unknown.1, &known);
        assert_eq!(
            error.to_string(),
            format!("{file}:{place}: unknown tool `wait_agent`: did you mean `wait_agents`?")
        );
        let error = tree.unknown_tool(unknown.0, unknown.1, &[]);
        assert_eq!(
            error.to_string(),
            format!("{file}:{place}: unknown tool `wait_agent`: there are no tools")
        );
    }
}

#[test]
fn a_bad_script_is_reported_where_it_was_written() {
    let error = read("tree.yaml", EVERY_KEY).bad_model(&name("small"), "script", "no such file `small.yaml`");
    assert_eq!(error.to_string(), "tree.yaml:41:13: no such file `small.yaml`");
}

#[test]
fn a_file_has_a_largest_size() {
    let padded = |bytes: usize| format!("{EVERY_KEY}#{}", "x".repeat(bytes - EVERY_KEY.len() - 1));
    assert_eq!(read("tree.yaml", &padded(FILE_BYTES_MAX)).definition, every_key());
    let error = TreeFile::parse("tree.yaml", &padded(FILE_BYTES_MAX + 1)).unwrap_err();
    assert_eq!(error.to_string(), "tree.yaml:1:1: the file has 16777217 bytes, more than 16777216");
}

/// Aliases of aliases of aliases: a few hundred bytes that would expand to a billion values.
#[test]
fn an_alias_bomb_is_refused_before_it_grows() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let below = format!("*a{}", level - 1);
        bomb += &format!("a{level}: &a{level} [{}]\n", [below.as_str(); 9].join(", "));
    }
    let error = TreeFile::parse("tree.yaml", &bomb).unwrap_err();
    assert_eq!(error.message, "more than 1000000 values, 48 levels or 1000 aliases");
    let merges = format!("base: &base {{k: 1}}\nall: [{}]\n", ["{<<: *base}"; 2_000].join(", "));
    let error = TreeFile::parse("tree.yaml", &merges).unwrap_err();
    assert_eq!(error.message, "more than 1000000 values, 48 levels or 1000 aliases");
}

#[test]
fn too_many_values_are_refused_in_every_format() {
    let ones = ["1"; 1_060_000].join(",");
    for (file, text) in [
        ("tree.yaml", format!("name: [{ones}]")),
        ("tree.json", format!("{{\"name\": [{ones}]}}")),
        ("tree.toml", format!("name = [{ones}]")),
    ] {
        let error = TreeFile::parse(file, &text).unwrap_err();
        assert!(error.message.starts_with("more than 1000000 values"), "{error}");
    }
}

#[test]
fn deep_nesting_is_refused_in_every_format() {
    for levels in [60, 200, 100_000] {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        for (file, text) in [
            ("tree.yaml", format!("name: {open}{close}")),
            ("tree.yaml", format!("name: {}", "{a: ".repeat(levels))),
            ("tree.yaml", "- ".repeat(levels)),
            ("tree.json", format!("{{\"name\": {open}{close}}}")),
            ("tree.json", "{\"a\":".repeat(levels)),
            ("tree.toml", format!("name = {open}{close}")),
            ("tree.toml", format!("{} = 1", vec!["a"; levels].join("."))),
            ("tree.toml", "a = {".repeat(levels)),
        ] {
            assert!(TreeFile::parse(file, &text).is_err(), "{file} {levels}");
        }
    }
}

/// One long line with a value every other byte must not take quadratic time.
#[test]
fn a_file_of_one_long_line_is_read_in_no_time() {
    let zeros = ["0"; 49_000].join(",");
    let padding = " ".repeat(FILE_BYTES_MAX - zeros.len() - 100);
    let text = format!("{{{padding}\"name\": [{zeros}]}}");
    let error = TreeFile::parse("tree.json", &text).unwrap_err();
    assert_eq!(error.column, padding.len() + 10);
    assert_eq!(error.message, "expected text, found a list");
}

/// What a mutation inserts into a file.
pub(crate) fn splinter() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[\\x00-\\x7f]{1,3}",
        "\\PC{1,3}",
        proptest::sample::select(vec![
            "&a ", "*a", "<<: ", "? ", "- ", "---\n", "\t", "|\n", ">\n", "!!str ", "{", "}", "[", "]", "\"",
            "'", "\\u", "null", "~", ".nan", "1e999", "-1", "# ", "[[", "= ", ": ", "\n", "\u{feff}",
        ])
        .prop_map(str::to_owned),
    ]
}

#[test]
fn a_model_says_how_many_deaths_of_the_process_one_call_survives() {
    let tree = |most: &str| {
        let model = format!("{{ provider: scripted, script: a.yaml, attempts_lost_max: {most} }}");
        TreeFile::parse(
            "tree.yaml",
            &format!("name: t\ngoal: Go.\nmodels: {{ m: {model} }}\nagents: {{ a: {{ model: m }} }}\n"),
        )
    };
    let losses = |most| tree(most).unwrap().definition.models["m"].losses_max;
    assert_eq!((losses("0"), losses("3"), losses("1000")), (Some(0), Some(3), Some(1_000)));
    let refused = tree("1001").unwrap_err().to_string();
    assert!(refused.contains("1001"), "{refused}");
}

/// The limits that seed 001 describes have a name, which stands for exactly these keys.
#[test]
fn the_limits_of_seed_001_have_a_name() {
    let roles = |limits: &str| {
        let text = format!(
            "name: t\ngoal: Go.\nmodels: {{ m: {{ provider: scripted, script: s.yaml }} }}\nagents: {{ lead: {{ model: m, limits: {limits} }} }}\n"
        );
        TreeFile::parse("tree.yaml", &text).map(|file| file.definition.roles)
    };
    let keys =
        "{ max_steps: 20, max_tokens_per_step: 2000, max_output_files: 10, max_output_size_bytes: 1000000 }";
    assert_eq!(roles("seed-001").unwrap(), roles(keys).unwrap());
    assert_ne!(roles("seed-001").unwrap(), roles("{}").unwrap());
    assert!(roles("seed-002").unwrap_err().to_string().contains("the limits of an agent, or `seed-001`"));
}
