//! Limits that all trees of a process share: breakers and rates, on whole trees in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spinney::clock::{Clock as _, SystemClock};
use spinney::{Drivers, FunctionModel, Home, Shutdown, StartOptions, Tree};
use spinney_kernel::budget::{Resource, Usage, Used};
use spinney_kernel::definition::{Allow, Definition, RateLimit};
use spinney_kernel::port::model::{AttemptError, ModelAnswer, ModelAttempt};
use spinney_kernel::primitives::{AgentId, Fault, FaultKind, ModelName, RoleName, Time, TreeId};
use spinney_kernel::record::{Event, ExitKind, HeldBy, ToolAsk, WaitReason};
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, definition, recorded, settled};
use tokio::time::sleep;

fn name(text: &str) -> ModelName {
    text.parse().unwrap()
}

fn said(text: &str) -> ModelAnswer {
    ModelAnswer::text(text).with_used(Used::Tokens(Usage { input: 10, output: 5, ..Usage::default() }))
}

fn per_min(requests: u64) -> RateLimit {
    RateLimit { requests_per_min: Some(requests), ..RateLimit::NONE }
}

/// The moment at which a test began, in virtual time.
#[derive(Clone, Copy)]
struct Start {
    clock: SystemClock,
    ms: u64,
}

impl Start {
    fn now() -> Self {
        let clock = SystemClock::new();
        Self { clock, ms: clock.now_ms() }
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.clock.now_ms() - self.ms)
    }
}

/// A tree of one agent, whose model has no fallback.
fn alone() -> Definition {
    let mut definition = definition("root $9.00 turns=5");
    definition.models.get_mut("m").unwrap().fallback.clear();
    definition
}

/// A provider that counts its calls and may be down.
#[derive(Clone, Default)]
struct Provider {
    /// When each call arrived, in milliseconds since the first look at the clock.
    calls: Arc<Mutex<Vec<Duration>>>,
    down_until_ms: Arc<AtomicU64>,
}

impl Provider {
    fn model(&self, start: Start, takes_ms: u64) -> FunctionModel {
        let provider = self.clone();
        let answer = move |_: Arc<ModelAttempt>| {
            let provider = provider.clone();
            async move {
                let now = start.elapsed();
                provider.calls.lock().unwrap().push(now);
                sleep(Duration::from_millis(takes_ms)).await;
                if now.as_millis() < u128::from(provider.down_until_ms.load(Ordering::Relaxed)) {
                    return Err(AttemptError { fault: Fault::new(FaultKind::Server), used: Used::NOTHING });
                }
                Ok(said("done"))
            }
        };
        FunctionModel::new(answer).with_service("https://api.example.com")
    }

    fn calls(&self) -> Vec<Duration> {
        self.calls.lock().unwrap().clone()
    }
}

fn home(stage: &TestHome, models: &[(&str, FunctionModel)]) -> Home {
    stage.home_with(|drivers| {
        let with = |drivers: Drivers, (model, driver): &(&str, FunctionModel)| {
            drivers.with_model(name(model), Arc::new(driver.clone()))
        };
        models.iter().fold(drivers, with)
    })
}

async fn spent(tree: &Tree, resource: Resource) -> u64 {
    tree.snapshot().await.unwrap().end.unwrap().spent.get(resource)
}

async fn held_back(tree: &Tree) -> Vec<(Time, HeldBy, Time)> {
    let events = recorded(tree).await;
    let held = |recorded: &spinney::bus::RecordedEvent| match recorded.event {
        Event::CallHeldBack { by, until, .. } => Some((recorded.at, by, until)),
        _ => None,
    };
    events.iter().filter_map(held).collect()
}

