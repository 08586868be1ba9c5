//! "What caches save" in `docs/models.md`: a lead and six researchers of one role run against a model with a prompt
//! cache, and against the same model without one. The table on the page is from here.

use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spinney_kernel::budget::{Price, Resource, Usage, Used, usd};
use spinney_kernel::context::Message;
use spinney_kernel::definition::{Allow, Definition, ModelSpec};
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{AttemptError, Deltas, Model, ModelAnswer, ModelAttempt, StopReason};
use spinney_kernel::primitives::{Body, ModelName, Time, grouped};
use spinney_kernel::record::ToolAsk;
use spinney_testkit::{CachingModel, TestHome, definition, settled};

const DOCS: &str = include_str!("../../../../docs/models.md");

const TOPICS: usize = 6;
/// Tokens of the roles' prompts. A token has four bytes here.
const LEAD_TOKENS: usize = 4_000;
const RESEARCHER_TOKENS: usize = 8_000;
const BYTES_PER_TOKEN: usize = 4;
/// What a researcher is asked about its topic.
const QUESTIONS: &str = "What does it cost, who uses it, and what breaks first? Name your sources.";
const CACHE_WAIT_MS: u64 = 10_000;

/// Dollars per million: 1 input, 5 output, 0.10 cached, 1.25 written.
fn price() -> Price {
    Price {
        cached_input_per_mtok: Some(100_000_000),
        cache_write_per_mtok: Some(1_250_000_000),
        ..Price::flat(1_000_000_000, 5_000_000_000)
    }
}

fn tree(cache_wait_ms: u64) -> Definition {
    let mut tree = definition("lead $5.00 turns=5 out=1000 / researcher later turns=5 out=1000");
    let model =
        ModelSpec { price: Some(price()), cache_wait_ms: Some(cache_wait_ms), ..ModelSpec::default() };
    let name: ModelName = "team".parse().unwrap();
    tree.models.insert(name.clone(), model);
    for (role, tokens) in [("lead", LEAD_TOKENS), ("researcher", RESEARCHER_TOKENS)] {
        let role = tree.roles.get_mut(role).unwrap();
        role.model = name.clone();
        role.turns.as_mut().unwrap().prompt = Body::text("rule".repeat(tokens));
    }
    tree.roles.get_mut("researcher").unwrap().caps.tools = Allow::only([]);
    tree
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Caches {
    On,
    Off,
}

/// Plays both roles. What was used is counted as a provider does it, with or without its cache.
struct Team {
    cache: CachingModel,
    caches: Caches,
    calls: Arc<Mutex<Vec<Call>>>,
}

#[derive(Clone)]
struct Call {
    name: String,
    usage: Usage,
}

impl Model for Team {
    fn call(&self, attempt: Arc<ModelAttempt>, deltas: Deltas) -> Pending<Result<ModelAnswer, AttemptError>> {
        let (caches, calls) = (self.caches, Arc::clone(&self.calls));
        let answered = self.cache.call(Arc::clone(&attempt), deltas);
        Box::pin(async move {
            let mut answer = answered.await?;
            let Used::Tokens(prompt) = answer.used else { panic!("{:?}", answer.used) };
            let is_lead = attempt.origin.role.as_str() == "lead";
            let dialog = attempt.packet.messages.iter().skip(1).map(|message| dialog_bytes(message));
            let mut usage = Usage {
                input: tokens(prompt.input) + tokens(dialog.sum()),
                cached_input: tokens(prompt.cached_input),
                cache_write: tokens(prompt.cache_write),
                output: match (is_lead, attempt.turn) {
                    (true, 1) => 240,
                    (true, _) => 900,
                    (false, _) => 450,
                },
                ..Usage::default()
            };
            if caches == Caches::Off {
                let input = usage.input_tokens();
                usage = Usage { input, output: usage.output, ..Usage::default() };
            }
            let name = if is_lead {
                format!("lead, turn {}", attempt.turn)
            } else {
                let topic = attempt.origin.goal.split(':').next().unwrap_or_default();
                format!("researcher, {}", topic.to_lowercase())
            };
            calls.lock().unwrap().push(Call { name, usage });
            answer.text = "fact".repeat(usage.output as usize);
            answer.used = Used::Tokens(usage);
            if is_lead && attempt.turn == 1 {
                answer.asks = (1..=TOPICS).map(spawn).collect();
                answer.stop = StopReason::ToolCalls;
            }
            Ok(answer)
        })
    }
}

fn spawn(topic: usize) -> ToolAsk {
    let args = format!(r#"{{"agent":"researcher","goal":"Topic {topic}: {QUESTIONS}"}}"#);
    ToolAsk::new(format!("s{topic}"), "spawn_agent", args)
}

fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN as u64)
}

