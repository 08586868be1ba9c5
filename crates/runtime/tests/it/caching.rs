//! Prompt caches: siblings with the same long prompt let one of them fill the provider's cache.

use std::sync::Arc;
use std::time::Duration;

use spinney_kernel::budget::{Price, Resource};
use spinney_kernel::definition::{Definition, ModelSpec};
use spinney_kernel::primitives::{Body, ModelName, Time};
use spinney_kernel::record::{Event, WaitReason};
use spinney_testkit::{CachingModel, Recorder, TestHome, definition, recorded, settled};

const SIBLINGS: u64 = 16;
const PREFIX_TOKENS: usize = 20_000;
const FIRST_TOKEN: Duration = Duration::from_millis(800);
const REST: Duration = Duration::from_secs(4);
const CACHE_WAIT_MS: u64 = 5_000;

/// A root that spawns all siblings at once.
fn script() -> String {
    let spawn =
        |number| format!("{{ tool: spawn_agent, args: {{ agent: worker, goal: Do part {number}. }} }}");
    let spawns: Vec<String> = (0..SIBLINGS).map(spawn).collect();
    format!(
        "rules: [{{ when: {{ agent: root, turn: 1 }}, call: [{}] }}, {{ say: All done. }}]",
        spawns.join(", ")
    )
}

fn siblings(cache_wait_ms: u64) -> Definition {
    let mut definition = definition("root $90.00 turns=5 out=4000 / worker later turns=5");
    let price = Price {
        cached_input_per_mtok: Some(300_000_000),
        cache_write_per_mtok: Some(3_750_000_000),
        ..Price::flat(3_000_000_000, 15_000_000_000)
    };
    let model = ModelSpec { price: Some(price), cache_wait_ms: Some(cache_wait_ms), ..ModelSpec::default() };
    definition.models.insert(name("caching"), model);
    let worker = definition.roles.get_mut("worker").unwrap();
    worker.model = name("caching");
    worker.turns.as_mut().unwrap().prompt = Body::text("x".repeat(PREFIX_TOKENS));
    definition
}

fn name(text: &str) -> ModelName {
    text.parse().unwrap()
}

struct Bill {
    nanos: u64,
    /// When each sibling's call started.
    starts: Vec<Time>,
    /// How many waited for a cached prompt.
    waits: usize,
    first_tokens: usize,
}

async fn bill(model: CachingModel, cache_wait_ms: u64) -> Bill {
    let model = Arc::new(Recorder::new(model));
    let stage = TestHome::new(&script());
    let home = stage.home_with(|drivers| drivers.with_model(name("caching"), model));
    let tree = home.start(siblings(cache_wait_ms)).await.unwrap();
    settled(&tree).await;
    let nanos = tree.snapshot().await.unwrap().end.unwrap().spent.get(Resource::Cost);
    let events = recorded(&tree).await;
    let is_wait =
        |event: &Event| matches!(event, Event::CallWaiting { why, .. } if *why == WaitReason::Cache);
    let waits = events.iter().filter(|recorded| is_wait(&recorded.event)).count();
    let first_tokens =
        events.iter().filter(|recorded| matches!(recorded.event, Event::FirstToken { .. })).count();
    let starts = events.iter().filter(|recorded| matches!(recorded.event, Event::CallStarted { .. }));
    // The first and the last are the root's.
    let starts: Vec<Time> = starts.map(|recorded| recorded.at).skip(1).take(SIBLINGS as usize).collect();
    Bill { nanos, starts, waits, first_tokens }
}

/// G8: of sixteen siblings that share a long prefix one goes first, and the others follow at its first token. The bill
/// is lower by what the cache saves, exactly, and the added time is that of the first token.
#[tokio::test(start_paused = true)]
async fn g8_one_sibling_fills_the_cache_and_the_others_follow_at_its_first_token() {
    let without = bill(CachingModel::new(FIRST_TOKEN, REST), 0).await;
    assert_eq!((without.waits, without.first_tokens), (0, 0));
    let with = bill(CachingModel::new(FIRST_TOKEN, REST), CACHE_WAIT_MS).await;
    let followers = SIBLINGS as usize - 1;
    assert_eq!((with.waits, with.first_tokens), (followers, 1));
    let (first, rest) = with.starts.split_first().unwrap();
    assert!(rest.iter().all(|start| start.0 - first.0 == FIRST_TOKEN.as_millis() as u64), "{rest:?}");
    assert_eq!(rest.len(), followers);
    // Each of the others reads from the cache what it would have written: 3,450 nano-dollars less for each token.
    let saved = without.nanos - with.nanos;
    let each = saved / followers as u64;
    assert!(each > PREFIX_TOKENS as u64 * 3_450 && each < (PREFIX_TOKENS + 4_000) as u64 * 3_450, "{each}");
}

/// G8: no call waits longer than the bound, even if the first call never says a word.
#[tokio::test(start_paused = true)]
async fn g8_a_silent_leader_is_waited_for_no_longer_than_the_bound() {
    let silent = CachingModel::new(Duration::from_secs(60), REST);
    let with = bill(silent, CACHE_WAIT_MS).await;
    let (first, rest) = with.starts.split_first().unwrap();
    assert!(rest.iter().all(|start| start.0 - first.0 == CACHE_WAIT_MS), "{rest:?}");
    assert_eq!(with.first_tokens, 0);
}

/// Where nothing can be saved, no call waits.
#[tokio::test(start_paused = true)]
async fn short_prompts_and_models_without_a_cached_rate_wait_for_nobody() {
    for change in [short_prompt as fn(&mut Definition), no_cached_rate] {
        let model = Arc::new(CachingModel::new(FIRST_TOKEN, REST));
        let stage = TestHome::new(&script());
        let home = stage.home_with(|drivers| drivers.with_model(name("caching"), model));
        let mut definition = siblings(CACHE_WAIT_MS);
        change(&mut definition);
        let tree = home.start(definition).await.unwrap();
        settled(&tree).await;
        let is_wait = |event: &Event| matches!(event, Event::CallWaiting { .. });
        assert!(!recorded(&tree).await.iter().any(|recorded| is_wait(&recorded.event)));
    }
}

fn short_prompt(definition: &mut Definition) {
    let worker = definition.roles.get_mut("worker").unwrap();
    worker.turns.as_mut().unwrap().prompt = Body { tokens: Some(3.into()), ..Body::text("You work.") };
    worker.caps.tools = spinney_kernel::definition::Allow::only([]);
}

fn no_cached_rate(definition: &mut Definition) {
    definition.models.get_mut("caching").unwrap().price = Some(Price::flat(3_000_000_000, 15_000_000_000));
}
