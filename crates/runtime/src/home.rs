//! A home: starts trees, resumes them after a restart, and stops them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use futures::{FutureExt, future};
use spinney_journal::{Cleaned, Journal, JournalFault, Shared, clean};
use spinney_kernel::definition::{Definition, Refusal};
use spinney_kernel::record::{Event, ExitKind};
use spinney_kernel::rules::request::{Reply, Request, Send, Start, Verb};
use spinney_kernel::words::{Body, Seq, Time, TreeId};
use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, SystemClock};
use crate::draw::Draws;
use crate::drivers::{Drivers, NoDriver};
use crate::names::Names;
use crate::output_schema;
use crate::tree::{ApplyError, Begin, BranchError, BranchOff, Stopped, Tree, apply, begin, branch};

/// A home of trees.
pub struct Home {
    journal: Arc<dyn Journal>,
    drivers: Arc<Drivers>,
    clock: Arc<dyn Clock>,
    draws: Mutex<Draws>,
    names: Arc<Names>,
    trees: Mutex<BTreeMap<TreeId, Running>>,
    stop: CancellationToken,
    /// Locks for trees that are being resumed, changed or removed.
    claims: Mutex<BTreeMap<TreeId, Arc<tokio::sync::Mutex<()>>>>,
    /// Shared by everything that changes a tree; exclusive for shutdown.
    door: tokio::sync::RwLock<()>,
    /// Held while checkpoints are cleaned.
    cleaning: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Running {
    tree: Tree,
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
        /// Which tree.
        tree: TreeId,
        /// How it ended.
        state: ExitKind,
    },
    /// It already runs in this home.
    #[error("tree {tree} is running in this home already")]
    Running {
        /// Which tree.
        tree: TreeId,
    },
    /// A driver is missing.
    #[error(transparent)]
    NoDriver(NoDriver),
    /// The journal failed.
    #[error(transparent)]
    Journal(JournalFault),
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
        /// Which tree.
        tree: TreeId,
    },
    /// Branches use it, or the journal failed.
    #[error(transparent)]
    Journal(JournalFault),
}

/// A branch whose origin was removed by force. It now owns what it shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// Which branch.
    pub tree: TreeId,
    /// Whether its root got a message about it; an ended root reads nothing.
    pub notified: bool,
}

impl Home {
    /// Opens a home on a journal. Nothing runs until a tree is started or resumed.
    #[must_use]
    pub fn open(journal: Arc<dyn Journal>, drivers: Drivers) -> Self {
        Self::open_with(journal, drivers, Arc::new(SystemClock::new()), Draws::fresh())
    }

    /// Opens a home with its own clock and random numbers, for repeatable tests.
    #[must_use]
    pub fn open_with(
        journal: Arc<dyn Journal>,
        drivers: Drivers,
        clock: Arc<dyn Clock>,
        draws: Draws,
    ) -> Self {
        Self {
            names: Arc::new(Names::new(Arc::clone(&journal))),
            journal,
            drivers: Arc::new(drivers),
            clock,
            draws: Mutex::new(draws),
            trees: Mutex::default(),
            stop: CancellationToken::new(),
            claims: Mutex::default(),
            door: tokio::sync::RwLock::default(),
            cleaning: tokio::sync::Mutex::default(),
        }
    }

    /// Its journal.
    #[must_use]
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// Starts a tree. It is durable when this returns, so its id stays valid after a crash.
    ///
    /// # Errors
    /// What is wrong with the definition, which driver is missing, or the journal's fault. Nothing runs then.
    pub async fn start(&self, definition: Definition) -> Result<Tree, StartError> {
        self.start_as(self.draw_id(), definition).await
    }

    /// An id for a tree that is about to start.
    #[must_use]
    pub fn draw_id(&self) -> TreeId {
        self.draws().tree_id(self.clock.now_ms())
    }

