//! The working copies of a tree: taken over when their agents end, shown, and released when the tree is removed. What
//! cannot be taken over is reported and stays where it is.

use std::io;
use std::path::{Path, PathBuf};

use spinney::Tree;
use spinney::bus::{Watch, Watcher};
use spinney::clock::{Clock as _, SystemClock};
use spinney_drivers::sandbox::{BoxLauncher, BoxRefusal, can_guard_boxes};
use spinney_drivers::working_copies::{CopyDiff, CopyTakeover, TakeoverError, WorkingCopy};
use spinney_drivers::workspace::Workspaces;
use spinney_kernel::primitives::{AgentId, Seq, TreeId};
use spinney_kernel::record::Event;
use spinney_view::branches::AgentBranch;
use tokio::sync::OnceCell;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::error_text::with_causes;
use crate::inside::{OURSELVES, command_mark};

/// Events that wait to be looked at.
const WAITING_MAX: usize = 256;

/// Why a copy was not taken over, or not shown.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// There is no box for it.
    #[error("git reads working copies in a box, and boxes do not work here")]
    Box(#[from] BoxRefusal),
    /// This program has no guard for boxes.
    #[error("git reads working copies in a box, and the `main` of this program does not call `guard_a_box`")]
    NoGuard,
    /// The home cannot be read.
    #[error("the home cannot be read")]
    Home(#[from] io::Error),
    /// Git did not do it.
    #[error(transparent)]
    TakeoverError(#[from] TakeoverError),
}

/// Works on the copies of one home. Boxes are tried when the first one is needed.
pub struct HomeCopies {
    home: PathBuf,
    launcher: OnceCell<BoxLauncher>,
}

impl HomeCopies {
    /// Those of a home, or of a side journal.
    #[must_use]
    pub fn new(home: &Path) -> Self {
        Self { home: home.to_owned(), launcher: OnceCell::new() }
    }

    /// The copies of a tree.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn all(&self, tree: TreeId) -> io::Result<Vec<WorkingCopy>> {
        WorkingCopy::all(&Workspaces::root(&self.home), tree)
    }

    /// Takes a copy over.
    ///
    /// # Errors
    /// Why not. Then the copy stays.
    pub async fn take_over(&self, copy: &mut WorkingCopy) -> Result<CopyTakeover, CopyError> {
        Ok(copy.take_over(self.launcher().await?, now_ms()).await?)
    }

    /// What an agent changed up to now.
    ///
    /// # Errors
    /// Why that cannot be said.
    pub async fn diff(&self, copy: &WorkingCopy) -> Result<CopyDiff, CopyError> {
        Ok(copy.diff(self.launcher().await?, now_ms()).await?)
    }

    async fn launcher(&self) -> Result<&BoxLauncher, CopyError> {
        if !can_guard_boxes() {
            return Err(CopyError::NoGuard);
        }
        let start = async || -> Result<BoxLauncher, CopyError> {
            let mark = command_mark(&self.home)?;
            Ok(BoxLauncher::with_mark(OURSELVES.into(), mark).await?)
        };
        self.launcher.get_or_try_init(start).await
    }

    /// Takes over the copy of an agent that has ended, if it has one.
    pub(super) async fn ended(&self, tree: TreeId, agent: &AgentId, end: AgentEnd) {
        let (root, name) = (Workspaces::root(&self.home), agent.clone());
        let found = spawn_blocking(move || WorkingCopy::find(&root, tree, &name)).await;
        let mut copy = match found.map_err(io::Error::from).flatten() {
            Ok(Some(copy)) if end == AgentEnd::New || copy.taken().is_none() => copy,
            Ok(_) => return,
            Err(error) => return tracing::warn!("the working copy of {agent} cannot be read: {error}"),
        };
        if let Err(error) = self.take_over(&mut copy).await {
            tracing::warn!(
                "the changes of {agent} were not taken over and are in {}: {}",
                copy.folder().display(),
                with_causes(&error)
            );
        }
    }
}

/// Lets the repository of a copy forget it. The copy was removed, so a reference that stays only keeps commits.
pub(crate) async fn release(copy: &WorkingCopy) {
    if let Err(error) = copy.release().await {
        tracing::warn!(
            "{} still keeps the base of the working copy of {}: {}",
            copy.repository().display(),
            copy.agent(),
            with_causes(&error)
        );
    }
}

/// When an agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgentEnd {
    New,
    /// In an earlier process, which may have taken its copy over.
    Earlier,
}

fn now_ms() -> u64 {
    SystemClock::new().now_ms()
}

/// Takes over the copies of a tree that runs here, when their agents end.
pub(super) struct CopyKeeper(JoinHandle<()>);

impl CopyKeeper {
    /// An earlier process may have done it up to `past`.
    pub(super) fn begin(home: &Path, tree: &Tree, past: Seq) -> Self {
        let events = tree.watch(Watch { room: Some(WAITING_MAX), ..Watch::default() });
        Self(tokio::spawn(keep(HomeCopies::new(home), tree.id(), past, events)))
    }

    /// Waits until everything is taken over.
    pub(super) async fn end(self) {
        // A panic is reported where it happens.
        let _ = self.0.await;
    }
}

async fn keep(copies: HomeCopies, tree: TreeId, past: Seq, mut events: Watcher) {
    // Agents whose copies an earlier process may have taken over.
    let mut earlier = Vec::new();
    // The tree's follower reports an unreadable journal.
    while let Some(Ok(traced)) = events.next_event().await {
        let seq = traced.recorded.seq;
        match &traced.recorded.event {
            Event::TreeStarted { definition, .. }
                if !definition.roles.values().any(|role| role.working_copy().is_some()) =>
            {
                return;
            }
            // What ended before belongs to the tree that this one continues.
            Event::TreeBranched(branched) if branched.continuation.is_some() => earlier.clear(),
            Event::AgentEnded { agent, .. } if seq > past => copies.ended(tree, agent, AgentEnd::New).await,
            Event::AgentEnded { agent, .. } => earlier.push(agent.clone()),
            _ => {}
        }
        if seq >= past {
            for agent in std::mem::take(&mut earlier) {
                copies.ended(tree, &agent, AgentEnd::Earlier).await;
            }
        }
    }
}

/// The branches that were made of the changes of a tree's agents.
#[must_use]
pub fn branches(home: &Path, tree: TreeId) -> Vec<AgentBranch> {
    // What cannot be read is reported when it is used.
    let copies = HomeCopies::new(home).all(tree).unwrap_or_default();
    let of_copy = |copy: &WorkingCopy| {
        let taken = copy.taken().map(|taken| taken.branches.clone()).unwrap_or_default();
        let (agent, repository) = (copy.agent().clone(), copy.repository().display().to_string());
        taken.into_iter().map(move |branch| AgentBranch {
            agent: agent.clone(),
            repository: repository.clone(),
            branch,
        })
    };
    copies.iter().flat_map(of_copy).collect()
}
