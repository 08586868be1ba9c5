//! The trees of a home as lists show them: those in its own journal, and the runs of `exec` in the homes below it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use spinney::clock::{Clock, SystemClock};
use spinney_journal::{CatalogKind, Head, Journal};
use spinney_kernel::record::ExitKind;
use spinney_kernel::words::TreeId;
use spinney_kernel::world::TreeState;
use spinney_store::SqliteJournal;

use crate::control::{Running, running};
use crate::exec::homes;
use crate::home;
use crate::terminal::paint::Ink;

/// Files that changed more recently are read again: a later write may leave the same time.
const SETTLED_MS: i64 = 2_000;

/// A tree in a list.
pub(crate) struct ListedTree {
    pub(crate) head: Head,
    pub(crate) name: String,
    pub(crate) state: ListedState,
    /// Whether a process is known to run it.
    pub(crate) is_run: bool,
    /// The home that has it.
    pub(crate) home: Arc<Path>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListedState {
    Stored(TreeState),
    /// Its journal says that it runs, but no process runs it.
    Interrupted,
}

impl ListedState {
    /// If the process that has the home open does not answer, the stored state is shown.
    fn of(head: &Head, running: &Running) -> Self {
        match (head.state, running) {
            (TreeState::Running, Running::Nobody) => Self::Interrupted,
            (TreeState::Running, Running::Trees(trees)) if !trees.contains(&head.tree) => Self::Interrupted,
            (state, _) => Self::Stored(state),
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Stored(state) => state.word(),
            Self::Interrupted => "interrupted",
        }
    }

    pub(crate) const fn ink(self) -> Ink {
        match self {
            Self::Interrupted | Self::Stored(TreeState::Halted) => Ink::Bad,
            Self::Stored(TreeState::New | TreeState::Running) => Ink::Good,
            Self::Stored(TreeState::Waiting | TreeState::Paused | TreeState::Suspended) => Ink::Warn,
            Self::Stored(TreeState::Ended(ExitKind::Failed | ExitKind::Exhausted)) => Ink::Bad,
            Self::Stored(TreeState::Ended(ExitKind::Completed | ExitKind::Cancelled)) => Ink::Dim,
        }
    }
}

/// All trees at one moment.
#[derive(Default)]
pub(crate) struct Listing {
    /// Oldest first.
    pub(crate) trees: Vec<ListedTree>,
    /// Homes of which it is unknown which trees run.
    pub(crate) unknown: Vec<UnknownRunner>,
    /// Why runs of `exec` cannot be read.
    pub(crate) unreadable: Vec<String>,
}

/// Why it is unknown which trees of a home run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownRunner {
    /// This process has the home open and does not answer.
    Silent(u32),
    /// It is another user's home.
    OtherUser,
}

/// Lists the trees of a home, any number of times. What has not changed since is not read again.
pub(crate) struct TreeList {
    home: Arc<Path>,
    /// Its own journal. A home that only `exec` has used has none.
    own: Option<Arc<SqliteJournal>>,
    runs: BTreeMap<TreeId, Run>,
}

/// The home of a run, as it was read last.
struct Run {
    home: Arc<Path>,
    files: Option<JournalFiles>,
    trees: Result<Vec<NamedHead>, String>,
}

#[derive(Clone)]
struct NamedHead {
    head: Head,
    name: String,
}

impl TreeList {
    pub(crate) fn new(home: &Path) -> Self {
        Self { home: Arc::from(home), own: None, runs: BTreeMap::new() }
    }

