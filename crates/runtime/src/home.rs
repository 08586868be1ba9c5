//! A home: starts trees, resumes them after a restart, and stops them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use futures::{FutureExt, future};
use spinney_journal::{
    Cleaned, Head, HeadCursor, HeadPage, Journal, JournalFault, Shared, clean, newest_sources, source_bytes,
};
use spinney_kernel::definition::{Definition, Refusal};
use spinney_kernel::primitives::{
    Actor, Body, Seq, SourceFiles, SourceName, Time, TraceParent, TreeId, limit,
};
use spinney_kernel::record::{Event, ExitKind};
use spinney_kernel::rules::request::{Reply, Request, Send, Start, Verb};
use spinney_kernel::world::TreeState;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::call_limits::CallLimits;
use crate::clock::{Clock, SystemClock};
use crate::drivers::{DriverSource, Drivers, NoDriver};
use crate::hooks::TreeHooks;
use crate::output_schema;
use crate::rng::Rng;
use crate::tree::{
    ApplyError, Begin, BranchError, BranchOff, NotFilled, Seed, Stopped, Tree, apply, begin, branch, claimed,
    release,
};

/// A home of trees.
pub struct Home {
    journal: Arc<dyn Journal>,
    /// Asked for the drivers of each tree.
    source: Arc<dyn DriverSource>,
    /// Who makes its requests, unless they say so themselves.
    actor: Actor,
    hooks: Option<Arc<dyn TreeHooks>>,
    /// Shared by all its trees.
    limits: Arc<CallLimits>,
    clock: Arc<dyn Clock>,
    draws: Mutex<Rng>,
    trees: Mutex<BTreeMap<TreeId, Running>>,
    stop: CancellationToken,
    /// Before that: stop waiting for drivers of trees that would not run.
    closing: CancellationToken,
    /// Locks for trees that are being resumed, changed or removed here.
    turns: Mutex<BTreeMap<TreeId, Arc<tokio::sync::Mutex<()>>>>,
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

/// How a home is shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shutdown {
    /// Every tree continues until it has ended, is halted or waits for a person.
    Drain,
    /// Running calls may finish, nothing new starts; trees can be resumed as if nothing had happened.
    Stop,
    /// Everything is dropped at once; on resume, calls that were running are settled or repeated as their drivers
    /// say.
    Kill,
}

/// What a tree can begin with beside its definition.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StartOptions {
    /// Its id; drawn if `None`.
    pub id: Option<TreeId>,
    /// The trace that its caller belongs to.
    pub trace: Option<TraceParent>,
    /// Files that it is resumed from, with their bytes.
    pub sources: Vec<(SourceName, Vec<u8>)>,
}

impl StartOptions {
    /// Starts the tree under an id from [`Home::draw_id`], for callers that prepare something for it first.
    #[must_use]
    pub const fn with_id(mut self, id: TreeId) -> Self {
        self.id = Some(id);
        self
    }

    /// Records the trace of the caller, if there is one: the `traceparent` of W3C Trace Context.
    #[must_use]
    pub const fn with_trace(mut self, trace: Option<TraceParent>) -> Self {
        self.trace = trace;
        self
    }

    /// Keeps files in the tree's journal that it is resumed from, such as the file that its definition was read from.
    /// They hold no secrets: a journal may be copied and shown.
    #[must_use]
    pub fn with_sources(mut self, sources: Vec<(SourceName, Vec<u8>)>) -> Self {
        self.sources = sources;
        self
    }
}

/// Why a tree could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Its definition is invalid.
    #[error(transparent)]
    Refused(Refusal),
    /// A driver is missing.
    #[error(transparent)]
    NoDriver(NoDriver),
    /// The journal failed.
    #[error(transparent)]
    Journal(JournalFault),
    /// The home is being shut down.
    #[error("the home is being shut down: open it again to start trees")]
    Shutdown,
}

