//! Ceilings on the real runtime: what does not fit is never sent to a model, the account that blocks is named, and a
//! halted tree continues after a raise. Retries and fallbacks are calls like any other.

use std::sync::{Arc, Mutex};

use spinney::{Drivers, FunctionModel, Home, Shutdown, Tree};
use spinney_kernel::budget::{Amounts, Resource, Used};
use spinney_kernel::definition::Definition;
use spinney_kernel::port::model::{AttemptError, ModelAnswer, ModelAttempt, Purpose};
use spinney_kernel::primitives::{AgentId, Fault, FaultKind};
use spinney_kernel::record::{Event, Exit, ExitKind};
use spinney_kernel::rules::request::{Raise, Request};
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, recorded, settled};

use crate::name;

/// Why the next call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Turn,
    /// The first attempt took too long and is booked in full.
    Retry,
    /// The same, and there is a fallback, which costs ten times as much.
    Fallback,
}

impl Next {
    const ALL: [Self; 3] = [Self::Turn, Self::Retry, Self::Fallback];

    /// A ceiling that the first attempt keeps and the next one does not.
    const fn ceiling(self) -> &'static str {
        match self {
            Self::Turn | Self::Retry => "0.15",
            Self::Fallback => "0.105",
        }
    }

    /// What the leaf does.
    const fn rules(self) -> &'static str {
        match self {
            Self::Turn => {
                "  - { when: { agent: leaf, turn: 1 }, say: half, call: [{ tool: list_agents }], usage: { input: 0, output: 100 } }"
            }
            Self::Retry | Self::Fallback => {
                "  - { when: { agent: leaf }, fail: { kind: timeout, times: 1 }, say: whole }"
            }
        }
    }

    fn change(self, definition: &mut Definition) {
        let [m, cheap] = ["m", "cheap"].map(name);
        match self {
            Self::Turn | Self::Retry => definition.models.get_mut(&m).unwrap().fallback.clear(),
            Self::Fallback => {
                definition.models.get_mut(&m).unwrap().fallback.clear();
                definition.models.get_mut(&cheap).unwrap().fallback = vec![m];
                definition.roles.values_mut().for_each(|role| role.model = cheap.clone());
            }
        }
    }
}

/// Spawns a chain of agents, root, a, b and leaf, whose `capped` agent has the ceiling of `next`.
fn chain(next: Next, capped: &str) -> (TestHome, Definition) {
    let budget = |agent: &str| {
        if agent == capped { format!(", budget: {{ cost_usd: {} }}", next.ceiling()) } else { String::new() }
    };
    let spawn = |parent: &str, child: &str| {
        let budget = budget(child);
        format!(
            "  - {{ when: {{ agent: {parent}, turn: 1 }}, call: [{{ tool: spawn_agent, args: {{ agent: {child}, id: {child}, goal: Help.{budget} }} }}], usage: {{ input: 0, output: 0 }} }}\n"
        )
    };
    let spawns =
        [("root", "a"), ("a", "b"), ("b", "leaf")].map(|(parent, child)| spawn(parent, child)).concat();
    let script = format!(
        "lost: presumed\nrules:\n{spawns}{}\n  - {{ say: done, usage: {{ input: 0, output: 0 }} }}",
        next.rules()
    );
    let root = if capped == "root" { next.ceiling() } else { "9.00" };
    let fixture = format!("root ${root} turns=5 / a later turns=5 / b later turns=5 / leaf later turns=5");
    let mut definition = spinney_testkit::definition(&fixture);
    next.change(&mut definition);
    (TestHome::new(&script), definition)
}

/// The calls of the leaf that reached a model, by the names of the models.
fn leaf_calls(stage: &TestHome) -> Vec<String> {
    let attempts = stage.model().attempts();
    let of_leaf = attempts.iter().filter(|attempt| attempt.origin.agent().as_str() == "leaf");
    of_leaf.map(|attempt| attempt.model.to_string()).collect()
}

