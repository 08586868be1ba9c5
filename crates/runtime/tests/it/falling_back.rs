//! When a provider fails, another one is called, or the same one later, and watchers see why.

use std::sync::Arc;

use spinney::bus::{Watch, WatchItem};
use spinney::{FunctionModel, Tree};
use spinney_kernel::budget::{Resource, Usage, Used};
use spinney_kernel::context::Switch;
use spinney_kernel::definition::{Allow, BudgetSpec, OnLow};
use spinney_kernel::port::model::ModelAnswer;
use spinney_kernel::primitives::{Fault, FaultKind, ModelName, Seq, Time};
use spinney_kernel::record::{Event, ExitKind, StopReason};
use spinney_kernel::world::TreeState;
use spinney_testkit::scripted::{Script, ScriptedModel};
use spinney_testkit::{Recorder, TestHome, definition, recorded, settled};

/// Two separate providers, as `m` and `cheap`.
struct Providers {
    stage: TestHome,
    primary: Arc<Recorder<ScriptedModel>>,
    fallback: Arc<Recorder<ScriptedModel>>,
}

impl Providers {
    fn new(primary: &str) -> Self {
        let model = |text| Arc::new(Recorder::new(Script::parse("provider.yaml", text).unwrap().model()));
        let fallback = model("rules: [{ say: from the fallback }]");
        Self { stage: TestHome::new("rules: [{ say: x }]"), primary: model(primary), fallback }
    }

    async fn run(&self, change: impl FnOnce(&mut spinney_kernel::definition::Definition)) -> Tree {
        let home = self.stage.home_with(|drivers| {
            let primary = Arc::<Recorder<ScriptedModel>>::clone(&self.primary);
            let fallback = Arc::<Recorder<ScriptedModel>>::clone(&self.fallback);
            drivers.with_model(name("m"), primary).with_model(name("cheap"), fallback)
        });
        let mut definition = definition("root $9.00 turns=5");
        change(&mut definition);
        let tree = home.start(definition).await.unwrap();
        settled(&tree).await;
        tree
    }

    fn calls(&self) -> (usize, usize) {
        (self.primary.attempts().len(), self.fallback.attempts().len())
    }
}

fn name(text: &str) -> ModelName {
    text.parse().unwrap()
}

/// Every switch, as a watcher sees it: from, to, reason.
async fn switches(tree: &Tree) -> Vec<(Switch, ModelName)> {
    let mut watcher = tree.watch(Watch { kind: Some("call_switched".to_owned()), ..Watch::default() });
    let mut seen = Vec::new();
    while let Some(next) = watcher.next().await {
        let WatchItem::Event(traced) = next.unwrap() else { panic!("no deltas were asked for") };
        let Event::CallSwitched { model, .. } = &traced.recorded.event else { panic!("{traced:?}") };
        seen.push((Switch::clone(traced.context.switch.as_ref().unwrap()), model.clone()));
    }
    seen
}

/// When the attempts of the first call started, and when they failed.
async fn times(tree: &Tree) -> (Vec<Time>, Vec<Time>) {
    let (mut starts, mut faults) = (Vec::new(), Vec::new());
    for recorded in recorded(tree).await {
        if let Event::CallStarted { .. } = recorded.event {
            starts.push(recorded.at);
        } else if let Event::AttemptFailed { .. } = recorded.event {
            faults.push(recorded.at);
        }
    }
    (starts, faults)
}

/// L31: after a failure (503) the fallback's own provider is called at once, and a watcher sees the two models and the
/// reason. A provider that is only busy (429) is called again after the time that it asked for, to the millisecond.
#[tokio::test(start_paused = true)]
async fn l31_a_failing_provider_is_left_for_its_fallback_and_a_busy_one_is_given_its_time() {
    let providers = Providers::new("rules: [{ fail: { kind: server } }]");
    let tree = providers.run(|_| {}).await;
    assert_eq!(providers.calls(), (1, 1));
    assert_eq!(providers.fallback.attempts()[0].model, name("cheap"));
    assert_eq!(tree.snapshot().await.unwrap().end.unwrap().shown.text, "from the fallback");
    let (switch, to) = switches(&tree).await.pop().unwrap();
    assert_eq!((switch.from.as_str(), to.as_str(), switch.reason()), ("m", "cheap", "server"));
    let message = "rule 1 of provider.yaml: attempt 1 fails as scripted".to_owned();
    assert_eq!(switch.fault, Some(Fault { message, ..Fault::new(FaultKind::Server) }));
    let (starts, faults) = times(&tree).await;
    assert_eq!(starts[1], faults[0], "at once");

    let providers =
        Providers::new("rules: [{ fail: { kind: rate_limit, times: 1, retry_after_ms: 1234 }, say: back }]");
    let tree = providers.run(|_| {}).await;
    assert_eq!(providers.calls(), (2, 0));
    assert_eq!(tree.snapshot().await.unwrap().end.unwrap().shown.text, "back");
    assert_eq!(switches(&tree).await, []);
    let (starts, faults) = times(&tree).await;
    assert_eq!(starts[1].0 - faults[0].0, 1_234);
}