/// Why a tree could not be resumed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// It has ended.
    #[error(
        "tree {tree} has ended ({state}): there is nothing to resume; start a new one, or replay this one"
    )]
    Ended {
        /// The tree.
        tree: TreeId,
        /// How it ended.
        state: ExitKind,
    },
    /// It already runs in this home.
    #[error("tree {tree} is already running in this home")]
    Running {
        /// The tree.
        tree: TreeId,
    },
    /// It was moved, or is a copy.
    #[error(transparent)]
    Sealed(Refusal),
    /// A driver is missing.
    #[error(transparent)]
    NoDriver(NoDriver),
    /// The journal failed.
    #[error(transparent)]
    Journal(JournalFault),
    /// The folder of an agent could not be filled with the files that it wrote.
    #[error("the files of tree {tree} cannot be written to their folders: {reason}")]
    Files {
        /// The tree.
        tree: TreeId,
        /// Which file, and why.
        reason: String,
    },
    /// The home is being shut down.
    #[error("the home is being shut down: open it again to resume trees")]
    Shutdown,
}

/// Why a tree could not be removed. Nothing was removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// It runs in this home.
    #[error("tree {tree} is running: cancel it first")]
    Running {
        /// The tree.
        tree: TreeId,
    },
    /// Branches use it, or the journal failed.
    #[error(transparent)]
    Journal(JournalFault),
}