    pub(crate) async fn look(&mut self) -> Result<Listing> {
        if self.own.is_none() && (homes::has_journal(&self.home) || !homes::has_folder(&self.home)) {
            self.own = Some(Arc::new(home::look(&self.home)?));
        }
        let mut listing = Listing::default();
        if let Some(journal) = &self.own {
            let trees = read(journal.as_ref()).await?;
            listing.add(&self.home, trees).await;
        }
        let found = homes::trees(&self.home);
        self.runs.retain(|tree, _| found.binary_search(tree).is_ok());
        for tree in found {
            let run = self.runs.entry(tree).or_insert_with(|| Run::new(&homes::home_of(&self.home, tree)));
            run.refresh().await;
            match &run.trees {
                Ok(trees) => listing.add(&run.home, trees.clone()).await,
                Err(why) => listing.unreadable.push(why.clone()),
            }
        }
        listing.trees.sort_by_key(|listed| (listed.head.started, listed.head.tree));
        Ok(listing)
    }

    /// The journal that has a listed tree.
    pub(crate) fn journal(&self, listed: &ListedTree) -> Result<Arc<SqliteJournal>> {
        match &self.own {
            Some(journal) if listed.home == self.home => Ok(Arc::clone(journal)),
            Some(_) | None => Ok(Arc::new(home::look(&listed.home)?)),
        }
    }
}

impl Run {
    fn new(home: &Path) -> Self {
        Self { home: Arc::from(home), files: None, trees: Ok(Vec::new()) }
    }

    /// Reads it again if it may have changed.
    async fn refresh(&mut self) {
        let files = JournalFiles::now(&self.home);
        if files.is_settled() && self.files.as_ref() == Some(&files) {
            return;
        }
        self.files = Some(files);
        let trees = match home::look(&self.home) {
            Ok(journal) => read(&journal).await,
            Err(error) => Err(error),
        };
        self.trees = match trees {
            Ok(trees) => Ok(trees),
            // Its process died before it began, or it is being removed.
            Err(_) if !homes::has_journal(&self.home) => Ok(Vec::new()),
            Err(error) => Err(format!("{error:#}")),
        };
    }
}

impl Listing {
    /// Adds the trees of one home.
    async fn add(&mut self, home: &Arc<Path>, trees: Vec<NamedHead>) {
        let is_over = trees.iter().all(|tree| tree.head.state.is_over());
        let running = if is_over { Running::Nobody } else { running(home).await };
        match running {
            Running::Silent(pid) => self.unknown.push(UnknownRunner::Silent(pid)),
            Running::Unknown => self.unknown.push(UnknownRunner::OtherUser),
            Running::Trees(_) | Running::Nobody => {}
        }
        self.trees.extend(trees.into_iter().map(|NamedHead { head, name }| ListedTree {
            state: ListedState::of(&head, &running),
            is_run: matches!(&running, Running::Trees(trees) if trees.contains(&head.tree)),
            home: Arc::clone(home),
            head,
            name,
        }));
    }
}

/// The trees of a journal with their names.
async fn read(journal: &dyn Journal) -> Result<Vec<NamedHead>> {
    let heads = journal.heads(&[]).await?;
    let facts = journal.catalog(CatalogKind::Tree, "").await?;
    let mut names: BTreeMap<TreeId, String> = facts.into_iter().map(|fact| (fact.tree, fact.value)).collect();
    let named = |head: Head| NamedHead { name: names.remove(&head.tree).unwrap_or_default(), head };
    Ok(heads.into_iter().map(named).collect())
}

/// The files of a journal: every write changes one of them.
#[derive(PartialEq, Eq)]
struct JournalFiles([Option<FileTraits>; 2]);

#[derive(PartialEq, Eq)]
struct FileTraits {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl JournalFiles {
    fn now(home: &Path) -> Self {
        Self(["", "-wal"].map(|ending| {
            let about = fs::symlink_metadata(home.join(format!("{}{ending}", homes::JOURNAL))).ok()?;
            let modified = (about.mtime(), about.mtime_nsec());
            Some(FileTraits { inode: about.ino(), bytes: about.len(), modified })
        }))
    }

    /// Whether a further change would change their times, however coarse those are.
    fn is_settled(&self) -> bool {
        let now_ms = SystemClock::new().now_ms() as i64;
        let is_old = |file: &FileTraits| file.modified.0.saturating_mul(1_000) < now_ms - SETTLED_MS;
        self.0.iter().flatten().all(is_old)
    }
}
