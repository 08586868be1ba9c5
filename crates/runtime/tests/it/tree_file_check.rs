//! All problems of a tree file at once, what only a whole file shows, and the most that a tree can spend.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use spinney::prelude::*;
use spinney::tree_file::{ERRORS_MAX, NoCatalog, SpendBound, WorstCase};
use spinney::{FirstCall, FunctionModel};
use spinney_kernel::budget::{Resource, Usage, Used};
use spinney_kernel::port::model::{AttemptError, ModelAnswer};
use spinney_kernel::primitives::{Fault, FaultKind, Time};
use spinney_kernel::record::ToolAsk;
use spinney_testkit::settled;

use crate::tree_file::{EVERY_KEY, EVERY_KEY_JSON, EVERY_KEY_TOML, splinter, started};

/// The errors of a text, one on each line.
fn errors(text: &str) -> String {
    match TreeFile::parse_whole("tree.yaml", text, &NoCatalog) {
        Ok(_) => "no errors".to_owned(),
        Err(errors) => errors.to_string(),
    }
}

/// What a file without errors is warned of.
fn warnings(text: &str) -> String {
    let file = TreeFile::parse_whole("tree.yaml", text, &NoCatalog).unwrap();
    let problems = file.check(&file.definition);
    let lines = problems.iter().map(|problem| format!("{}: {}", problem.severity.as_str(), problem.what));
    lines.collect::<Vec<_>>().join("\n")
}

const BROKEN: &str = "\
name: 7
goal: ''
buget: { cost_usd: 1 }
budget: { cost_usd: lots, tokens: 5.5, steps: 3 }
limits: { depth: 1000000, childs: 3 }
models:
  fast: { provider: scripted, script: 5 }
  slow: { provider: openai, params: { temperature: 9, top_p: 2 } }
  none: { context: 8000 }
agents:
  lead:
    model: fsat
    tools: spawn_agent
    subagents: [writer, reader]
    limits: { max_steps: 0 }
  writer:
    prompt: You write.
    window: { size: 1 }
  tree: { model: none, budget: { on_low: { downgrade: slw } } }
entry: leed
";

/// G18 (errors): everything that is wrong is reported at once, each with its place and a remedy, and nothing that only
/// follows from another error.
#[test]
fn g18_every_error_of_a_file_is_reported_at_once() {
    insta::assert_snapshot!(errors(BROKEN));
}

