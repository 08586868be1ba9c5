//! What cache-aware admission saves, and what it costs in time: siblings that share a long prompt, against a model with
//! a prompt cache, in virtual time. Dollars and times are exact and the same in each run.

use std::sync::Arc;
use std::time::Duration;

use spinney_kernel::budget::{Price, Resource, usd};
use spinney_kernel::definition::{Definition, ModelSpec};
use spinney_kernel::primitives::{Body, ModelName};
use spinney_testkit::{CachingModel, TestHome, definition, recorded, settled};

use crate::measure::{row, verdict};

const SIBLINGS: usize = 16;
/// One byte is one token for this model.
const PREFIX_TOKENS: usize = 20_000;
const FIRST_TOKEN_MS: u64 = 800;
const REST_MS: u64 = 4_000;
const CACHE_WAIT_MS: u64 = 10_000;

/// Prints the table.
pub(crate) fn run() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.unwrap_or_else(|error| panic!("{error}"));
    let at_once = runtime.block_on(siblings(0));
    let waiting = runtime.block_on(siblings(CACHE_WAIT_MS));
    let ratio = at_once.nanos as f64 / waiting.nanos as f64;
    let what = format!("{SIBLINGS} siblings, {PREFIX_TOKENS} tokens shared");
    row(
        &what,
        &usd(waiting.nanos),
        &format!("{} (cache_wait: off)", usd(at_once.nanos)),
        &format!("{ratio:.1}x less"),
    );
    let added = waiting.ms.saturating_sub(at_once.ms);
    let relation = format!(
        "{added} ms added (at most the first token, {FIRST_TOKEN_MS} ms: {})",
        verdict(added <= FIRST_TOKEN_MS)
    );
    row("the same, virtual time", &format!("{} ms", waiting.ms), &format!("{} ms", at_once.ms), &relation);
}

struct Run {
    nanos: u64,
    ms: u64,
}

/// A root that spawns all siblings at once, each with one call.
async fn siblings(cache_wait_ms: u64) -> Run {
    let spawns: Vec<String> = (0..SIBLINGS)
        .map(|number| format!("{{ tool: spawn_agent, args: {{ agent: worker, goal: Do part {number}. }} }}"))
        .collect();
    let script = format!(
        "rules: [{{ when: {{ agent: root, turn: 1 }}, call: [{}] }}, {{ say: done }}]",
        spawns.join(", ")
    );
    let model = CachingModel::new(Duration::from_millis(FIRST_TOKEN_MS), Duration::from_millis(REST_MS));
    let stage = TestHome::new(&script);
    let home = stage.home_with(|drivers| drivers.with_model(name(), Arc::new(model)));
    let tree = home.start(tree(cache_wait_ms)).await.unwrap_or_else(|error| panic!("{error}"));
    let end = settled(&tree).await.end.unwrap_or_else(|| panic!("the tree has not ended"));
    let events = recorded(&tree).await;
    let ms = events.last().zip(events.first()).map_or(0, |(last, first)| last.at.0 - first.at.0);
    Run { nanos: end.spent.get(Resource::Cost), ms }
}

/// Siblings on a model that costs $3 per million tokens of input, $3.75 written to the cache and $0.30 read from it.
fn tree(cache_wait_ms: u64) -> Definition {
    let mut tree = definition("root $90.00 turns=5 out=4000 / worker later turns=5");
    let price = Price {
        cached_input_per_mtok: Some(300_000_000),
        cache_write_per_mtok: Some(3_750_000_000),
        ..Price::flat(3_000_000_000, 15_000_000_000)
    };
    let model = ModelSpec { price: Some(price), cache_wait_ms: Some(cache_wait_ms), ..ModelSpec::default() };
    tree.models.insert(name(), model);
    // What the root says is not what is measured.
    for root in ["m", "cheap"] {
        if let Some(model) = tree.models.get_mut(root) {
            model.price = Some(Price::flat(0, 0));
        }
    }
    let Some(worker) = tree.roles.get_mut("worker") else { panic!("the fixture has a worker") };
    worker.model = name();
    if let Some(turns) = worker.turns.as_mut() {
        turns.prompt = Body::text("x".repeat(PREFIX_TOKENS));
    }
    tree
}

fn name() -> ModelName {
    "caching".parse().unwrap_or_else(|error| panic!("{error}"))
}
