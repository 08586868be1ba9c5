//! A home: starts trees, resumes them after a restart, and stops them.

mod remove;
mod resume;
mod shutdown;
mod start;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use futures::{FutureExt, future};
use spinney_journal::{
    Cleaned, HeadCursor, HeadPage, Journal, JournalFault, clean, continuation, newest_sources, source_bytes,
};
use spinney_kernel::definition::Definition;
use spinney_kernel::primitives::{Actor, SourceName, Time, TreeId};
use spinney_kernel::record::ContinuedAs;
use spinney_kernel::rules::request::{Reply, Request, Verb};
use spinney_kernel::world::TreeState;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::call_limits::CallLimits;
use crate::clock::{Clock, SystemClock};
use crate::drivers::{DriverSource, Drivers, NoDriver};
use crate::hooks::TreeHooks;
use crate::rng::Rng;
use crate::tree::{
    ApplyError, Begin, BranchError, BranchOff, ProgramRunner, Tree, apply, branch, continue_ended,
};

pub use remove::{Orphan, RemoveError};
pub use resume::ResumeError;
pub use shutdown::Shutdown;
pub use start::{StartError, StartOptions};

/// A home of trees.
pub struct Home {
    journal: Arc<dyn Journal>,
    /// Asked for the drivers of each tree.
    source: Arc<dyn DriverSource>,
    /// Who makes its requests, unless they say so themselves.
    actor: Actor,
    hooks: Option<Arc<dyn TreeHooks>>,
    programs: Option<Arc<dyn ProgramRunner>>,
    keeps_first_text: bool,
    /// Shared by all its trees.
    limits: Arc<CallLimits>,
    clock: Arc<dyn Clock>,
    rng: Mutex<Rng>,
    trees: Mutex<BTreeMap<TreeId, Running>>,
    stop: CancellationToken,
    /// Before that: stop waiting for drivers of trees that would not run.
    closing: CancellationToken,
    /// Locks for trees that are being resumed, changed or removed here.
    tree_locks: Mutex<BTreeMap<TreeId, Arc<tokio::sync::Mutex<()>>>>,
    /// Shared by everything that changes a tree; exclusive for shutdown.
    starting: tokio::sync::RwLock<()>,
    /// Held while checkpoints are cleaned.
    cleaning: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Running {
    tree: Tree,
    /// Stops this tree alone.
    stop: CancellationToken,
    task: AbortHandle,
    /// Completes when the task is gone, for any reason.
    over: future::Shared<BoxFuture<'static, ()>>,
}

impl Home {
    /// Opens a home on a journal. Nothing runs until a tree is started or resumed. The source is asked for the drivers of
    /// each tree; [`Drivers`](crate::Drivers) are the same ones for all.
    #[must_use]
    pub fn open(journal: Arc<dyn Journal>, source: impl DriverSource + 'static) -> Self {
        Self::open_with(journal, source, Arc::new(SystemClock::new()), Rng::fresh())
    }

    /// Opens a home with its own clock and random numbers, for repeatable tests.
    #[must_use]
    pub fn open_with(
        journal: Arc<dyn Journal>,
        source: impl DriverSource + 'static,
        clock: Arc<dyn Clock>,
        rng: Rng,
    ) -> Self {
        Self {
            journal,
            source: Arc::new(source),
            actor: Actor::PROGRAM,
            hooks: None,
            programs: None,
            keeps_first_text: false,
            limits: Arc::default(),
            clock,
            rng: Mutex::new(rng),
            trees: Mutex::default(),
            stop: CancellationToken::new(),
            closing: CancellationToken::new(),
            tree_locks: Mutex::default(),
            starting: tokio::sync::RwLock::default(),
            cleaning: tokio::sync::Mutex::default(),
        }
    }

    /// Sets who makes the requests of this home and of the trees that it starts and resumes, unless a request names
    /// another actor. The default is a program without a name.
    #[must_use]
    pub fn with_actor(mut self, actor: Actor) -> Self {
        self.actor = actor;
        self
    }

    /// Adds hooks around every model and tool call of its trees.
    #[must_use]
    pub fn with_hooks(mut self, hooks: Arc<dyn TreeHooks>) -> Self {
        self.hooks = Some(hooks);
        self
    }