/// V15 on trees: five failures in a row open the provider's breaker for all trees. For a minute it is not called; then
/// one call tries while the others wait, and when it succeeds, all continue. No agent failed, no retry was counted
/// for a call that was not sent.
#[tokio::test(start_paused = true)]
async fn v15_a_provider_that_fails_is_left_alone_for_a_minute_and_then_tried_once() {
    let (stage, provider, start) = (TestHome::new("rules: [{ say: x }]"), Provider::default(), Start::now());
    provider.down_until_ms.store(30_000, Ordering::Relaxed);
    let home = home(&stage, &[("m", provider.model(start, 100))]);
    let mut trees = Vec::new();
    for _ in 0..5 {
        trees.push(home.start(alone()).await.unwrap());
    }
    for tree in &trees {
        assert_eq!(settled(tree).await.state, TreeState::Ended(ExitKind::Completed));
    }
    let calls = provider.calls();
    // The first call of each tree failed, and opened the breaker.
    assert_eq!(calls.iter().filter(|call| call.as_millis() < 60_000).count(), 5, "{calls:?}");
    let probe = calls[5];
    assert!((60_000..61_000).contains(&probe.as_millis()), "{probe:?}");
    assert!(calls[6..].iter().all(|call| *call >= probe + Duration::from_millis(100)), "{calls:?}");
    assert_eq!(calls.len(), 10);
    for tree in &trees {
        assert_eq!(spent(tree, Resource::Retries).await, 1, "only the failed attempt is retried");
    }
    let mut held = 0;
    for tree in &trees {
        held += held_back(tree).await.iter().filter(|(_, by, _)| *by == HeldBy::Breaker).count();
    }
    assert!(held >= 4, "{held}");
}

/// V15 on trees: while the breaker is open, a call with a fallback moves there at once.
#[tokio::test(start_paused = true)]
async fn v15_calls_with_a_fallback_do_not_wait_for_a_broken_provider() {
    let (stage, start) = (TestHome::new("rules: [{ say: x }]"), Start::now());
    let (down, fine) = (Provider::default(), Provider::default());
    down.down_until_ms.store(u64::MAX, Ordering::Relaxed);
    let fallback = fine.model(start, 100).with_service("https://other.example.com");
    let home = home(&stage, &[("m", down.model(start, 100)), ("cheap", fallback)]);
    let mut definition = definition("root $9.00 turns=5");
    definition.models.get_mut("m").unwrap().fallback = vec![name("cheap")];
    for _ in 0..8 {
        let tree = home.start(definition.clone()).await.unwrap();
        assert_eq!(settled(&tree).await.state, TreeState::Ended(ExitKind::Completed));
    }
    assert_eq!((down.calls().len(), fine.calls().len()), (5, 8));
    assert!(start.elapsed() < Duration::from_secs(10));
}

/// V15 on trees: a probe that is cancelled frees its slot, so another call can try.
#[tokio::test(start_paused = true)]
async fn v15_a_cancelled_probe_does_not_keep_its_slot() {
    let (stage, provider, start) = (TestHome::new("rules: [{ say: x }]"), Provider::default(), Start::now());
    provider.down_until_ms.store(30_000, Ordering::Relaxed);
    let home = home(&stage, &[("m", provider.model(start, 100)), ("slow", provider.model(start, 500_000))]);
    let mut breaking = Vec::new();
    for _ in 0..5 {
        breaking.push(home.start(alone()).await.unwrap());
    }
    sleep(Duration::from_secs(1)).await;
    assert_eq!(provider.calls().len(), 5);
    for tree in &breaking {
        tree.cancel(name_of(tree).await, "enough".to_owned()).await.unwrap();
    }
    // Its only call is the probe, and never ends.
    let mut slow = alone();
    slow.roles.get_mut("root").unwrap().model = name("slow");
    slow.models.insert(name("slow"), slow.models.get("m").unwrap().clone());
    sleep(Duration::from_secs(62)).await;
    let probing = home.start(slow).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(provider.calls().len(), 6);
    let waiting = home.start(alone()).await.unwrap();
    sleep(Duration::from_secs(20)).await;
    assert_eq!(provider.calls().len(), 6, "one probe at a time");
    probing.cancel(name_of(&probing).await, "enough".to_owned()).await.unwrap();
    assert_eq!(settled(&waiting).await.state, TreeState::Ended(ExitKind::Completed));
    assert_eq!(provider.calls().len(), 7);
}

async fn name_of(tree: &Tree) -> AgentId {
    tree.snapshot().await.unwrap().agents[0].agent.clone()
}