/// L16: a fallback that the agent may not call is never called, whatever becomes of the allowed model. Lists intersect
/// down the tree: below [m, cheap] a child with [cheap, free] has cheap alone, so neither m nor free is called for it.
#[tokio::test(start_paused = true)]
async fn l16_only_models_that_every_list_up_the_tree_allows_are_called() {
    for kind in ["server", "auth", "rate_limit, retry_after_ms: 10"] {
        let providers = Providers::new(&format!("rules: [{{ fail: {{ kind: {kind} }} }}]"));
        let tree = providers
            .run(|definition| {
                let root = definition.roles.get_mut("root").unwrap();
                root.caps.models = Allow::only([name("m")]);
            })
            .await;
        let (primary, fallback) = providers.calls();
        assert!(primary > 0 && fallback == 0, "{kind}: {primary} and {fallback}");
        assert_eq!(tree.status().state, TreeState::Ended(ExitKind::Failed), "{kind}");
        assert_eq!(switches(&tree).await, [], "{kind}");
    }

    let model = |text| Arc::new(Recorder::new(Script::parse("provider.yaml", text).unwrap().model()));
    let m = model(
        "
rules:
  - { when: { agent: root, turn: 1 }, call: [ { tool: spawn_agent, args: { agent: child, goal: Help. } } ] }
  - { when: { agent: root, turn: 2 }, call: [ { tool: spawn_agent, args: { agent: child, goal: Help., model: free } } ] }
  - { when: { agent: root, turn: 3 }, call: [ { tool: spawn_agent, args: { agent: child, goal: Help., model: m } } ] }
  - { say: '{{ last }}' }
",
    );
    let (cheap, free) =
        (model("rules: [{ fail: { kind: server } }]"), model("rules: [{ say: never asked }]"));
    let stage = TestHome::new("rules: [{ say: x }]");
    let home = stage.home_with(|drivers| {
        let add = |drivers: spinney::Drivers, of, model: &Arc<Recorder<ScriptedModel>>| {
            drivers.with_model(name(of), Arc::<Recorder<ScriptedModel>>::clone(model))
        };
        add(add(add(drivers, "m", &m), "cheap", &cheap), "free", &free)
    });
    let mut plan = definition("root $9.00 turns=5 tools=spawn_agent / child later turns=5 tools=spawn_agent");
    plan.models.get_mut("cheap").unwrap().fallback = vec![name("free"), name("m")];
    let price = plan.models["cheap"].price.clone();
    plan.models.get_mut("free").unwrap().price = price;
    plan.roles.get_mut("root").unwrap().caps.models = Allow::only([name("m"), name("cheap")]);
    let child = plan.roles.get_mut("child").unwrap();
    child.caps.models = Allow::only([name("cheap"), name("free")]);
    child.model = name("cheap");
    let tree = home.start(plan).await.unwrap();
    let snapshot = settled(&tree).await;
    assert_eq!((snapshot.state, snapshot.agents.len()), (TreeState::Ended(ExitKind::Completed), 2));
    assert!(!cheap.attempts().is_empty() && free.attempts().is_empty());
    assert!(m.attempts().iter().all(|attempt| attempt.origin.role.as_str() == "root"));
    let read: Vec<String> = m.attempts()[2..]
        .iter()
        .map(|attempt| attempt.packet.messages.last().unwrap().text().into_owned())
        .collect();
    insta::assert_snapshot!(read.join("\n"), @"
    model `free` is not allowed here: choose one of `cheap`
    model `m` is not allowed here: choose one of `cheap`
    ");
}

/// A switch because of the budget says so, even after a fault that was retried.
#[tokio::test(start_paused = true)]
async fn a_switch_for_want_of_money_says_budget() {
    let providers = Providers::new("rules: [{ say: x }]");
    let tree = providers
        .run(|definition| {
            let on_low = Some(OnLow::Downgrade(name("cheap")));
            let poor = spinney_testkit::definition("root $0.05 turns=5").budget;
            definition.budget = BudgetSpec { on_low, ..poor };
        })
        .await;
    assert_eq!(providers.calls(), (0, 1));
    let (switch, to) = switches(&tree).await.pop().unwrap();
    assert_eq!((switch.from.as_str(), to.as_str(), switch.reason()), ("m", "cheap", "budget"));
    assert_eq!(tree.watch(Watch::default()).next_event().await.unwrap().unwrap().recorded.seq, Seq(1));
}

/// A filtered or declined answer is not an answer: the fallback is called, and the usage is paid.
#[tokio::test]
async fn an_answer_that_was_held_back_is_asked_for_elsewhere() {
    for (stop, kind) in
        [(StopReason::ContentFilter, FaultKind::ContentFilter), (StopReason::Refusal, FaultKind::Declined)]
    {
        let stage = TestHome::new("rules: [{ say: from the fallback }]");
        let home = stage.home_with(|drivers| {
            let fallback =
                Script::parse("provider.yaml", "rules: [{ say: from the fallback }]").unwrap().model();
            let used = Used::Tokens(Usage { input: 10, output: 3, ..Usage::default() });
            let answer = ModelAnswer::text("I cannot").with_used(used).with_stop(stop);
            let primary = FunctionModel::new(move |_| std::future::ready(Ok(answer.clone())));
            drivers.with_model(name("m"), Arc::new(primary)).with_model(name("cheap"), Arc::new(fallback))
        });
        let tree = home.start(definition("root $9.00 turns=5")).await.unwrap();
        let end = settled(&tree).await.state;
        let failed = recorded(&tree).await.into_iter().find_map(|recorded| match recorded.event {
            Event::AttemptFailed { fault, spent, .. } => Some((fault?, spent.get(Resource::Tokens))),
            _ => None,
        });
        let fault = Fault { message: "I cannot".to_owned(), ..Fault::new(kind) };
        assert_eq!(failed, Some((fault, 13)), "{stop:?}");
        assert_eq!(end, TreeState::Ended(ExitKind::Completed), "{stop:?}");
    }
}
