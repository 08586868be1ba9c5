//! Trees for measuring: models and tools that take no time, so that what is left is ours.

use std::sync::Arc;

use spinney_kernel::budget::Usage;
use spinney_kernel::context::ToolAsk;
use spinney_kernel::definition::{self, Definition, Lost};
use spinney_kernel::port::Pending;
use spinney_kernel::port::journal::{Durability, Journal};
use spinney_kernel::port::model::{self, Deltas, Missed, Model};
use spinney_kernel::port::tool::{self, Tool};
use spinney_kernel::report::Used;
use spinney_kernel::world::TreeState;
use spinney_testkit::definition;
use spinney_testkit::spinney::{Drivers, Home, Tree};
use tokio::runtime::{Builder, Runtime};

/// What a step says and what a tool returns: 200 bytes.
pub(crate) const STEP_BYTES: usize = 200;

/// A model that asks for tools for so many turns and then answers. The root of a fan-out asks for all children at
/// once; a child answers at once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    /// One tool in each of so many turns.
    Turns(u32),
    /// So many children in the first turn.
    Children(u32),
    /// So many children, none of which ever answers.
    Stuck(u32),
}

struct Instant(Plan);

impl Model for Instant {
    fn call(&self, attempt: Arc<model::Attempt>, _: Deltas) -> Pending<Result<model::Answer, Missed>> {
        let is_root = attempt.origin.depth() == 0;
        let ask = |tool: &str, args: String, n: u32| ToolAsk {
            id: format!("c{n}"),
            tool: tool.to_owned(),
            args,
            tokens: None,
        };
        let spawn = |n| ask("spawn_agent", r#"{"agent":"child","goal":"Do it."}"#.to_owned(), n);
        let asks = match self.0 {
            Plan::Turns(turns) if attempt.turn <= turns => vec![ask("noop", "{}".to_owned(), attempt.turn)],
            Plan::Children(count) | Plan::Stuck(count) if is_root && attempt.turn == 1 => {
                (0..count).map(spawn).collect()
            }
            Plan::Stuck(_) if !is_root => return Box::pin(std::future::pending()),
            Plan::Turns(_) | Plan::Children(_) | Plan::Stuck(_) => Vec::new(),
        };
        let used = Used::Tokens(Usage { input: 10, output: 50, ..Usage::default() });
        Box::pin(std::future::ready(Ok(model::Answer { text: "x".repeat(STEP_BYTES), asks, used })))
    }

    fn tokens(&self, text: &str) -> u64 {
        text.len().div_ceil(4) as u64
    }

    fn used_when_stopped(&self, _: &model::Attempt, _: &str) -> Used {
        Used::NOTHING
    }
}

struct Noop;

impl Tool for Noop {
    fn spec(&self) -> definition::Tool {
        definition::Tool { lost: Lost::Repeatable, ..definition::Tool::default() }
    }

    fn call(&self, _: tool::Attempt) -> Pending<Result<tool::Answer, Missed>> {
        let answer = tool::Answer { text: "y".repeat(STEP_BYTES), is_error: false, used: Used::NOTHING };
        Box::pin(std::future::ready(Ok(answer)))
    }
}

/// A runtime as people have it.
pub(crate) fn runtime() -> Runtime {
    match Builder::new_multi_thread().worker_threads(2).enable_time().build() {
        Ok(runtime) => runtime,
        Err(error) => panic!("no runtime: {error}"),
    }
}

/// A home that follows a plan.
pub(crate) fn home(journal: Arc<dyn Journal>, plan: Plan) -> Home {
    let name = |text: &str| text.parse().unwrap_or_else(|error| panic!("{error}"));
    let mut drivers =
        Drivers::new().with_tool("noop".parse().unwrap_or_else(|error| panic!("{error}")), Arc::new(Noop));
    for model in ["m", "cheap", "free"] {
        drivers = drivers.with_model(name(model), Arc::new(Instant(plan)));
    }
    Home::open(journal, drivers)
}

/// A tree that has room for everything.
pub(crate) fn roomy(durability: Durability) -> Definition {
    let mut definition = definition("root turns=1000000 / child later turns=9");
    definition.durability = durability;
    definition.limits.agents_max = 1_000_000;
    definition.limits.children_max = 1_000_000;
    definition.limits.parallel_max = 1_000_000;
    definition
}

/// Starts a tree.
pub(crate) async fn start(home: &Home, durability: Durability) -> Tree {
    home.start(roomy(durability)).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a tree to its end.
pub(crate) async fn run(home: &Home, durability: Durability) -> Tree {
    let tree = start(home, durability).await;
    let status = tree.ended().await;
    assert_eq!(status.state, TreeState::Ended("completed"), "{status:?}");
    tree
}