/// V2: an account anywhere up the chain is full. The next call below it never reaches a model, whether it is a turn, a
/// retry or a fallback, and what ends or halts names the account with the ceiling.
#[tokio::test(start_paused = true)]
async fn v2_below_a_full_account_no_call_reaches_a_model_and_the_account_is_named() {
    for next in Next::ALL {
        for capped in ["leaf", "b", "a", "root"] {
            let (stage, definition) = chain(next, capped);
            let home = stage.home();
            let tree = home.start(definition).await.unwrap();
            let snapshot = settled(&tree).await;
            assert_eq!(leaf_calls(&stage).len(), 1, "{next:?} below {capped}: only the first attempt");
            let named = match snapshot.halted {
                Some(halt) => (halt.account, halt.short.resource),
                None => exhausted(&tree, "leaf").await,
            };
            assert_eq!(named, (name(capped), Resource::Cost), "{next:?} below {capped}");
            assert_eq!(snapshot.state == TreeState::Halted, capped == "root", "{next:?} below {capped}");
            home.shutdown(Shutdown::Kill).await;
        }
    }
}

/// The account whose ceiling ended an agent.
async fn exhausted(tree: &Tree, of: &str) -> (AgentId, Resource) {
    let of: AgentId = name(of);
    let ended = recorded(tree).await.into_iter().find_map(|recorded| match recorded.event {
        Event::AgentEnded { agent, exit, .. } if agent == of => Some(exit),
        _ => None,
    });
    let Some(Exit::Exhausted { account, short }) = ended else { panic!("{ended:?}") };
    (account, short.resource)
}

/// A raise for a tree that runs, or for one whose process died.
async fn raised(open: impl Fn() -> Home, home: Home, tree: Tree, add: Amounts, how: Shutdown) -> Tree {
    let raise = Raise { agent: name("root"), add, add_ms: 0 };
    if how == Shutdown::Drain {
        tree.raise(raise).await.unwrap();
        return tree;
    }
    home.shutdown(how).await;
    let home = open();
    home.apply(tree.id(), Request::Raise(raise)).await.unwrap();
    home.resume(tree.id()).await.unwrap()
}

/// X3: a tree that is out of money, tokens or steps is halted, and continues from there when a person adds some, while it
/// runs, after a stop and after a crash: nothing that was called before is called again.
#[tokio::test(start_paused = true)]
async fn x3_a_tree_that_ran_out_continues_after_a_raise_whatever_it_was_about_to_call() {
    let usd = |usd: u64| Amounts::cost(usd * 1_000_000_000);
    for how in [Shutdown::Drain, Shutdown::Stop, Shutdown::Kill] {
        for next in Next::ALL {
            let (stage, definition) = chain(next, "root");
            let home = stage.home();
            let tree = home.start(definition).await.unwrap();
            assert_eq!(settled(&tree).await.state, TreeState::Halted, "{next:?}");
            let before = stage.model().attempts().len();
            let tree = raised(|| stage.home(), home, tree, usd(9), how).await;
            assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed), "{next:?} {how:?}");
            // The call that did not fit, and the answers of b, a and the root.
            assert_eq!(stage.model().attempts().len(), before + 4, "{next:?} {how:?}");
            let retries = tree.snapshot().await.unwrap().end.unwrap().spent.get(Resource::Retries);
            assert_eq!(retries, u64::from(next != Next::Turn), "{next:?} {how:?}");
        }
        for (fixture, add, resource) in [
            (
                "root tokens=4000 out=3000 turns=5 tools=list_agents",
                Amounts::ZERO.with(Resource::Tokens, 9_000),
                Resource::Tokens,
            ),
            ("root steps=1 out=3000 turns=5", Amounts::ZERO.with(Resource::Steps, 9), Resource::Steps),
        ] {
            let stage = TestHome::new(
                "rules: [{ when: { turn: 1 }, say: half, call: [{ tool: list_agents }], usage: { input: 0, output: 3000 } }, { say: whole }]",
            );
            let home = stage.home();
            let tree = stage.start(&home, fixture).await;
            let snapshot = settled(&tree).await;
            let short = snapshot.halted.map(|halt| (halt.account, halt.short.resource));
            assert_eq!((snapshot.state, short), (TreeState::Halted, Some((name("root"), resource))));
            assert_eq!(snapshot.so_far.unwrap().text, "half");
            let tree = raised(|| stage.home(), home, tree, add, how).await;
            assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed), "{fixture} {how:?}");
            assert_eq!(tree.snapshot().await.unwrap().end.unwrap().shown.text, "whole");
            assert_eq!(stage.model().attempts().len(), 2, "{fixture} {how:?}");
        }
    }
}

