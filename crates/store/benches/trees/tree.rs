//! Trees to measure: models and tools take no time, so only our own time is left.

use std::path::Path;
use std::sync::Arc;

use spinney_journal::Journal;
use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::definition;
use spinney_kernel::definition::{Definition, OnLost};
use spinney_kernel::port::model::{AttemptError, Deltas, Model};
use spinney_kernel::port::tool::Tool;
use spinney_kernel::port::{Pending, model, tool};
use spinney_kernel::primitives::Durability;
use spinney_kernel::primitives::limit::ASKS_MAX;
use spinney_kernel::record::{ExitKind, ToolAsk};
use spinney_kernel::world::TreeState;
use spinney_store::{Access, SqliteJournal};
use spinney_testkit::definition;
use spinney_testkit::spinney::{Drivers, Home, Tree, worker_threads};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// The text of a step and of a tool result: 200 bytes.
pub(crate) const STEP_BYTES: usize = 200;

/// The size of a written file.
pub(crate) const FILE_BYTES: usize = 4_096;

/// Children of each lead: the maximum of one answer.
pub(crate) const EACH: u32 = ASKS_MAX as u32;

/// What the agents of a tree do, each by its depth.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    /// The root calls one tool in each of this many turns, then answers.
    Turns(u32),
    /// The root writes a file in each of this many turns, then answers.
    Files(u32),
    /// The root spawns this many children in its first turn; each answers at once.
    Children(u32),
    /// This many children, which never answer.
    Stuck(u32),
    /// The root never answers.
    Still,
    /// This many leads below the root, each with the maximum of children, which all do this.
    Leads(u32, Idle),
}

/// What the agents below the leads do forever.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Idle {
    /// Their model never answers.
    Calling,
    /// They wait for a person.
    Asking,
}

/// A model that follows a plan and takes no time.
pub(crate) struct Scripted {
    plan: Plan,
    /// The number of calls that never end.
    stuck: watch::Sender<usize>,
}

/// What a model does in one turn.
enum Move {
    Ask(Vec<ToolAsk>),
    Answer,
    Never,
}

impl Scripted {
    pub(crate) fn new(plan: Plan) -> Arc<Self> {
        Arc::new(Self { plan, stuck: watch::Sender::new(0) })
    }

    /// Waits for this many calls that never end.
    pub(crate) async fn stuck(&self, count: usize) {
        let waited = self.stuck.subscribe().wait_for(|stuck| *stuck >= count).await.map(drop);
        assert!(waited.is_ok(), "the caller holds the model");
    }