/// A branch whose origin was removed by force. It now owns what it shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// The branch.
    pub tree: TreeId,
    /// Whether its root got a message about it; an ended root reads nothing.
    pub notified: bool,
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
        draws: Rng,
    ) -> Self {
        Self {
            journal,
            source: Arc::new(source),
            actor: Actor::PROGRAM,
            hooks: None,
            limits: Arc::default(),
            clock,
            draws: Mutex::new(draws),
            trees: Mutex::default(),
            stop: CancellationToken::new(),
            closing: CancellationToken::new(),
            turns: Mutex::default(),
            starting: tokio::sync::RwLock::default(),
            cleaning: tokio::sync::Mutex::default(),
        }
    }

    /// Says who makes the requests of this home and of the trees that it starts and resumes, unless a request names
    /// another actor. At first, that is a program without a name.
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

    /// Starts a tree. It is durable when this returns, so its id stays valid after a crash.
    ///
    /// # Errors
    /// What is wrong with the definition, which driver is missing, or the journal's fault. Then nothing runs.
    pub async fn start(&self, definition: Definition) -> Result<Tree, StartError> {
        self.start_with(definition, StartOptions::default()).await
    }

    /// An id for a tree that is about to start.
    #[must_use]
    pub fn draw_id(&self) -> TreeId {
        self.draws().tree_id(self.clock.now_ms())
    }

    /// Starts a tree with more than its definition.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_with(
        &self,
        definition: Definition,
        options: StartOptions,
    ) -> Result<Tree, StartError> {
        let StartOptions { id, trace, sources } = options;
        let (sources, blobs) =
            SourceFiles::enclose(sources).map_err(|error| StartError::Refused(error.into()))?;
        let id = id.unwrap_or_else(|| self.draw_id());
        let starting = self.starting.read().await;
        let turn = self.turn(id).await;
        if self.stop.is_cancelled() {
            return Err(StartError::Shutdown);
        }
        let drivers = self.drivers(id, &definition).await.ok_or(StartError::Shutdown)?;
        let drivers = drivers.map_err(StartError::NoDriver)?;
        let definition = drivers.fit(definition).map_err(StartError::NoDriver)?;
        let stop = self.stop.child_token();
        let seed = begin(self.begin(id, &stop)).await.map_err(StartError::Journal)?;
        let mut start = Request::Start(Start { trace, sources, ..Start::new(definition) });
        output_schema::check_request(&start).map_err(StartError::Refused)?;
        drivers.count(&mut start);
        let mut seedling = seed.with(drivers);
        seedling.ask(start, blobs).map_err(StartError::Refused)?;
        tracing::info!(tree = %id, "tree started");
        let (tree, task) = seedling.spawn();
        let tree = self.keep(tree, stop, task);
        drop((turn, starting));
        match tree.begun().await {
            Ok(()) => Ok(tree),
            Err(Stopped::Journal(fault)) => Err(StartError::Journal(fault)),
            Err(Stopped::Shutdown | Stopped::Bug) => Err(StartError::Shutdown),
        }
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

    /// Resumes a tree where its journal ends.
    ///
    /// # Errors
    /// If it has ended, already runs, does not exist, or a driver is missing.
    pub async fn resume(&self, tree: TreeId) -> Result<Tree, ResumeError> {
        let _starting = self.starting.read().await;
        let _turn = self.turn(tree).await;
        if self.stop.is_cancelled() {
            return Err(ResumeError::Shutdown);
        }
        if self.tree(tree).is_some() {
            return Err(ResumeError::Running { tree });
        }
        let stop = self.stop.child_token();
        let seed = claimed(self.begin(tree, &stop)).await.map_err(ResumeError::Journal)?;
        let (head, drivers) = match self.resumable(tree, &seed).await {
            Ok(resumable) => resumable,
            Err(error) => {
                seed.release().await;
                return Err(error);
            }
        };
        tracing::info!(%tree, seq = head.seq.0, state = head.state.as_str(), "tree resumed");
        let mut seedling = seed.with(drivers);
        seedling.resume(&head);
        let (tree, task) = seedling.spawn();
        Ok(self.keep(tree, stop, task))
    }

    /// What a tree is resumed with.
    async fn resumable(&self, tree: TreeId, seed: &Seed) -> Result<(Head, Drivers), ResumeError> {
        let head = seed.head().ok_or(ResumeError::Journal(JournalFault::UnknownTree { tree }))?;
        if let TreeState::Ended(state) = seed.world().state() {
            return Err(ResumeError::Ended { tree, state });
        }
        if let Some(kind) = seed.world().sealed() {
            return Err(ResumeError::Sealed(Refusal::Sealed { kind: kind.clone() }));
        }
        let definition = seed.world().definition();
        let drivers = self.drivers(tree, definition).await.ok_or(ResumeError::Shutdown)?;
        let drivers = drivers.map_err(ResumeError::NoDriver)?;
        drivers.check(definition).map_err(ResumeError::NoDriver)?;
        seed.fill_folders(&drivers).await.map_err(|error| match error {
            NotFilled::Journal(fault) => ResumeError::Journal(fault),
            NotFilled::Folder(reason) => ResumeError::Files { tree, reason },
        })?;
        Ok((head, drivers))
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
        let _turn = self.turn(tree).await;
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
        let _origin = self.turn(off.from).await;
        branch(self.begin(tree, &self.stop), off).await
    }

    /// Removes a tree. If it has branches, the refusal names them; by force, their roots get a message.
    ///
    /// # Errors
    /// If it runs, branches use it, or the journal failed. Then nothing is removed.
    pub async fn remove(&self, tree: TreeId, shared: Shared) -> Result<Vec<Orphan>, RemoveError> {
        let starting = self.starting.read().await;
        let turn = self.turn(tree).await;
        if self.tree(tree).is_some() {
            return Err(RemoveError::Running { tree });
        }
        let branches = self.branches(tree).await.map_err(RemoveError::Journal)?;
        let owned = self.journal.claim(tree).await.map_err(RemoveError::Journal)?;
        if let Err(fault) = self.journal.remove(tree, shared).await {
            release(self.journal.as_ref(), owned).await;
            return Err(RemoveError::Journal(fault));
        }
        drop((turn, starting));
        let mut orphans = Vec::new();
        for (head, at) in branches {
            let text = format!(
                "tree {tree}, from which this tree branched at event {}, was removed; the part they share is kept here",
                at.0
            );
            let notified = !head.state.is_over() && self.tell_root(head.tree, text).await;
            orphans.push(Orphan { tree: head.tree, notified });
        }
        Ok(orphans)
    }

    /// The trees that read batches of this one, and up to which event.
    async fn branches(&self, tree: TreeId) -> Result<Vec<(Head, Seq)>, JournalFault> {
        let mut branches = Vec::new();
        let mut next = Some(HeadCursor::START);
        while let Some(after) = next {
            let page = self.journal.head_page(&[], after, limit::HEADS_MAX).await?;
            let based = page.heads.into_iter().filter_map(|head| Some((head.base?, head)));
            let of_tree = based.filter(|(base, _)| base.tree == tree);
            branches.extend(of_tree.map(|(base, head)| (head, base.at)));
            next = page.next;
        }
        Ok(branches)
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

    /// Sends a message to the root of a tree, running or not. Returns whether it succeeded.
    async fn tell_root(&self, tree: TreeId, text: String) -> bool {
        let born = |event: Event| if let Event::AgentSpawned(born) = event { Some(born.agent) } else { None };
        let first = self.journal.read(tree, Seq(0), 1).await.unwrap_or_default();
        let Some(root) = first.into_iter().flat_map(|entry| entry.batch.events).find_map(born) else {
            return false;
        };
        let send = Send::plain(root, Body::text(text));
        match self.tree(tree) {
            Some(running) => running.request(Actor::RUNTIME, send).await.is_ok(),
            None => self.apply_as(Actor::RUNTIME, tree, send.into(), Vec::new()).await.is_ok(),
        }
    }

    /// Resumes every tree that has not ended, page by page: trees run while the next ones are listed.
    ///
    /// # Errors
    /// If the journal cannot be listed; trees that were listed before run then. A tree that cannot be resumed does not
    /// affect the others.
    pub async fn recover(&self) -> Result<Vec<(TreeId, Result<Tree, ResumeError>)>, JournalFault> {
        let mut resumed = Vec::new();
        let mut next = Some(HeadCursor::START);
        while let Some(after) = next {
            let page = self.journal.head_page(&TreeState::LIVING, after, limit::HEADS_MAX).await?;
            for head in page.heads {
                resumed.push((head.tree, self.resume(head.tree).await));
            }
            next = page.next;
        }
        Ok(resumed)
    }

    /// Stops one tree cleanly: running calls may finish, nothing new starts, and it can be resumed. When it returns,
    /// the tree does not run here.
    pub async fn stop(&self, tree: TreeId) {
        let running = self.trees().get(&tree).cloned();
        if let Some(Running { stop, over, .. }) = running {
            stop.cancel();
            over.await;
        }
    }

    /// Shuts the home down. When it returns, none of its trees run. A caller may drop the future and shut down again,
    /// harder.
    pub async fn shutdown(&self, how: Shutdown) {
        if how == Shutdown::Drain {
            for Running { tree, .. } in self.all_running() {
                tree.settled().await;
            }
        }
        self.closing.cancel();
        let starting = self.starting.write().await;
        self.stop.cancel();
        drop(starting);
        for Running { task, over, .. } in self.all_running() {
            if how == Shutdown::Kill {
                task.abort();
            }
            over.await;
        }
        self.trees().retain(|_, running| !running.task.is_finished());
    }

    /// Waits until nothing else in this home resumes, changes or removes a tree.
    async fn turn(&self, tree: TreeId) -> tokio::sync::OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            // Drop locks that nothing else holds or waits for.
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(tree).or_default())
        };
        turn.lock_owned().await
    }

    /// The drivers of a tree, with all their tools. `None` if the home is shut down meanwhile.
    async fn drivers(&self, tree: TreeId, definition: &Definition) -> Option<Result<Drivers, NoDriver>> {
        let asking =
            async { self.source.drivers(tree, definition).await?.discovered(tree, definition).await };
        self.closing.run_until_cancelled(asking).await
    }

    fn begin(&self, tree: TreeId, stop: &CancellationToken) -> Begin {
        Begin { stop: stop.clone(), ..self.begin_as(tree, self.actor.clone()) }
    }

    fn begin_as(&self, tree: TreeId, actor: Actor) -> Begin {
        let draws = Rng::seeded(self.draws().next());
        Begin {
            tree,
            actor,
            journal: Arc::clone(&self.journal),
            clock: Arc::clone(&self.clock),
            draws,
            hooks: self.hooks.clone(),
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

    fn draws(&self) -> MutexGuard<'_, Rng> {
        self.draws.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