/// A retry that does not fit is replaced by the agent's last call, if it has one. The root's answer is the output so
/// far, and the tree halts.
#[tokio::test(start_paused = true)]
async fn a_root_whose_retry_does_not_fit_gets_its_last_call_and_halts() {
    let model = FunctionModel::new(|attempt: Arc<ModelAttempt>| {
        let fault = Fault::new(FaultKind::Timeout);
        std::future::ready(match attempt.purpose {
            Purpose::WrapUp => Ok(ModelAnswer::text("a part")),
            _ => Err(AttemptError { fault, used: Used::Unknown }),
        })
    });
    let stage = TestHome::new("rules: [{ say: never asked }]");
    let home = stage.home_with(|drivers| drivers.with_model(name("m"), Arc::new(model)));
    let mut definition = spinney_testkit::definition("root $2.70 turns=5 wrap out=2000");
    definition.models.values_mut().for_each(|model| model.fallback.clear());
    let tree = home.start(definition).await.unwrap();
    let snapshot = settled(&tree).await;
    assert_eq!((snapshot.state, snapshot.so_far.unwrap().text.as_str()), (TreeState::Halted, "a part"));
    assert_eq!(snapshot.halted.unwrap().account, name("root"));
}

/// A root whose model fails and whose fallback does not fit gets one last call and halts, although its own model would
/// still fit: nothing but a raise brings another call, and then the fallback is asked.
#[tokio::test(start_paused = true)]
async fn x3_a_root_whose_fallback_does_not_fit_gets_one_last_call_until_a_raise() {
    for how in [Shutdown::Drain, Shutdown::Stop, Shutdown::Kill] {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let stage = TestHome::new("rules: [{ say: never asked }]");
        let open = || {
            let calls = Arc::clone(&calls);
            let model = FunctionModel::new(move |attempt: Arc<ModelAttempt>| {
                calls.lock().unwrap().push(format!("{} {:?}", attempt.model, attempt.purpose));
                let fault = Fault::new(FaultKind::Server);
                std::future::ready(match (attempt.model.as_str(), attempt.purpose) {
                    ("cheap", _) => Err(AttemptError { fault, used: Used::CostNanos(0) }),
                    (_, Purpose::WrapUp) => Ok(ModelAnswer::text("a part")),
                    _ => Ok(ModelAnswer::text("whole")),
                })
            });
            let model = Arc::new(model);
            let drivers = |drivers: Drivers| {
                drivers
                    .with_model(name("m"), Arc::<FunctionModel>::clone(&model))
                    .with_model(name("cheap"), model)
            };
            stage.home_with(drivers)
        };
        let home = open();
        let mut definition = spinney_testkit::definition("root $0.90 turns=9 wrap out=2000");
        let [m, cheap] = ["m", "cheap"].map(name);
        definition.models.get_mut(&m).unwrap().fallback.clear();
        definition.models.get_mut(&cheap).unwrap().fallback = vec![m];
        definition.roles.values_mut().for_each(|role| role.model = cheap.clone());
        let tree = home.start(definition).await.unwrap();
        let snapshot = settled(&tree).await;
        let before = calls.lock().unwrap().clone();
        let last_calls = before.iter().filter(|call| *call == "m WrapUp").count();
        assert_eq!((last_calls, before.last().unwrap().as_str()), (1, "m WrapUp"), "{before:?}");
        assert_eq!((snapshot.state, snapshot.so_far.unwrap().text.as_str()), (TreeState::Halted, "a part"));
        let halt = snapshot.halted.unwrap();
        assert_eq!((halt.account, halt.short.resource), (name("root"), Resource::Cost));
        let tree = raised(open, home, tree, Amounts::cost(9_000_000_000), how).await;
        assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed), "{how:?}");
        assert_eq!(calls.lock().unwrap()[before.len()..], ["m Turn"], "{how:?}");
        assert_eq!(tree.snapshot().await.unwrap().end.unwrap().shown.text, "whole");
    }
}
