//! A home: where trees live. It starts them, takes them up again after a restart, and puts them away.

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
    /// Trees that are being taken up, changed or removed: nobody else does so with the same one meanwhile.
    claims: Mutex<BTreeMap<TreeId, Arc<tokio::sync::Mutex<()>>>>,
    /// Held by everybody who changes a tree, together; alone by whoever shuts the home down.
    door: tokio::sync::RwLock<()>,
    /// Held while checkpoints are cleaned.
    cleaning: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Running {
    tree: Tree,
    task: AbortHandle,
    /// When the task is gone, however it went.
    over: future::Shared<BoxFuture<'static, ()>>,
}

/// How a home is shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shutdown {
    /// Every tree goes on until it has ended, is halted or waits for a person.
    Drain,
    /// What runs may end, nothing new starts; trees can be resumed as if nothing had happened.
    Stop,
    /// Everything is dropped at once; on resume, calls that were out are settled or repeated as their drivers say.
    Kill,
}

/// Why a tree could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Its definition is wrong.
    #[error(transparent)]
    Refused(Refusal),
    /// It needs a driver that is not there.
    #[error(transparent)]
    NoDriver(NoDriver),
    /// The journal says no.
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
    /// It is over.
    #[error(
        "tree {tree} has ended ({state}): there is nothing to resume; start a new one, or replay this one"
    )]
    Ended {
        /// Which tree.
        tree: TreeId,
        /// How it ended.
        state: ExitKind,
    },
    /// It is running already, in this home.
    #[error("tree {tree} is running in this home already")]
    Running {
        /// Which tree.
        tree: TreeId,
    },
    /// It needs a driver that is not there.
    #[error(transparent)]
    NoDriver(NoDriver),
    /// The journal says no.
    #[error(transparent)]
    Journal(JournalFault),
    /// The home is being shut down.
    #[error("the home is being shut down: open it again to resume trees")]
    Shutdown,
}

/// Why a tree could not be removed. Nothing was, then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// It runs in this home.
    #[error("tree {tree} is running: cancel it first")]
    Running {
        /// Which tree.
        tree: TreeId,
    },
    /// Branches use it, or the journal says no.
    #[error(transparent)]
    Journal(JournalFault),
}

/// A branch whose origin was removed by force. What it shared is its own now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// Which branch.
    pub tree: TreeId,
    /// Whether its root has a message that says so; one that has ended reads nothing any more.
    pub notified: bool,
}

impl Home {
    /// Opens a home on a journal. Nothing runs until a tree is started or resumed.
    #[must_use]
    pub fn open(journal: Arc<dyn Journal>, drivers: Drivers) -> Self {
        Self::open_with(journal, drivers, Arc::new(SystemClock::new()), Draws::fresh())
    }

    /// Opens a home with a clock and draws of the caller's own: for tests that must repeat.
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

    /// Starts a tree. It is durable when this returns: whoever was told its id finds it again.
    ///
    /// # Errors
    /// Says what is wrong with the definition, what driver is missing, or what the journal said. Nothing runs then.
    pub async fn start(&self, definition: Definition) -> Result<Tree, StartError> {
        self.start_as(self.draw_id(), definition).await
    }

    /// An id for a tree that is about to start.
    #[must_use]
    pub fn draw_id(&self) -> TreeId {
        self.draws().tree_id(self.clock.now_ms())
    }

    /// Starts a tree under an id that was drawn before: for callers who put something down for it first.
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

    /// Takes a tree up where its journal ends.
    ///
    /// # Errors
    /// If it has ended, runs already, is not there, or needs a driver that is not there.
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

    /// Does one thing that a person asks of a tree that nobody runs, and leaves it standing. No model and no tool is
    /// called; what the request sets free goes on when the tree is resumed. Timers that are due are decided first.
    ///
    /// # Errors
    /// The refusal, or what the journal said. Nothing of the request was written then.
    pub async fn apply<V: Verb>(&self, tree: TreeId, verb: V) -> Result<V::Reply, ApplyError> {
        self.apply_with(tree, verb, Vec::new()).await
    }

    /// The same with the bytes of the images and files that stand in the request.
    ///
    /// # Errors
    /// The refusal, that it runs here, or that the journal cannot be read or written.
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

    /// Branches a tree off another, under an id that was drawn before. It is durable when this returns, shares what came
    /// before, and stands still until it is resumed.
    ///
    /// # Errors
    /// The refusal, or what the journal said. There is no branch then.
    pub async fn branch(&self, tree: TreeId, off: BranchOff) -> Result<(), BranchError> {
        let _door = self.door.read().await;
        // So that nobody removes meanwhile what the branch is to share.
        let _origin = self.claim(off.from).await;
        branch(self.begin(tree), off).await
    }

    /// Removes a tree. Its branches are named in the refusal, or by force told in a message to their roots.
    ///
    /// # Errors
    /// If it runs, branches use it, or the journal cannot say whether any do. Nothing is removed then.
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

    /// Removes the automatic checkpoints that have expired from the catalog, and says how many that were. Journals stay
    /// as they are, and trees may run.
    ///
    /// # Errors
    /// If the journal cannot be listed. What keeps one tree from being cleaned does not keep the others.
    pub async fn clean_checkpoints(&self) -> Result<Cleaned, JournalFault> {
        let _door = self.door.read().await;
        let _cleaning = self.cleaning.lock().await;
        clean(self.journal.as_ref(), Time(self.clock.now_ms())).await
    }

    /// Sends a message to the root of a tree, whether it runs or not; says whether that could be done.
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

    /// Takes up every tree that has not ended.
    ///
    /// # Errors
    /// If the journal cannot be listed. What keeps one tree from being resumed does not keep the others.
    pub async fn recover(&self) -> Result<Vec<(TreeId, Result<Tree, ResumeError>)>, JournalFault> {
        let mut resumed = Vec::new();
        for head in self.journal.heads(&[]).await? {
            if !head.state.is_over() {
                resumed.push((head.tree, self.resume(head.tree).await));
            }
        }
        Ok(resumed)
    }

    /// Shuts the home down. When it returns no tree of it is run any more. Whoever loses patience may drop the future
    /// and shut down again, harder.
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

    /// Waits until nobody else takes up, changes or removes a tree.
    async fn claim(&self, tree: TreeId) -> tokio::sync::OwnedMutexGuard<()> {
        let claim = {
            let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
            // What only this list holds, nobody waits for.
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
        // One that was aborted or panicked has nothing more to say.
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