    /// Sets who runs the programs that are agents of its trees. Without it, no tree with such agents starts here.
    #[must_use]
    pub fn with_programs(mut self, runner: Arc<dyn ProgramRunner>) -> Self {
        self.programs = Some(runner);
        self
    }

    /// Keeps what the models and tools of a tree stream for the first watcher of all its agents, so that it gets their text from
    /// the beginning although the tree runs before it can be watched. It is as bounded as the room of a watcher.
    #[must_use]
    pub fn with_first_text(mut self) -> Self {
        self.keeps_first_text = true;
        self
    }

    /// Refuses a tree with agents that are programs, if nothing runs them.
    fn check_programs(&self, definition: &Definition) -> Result<(), NoDriver> {
        match definition.programs().next() {
            Some((role, ..)) if self.programs.is_none() => Err(NoDriver::Program { role: role.clone() }),
            Some(_) | None => Ok(()),
        }
    }

    /// A tree that runs in this home.
    #[must_use]
    pub fn tree(&self, tree: TreeId) -> Option<Tree> {
        let trees = self.trees();
        trees.get(&tree).filter(|running| !running.task.is_finished()).map(|running| running.tree.clone())
    }

    /// The trees that run in this home.
    #[must_use]
    pub fn running(&self) -> Vec<Tree> {
        let trees = self.trees();
        let running = trees.values().filter(|running| !running.task.is_finished());
        running.map(|running| running.tree.clone()).collect()
    }

    /// A page of its trees, running and stored, oldest first: those in one of these states, or all. `after` is where the
    /// previous page ended.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub async fn page(
        &self,
        states: &[TreeState],
        after: HeadCursor,
        trees_max: usize,
    ) -> Result<HeadPage, JournalFault> {
        self.journal.head_page(states, after, trees_max).await
    }

    /// Its journal.
    #[must_use]
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// The files that a tree is resumed from, with their bytes: those that it was started with, and the newest of each
    /// name since. A branch has those of its origin.
    ///
    /// # Errors
    /// If the journal cannot be read, or is damaged.
    pub async fn sources(&self, tree: TreeId) -> Result<Vec<(SourceName, Vec<u8>)>, JournalFault> {
        let mut sources = Vec::new();
        for file in newest_sources(self.journal.as_ref(), tree).await?.iter() {
            let bytes = source_bytes(self.journal.as_ref(), tree, file).await?;
            sources.push((file.name.clone(), bytes));
        }
        Ok(sources)
    }

    /// Applies one request of its actor to a tree that is not running. No model and no tool is called; what the
    /// request releases continues when the tree is resumed. Due timers are decided first.
    ///
    /// # Errors
    /// The refusal, or the journal's fault. Then nothing of the request was written.
    pub async fn apply<V: Verb>(&self, tree: TreeId, verb: V) -> Result<V::Reply, ApplyError> {
        self.apply_with(tree, verb, Vec::new()).await
    }

    /// The same with the bytes of the request's images and files.
    ///
    /// # Errors
    /// The refusal, that it runs here, or the journal's fault.
    pub async fn apply_with<V: Verb>(
        &self,
        tree: TreeId,
        verb: V,
        bytes: Vec<Vec<u8>>,
    ) -> Result<V::Reply, ApplyError> {
        let reply = self.apply_as(self.actor.clone(), tree, verb.into(), bytes).await?;
        reply.try_into().map_err(|other: <V::Reply as TryFrom<Reply>>::Error| ApplyError::Reply(other.into()))
    }

    async fn apply_as(
        &self,
        actor: Actor,
        tree: TreeId,
        request: Request,
        bytes: Vec<Vec<u8>>,
    ) -> Result<Reply, ApplyError> {
        let _starting = self.starting.read().await;
        let _lock = self.lock_tree(tree).await;
        if self.tree(tree).is_some() {
            return Err(ApplyError::Running { tree });
        }
        apply(self.begin_as(tree, actor), self.source.as_ref(), request, bytes).await
    }

