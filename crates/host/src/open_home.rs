//! A home or side journal that this process has open for writing, with what it does there for other processes: it resumes
//! trees for as long as these follow them, and makes branches.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney::tree::{BranchError, BranchOff};
use spinney::{Drivers, Home, ResumeError, Shutdown, StartError, StartOptions, Tree};
use spinney_journal::{Journal, JournalFault, started_sources};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, Seq, TraceParent, TreeId};
use spinney_kernel::record::ContinuedAs;
use spinney_kernel::world::TreeState;

use crate::approved_drivers::ApprovedDrivers;
use crate::error_text::with_causes;
use crate::home::ids;
use crate::home::old_copies::{self, UncopiedFiles};
use crate::home::pending_folders::{self, UnsettledFolders};
use crate::home::side_journals;
use crate::host::{HostOrigin, HostResumeError, HostedTree, kept_drivers};
use crate::notify::Notifier;
use crate::off_workers::off_workers;
use crate::own_drivers::OwnDrivers;
use crate::prepared::PreparedTree;
use crate::text_file::FileFault;
use crate::trust::tree_marks;
use crate::user::allowed_host::AllowedHost;
use crate::user::configuration::Configuration;

/// Most trees that a process resumes for others at the same time.
const GUESTS_MAX: usize = 16;