/// No call waits forever: a provider that never comes back fails its calls after thirty waits.
#[tokio::test(start_paused = true)]
async fn a_provider_that_stays_down_fails_the_call_in_the_end() {
    let (stage, provider, start) = (TestHome::new("rules: [{ say: x }]"), Provider::default(), Start::now());
    provider.down_until_ms.store(u64::MAX, Ordering::Relaxed);
    let home = home(&stage, &[("m", provider.model(start, 100))]);
    let mut trees = Vec::new();
    for _ in 0..6 {
        trees.push(home.start(alone()).await.unwrap());
    }
    for tree in &trees {
        assert_eq!(settled(tree).await.state, TreeState::Ended(ExitKind::Failed));
    }
    assert!(start.elapsed() < Duration::from_secs(40 * 60), "{:?}", start.elapsed());
}

const MINUTE: Duration = Duration::from_secs(60);

/// A call that reached the model. Each uses a thousand tokens.
#[derive(Debug)]
struct SentCall {
    tree: TreeId,
    role: RoleName,
    at: Duration,
}

/// The most calls in any minute of those that share one limit.
fn most_in_a_minute<K: Ord>(calls: &[SentCall], limit_of: impl Fn(&SentCall) -> Option<K>) -> usize {
    let mut times: BTreeMap<K, Vec<Duration>> = BTreeMap::new();
    for call in calls {
        if let Some(limit) = limit_of(call) {
            times.entry(limit).or_default().push(call.at);
        }
    }
    let within = |times: &[Duration], start: Duration| {
        times.iter().filter(|time| (start..start + MINUTE).contains(time)).count()
    };
    times.values().flat_map(|times| times.iter().map(|start| within(times, *start))).max().unwrap_or_default()
}