    /// Starts a tree under an id from [`draw_id`](Self::draw_id), for callers that prepare something for it first.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_as(&self, id: TreeId, definition: Definition) -> Result<Tree, StartError> {
        let door = self.door.read().await;
        let claim = self.claim(id).await;
        if self.stop.is_cancelled() {
            return Err(StartError::Shutdown);
        }
        let definition = self.drivers.fit(definition).map_err(StartError::NoDriver)?;
        let mut seedling = begin(self.begin(id)).await.map_err(StartError::Journal)?;
        let mut start = Request::Start(Start { definition: Arc::new(definition), goal_tokens: None });
        output_schema::check_request(&start).map_err(StartError::Refused)?;
        self.drivers.count(&mut start);
        seedling.ask(start).map_err(StartError::Refused)?;
        tracing::info!(tree = %id, "tree started");
        let (tree, task) = seedling.grow();
        let tree = self.keep(tree, task);
        drop((claim, door));
        match tree.begun().await {
            Ok(()) => Ok(tree),
            Err(Stopped::Journal(fault)) => Err(StartError::Journal(fault)),
            Err(Stopped::Shutdown | Stopped::Bug) => Err(StartError::Shutdown),
        }
    }

    /// Resumes a tree where its journal ends.
    ///
    /// # Errors
    /// If it has ended, already runs, does not exist, or a driver is missing.
    pub async fn resume(&self, tree: TreeId) -> Result<Tree, ResumeError> {
        let _door = self.door.read().await;
        let _claim = self.claim(tree).await;
        if self.stop.is_cancelled() {
            return Err(ResumeError::Shutdown);
        }
        if self.trees().get(&tree).is_some_and(|running| !running.task.is_finished()) {
            return Err(ResumeError::Running { tree });
        }
        let head = self.journal.head(tree).await.map_err(ResumeError::Journal)?;
        let head = head.ok_or(ResumeError::Journal(JournalFault::UnknownTree { tree }))?;
        let mut seedling = begin(self.begin(tree)).await.map_err(ResumeError::Journal)?;
        if let spinney_kernel::world::TreeState::Ended(state) = seedling.world().state() {
            return Err(ResumeError::Ended { tree, state });
        }
        self.drivers.check(seedling.world().definition()).map_err(ResumeError::NoDriver)?;
        tracing::info!(%tree, seq = head.seq.0, state = head.state.word(), "tree resumed");
        seedling.resume(&head);
        let (tree, task) = seedling.grow();
        Ok(self.keep(tree, task))
    }

    /// Applies one request of a person to a tree that is not running. No model and no tool is called; what the
    /// request releases continues when the tree is resumed. Due timers are decided first.
    ///
    /// # Errors
    /// The refusal, or the journal's fault. Nothing of the request was written then.
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
        let _door = self.door.read().await;
        let _claim = self.claim(tree).await;
        if self.trees().get(&tree).is_some_and(|running| !running.task.is_finished()) {
            return Err(ApplyError::Running { tree });
        }
        let reply = apply(self.begin(tree), verb.into(), bytes).await?;
        reply.try_into().map_err(|other: <V::Reply as TryFrom<Reply>>::Error| ApplyError::Reply(other.into()))
    }

    /// Branches off a tree under an id from [`draw_id`](Self::draw_id). It is durable when this returns, shares what
    /// came before, and is suspended until it is resumed.
    ///
    /// # Errors
    /// The refusal, or the journal's fault. There is no branch then.
    pub async fn branch(&self, tree: TreeId, off: BranchOff) -> Result<(), BranchError> {
        let _door = self.door.read().await;
        // Prevents the shared batches from being removed meanwhile.
        let _origin = self.claim(off.from).await;
        branch(self.begin(tree), off).await
    }

    /// Removes a tree. If it has branches, the refusal names them; by force, their roots get a message.
    ///
    /// # Errors
    /// If it runs, branches use it, or the journal failed. Nothing is removed then.
    pub async fn remove(&self, tree: TreeId, shared: Shared) -> Result<Vec<Orphan>, RemoveError> {
        let door = self.door.read().await;
        let claim = self.claim(tree).await;
        if self.trees().get(&tree).is_some_and(|running| !running.task.is_finished()) {
            return Err(RemoveError::Running { tree });
        }
        let heads = self.journal.heads(&[]).await.map_err(RemoveError::Journal)?;
        self.journal.remove(tree, shared).await.map_err(RemoveError::Journal)?;
        drop((claim, door));
        let mut orphans = Vec::new();
        for (head, base) in heads.iter().filter_map(|head| Some((head, head.base?))) {
            if base.tree == tree {
                let text = format!(
                    "tree {tree}, of which this one is a branch since event {}, was removed; what both shared is kept here",
                    base.at.0
                );
                let notified = !head.state.is_over() && self.tell_root(head.tree, text).await;
                orphans.push(Orphan { tree: head.tree, notified });
            }
        }
        Ok(orphans)
    }

    /// Removes expired automatic checkpoints from the catalog, and returns their number. Journals do not change, and
    /// trees may run.
    ///
    /// # Errors
    /// If the journal cannot be listed. A tree that cannot be cleaned does not affect the others.
    pub async fn clean_checkpoints(&self) -> Result<Cleaned, JournalFault> {
        let _door = self.door.read().await;
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
        let running = self.trees().get(&tree).filter(|running| !running.task.is_finished()).cloned();
        match running {
            Some(running) => running.tree.send(root, text).await.is_ok(),
            None => self.apply(tree, Send::plain(root, Body::text(text))).await.is_ok(),
        }
    }

    /// Resumes every tree that has not ended.
    ///
    /// # Errors
    /// If the journal cannot be listed. A tree that cannot be resumed does not affect the others.
    pub async fn recover(&self) -> Result<Vec<(TreeId, Result<Tree, ResumeError>)>, JournalFault> {
        let mut resumed = Vec::new();
        for head in self.journal.heads(&[]).await? {
            if !head.state.is_over() {
                resumed.push((head.tree, self.resume(head.tree).await));
            }
        }
        Ok(resumed)
    }

    /// Shuts the home down. When it returns, none of its trees run. A caller may drop the future and shut down again,
    /// harder.
    pub async fn shutdown(&self, how: Shutdown) {
        if how == Shutdown::Drain {
            for Running { tree, .. } in self.running() {
                tree.settled().await;
            }
        }
        let door = self.door.write().await;
        self.stop.cancel();
        drop(door);
        for Running { task, over, .. } in self.running() {
            if how == Shutdown::Kill {
                task.abort();
            }
            over.await;
        }
        self.trees().retain(|_, running| !running.task.is_finished());
    }

    /// Waits for exclusive access to a tree.
    async fn claim(&self, tree: TreeId) -> tokio::sync::OwnedMutexGuard<()> {
        let claim = {
            let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
            // Drop locks that nothing else holds or waits for.
            claims.retain(|_, claim| Arc::strong_count(claim) > 1);
            Arc::clone(claims.entry(tree).or_default())
        };
        claim.lock_owned().await
    }

    fn begin(&self, tree: TreeId) -> Begin {
        let draws = Draws::seeded(self.draws().next());
        Begin {
            tree,
            journal: Arc::clone(&self.journal),
            drivers: Arc::clone(&self.drivers),
            clock: Arc::clone(&self.clock),
            draws,
            names: Arc::clone(&self.names),
            stop: self.stop.clone(),
        }
    }

    fn keep(&self, tree: Tree, task: JoinHandle<()>) -> Tree {
        let mut trees = self.trees();
        trees.retain(|_, running| !running.task.is_finished());
        let abort = task.abort_handle();
        // An aborted or panicked task has no result.
        let over = task.map(drop).boxed().shared();
        trees.insert(tree.id(), Running { tree: tree.clone(), task: abort, over });
        tree
    }

    fn running(&self) -> Vec<Running> {
        self.trees().values().cloned().collect()
    }

    fn trees(&self) -> MutexGuard<'_, BTreeMap<TreeId, Running>> {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draws(&self) -> MutexGuard<'_, Draws> {
        self.draws.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
