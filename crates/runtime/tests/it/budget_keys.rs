//! Every key of a budget, written in a tree file and run on the real runtime.

use std::sync::Arc;

use spinney::Tree;
use spinney::tree::TreeSnapshot;
use spinney::tree_file::TreeFile;
use spinney_kernel::budget::{Amounts, Resource};
use spinney_kernel::definition::Definition;
use spinney_kernel::port::model::ModelAttempt;
use spinney_kernel::record::{Event, Exit, ExitKind};
use spinney_kernel::rules::request::Raise;
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, recorded, settled};

use crate::name;

/// A token that `m` writes costs a tenth of a cent, and what is read costs nothing.
const TREE: &str = "
name: keys
goal: Do it.
budget: { BUDGET }
models:
  m: { provider: scripted, script: s, price: { input_per_mtok_usd: 0, output_per_mtok_usd: 1000 } }
  cheap: { provider: scripted, script: s, price: { input_per_mtok_usd: 0, output_per_mtok_usd: 100 } }
  free: { provider: scripted, script: s }
agents:
  lead: { model: MODEL, tools: [spawn_agent, list_agents], limits: { max_tokens_per_step: 2000 } }
  child: { model: m, tools: [list_agents], limits: { max_tokens_per_step: 2000 } }
entry: lead
";

/// Two turns, the first of which spends its whole cap.
const TWO_TURNS: &str = "
rules:
  - { when: { turn: 1 }, say: half, call: [{ tool: list_agents }], usage: { input: 10, output: 2000 } }
  - { say: whole, usage: { input: 10, output: 100 } }
";

fn tree_of(budget: &str, model: &str) -> Definition {
    let text = TREE.replace("BUDGET", budget).replace("MODEL", model);
    TreeFile::parse("tree.yaml", &text).unwrap_or_else(|error| panic!("{error}")).definition
}

async fn run(stage: &TestHome, budget: &str) -> (Tree, TreeSnapshot) {
    let home = stage.home();
    let tree = home.start(tree_of(budget, "m")).await.unwrap();
    let snapshot = settled(&tree).await;
    (tree, snapshot)
}

fn attempts_of(stage: &TestHome, role: &str) -> Vec<Arc<ModelAttempt>> {
    stage.model().attempts().into_iter().filter(|attempt| attempt.origin.role.as_str() == role).collect()
}

const fn usd(cents: u64) -> u64 {
    cents * 10_000_000
}

/// V19 (`on_low`): with a dollar left, a call of two dollars stops the tree, is made with half of its cap, or goes to
/// a model that costs a tenth.
async fn on_low() {
    let stage = TestHome::new(TWO_TURNS);
    let (tree, snapshot) = run(&stage, "cost_usd: 3, wrap_up: off").await;
    let halt = snapshot.halted.unwrap();
    assert_eq!((snapshot.state, snapshot.so_far.unwrap().text.as_str()), (TreeState::Halted, "half"));
    assert_eq!((halt.account, halt.short.resource), (name("lead"), Resource::Cost));
    assert_eq!((halt.short.limit, halt.short.spent, halt.short.asked), (usd(300), usd(200), usd(200)));
    assert_eq!(stage.model().attempts().len(), 1, "the call that does not fit is not made");
    tree.raise(Raise { agent: name("lead"), add: Amounts::cost(usd(100)), add_ms: 0 }).await.unwrap();
    assert_eq!(settled(&tree).await.end.unwrap().shown.text, "whole");

    let stage = TestHome::new(TWO_TURNS);
    let (_, snapshot) = run(&stage, "cost_usd: 3, wrap_up: off, on_low: shrink").await;
    let caps: Vec<u64> = stage.model().attempts().iter().map(|attempt| attempt.output_cap).collect();
    assert_eq!((snapshot.state, caps), (TreeState::Ended(ExitKind::Completed), vec![2_000, 1_000]));

    let stage = TestHome::new(TWO_TURNS);
    let (_, snapshot) = run(&stage, "cost_usd: 3, wrap_up: off, on_low: { downgrade: cheap }").await;
    let called: Vec<(String, u64)> = stage
        .model()
        .attempts()
        .iter()
        .map(|attempt| (attempt.model.to_string(), attempt.output_cap))
        .collect();
    assert_eq!(called, [("m".to_owned(), 2_000), ("cheap".to_owned(), 2_000)]);
    assert_eq!(
        snapshot.end.unwrap().spent.get(Resource::Cost),
        usd(200) + usd(1),
        "the second call at a tenth"
    );
}

/// V19 (`unpriced`): a model without a price is refused where money has a ceiling and never counts as free, unless the
/// file says so. Its tokens count.
async fn unpriced() {
    let stage = TestHome::new(TWO_TURNS);
    let tree = stage.home().start(tree_of("cost_usd: 3", "free")).await.unwrap();
    let end = settled(&tree).await.end.unwrap();
    let Exit::Failed { error } = &end.exit else { panic!("{end:?}") };
    assert_eq!((error.code.as_str(), end.spent), ("unpriced", Amounts::ZERO));
    assert_eq!(stage.model().attempts().len(), 0);

    let stage = TestHome::new(TWO_TURNS);
    let allowed = TREE.replace("entry: lead", "entry: lead\nunpriced: allow");
    let text = allowed.replace("BUDGET", "cost_usd: 3").replace("MODEL", "free");
    let tree = stage.home().start(TreeFile::parse("tree.yaml", &text).unwrap().definition).await.unwrap();
    let spent = settled(&tree).await.end.unwrap().spent;
    assert_eq!((spent.get(Resource::Cost), spent.get(Resource::Tokens)), (0, 2_120));
}