    /// Branches off a tree under an id from [`draw_id`](Self::draw_id). It is durable when this returns, shares what
    /// came before, and is suspended until it is resumed.
    ///
    /// # Errors
    /// The refusal, or the journal's fault. Then there is no branch.
    pub async fn branch(&self, tree: TreeId, off: BranchOff) -> Result<(), BranchError> {
        let _starting = self.starting.read().await;
        // Prevents the shared batches from being removed meanwhile.
        let _origin = self.lock_tree(off.from).await;
        branch(self.begin(tree, &self.stop), off).await
    }

    /// Continues a tree that has ended, under an id from [`draw_id`](Self::draw_id): its root goes on with its context, its
    /// files and what was left of its budget and time. It waits for a person first, and is suspended until it is resumed. Only one tree continues another.
    ///
    /// # Errors
    /// The refusal, or the journal's fault, such as that it is continued already. Then there is no new tree.
    pub async fn continue_ended(
        &self,
        tree: TreeId,
        from: TreeId,
        continued_as: ContinuedAs,
    ) -> Result<(), BranchError> {
        let _starting = self.starting.read().await;
        let _origin = self.lock_tree(from).await;
        continue_ended(self.begin(tree, &self.stop), from, continued_as).await
    }

    /// The tree that continues one which has ended, if there is one.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub async fn continuation(&self, tree: TreeId) -> Result<Option<TreeId>, JournalFault> {
        continuation(self.journal.as_ref(), tree).await
    }

    /// Removes expired automatic checkpoints from the catalog, and returns their number. Journals do not change, and
    /// trees may run.
    ///
    /// # Errors
    /// If the journal cannot be listed. A tree that cannot be cleaned does not affect the others.
    pub async fn clean_checkpoints(&self) -> Result<Cleaned, JournalFault> {
        let _starting = self.starting.read().await;
        let _cleaning = self.cleaning.lock().await;
        clean(self.journal.as_ref(), Time(self.clock.now_ms())).await
    }

    /// Waits until nothing else in this home resumes, changes or removes a tree.
    async fn lock_tree(&self, tree: TreeId) -> tokio::sync::OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.tree_locks.lock().unwrap_or_else(PoisonError::into_inner);
            // Drop locks that nothing else holds or waits for.
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            Arc::clone(locks.entry(tree).or_default())
        };
        lock.lock_owned().await
    }

    /// The drivers of a tree, with all their tools. `None` if the home is shut down meanwhile.
    async fn drivers(&self, tree: TreeId, definition: &Definition) -> Option<Result<Drivers, NoDriver>> {
        let asking = async {
            let drivers = self.source.drivers(tree, definition).await?;
            drivers.redacting(&definition.redact).discovered(tree, definition).await
        };
        self.closing.run_until_cancelled(asking).await
    }

    fn begin(&self, tree: TreeId, stop: &CancellationToken) -> Begin {
        Begin { stop: stop.clone(), ..self.begin_as(tree, self.actor.clone()) }
    }

    fn begin_as(&self, tree: TreeId, actor: Actor) -> Begin {
        let draws = Rng::seeded(self.rng().next());
        Begin {
            tree,
            actor,
            journal: Arc::clone(&self.journal),
            clock: Arc::clone(&self.clock),
            draws,
            hooks: self.hooks.clone(),
            keeps_first_text: self.keeps_first_text,
            programs: self.programs.clone(),
            limits: Arc::clone(&self.limits),
            stop: self.stop.clone(),
        }
    }

    fn keep(&self, tree: Tree, stop: CancellationToken, task: JoinHandle<()>) -> Tree {
        let mut trees = self.trees();
        trees.retain(|_, running| !running.task.is_finished());
        let abort = task.abort_handle();
        // An aborted or panicked task has no result.
        let over = task.map(drop).boxed().shared();
        trees.insert(tree.id(), Running { tree: tree.clone(), stop, task: abort, over });
        tree
    }

    fn all_running(&self) -> Vec<Running> {
        self.trees().values().cloned().collect()
    }

    fn trees(&self) -> MutexGuard<'_, BTreeMap<TreeId, Running>> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rng(&self) -> MutexGuard<'_, Rng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
