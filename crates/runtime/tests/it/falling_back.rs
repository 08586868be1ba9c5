//! When a provider fails: another one is called, or the same one later, and whoever watches is told why.

use std::sync::Arc;

use spinney::Tree;
use spinney::bus::{Seen, Watch};
use spinney_kernel::context::Switch;
use spinney_kernel::definition::{BudgetSpec, OnLow};
use spinney_kernel::record::Event;
use spinney_kernel::words::{Fault, FaultKind, ModelName, Seq, Time};
use spinney_testkit::scripted::{Script, ScriptedModel};
use spinney_testkit::{Recorder, Stage, definition, settled, told};

/// Two providers of their own, as `m` and `cheap`.
struct Providers {
    stage: Stage,
    primary: Arc<Recorder<ScriptedModel>>,
    fallback: Arc<Recorder<ScriptedModel>>,
}

impl Providers {
    fn new(primary: &str) -> Self {
        let model = |text| Arc::new(Recorder::new(Script::parse("provider.yaml", text).unwrap().model()));
        let fallback = model("rules: [{ say: from the fallback }]");
        Self { stage: Stage::new("rules: [{ say: x }]"), primary: model(primary), fallback }
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

/// Every switch, as a watcher sees it: from, to, why.
async fn switches(tree: &Tree) -> Vec<(Switch, ModelName)> {
    let mut watcher = tree.watch(Watch { kind: Some("call_switched".to_owned()), ..Watch::default() });
    let mut seen = Vec::new();
    while let Some(next) = watcher.next().await {
        let Seen::Event(sight) = next.unwrap() else { panic!("no deltas were asked for") };
        let Event::CallSwitched { model, .. } = &sight.told.event else { panic!("{sight:?}") };
        seen.push((Switch::clone(sight.hop.switch.as_ref().unwrap()), model.clone()));
    }
    seen
}

/// When attempts at the first call started, and when they failed.
async fn times(tree: &Tree) -> (Vec<Time>, Vec<Time>) {
    let (mut starts, mut faults) = (Vec::new(), Vec::new());
    for told in told(tree).await {
        if let Event::CallStarted { .. } = told.event {
            starts.push(told.at);
        } else if let Event::AttemptFailed { .. } = told.event {
            faults.push(told.at);
        }
    }
    (starts, faults)
}

/// L31: a provider that fails (503) is left at once for the fallback's own provider, and a watcher is told from where, to
/// where and why. One that is only busy (429) is called again after the time that it asked for, to the millisecond.
#[tokio::test(start_paused = true)]
async fn l31_a_failing_provider_is_left_for_its_fallback_and_a_busy_one_is_given_its_time() {
    let providers = Providers::new("rules: [{ fail: { kind: server } }]");
    let tree = providers.run(|_| {}).await;
    assert_eq!(providers.calls(), (1, 1));
    assert_eq!(providers.fallback.attempts()[0].model, name("cheap"));
    assert_eq!(tree.look().await.unwrap().end.unwrap().shown.text, "from the fallback");
    let (switch, to) = switches(&tree).await.pop().unwrap();
    assert_eq!((switch.from.as_str(), to.as_str(), switch.reason()), ("m", "cheap", "server"));
    let message = "rule 1 of provider.yaml: attempt 1 fails as scripted".to_owned();
    assert_eq!(switch.fault, Some(Fault { message, ..Fault::of(FaultKind::Server) }));
    let (starts, faults) = times(&tree).await;
    assert_eq!(starts[1], faults[0], "at once");

    let providers =
        Providers::new("rules: [{ fail: { kind: rate_limit, times: 1, retry_after_ms: 1234 }, say: back }]");
    let tree = providers.run(|_| {}).await;
    assert_eq!(providers.calls(), (2, 0));
    assert_eq!(tree.look().await.unwrap().end.unwrap().shown.text, "back");
    assert_eq!(switches(&tree).await, []);
    let (starts, faults) = times(&tree).await;
    assert_eq!(starts[1].0 - faults[0].0, 1_234);
}

/// A switch because of the budget says so, also after a fault that was mended.
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
    assert_eq!(tree.events(Seq(0)).next().await.unwrap().unwrap().seq, Seq(1));
}