/// V19 (`answer_reserve`): a child spends until only the reserve of its lead is left, and the lead answers with that.
async fn answer_reserve() {
    let stage = TestHome::new(
        "
rules:
  - { when: { agent: lead, turn: 1 }, call: [{ tool: spawn_agent, args: { agent: child, id: c, goal: Dig. } }], usage: { input: 0, output: 0 } }
  - { when: { agent: lead }, say: 'as far as it got: {{ last }}', usage: { input: 0, output: 2000 } }
  - { say: deeper, call: [{ tool: list_agents }], usage: { input: 0, output: 2000 } }
",
    );
    let (tree, snapshot) =
        run(&stage, "cost_usd: 10, answer_reserve: 40, wrap_up: off, repeats: { notice: 0, end: 0 }").await;
    assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Completed));
    let end = snapshot.end.unwrap();
    assert!(end.shown.text.starts_with("as far as it got: "), "{}", end.shown.text);
    assert_eq!(attempts_of(&stage, "child").len(), 3, "six of ten dollars");
    assert_eq!(end.spent.get(Resource::Cost), usd(800));
    let child = recorded(&tree).await.into_iter().find_map(|recorded| match recorded.event {
        Event::AgentEnded { agent, exit, .. } if agent.as_str() == "c" => Some(exit),
        _ => None,
    });
    let Some(Exit::Exhausted { account, short }) = child else { panic!("{child:?}") };
    assert_eq!((account, short.reserve), (name("lead"), usd(400)));
}

/// V19 (`lend`): what a child is lent is held at its lead as soon as it starts, no other agent can use it, and the rest
/// returns at its end.
async fn lend() {
    let stage = TestHome::new(
        "
rules:
  - when: { agent: lead, turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: child, id: one, goal: Dig., budget: { cost_usd: 6, lend: true } } }
      - { tool: spawn_agent, args: { agent: child, id: two, goal: Dig., budget: { cost_usd: 6, lend: true } } }
    usage: { input: 0, output: 0 }
  - { when: { agent: lead }, say: '{{ last }}', usage: { input: 0, output: 0 } }
  - { think_ms: 1000, say: dug, usage: { input: 0, output: 1000 } }
",
    );
    let home = stage.home();
    let tree = home.start(tree_of("cost_usd: 10, answer_reserve: 0, wrap_up: off", "m")).await.unwrap();
    stage.model().until_out(1).await;
    let snapshot = tree.snapshot().await.unwrap();
    let [lead, one] = snapshot.agents.as_slice() else { panic!("{:?}", snapshot.agents) };
    assert_eq!((lead.lent.get(Resource::Cost), one.agent.as_str()), (usd(600), "one"));
    assert_eq!(lead.remaining.unwrap().get(Resource::Cost), Some(usd(400)));
    let snapshot = settled(&tree).await;
    assert_eq!((snapshot.state, snapshot.agents.len()), (TreeState::Ended(ExitKind::Completed), 2));
    assert_eq!(snapshot.end.unwrap().spent.get(Resource::Cost), usd(100), "the rest came back");
    let second = attempts_of(&stage, "lead").swap_remove(1);
    let refused: String = second.packet.messages.iter().map(|message| message.text().into_owned()).collect();
    assert!(
        refused.contains(
            "cost ceiling of `lead`: limit $10.00, spent $0.00, held $0.00, lent $6.00, asked $6.00"
        ),
        "{refused}"
    );
}

/// V19 (`remaining`): with every result an agent reads what it has left at that moment, and with a child's result what
/// that used.
async fn remaining() {
    let stage = TestHome::new(
        "
rules:
  - { when: { agent: lead, turn: 1 }, call: [{ tool: list_agents }], usage: { input: 0, output: 500 } }
  - { when: { agent: lead, turn: 2 }, call: [{ tool: spawn_agent, args: { agent: child, id: c, goal: Dig. } }], usage: { input: 0, output: 500 } }
  - { say: done, usage: { input: 0, output: 1000 } }
",
    );
    let (_, snapshot) = run(&stage, "cost_usd: 10, answer_reserve: 0").await;
    assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Completed));
    let read: Vec<String> = attempts_of(&stage, "lead")[1..]
        .iter()
        .map(|attempt| {
            attempt.packet.messages.iter().rev().find_map(|message| message.facts()).unwrap().to_string()
        })
        .collect();
    insta::assert_snapshot!(read.join("\n"), @"
    [you have left $9.50]
    [used $1.00, 1000 tokens, 1 step; you have left $8.00]
    ");
}

/// V19: each key of a budget does what it says.
#[tokio::test(start_paused = true)]
async fn v19_every_key_of_a_budget_does_what_it_says() {
    on_low().await;
    unpriced().await;
    answer_reserve().await;
    lend().await;
    remaining().await;
}
