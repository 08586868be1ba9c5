//! Limits that all trees of a process share: breakers and rates, on whole trees in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spinney::clock::{Clock as _, SystemClock};
use spinney::{Drivers, FunctionModel, Home, Shutdown, Tree};
use spinney_kernel::budget::{Resource, Usage, Used};
use spinney_kernel::definition::{Allow, Definition, RateLimit};
use spinney_kernel::port::model::{Missed, ModelAnswer, ModelAttempt};
use spinney_kernel::record::{Event, ExitKind, HeldBy, ToolAsk, Why};
use spinney_kernel::words::{AgentId, Fault, FaultKind, ModelName, Time, TreeId};
use spinney_kernel::world::TreeState;
use spinney_testkit::{Stage, definition, recorded, settled};
use tokio::time::sleep;

fn name(text: &str) -> ModelName {
    text.parse().unwrap()
}

fn said(text: &str) -> ModelAnswer {
    ModelAnswer {
        used: Used::Tokens(Usage { input: 10, output: 5, ..Usage::default() }),
        ..ModelAnswer::said(text)
    }
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
                    return Err(Missed { fault: Fault::of(FaultKind::Server), used: Used::NOTHING });
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

fn home(stage: &Stage, models: &[(&str, FunctionModel)]) -> Home {
    stage.home_with(|drivers| {
        let with = |drivers: Drivers, (model, driver): &(&str, FunctionModel)| {
            drivers.with_model(name(model), Arc::new(driver.clone()))
        };
        models.iter().fold(drivers, with)
    })
}

async fn spent(tree: &Tree, resource: Resource) -> u64 {
    tree.look().await.unwrap().end.unwrap().spent.of(resource)
}

async fn held_back(tree: &Tree) -> Vec<(Time, HeldBy, Time)> {
    let events = recorded(tree).await;
    let held = |recorded: &spinney::tree::RecordedEvent| match recorded.event {
        Event::CallHeldBack { by, until, .. } => Some((recorded.at, by, until)),
        _ => None,
    };
    events.iter().filter_map(held).collect()
}

/// V15 on trees: five failures in a row open the provider's breaker for all trees. For a minute nobody calls it; then
/// one call tries while the others wait, and when it succeeds, everybody continues. Nobody failed, no retry was counted
/// for a call that was not sent.
#[tokio::test(start_paused = true)]
async fn v15_a_provider_that_fails_is_left_alone_for_a_minute_and_then_tried_once() {
    let (stage, provider, start) = (Stage::new("rules: [{ say: x }]"), Provider::default(), Start::now());
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
    let (stage, start) = (Stage::new("rules: [{ say: x }]"), Start::now());
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

/// V15 on trees: a probe that is cancelled frees its slot, so that another call can try.
#[tokio::test(start_paused = true)]
async fn v15_a_cancelled_probe_does_not_keep_its_slot() {
    let (stage, provider, start) = (Stage::new("rules: [{ say: x }]"), Provider::default(), Start::now());
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
    // Its only call is the probe, and takes for ever.
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
    tree.look().await.unwrap().agents[0].agent.clone()
}

/// Nobody waits for ever: a provider that never comes back fails its calls after thirty waits.
#[tokio::test(start_paused = true)]
async fn a_provider_that_stays_down_fails_the_call_in_the_end() {
    let (stage, provider, start) = (Stage::new("rules: [{ say: x }]"), Provider::default(), Start::now());
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

/// S25, O21: rates of a role, a tree and a model hold in every minute; the journal names which one held a call back,
/// and what a call had held returns.
#[tokio::test(start_paused = true)]
async fn s25_o21_rates_of_roles_trees_and_models_hold_and_are_named() {
    type Change = fn(&mut Definition);
    let cases: [(Change, HeldBy); 3] = [
        (|tree| tree.roles.get_mut("worker").unwrap().rate = per_min(2), HeldBy::RoleRate),
        (|tree| tree.limits.rate = per_min(3), HeldBy::TreeRate),
        (|tree| tree.models.get_mut("m").unwrap().rate = per_min(3), HeldBy::ModelRate),
    ];
    for (change, expected) in cases {
        let spawns: Vec<String> = (0..6)
            .map(|number| format!("{{ tool: spawn_agent, args: {{ agent: worker, goal: Part {number}. }} }}"))
            .collect();
        let script = format!(
            "rules: [{{ when: {{ agent: root, turn: 1 }}, call: [{}] }}, {{ say: done }}]",
            spawns.join(", ")
        );
        let stage = Stage::new(&script);
        let home = stage.home();
        let mut definition = definition("root $9.00 turns=5 / worker later turns=5");
        change(&mut definition);
        let tree = home.start(definition).await.unwrap();
        assert_eq!(settled(&tree).await.state, TreeState::Ended(ExitKind::Completed));
        let events = recorded(&tree).await;
        let held = held_back(&tree).await;
        assert!(!held.is_empty() && held.iter().all(|(_, by, _)| *by == expected), "{expected:?}: {held:?}");
        assert_eq!(spent(&tree, Resource::Retries).await, 0);
        let waits = |recorded: &&spinney::tree::RecordedEvent| {
            matches!(recorded.event, Event::CallWaiting { why: Why::Rate, .. })
        };
        assert!(events.iter().filter(waits).count() >= held.len());
        // Every attempt that was made is the first of its call.
        let first = |attempt: &Arc<ModelAttempt>| attempt.attempt == 1;
        assert!(stage.model().attempts().iter().all(first));
        assert_eq!(stage.model().attempts().len(), 8);
    }
}

/// A provider that says 429 with a pause is left alone by everybody for that long; only the call that was refused
/// counts a retry.
#[tokio::test(start_paused = true)]
async fn a_pause_that_a_provider_asks_for_holds_for_all_trees() {
    let (stage, start) = (Stage::new("rules: [{ say: x }]"), Start::now());
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
                let fault = Fault { retry_after_ms: Some(20_000), ..Fault::of(FaultKind::RateLimit) };
                return Err(Missed { fault, used: Used::NOTHING });
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
    let (stage, start) = (Stage::new("rules: [{ say: x }]"), Start::now());
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
            Ok(ModelAnswer { asks, ..said("") })
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
        home.start_as(id, definition.clone()).await.unwrap();
    }
    sleep(Duration::from_secs(60 * MINUTES)).await;
    home.shutdown(Shutdown::Kill).await;
    let calls = calls.lock().unwrap();
    let minute = Duration::from_secs(60);
    let times: Vec<Duration> = calls.iter().map(|(_, time)| *time).collect();
    let within = |start: &Duration| {
        times.partition_point(|time| *time < *start + minute) - times.partition_point(|time| time < start)
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
    let (stage, start) = (Stage::new("rules: [{ say: x }]"), Start::now());
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
                _ if is_first => Fault { retry_after_ms: Some(20_000), ..Fault::of(FaultKind::RateLimit) },
                60_000..90_000 => Fault::of(FaultKind::Server),
                _ => {
                    // The first turn ends at the full minute, and the second begins.
                    let asks =
                        if attempt.turn == 1 { vec![ToolAsk::new("1", "list_agents", "{}")] } else { vec![] };
                    if attempt.turn == 1 {
                        sleep(Duration::from_millis(60_000 - now_ms)).await;
                    }
                    return Ok(ModelAnswer { asks, ..said("done") });
                }
            };
            Err(Missed { fault, used: Used::NOTHING })
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