    fn next(&self, depth: usize, turn: u32) -> Move {
        match (self.plan, depth, turn) {
            (Plan::Turns(turns), _, _) if turn <= turns => Move::Ask(vec![ask("noop", "{}", turn)]),
            (Plan::Files(turns), _, _) if turn <= turns => {
                let text = format!("{turn:0>FILE_BYTES$}");
                let args = format!(r#"{{"path":"outputs/file.md","text":"{text}"}}"#);
                Move::Ask(vec![ask("write_file", &args, turn)])
            }
            (Plan::Children(count) | Plan::Stuck(count), 0, 1) => spawn("child", count),
            (Plan::Leads(leads, _), 0, 1) => spawn("lead", leads),
            (Plan::Leads(..), 1, 1) => spawn("child", EACH),
            (Plan::Leads(_, Idle::Asking), 2, 1) => {
                Move::Ask(vec![ask("ask_human", r#"{"question":"Which?"}"#, turn)])
            }
            (Plan::Still, _, _) | (Plan::Stuck(_), 1, _) | (Plan::Leads(_, Idle::Calling), 2, _) => {
                Move::Never
            }
            (
                Plan::Turns(_) | Plan::Files(_) | Plan::Children(_) | Plan::Stuck(_) | Plan::Leads(..),
                _,
                _,
            ) => Move::Answer,
        }
    }
}

impl Model for Scripted {
    fn call(
        &self,
        attempt: Arc<model::ModelAttempt>,
        _: Deltas,
    ) -> Pending<Result<model::ModelAnswer, AttemptError>> {
        let asks = match self.next(attempt.origin.depth(), attempt.turn) {
            Move::Ask(asks) => asks,
            Move::Answer => Vec::new(),
            Move::Never => {
                self.stuck.send_modify(|stuck| *stuck += 1);
                return Box::pin(std::future::pending());
            }
        };
        let used = Used::Tokens(Usage { input: 10, output: 50, ..Usage::default() });
        Box::pin(std::future::ready(Ok(model::ModelAnswer::text("x".repeat(STEP_BYTES))
            .with_asks(asks)
            .with_used(used))))
    }

    fn tokens(&self, text: &str) -> u64 {
        text.len().div_ceil(4) as u64
    }

    fn used_when_stopped(&self, _: &model::ModelAttempt, _: &str) -> Used {
        Used::NOTHING
    }
}

fn ask(tool: &str, args: &str, number: u32) -> ToolAsk {
    ToolAsk {
        id: format!("c{number}"),
        tool: tool.to_owned(),
        args: args.to_owned(),
        tokens: None,
        told_tokens: None,
    }
}

fn spawn(role: &str, count: u32) -> Move {
    let args = format!(r#"{{"agent":"{role}","goal":"Do it."}}"#);
    Move::Ask((0..count).map(|number| ask("spawn_agent", &args, number)).collect())
}

struct Noop;

impl Tool for Noop {
    fn spec(&self) -> definition::ToolSpec {
        definition::ToolSpec { lost: OnLost::Repeatable, ..definition::ToolSpec::default() }
    }

    fn call(&self, _: tool::ToolAttempt) -> Pending<Result<tool::ToolAnswer, AttemptError>> {
        Box::pin(std::future::ready(Ok(tool::ToolAnswer::text("y".repeat(STEP_BYTES)))))
    }
}

/// A multi-threaded runtime, as people use it.
pub(crate) fn runtime() -> Runtime {
    match Builder::new_multi_thread().worker_threads(worker_threads()).enable_time().build() {
        Ok(runtime) => runtime,
        Err(error) => panic!("no runtime: {error}"),
    }
}

/// A home whose model follows a plan.
pub(crate) fn home(journal: Arc<dyn Journal>, plan: Plan) -> Home {
    home_with(journal, &Scripted::new(plan))
}

/// A home with this model.
pub(crate) fn home_with<M: Model + 'static>(journal: Arc<dyn Journal>, model: &Arc<M>) -> Home {
    home_of(journal, drivers(model))
}

/// A home with these drivers.
pub(crate) fn home_of(journal: Arc<dyn Journal>, drivers: Drivers) -> Home {
    Home::open(journal, drivers)
}

/// This model under every name, and a tool that does nothing.
pub(crate) fn drivers<M: Model + 'static>(model: &Arc<M>) -> Drivers {
    let mut drivers =
        Drivers::new().with_tool("noop".parse().unwrap_or_else(|error| panic!("{error}")), Arc::new(Noop));
    for name in ["m", "cheap", "free"] {
        let name = name.parse().unwrap_or_else(|error| panic!("{error}"));
        drivers = drivers.with_model(name, Arc::clone(model) as Arc<dyn Model>);
    }
    drivers
}

/// A journal in a folder.
pub(crate) fn sqlite(home: &Path) -> Arc<SqliteJournal> {
    Arc::new(SqliteJournal::open(home, Access::Write).unwrap_or_else(|fault| panic!("{fault}")))
}

/// A folder that is removed when it is dropped.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"))
}

/// A tree with room for everything.
pub(crate) fn roomy(durability: Durability) -> Definition {
    let mut definition = definition("root turns=1000000 / lead later turns=9 / child later turns=9");
    definition.durability = durability;
    definition.limits.agents_max = 1_000_000;
    definition.limits.children_max = 1_000_000;
    definition.limits.parallel_max = 1_000_000;
    definition
}

pub(crate) async fn start(home: &Home, durability: Durability) -> Tree {
    home.start(roomy(durability)).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a tree to its end.
pub(crate) async fn run(home: &Home, durability: Durability) -> Tree {
    completed(start(home, durability).await).await
}

/// Runs a changed tree to its end.
pub(crate) async fn run_with(home: &Home, change: impl FnOnce(&mut Definition)) -> Tree {
    let mut definition = roomy(Durability::Normal);
    change(&mut definition);
    completed(home.start(definition).await.unwrap_or_else(|error| panic!("{error}"))).await
}

async fn completed(tree: Tree) -> Tree {
    let status = tree.ended().await;
    assert_eq!(status.state, TreeState::Ended(ExitKind::Completed), "{status:?}");
    tree
}