/// Why a tree was not resumed for another process.
#[derive(Debug, thiserror::Error)]
pub enum OpenResumeError {
    /// It cannot be resumed here.
    #[error(transparent)]
    Host(#[from] HostResumeError),
    /// It was started for a program.
    #[error("this tree belongs to a program and continues only with it")]
    OfProgram,
    /// Too many are.
    #[error("this process already runs {GUESTS_MAX} trees for others")]
    TooMany,
}

impl From<ResumeError> for OpenResumeError {
    fn from(error: ResumeError) -> Self {
        Self::Host(error.into())
    }
}

impl From<JournalFault> for OpenResumeError {
    fn from(fault: JournalFault) -> Self {
        ResumeError::Journal(fault).into()
    }
}

/// Why a branch was not made.
#[derive(Debug, thiserror::Error)]
pub enum BranchTreeError {
    /// The tree was started for a program, whose own state no journal has.
    #[error("a tree of a program cannot be branched: the journal does not have the program's state")]
    OfProgram,
    /// What the tree was started from cannot be kept.
    #[error(transparent)]
    Copy(#[from] UncopiedFiles),
    /// Where it is cannot be recorded.
    #[error(transparent)]
    File(#[from] FileFault),
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalFault),
    /// It was refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// A home that this process has open for writing.
pub struct OpenHome {
    folder: PathBuf,
    home: Arc<Home>,
    drivers: Arc<ApprovedDrivers>,
    /// The trees that run for others.
    guests: Mutex<BTreeMap<TreeId, Guest>>,
}

struct Guest {
    hosted: HostedTree,
    notifier: Notifier,
}

impl OpenHome {
    /// A home whose requests a person makes.
    #[must_use]
    pub fn new(folder: &Path, journal: Arc<dyn Journal>) -> Self {
        Self::new_with(folder, journal, |home| home)
    }

    /// The same, with what else is set of it.
    #[must_use]
    pub fn new_with(folder: &Path, journal: Arc<dyn Journal>, set: impl FnOnce(Home) -> Home) -> Self {
        let drivers = Arc::new(ApprovedDrivers::default());
        let home = set(Home::open(journal, Arc::clone(&drivers)).with_actor(Actor::PERSON));
        Self { folder: folder.to_owned(), home: Arc::new(home), drivers, guests: Mutex::default() }
    }

    /// The home itself.
    #[must_use]
    pub const fn home(&self) -> &Arc<Home> {
        &self.home
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts a tree of this process that was read from a file, whose user agreed to what it sends and runs.
    ///
    /// # Errors
    /// As [`Home::start_with`]. Then nothing is recorded of it.
    pub async fn start_own(
        &self,
        tree: TreeId,
        prepared: PreparedTree,
        trace: Option<TraceParent>,
    ) -> Result<Tree, StartError> {
        prepared.source.boxed.prepare(&self.folder, prepared.permissions().clone());
        let PreparedTree { source, definition, allowed, sources, .. } = prepared;
        let _approved = self.drivers.approve(tree, source.in_home(&self.folder).drivers);
        tree_marks::starting(&self.folder, tree, &sources.fingerprint, &allowed);
        let start = StartOptions::default().with_id(tree).with_trace(trace).with_sources(sources.files);
        let started = self.home.start_with(definition, start).await;
        match &started {
            Ok(_) => tree_marks::update(&self.folder, self.home.journal().as_ref(), tree).await,
            Err(_) => tree_marks::forget(&self.folder, tree),
        }
        started
    }

    /// Resumes a tree of this process with the drivers that its user agreed to.
    ///
    /// # Errors
    /// As [`Home::resume`].
    pub async fn resume_own(&self, tree: TreeId, drivers: Drivers) -> Result<Tree, ResumeError> {
        let _approved = self.drivers.approve(tree, drivers);
        let resumed = self.home.resume(tree).await?;
        tree_marks::update(&self.folder, self.home.journal().as_ref(), tree).await;
        Ok(resumed)
    }

    /// Resumes a tree for another process, if it is as this user left it and the user allows what it sends. Returns the last
    /// event before that.
    ///
    /// # Errors
    /// If it has ended, runs already, or is not allowed.
    pub async fn resume(&self, tree: TreeId, hosts: Vec<AllowedHost>) -> Result<Seq, OpenResumeError> {
        if self.guests().len() >= GUESTS_MAX {
            return Err(OpenResumeError::TooMany);
        }
        if self.home.tree(tree).is_some() {
            return Err(ResumeError::Running { tree }.into());
        }
        let journal = Arc::clone(self.home.journal());
        let head = journal.head(tree).await?.ok_or(JournalFault::UnknownTree { tree })?;
        if let TreeState::Ended(state) = head.state {
            return Err(ResumeError::Ended { tree, state }.into());
        }
        let past = head.seq;
        let (folder, own) = (self.folder.clone(), OwnDrivers::default());
        let prepared = off_workers(async move || -> Result<_, OpenResumeError> {
            if side_journals::is_program(journal.as_ref(), tree).await? {
                return Err(OpenResumeError::OfProgram);
            }
            let journal = journal.as_ref();
            let drivers = kept_drivers(&folder, HostOrigin::Listed, &own, &hosts, journal, &head).await?;
            let name = ids::name(journal, tree).await?;
            Ok((drivers, name, Configuration::read().map_err(HostResumeError::from)?))
        });
        let (drivers, name, configuration) = prepared.await?;
        let approved = self.drivers.approve(tree, drivers);
        let running: Tree = self.home.resume(tree).await?;
        drop(approved);
        let notifier = Notifier::watch(configuration.notify(), &running, past, &name, &self.folder);
        let journal = Arc::clone(self.home.journal());
        let hosted = HostedTree::begin(&self.folder, journal, running, past).await;
        self.guests().insert(tree, Guest { hosted, notifier });
        Ok(past)
    }

    /// Stops a tree that was resumed for another process, which does not follow it any more.
    pub async fn stop(&self, tree: TreeId) {
        if !self.guests().contains_key(&tree) {
            return;
        }
        self.home.stop(tree).await;
        // Closing the home ends those that are still there.
        let guest = self.guests().remove(&tree);
        if let Some(guest) = guest {
            guest.end().await;
        }
    }

    /// Makes a branch in the same journal. It does not run until it is resumed.
    ///
    /// # Errors
    /// If it is refused, or the disk failed. Then there is no branch.
    pub async fn branch(&self, off: BranchOff) -> Result<TreeId, BranchTreeError> {
        let from = off.from;
        self.make(from, async |tree| self.home.branch(tree, off).await).await
    }

    /// Makes a tree that continues one which has ended, in the same journal. It does not run until it is resumed.
    ///
    /// # Errors
    /// If it is refused, the tree is continued already, or the disk failed. Then there is no new tree.
    pub async fn continue_ended(
        &self,
        from: TreeId,
        continued_as: ContinuedAs,
    ) -> Result<TreeId, BranchTreeError> {
        self.make(from, async |tree| self.home.continue_ended(tree, from, continued_as).await).await
    }

    /// Makes a tree that begins with the batches of another one.
    async fn make(
        &self,
        from: TreeId,
        make: impl AsyncFnOnce(TreeId) -> Result<(), BranchError>,
    ) -> Result<TreeId, BranchTreeError> {
        let tree = self.home.draw_id();
        let (folder, journal) = (self.folder.clone(), Arc::clone(self.home.journal()));
        off_workers(async move || -> Result<(), BranchTreeError> {
            if side_journals::is_program(journal.as_ref(), from).await? {
                return Err(BranchTreeError::OfProgram);
            }
            side_journals::add_branch(&folder, tree)?;
            if started_sources(journal.as_ref(), from).await?.is_empty() {
                // An older release started it, and kept its files in a folder.
                old_copies::copy(&folder, from, tree)?;
            }
            Ok(())
        })
        .await?;
        let branched = make(tree).await;
        let (folder, journal, is_made) =
            (self.folder.clone(), Arc::clone(self.home.journal()), branched.is_ok());
        off_workers(async move || {
            let journal = journal.as_ref();
            // Others may be starting at the same time, so only this one is settled.
            let settled = pending_folders::settle_tree(&folder, journal, tree).await;
            let settled = settled.and(Ok(side_journals::settle_branch(&folder, journal, tree).await?));
            if is_made {
                tree_marks::branched(&folder, journal, from, tree).await;
            }
            settled
        })
        .await
        .unwrap_or_else(|error: UnsettledFolders| {
            tracing::warn!("the files of a branch were not settled: {}", with_causes(&error));
        });
        match branched {
            Ok(()) => Ok(tree),
            Err(BranchError::Journal(fault)) => Err(fault.into()),
            Err(BranchError::Refused(refusal)) => Err(refusal.into()),
        }
    }

    /// Stops all trees cleanly.
    pub async fn close(&self) {
        self.home.shutdown(Shutdown::Stop).await;
        let guests = std::mem::take(&mut *self.guests());
        for guest in guests.into_values() {
            guest.end().await;
        }
    }

    fn guests(&self) -> MutexGuard<'_, BTreeMap<TreeId, Guest>> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guest {
    async fn end(self) {
        self.hosted.end().await;
        self.notifier.end().await;
    }
}