fn dialog_bytes(message: &Message) -> u64 {
    message.text().len() as u64
}

struct Bill {
    /// By name, in the order of the page.
    calls: Vec<Call>,
    nanos: u64,
}

async fn bill(caches: Caches, cache_wait_ms: u64) -> Bill {
    let calls = Arc::<Mutex<Vec<Call>>>::default();
    let cache = CachingModel::new(Duration::from_millis(900), Duration::from_secs(6));
    let team = Arc::new(Team { cache, caches, calls: Arc::clone(&calls) });
    let stage = TestHome::new("rules: [{ say: unused }]");
    let home = stage.home_with(|drivers| drivers.with_model("team".parse().unwrap(), team));
    let tree = home.start(tree(cache_wait_ms)).await.unwrap();
    settled(&tree).await;
    let nanos = tree.snapshot().await.unwrap().end.unwrap().spent.get(Resource::Cost);
    let mut calls = calls.lock().unwrap().clone();
    let place = |call: &Call| match call.name.as_str() {
        "lead, turn 1" => (0, call.name.clone()),
        "lead, turn 2" => (2, call.name.clone()),
        _ => (1, call.name.clone()),
    };
    calls.sort_by_key(place);
    assert_eq!(calls.len(), TOPICS + 2);
    let sum: u64 = calls.iter().map(|call| cost(&call.usage)).sum();
    assert_eq!(sum, nanos, "the calls are all that the tree paid for");
    Bill { calls, nanos }
}

fn cost(usage: &Usage) -> u64 {
    price().cost(usage, Time(0))
}

fn row(table: &mut String, name: &str, usage: &Usage, with: u64, without: u64) {
    let numbers = [usage.input, usage.cached_input, usage.cache_write, usage.output].map(grouped);
    writeln!(table, "| {name} | {} | {} | {} |", numbers.join(" | "), usd(with), usd(without)).unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_bill_on_the_page_is_what_a_run_costs() {
    let with = bill(Caches::On, CACHE_WAIT_MS).await;
    let without = bill(Caches::Off, 0).await;
    let at_once = bill(Caches::On, 0).await;
    let mut table = "| call | input | cached | written | output | with caches | without |\n|---|--:|--:|--:|--:|--:|--:|\n".to_owned();
    let mut all = Usage::default();
    for (call, plain) in with.calls.iter().zip(&without.calls) {
        let usage = &call.usage;
        assert_eq!((&call.name, usage.input_tokens()), (&plain.name, plain.usage.input_tokens()));
        row(&mut table, &call.name, usage, cost(usage), cost(&plain.usage));
        all.input += usage.input;
        all.cached_input += usage.cached_input;
        all.cache_write += usage.cache_write;
        all.output += usage.output;
    }
    row(&mut table, "all", &all, with.nanos, without.nanos);
    assert!(DOCS.contains(&table), "docs/models.md has another bill than this:\n{table}");
    let saved = 100 - with.nanos * 100 / without.nanos;
    let summary = format!(
        "{} instead of {}, {saved} % less. With `cache_wait: off` all six researchers write the prompt to the cache, \
         and the run costs {}",
        usd(with.nanos),
        usd(without.nanos),
        usd(at_once.nanos)
    );
    assert!(DOCS.contains(&summary), "docs/models.md has another summary than this:\n{summary}");
}