#[test]
fn an_error_that_only_follows_from_another_is_not_reported() {
    // `model` is wrong, so `lead` has none; `fast` is wrong, so no agent can use it; `name` is wrong and not missing.
    let text = "\
name: [a]
models: { fast: { provider: 3 } }
agents: { lead: { model: 4 }, helper: { model: fast } }
entry: lead
";
    insta::assert_snapshot!(errors(text), @r"
    tree.yaml:1:7: expected text, found a list
    tree.yaml:2:29: expected text, found the number 3: put it in quotes
    tree.yaml:3:26: expected text, found the number 4: put it in quotes
    ");
    insta::assert_snapshot!(errors("goal: Go.\n"), @r"
    tree.yaml:1:1: `agents` is missing: write `agents: …`
    tree.yaml:1:1: `models` is missing: write `models: …`
    tree.yaml:1:1: `name` is missing: write `name: …`
    ");
}

#[test]
fn a_file_with_more_errors_than_anybody_reads_is_read_in_no_time() {
    let mut text = "name: t\nmodels: { m: { provider: scripted, script: s.yaml } }\nagents:\n".to_owned();
    for at in 0..3_000 {
        let _ = writeln!(text, "  a{at}: {{ model: m, wrong{at}: 1, tools: 5 }}");
    }
    let found = TreeFile::parse_whole("tree.yaml", &text, &NoCatalog).unwrap_err();
    assert_eq!(found.errors.len(), ERRORS_MAX);
}

/// A key that is there twice hides nothing else.
#[test]
fn a_doubled_key_does_not_end_the_reading() {
    let text = "\
name: t
models: { m: { provider: scripted, script: s.yaml, script: t.yaml } }
agents: { a: { model: n } }
";
    insta::assert_snapshot!(errors(text), @r"
    tree.yaml:2:52: duplicate key `script`: delete one of them
    tree.yaml:3:23: unknown model `n`: known models: m
    ");
}

/// What has a name that cannot be used is read anyway, and its errors have their own places.
#[test]
fn a_bad_name_does_not_hide_the_errors_of_what_it_names() {
    let text = "\
name: t
models:
  big model: { provider: scripted, script: 5 }
  m: { provider: scripted, script: s.yaml }
agents:
  Lead Writer!:
    model: n
    promt: Write.
    limits: { max_steps: 0 }
  lead-writer: { model: m, tools: 5 }
  Helper: { model: m }
  '...': { model: m, budget: { tokens: -1 } }
  Person: { model: m }
entry: helper
";
    insta::assert_snapshot!(errors(text), @r"
    tree.yaml:3:3: `big model` is not a valid model name: 1 to 128 characters of A-Z, a-z, 0-9 and `._:/-`, the first a letter or digit
    tree.yaml:3:44: expected text, found the number 5: put it in quotes
    tree.yaml:6:3: `Lead Writer!` is not a valid role: 1 to 48 characters of a-z, 0-9, `_` and `-`, the first a letter or digit
    tree.yaml:7:12: unknown model `n`: known models: big-model, m
    tree.yaml:8:5: unknown key `promt`: did you mean `prompt`?
    tree.yaml:9:26: `max_steps` of 0 is out of bounds: write a number from 1 to 1000000
    tree.yaml:10:35: expected a list, found the number 5
    tree.yaml:11:3: `Helper` is not a valid role: 1 to 48 characters of a-z, 0-9, `_` and `-`, the first a letter or digit
    tree.yaml:12:3: `...` is not a valid role: 1 to 48 characters of a-z, 0-9, `_` and `-`, the first a letter or digit
    tree.yaml:12:40: `-1` is not a count: write a whole number from 0 to 1000000000000000, without quotes
    tree.yaml:13:3: `Person` is not a valid role: 1 to 48 characters of a-z, 0-9, `_` and `-`, the first a letter or digit
    ");
}

/// An alias repeats its errors; each is reported where it was written, once.
#[test]
fn an_error_behind_an_alias_is_reported_once() {
    let text = "\
name: t
models: { m: { provider: scripted, script: s.yaml } }
agents:
  a: &agent { model: m, tols: [] }
  b: *agent
entry: a
";
    insta::assert_snapshot!(errors(text), @"tree.yaml:4:25: unknown key `tols`: did you mean `tools`?");
}

const TEAM: &str = "\
name: team
goal: Go.
budget: { cost_usd: 1 }
limits: { depth: 1 }
models:
  fast: { provider: scripted, script: s.yaml, fallback: [spare], price: { input_per_mtok_usd: 1, output_per_mtok_usd: 2 } }
  big: { provider: scripted, script: s.yaml, price: { input_per_mtok_usd: 1, output_per_mtok_usd: 2 } }
  spare: { provider: scripted, script: s.yaml }
agents:
  lead: { model: fast, tools: [spawn_agent], subagents: [writer, thinker, reader], subagent_models: [fast] }
  writer: { model: fast, tools: [write_file] }
  thinker: { model: big }
  reader: { model: fast, tools: [], subagents: [deep] }
  deep: { model: fast }
  nobody: { model: fast }
entry: lead
";

/// G18 (warnings): what only shows at run time otherwise.
#[test]
fn g18_what_can_never_happen_is_a_warning_with_the_reason() {
    insta::assert_snapshot!(warnings(TEAM));
}

#[test]
fn roles_below_the_depth_limit_and_roles_without_a_spawner_can_never_start() {
    let team = |depth: &str, tools: &str| {
        format!(
            "name: t\ngoal: Go.\nlimits: {{ depth: {depth} }}\nmodels: {{ m: {{ provider: scripted, script: s.yaml }} }}\n\
             agents:\n  a: {{ model: m, tools: [{tools}] }}\n  b: {{ model: m }}\nentry: a\n"
        )
    };
    assert_eq!(warnings(&team("1", "spawn_agent")), "");
    insta::assert_snapshot!(warnings(&team("0", "spawn_agent")), @"warning: tree.yaml:7:3: `b` can never be started: `a` is at the depth limit of 0: raise `limits.depth`");
    insta::assert_snapshot!(warnings(&team("1", "")), @"warning: tree.yaml:7:3: `b` can never be started: no agent may spawn it: give the tool `spawn_agent` to `a`, or delete `b`");
}

/// Every model that agents use under a ceiling needs a price; all of them are named.
#[test]
fn every_model_without_a_price_under_a_ceiling_is_an_error() {
    let text = "\
name: t
goal: Go.
budget: { cost_usd: 1 }
models: { a: { provider: scripted, script: s.yaml }, b: { provider: scripted, script: s.yaml } }
agents: { x: { model: a, tools: [spawn_agent] }, y: { model: b }, z: { model: a } }
entry: x
";
    insta::assert_snapshot!(warnings(text), @r"
    error: tree.yaml:4:14: model `a` has no known price, but cost has a ceiling: give it a price, or set `unpriced: allow`
    error: tree.yaml:4:57: model `b` has no known price, but cost has a ceiling: give it a price, or set `unpriced: allow`
    ");
    assert_eq!(warnings(&text.replace("goal:", "unpriced: allow\ngoal:")), "");
}

fn worst(budget: &str, price: &str) -> WorstCase {
    let text = format!(
        "name: t\ngoal: Go.\nbudget: {{ {budget} }}\nunpriced: allow\n\
         models: {{ m: {{ provider: scripted, script: s.yaml, context: 10000, {price} }} }}\nagents: {{ a: {{ model: m }} }}\n"
    );
    WorstCase::new(&TreeFile::parse("tree.yaml", &text).unwrap().definition, Time(0))
}

#[test]
fn the_worst_case_is_the_smallest_of_what_the_ceilings_allow() {
    let price = "price: { input_per_mtok_usd: 1, output_per_mtok_usd: 4 }";
    let bounds = |budget, price| {
        let worst = worst(budget, price);
        (worst.cost, worst.tokens)
    };
    let ceiling = SpendBound::Ceiling;
    assert_eq!(bounds("steps: 5", price), (SpendBound::None, SpendBound::None));
    assert_eq!(bounds("cost_usd: 1", price), (ceiling(1_000_000_000), SpendBound::AtRate(1_000_000)));
    assert_eq!(bounds("tokens: 1000", price), (SpendBound::AtRate(4_000_000), ceiling(1_000)));
    assert_eq!(bounds("cost_usd: 1, tokens: 1000", price), (SpendBound::AtRate(4_000_000), ceiling(1_000)));
    assert_eq!(bounds("cost_usd: 0.001, tokens: 1000", price), (ceiling(1_000_000), ceiling(1_000)));
    // A model that counts as free has no part in the cost, and no part in how many tokens the money buys.
    assert_eq!(bounds("tokens: 1000", ""), (SpendBound::AtRate(0), ceiling(1_000)));
    assert_eq!(bounds("cost_usd: 1", ""), (ceiling(1_000_000_000), SpendBound::None));
    let call = &worst("cost_usd: 1", price).calls[0];
    assert_eq!((call.input, call.output), (Some(8_500), 2_500));
    assert_eq!(call.cost, Some(8_500 * 1_000 + 2_500 * 4_000));
}

pub(crate) fn pick<'a, T: ?Sized>(seed: &mut u64, of: &[&'a T]) -> &'a T {
    of[draw(seed, of.len() as u64) as usize]
}

/// A number below `end`.
pub(crate) fn draw(seed: &mut u64, end: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % end
}

fn random_file(seed: &mut u64) -> String {
    let budget = [
        pick(seed, &["", "cost_usd: 0.002, ", "cost_usd: 0.02, ", "cost_usd: 0, "]),
        pick(seed, &["", "tokens: 900, ", "tokens: 9000, "]),
        pick(seed, &["", "steps: 4, "]),
        pick(seed, &["", "on_low: shrink, ", "on_low: { downgrade: b }, ", "wrap_up: off, "]),
    ]
    .concat();
    let price = |seed: &mut u64| {
        let input = pick(seed, &["0.25", "0.000001", "3.3333333", "0"]);
        let output = pick(seed, &["1.25", "0.0000015", "15"]);
        let cached = pick(seed, &["", ", cached_input_per_mtok_usd: 0.1, cache_write_per_mtok_usd: 5"]);
        format!("price: {{ input_per_mtok_usd: {input}, output_per_mtok_usd: {output}{cached} }}")
    };
    let (first, second) = (price(seed), price(seed));
    let own = pick(seed, &["", ", budget: { cost_usd: 0.001 }", ", budget: { tokens: 700, lend: true }"]);
    let cap = pick(seed, &["50", "300", "1500"]);
    format!(
        "name: t\ngoal: Go.\nbudget: {{ {budget} }}\nlimits: {{ depth: 2, agents: 12 }}\nmodels:\n  \
         a: {{ provider: scripted, script: s.yaml, fallback: [b], {first} }}\n  \
         b: {{ provider: scripted, script: s.yaml, {second} }}\nagents:\n  \
         lead: {{ model: a, tools: [spawn_agent], limits: {{ max_steps: 5, max_tokens_per_step: {cap} }} }}\n  \
         helper: {{ model: b, tools: [spawn_agent], limits: {{ max_steps: 3, max_tokens_per_step: {cap} }}{own} }}\n  \
         other: {{ model: a, limits: {{ max_steps: 2 }} }}\nentry: lead\n"
    )
}

/// Answers, fails and spawns by chance, and bills within what was held.
pub(crate) fn random_model(seed: u64) -> FunctionModel {
    let calls = Arc::new(AtomicU64::new(seed));
    FunctionModel::new(move |attempt| {
        let mut seed = calls.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let (input, cap) = (attempt.packet.tokens, attempt.output_cap);
        let cached = draw(&mut seed, input + 1);
        let output = draw(&mut seed, cap + 1);
        let written = draw(&mut seed, input - cached + 1);
        let usage = Usage {
            input: input - cached - written,
            cached_input: cached,
            cache_write: written,
            output,
            ..Usage::default()
        };
        let used = if draw(&mut seed, 5) == 0 { Used::Unknown } else { Used::Tokens(usage) };
        let role = pick(&mut seed, &["helper", "other"]);
        let goal = draw(&mut seed, 1_000);
        let args = format!("{{\"agent\":\"{role}\",\"goal\":\"part {goal}\"}}");
        let asks = match draw(&mut seed, 3) {
            0 => vec![ToolAsk::new("1", "spawn_agent", args.clone()), ToolAsk::new("2", "spawn_agent", args)],
            1 => vec![ToolAsk::new("1", "spawn_agent", args)],
            _ => Vec::new(),
        };
        let fails = draw(&mut seed, 6) == 0;
        async move {
            if fails {
                return Err(AttemptError { fault: Fault::new(FaultKind::Server), used });
            }
            Ok(ModelAnswer::text("Here.").with_asks(asks).with_used(used))
        }
    })
}

/// G18 (cost): over 1,000 random files, no run spends more than the worst case that was computed before it.
#[tokio::test(start_paused = true)]
async fn g18_the_worst_case_is_never_below_what_a_run_of_the_file_spent() {
    let mut bounded = 0;
    for case in 0..1_000_u64 {
        let mut seed = case.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(99);
        let text = random_file(&mut seed);
        let file = TreeFile::parse("tree.yaml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let worst = WorstCase::new(&file.definition, Time(0));
        let drivers = Drivers::new()
            .with_model("a".parse().unwrap(), Arc::new(random_model(case)))
            .with_model("b".parse().unwrap(), Arc::new(random_model(case + 7)));
        let home = Home::open(Arc::new(MemoryJournal::new()), drivers);
        let tree = home.start(file.definition).await.unwrap();
        let snapshot = settled(&tree).await;
        let spent = snapshot.agents[0].spent;
        for (bound, resource) in [(&worst.cost, Resource::Cost), (&worst.tokens, Resource::Tokens)] {
            if let Some(most) = bound.most() {
                bounded += 1;
                assert!(spent.get(resource) <= most, "case {case}: {spent:?} is above {worst:?}\n{text}");
            }
        }
    }
    assert!(bounded > 800, "{bounded} bounds are too few to mean anything");
}

/// The first call is decided as a run would decide it, and nothing is kept of it.
#[test]
fn a_root_that_cannot_pay_its_first_call_is_known_before_it_starts() {
    let first = |budget: &str| {
        let text = format!(
            "name: t\ngoal: Go.\nbudget: {{ {budget} }}\nmodels: {{ m: {{ provider: scripted, script: s.yaml, \
             price: {{ input_per_mtok_usd: 1, output_per_mtok_usd: 1 }} }} }}\nagents: {{ a: {{ model: m }} }}\n"
        );
        let definition = TreeFile::parse("tree.yaml", &text).unwrap().definition;
        let model = FunctionModel::new(|_| async { Ok(ModelAnswer::text("never called")) });
        let drivers = Drivers::new().with_model("m".parse().unwrap(), Arc::new(model));
        drivers.first_call(definition, Time(0)).unwrap()
    };
    assert!(matches!(first("cost_usd: 1"), FirstCall::Fits { output_cap: 16_000, .. }));
    assert!(matches!(first("tokens: 1000"), FirstCall::OnlyLast));
    let FirstCall::Never(short) = first("tokens: 100") else { panic!("it cannot fit") };
    assert_eq!((short.resource, short.limit), (Resource::Tokens, 100));
}

proptest! {
    /// Whatever a file holds, reading all of it ends, agrees with reading it up to the first error, and what is read can
    /// be checked and starts. An error has a place in the file and fits on a line.
    #[test]
    fn no_mutated_file_breaks_reading_or_checking(
        format in 0_usize..3,
        cuts in proptest::collection::vec((any::<proptest::sample::Index>(), 0_usize..12, splinter()), 1..6),
    ) {
        let files = [("t.yaml", EVERY_KEY), ("t.json", EVERY_KEY_JSON), ("t.toml", EVERY_KEY_TOML)];
        let (file, text) = files[format];
        let mut chars: Vec<char> = text.chars().collect();
        for (at, cut, put) in cuts {
            let at = at.index(chars.len() + 1);
            let end = (at + cut).min(chars.len());
            chars.splice(at..end, put.chars());
        }
        let text: String = chars.into_iter().collect();
        let first = TreeFile::parse(file, &text);
        match TreeFile::parse_whole(file, &text, &NoCatalog) {
            Ok(tree) => {
                prop_assert!(first.is_ok());
                let problems = tree.check(&tree.definition);
                prop_assert!(problems.iter().all(|problem| problem.what.line >= 1));
                prop_assert_eq!(started(&tree.clone().with_goal("g").definition), Ok(()));
                let _ = WorstCase::new(&tree.definition, Time(0));
                let _ = tree.with_inputs(&[], &|_| None);
            }
            Err(errors) => {
                let first = first.unwrap_err();
                prop_assert!(errors.errors.contains(&first), "{first} is not among {errors}");
                let lines = text.split('\n').count();
                prop_assert!((1..=lines + 1).contains(&first.line), "{}", first);
                prop_assert!(first.column >= 1 && !first.message.is_empty(), "{}", first);
                prop_assert!(!first.to_string().contains('\n'), "{}", first);
            }
        }
    }

    #[test]
    fn no_bytes_at_all_make_a_check_panic(format in 0_usize..3, bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let text = String::from_utf8_lossy(&bytes);
        let _ = TreeFile::parse_whole(["t.yaml", "t.json", "t.toml"][format], &text, &NoCatalog);
    }
}

/// Files that are too large, or grow when they are read, are refused at once.
#[test]
fn large_files_and_alias_bombs_are_refused() {
    let large = format!("name: {}", "x".repeat(10 * 1024 * 1024));
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for at in 1..12 {
        let before = format!("*a{}", at - 1);
        let _ = writeln!(bomb, "a{at}: &a{at} [{}]", vec![before; 9].join(", "));
    }
    for text in [large, bomb] {
        assert!(TreeFile::parse_whole("t.yaml", &text, &NoCatalog).is_err());
    }
}

/// G18 (errors): those of rates, shared values and the pipeline are among all others, each with its place.
#[test]
fn g18_errors_of_rates_shared_values_and_pipelines_are_reported_with_all_others() {
    let text = "\
name: t
limits: { rate: { requests_per_min: 0 }, agents: 3 }
inputs: { goal: {}, docs: { type: json, default: [1] } }
models:
  m: { provider: scripted, script: s.yaml, rate: { tokens_per_min: 0 } }
  n: { provider: anthropic, model: x, params: { cache: 2h } }
agents:
  writer: { model: m, rate: { requests_per_min: 0, tokens_per_min: 0 } }
  critic: { model: mm }
shared: { plan: { read: [wrter], write: [critc] } }
pipeline:
  moed: sequential
  steps:
    - { id: a, agent_id: writr, task_description: '{{ docs }} {{ other }}' }
    - { id: b, agent_id: writer, task_description: x, input_from: [y], output_to: x }
    - { id: c, agent_id: critic, task_description: x, input_from: [x], output_to: y }
    - loop: { agent_id: critic, task_description: x }
      until: y ==
      max_rounds: 5000
";
    insta::assert_snapshot!(errors(text));
    let names = text.replace("moed", "mode").replace("writr", "writer").replace("{{ other }}", "");
    let late = "\
name: t
limits: { agents: 2 }
models: { m: { provider: scripted, script: s.yaml } }
agents: { writer: { model: m } }
pipeline:
  steps:
    - { agent_id: writer, task_description: x, output_schema: { type: 5 } }
    - { agent_id: writer, task_description: x, budget: { on_low: { downgrade: mm } } }
";
    insta::assert_snapshot!("g18_what_only_the_file_knows_of_a_pipeline", errors(late));
    assert!(!errors(&names).contains("unknown agent `writr`"));
    let open = PIPELINE.replace("budget: { cost_usd: 0.01 }", "budget: { cost_usd: }");
    insta::assert_snapshot!("g18_a_ceiling_of_a_step_without_a_value", errors(&open));
    assert!(errors("name: t\npipeline:\nmodels: { m: { provider: scripted, script: s } }\nagents: { a: { model: m }, b: { model: m } }\n").contains("the value is missing"));
}

const PIPELINE: &str = "\
name: t
goal: Go.
inputs: { docs: { type: json, default: [a, b] } }
models:
  m: { provider: scripted, script: s.yaml, context: 1000, max_output: 100, price: { input_per_mtok_usd: 1, output_per_mtok_usd: 1 } }
agents:
  writer: { model: m, budget: { cost_usd: 0.10 } }
  critic: { model: m, limits: { max_steps: 2 } }
pipeline:
  steps:
    - { id: list, agent_id: writer, task_description: x, output_to: found, retry: 1 }
    - loop:
        - { id: judge, agent_id: critic, task_description: x, output_to: verdict, budget: { cost_usd: 0.01 }, retry: 2 }
      id: rounds
      until: verdict == 'ok'
      max_rounds: 3
    - { map: { id: each, agent_id: writer, task_description: x }, over: docs, id: known }
    - { vote: { id: ballot, agent_id: writer, task_description: x }, voters: 3 }
    - { choose: { a: { id: cheap, agent_id: critic, task_description: x, budget: { cost_usd: 0.01 } }, b: { id: dear, agent_id: writer, task_description: x } }, on: verdict }
";

/// A step with its runs and what they cost.
type BoundStep = (String, u64, Option<u64>);

fn bound(text: &str) -> (Vec<BoundStep>, Option<u64>, SpendBound) {
    let file = TreeFile::parse("tree.yaml", text).unwrap_or_else(|error| panic!("{error}"));
    let file = file.with_inputs(&[], &|_| None).unwrap();
    let worst = WorstCase::new(&file.definition, Time(0));
    let pipeline = worst.pipeline.unwrap();
    let steps = pipeline.steps.iter().map(|step| (step.id.to_string(), step.runs, step.cost()));
    (steps.collect(), pipeline.cost, worst.cost)
}

/// G18 (worst case): rounds, items, voters and retries multiply, and one case of a choice counts.
#[test]
fn g18_the_steps_of_a_pipeline_have_a_worst_case() {
    const CENT: u64 = 10_000_000;
    let (steps, all, cost) = bound(PIPELINE);
    let expected = [
        ("list", 2, 20 * CENT),
        ("judge", 9, 9 * CENT),
        ("each", 2, 20 * CENT),
        ("ballot", 3, 30 * CENT),
        ("cheap", 1, CENT),
        ("dear", 1, 10 * CENT),
    ];
    let mut steps: Vec<(&str, u64, u64)> =
        steps.iter().map(|(id, runs, cost)| (id.as_str(), *runs, cost.unwrap())).collect();
    steps.sort_unstable();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(steps, expected);
    let sum = (20 + 9 + 20 + 30 + 10) * CENT;
    assert_eq!((all, cost), (Some(sum), SpendBound::Steps(sum)));
    // A tighter ceiling of the tree counts.
    let tight = PIPELINE.replace("goal: Go.", "goal: Go.\nbudget: { cost_usd: 0.05 }");
    assert_eq!(bound(&tight).2, SpendBound::Ceiling(5 * CENT));
    // The ceiling of a group bounds what is in it.
    let grouped = PIPELINE.replace("max_rounds: 3", "max_rounds: 3\n      budget: { cost_usd: 0.02 }");
    assert_eq!(bound(&grouped).1, Some(sum - 7 * CENT));
    // A list that is only known later is bounded by the number of agents.
    let later = PIPELINE.replace("over: docs", "over: found");
    let (steps, all, _) = bound(&later);
    assert!(steps.contains(&("each".to_owned(), 999, Some(999 * 10 * CENT))), "{steps:?}");
    assert_eq!(all, Some(999 * 10 * CENT));
    // Without a ceiling there is only what its calls hold.
    let open =
        PIPELINE.replace("task_description: x, budget: { cost_usd: 0.01 } }, b", "task_description: x }, b");
    let file = TreeFile::parse("tree.yaml", &open).unwrap().with_inputs(&[], &|_| None).unwrap();
    let worst = WorstCase::new(&file.definition, Time(0));
    let pipeline = worst.pipeline.unwrap();
    assert_eq!((pipeline.cost, worst.cost), (None, SpendBound::None));
    let cheap = pipeline.steps.iter().find(|step| step.id.as_str() == "cheap").unwrap();
    let call = worst.calls.iter().find(|call| call.role.as_str() == "critic").unwrap();
    assert_eq!(cheap.held, Ok(2 * call.cost.unwrap()));
}

/// Roles that only steps start are started; one that no step names is not.
#[test]
fn the_roles_of_steps_can_start() {
    assert_eq!(warnings(PIPELINE), "");
    let more = PIPELINE.replace("pipeline:", "  spare: { model: m }\npipeline:");
    assert!(warnings(&more).contains("`spare` can never be started"), "{}", warnings(&more));
    assert!(warnings(&more).contains("name it in a step of the pipeline"), "{}", warnings(&more));
}