/// A root that spawns six workers at once.
fn spawning_model(start: Start, calls: &Arc<Mutex<Vec<SentCall>>>) -> FunctionModel {
    let calls = Arc::clone(calls);
    FunctionModel::new(move |attempt: Arc<ModelAttempt>| {
        let (tree, role) = (attempt.origin.tree, attempt.origin.role.clone());
        let spawns = role.as_str() == "root" && attempt.turn == 1;
        assert_eq!(attempt.attempt, 1, "a call that is held back was not sent");
        calls.lock().unwrap().push(SentCall { tree, role, at: start.elapsed() });
        let spawn = |part: usize| {
            let args = format!(r#"{{"agent":"worker","goal":"Part {part}."}}"#);
            ToolAsk::new(part.to_string(), "spawn_agent", args)
        };
        let asks = if spawns { (0..6).map(spawn).collect() } else { Vec::new() };
        async move {
            sleep(Duration::from_millis(50)).await;
            let used = Used::Tokens(Usage { input: 600, output: 400, ..Usage::default() });
            Ok(ModelAnswer::text("done").with_asks(asks).with_used(used))
        }
    })
}

/// S25, O21 (rates): two trees run at once. No minute has more calls or tokens than the rate of a role, a tree or a model
/// allows: each tree has its own rates for roles and itself, and both share that of the model. The journal names
/// which one held a call back, and a call that waits for it holds no budget and uses no retry.
#[tokio::test(start_paused = true)]
async fn s25_o21_rates_of_roles_trees_and_models_hold_in_every_minute_and_are_named() {
    let tokens = RateLimit { tokens_per_min: Some(3_000), ..RateLimit::NONE };
    for (rate, is_used_up) in [(per_min(3), true), (tokens, false)] {
        for expected in [HeldBy::RoleRate, HeldBy::TreeRate, HeldBy::ModelRate] {
            let (stage, start, calls) = (TestHome::new("rules: [{ say: x }]"), Start::now(), Arc::default());
            let home = home(&stage, &[("m", spawning_model(start, &calls))]);
            let mut definition = definition("root $9.00 turns=5 / worker later turns=5");
            match expected {
                HeldBy::RoleRate => definition.roles.get_mut("worker").unwrap().rate = rate,
                HeldBy::TreeRate => definition.limits.rate = rate,
                _ => definition.models.get_mut("m").unwrap().rate = rate,
            }
            let trees =
                [home.start(definition.clone()).await.unwrap(), home.start(definition).await.unwrap()];
            sleep(MINUTE / 2).await;
            for tree in &trees {
                let snapshot = tree.snapshot().await.unwrap();
                assert!(
                    snapshot.end.is_none() && snapshot.agents.iter().all(|agent| agent.held.is_zero()),
                    "{snapshot:?}"
                );
            }
            for tree in &trees {
                assert_eq!(settled(tree).await.state, TreeState::Ended(ExitKind::Completed));
                let held = held_back(tree).await;
                assert!(held.iter().all(|(_, by, _)| *by == expected) && held.len() >= 3, "{held:?}");
                assert_eq!(spent(tree, Resource::Retries).await, 0);
                let waits = |recorded: &spinney::bus::RecordedEvent| {
                    matches!(recorded.event, Event::CallWaiting { why: WaitReason::Rate, .. })
                };
                assert!(recorded(tree).await.iter().filter(|recorded| waits(recorded)).count() >= held.len());
            }
            let calls = calls.lock().unwrap();
            assert_eq!(calls.len(), 16, "two turns of each root and one of each worker");
            let most = most_in_a_minute(&calls, |call| match expected {
                HeldBy::RoleRate => (call.role.as_str() == "worker").then_some(Some(call.tree)),
                HeldBy::TreeRate => Some(Some(call.tree)),
                _ => Some(None),
            });
            assert!(most <= 3 && (most == 3 || !is_used_up), "{most} by {expected:?}: {calls:?}");
            let of_both = most_in_a_minute(&calls, |_| Some(()));
            let is_per_tree = expected != HeldBy::ModelRate;
            assert!((of_both > 3) == is_per_tree || !is_used_up, "{of_both} by {expected:?}: {calls:?}");
        }
    }
}

/// A provider that says 429 with a pause is not called by any tree for that long; only the call that was refused
/// counts a retry.
#[tokio::test(start_paused = true)]
async fn a_pause_that_a_provider_asks_for_holds_for_all_trees() {
    let (stage, start) = (TestHome::new("rules: [{ say: x }]"), Start::now());
    let calls: Arc<Mutex<Vec<Duration>>> = Arc::default();
    let counted = Arc::clone(&calls);
    let model = FunctionModel::new(move |_: Arc<ModelAttempt>| {
        let number = {
            let mut calls = counted.lock().unwrap();
            calls.push(start.elapsed());
            calls.len()
        };
        async move {
            if number == 1 {
                let fault = Fault { retry_after_ms: Some(20_000), ..Fault::new(FaultKind::RateLimit) };
                return Err(AttemptError { fault, used: Used::NOTHING });
            }
            Ok(said("done"))
        }
    });
    let home = home(&stage, &[("m", model)]);
    let refused = home.start(alone()).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    let other = home.start(alone()).await.unwrap();
    settled(&refused).await;
    settled(&other).await;
    assert!(calls.lock().unwrap()[1..].iter().all(|call| call.as_secs() >= 20));
    assert_eq!((spent(&refused, Resource::Retries).await, spent(&other, Resource::Retries).await), (1, 0));
    assert_eq!(held_back(&other).await.iter().map(|(_, by, _)| *by).collect::<Vec<_>>(), [HeldBy::Provider]);
}

/// A hundred trees that share sixty calls a minute: no minute has more, each tree gets its share within a tenth, and
/// none starves. Every third tree has three agents that call all the time, the others have one.
#[tokio::test(start_paused = true)]
async fn a_hundred_trees_share_one_rate_limit_fairly() {
    const TREES: usize = 100;
    const MINUTES: u64 = 60;
    let (stage, start) = (TestHome::new("rules: [{ say: x }]"), Start::now());
    let wide: Arc<Mutex<BTreeSet<TreeId>>> = Arc::default();
    let calls: Arc<Mutex<Vec<(TreeId, Duration)>>> = Arc::default();
    let (is_wide, counted) = (Arc::clone(&wide), Arc::clone(&calls));
    let model = FunctionModel::new(move |attempt: Arc<ModelAttempt>| {
        let (tree, now) = (attempt.origin.tree, start.elapsed());
        counted.lock().unwrap().push((tree, now));
        let spawns = attempt.turn == 1
            && attempt.origin.role.as_str() == "root"
            && is_wide.lock().unwrap().contains(&tree);
        let ask = |number: usize, tool: &str, args: &str| {
            ToolAsk::new(format!("{}_{number}", attempt.turn), tool, args)
        };
        let asks = match spawns {
            true => (0..3)
                .map(|number| ask(number, "spawn_agent", r#"{"agent":"worker","goal":"Go on."}"#))
                .collect(),
            false => vec![ask(0, "list_agents", "{}")],
        };
        async move {
            sleep(Duration::from_millis(50)).await;
            Ok(said("").with_asks(asks))
        }
    });
    let home = home(&stage, &[("m", model)]);
    let mut definition = definition("root $9000.00 turns=5 / worker later turns=5");
    definition.models.get_mut("m").unwrap().rate = per_min(60);
    for role in definition.roles.values_mut() {
        role.caps.tools = Allow::only(["spawn_agent", "list_agents"].map(|tool| tool.parse().unwrap()));
        let turns = role.turns.as_mut().unwrap();
        (turns.turns_max, turns.active_ms) = (9_000, Some(100_000_000));
    }
    for number in 0..TREES {
        let id = home.draw_id();
        if number % 3 == 0 {
            wide.lock().unwrap().insert(id);
        }
        home.start_with(definition.clone(), StartOptions::default().with_id(id)).await.unwrap();
    }
    sleep(Duration::from_secs(60 * MINUTES)).await;
    home.shutdown(Shutdown::Kill).await;
    let calls = calls.lock().unwrap();
    let times: Vec<Duration> = calls.iter().map(|(_, time)| *time).collect();
    let within = |start: &Duration| {
        times.partition_point(|time| *time < *start + MINUTE) - times.partition_point(|time| time < start)
    };
    assert!(times.is_sorted());
    assert!(times.iter().map(within).max().unwrap() <= 60);
    let mut counts: BTreeMap<TreeId, u64> = BTreeMap::new();
    calls.iter().for_each(|(tree, _)| *counts.entry(*tree).or_default() += 1);
    let (least, most) = (*counts.values().min().unwrap(), *counts.values().max().unwrap());
    assert_eq!(counts.len(), TREES);
    // 36 each: within a tenth.
    assert!(calls.len() as u64 >= 60 * (MINUTES - 1), "{}", calls.len());
    assert!(least >= 33 && most <= 39, "{least} to {most}");
}

/// The story of `docs/models.md`: a provider limits five trees, works for a while, fails for half a minute and comes
/// back.
#[tokio::test(start_paused = true)]
async fn a_provider_that_limits_fails_and_comes_back_costs_each_tree_one_retry() {
    let (stage, start) = (TestHome::new("rules: [{ say: x }]"), Start::now());
    let calls: Arc<Mutex<Vec<u64>>> = Arc::default();
    let counted = Arc::clone(&calls);
    let model = FunctionModel::new(move |attempt: Arc<ModelAttempt>| {
        let now_ms = start.elapsed().as_millis() as u64;
        let is_first = {
            let mut calls = counted.lock().unwrap();
            calls.push(now_ms);
            calls.len() == 1
        };
        async move {
            let fault = match now_ms {
                _ if is_first => Fault { retry_after_ms: Some(20_000), ..Fault::new(FaultKind::RateLimit) },
                60_000..90_000 => Fault::new(FaultKind::Server),
                _ => {
                    // The first turn ends at the full minute, and the second begins.
                    let asks =
                        if attempt.turn == 1 { vec![ToolAsk::new("1", "list_agents", "{}")] } else { vec![] };
                    if attempt.turn == 1 {
                        sleep(Duration::from_millis(60_000 - now_ms)).await;
                    }
                    return Ok(said("done").with_asks(asks));
                }
            };
            Err(AttemptError { fault, used: Used::NOTHING })
        }
    });
    let home = home(&stage, &[("m", model.with_service("https://api.example.com"))]);
    let mut definition = alone();
    definition.roles.get_mut("root").unwrap().caps.tools = Allow::only(["list_agents".parse().unwrap()]);
    let mut trees = vec![home.start(definition.clone()).await.unwrap()];
    sleep(Duration::from_secs(1)).await;
    for _ in 1..5 {
        trees.push(home.start(definition.clone()).await.unwrap());
    }
    let mut retries = Vec::new();
    for tree in &trees {
        assert_eq!(settled(tree).await.state, TreeState::Ended(ExitKind::Completed));
        retries.push(spent(tree, Resource::Retries).await);
    }
    assert_eq!(retries, [2, 1, 1, 1, 1]);
    let seconds: Vec<u64> = calls.lock().unwrap().iter().map(|ms| ms / 1_000).collect();
    assert_eq!(seconds, [0, 20, 20, 20, 20, 20, 60, 60, 60, 60, 60, 120, 130, 130, 130, 130]);
}
