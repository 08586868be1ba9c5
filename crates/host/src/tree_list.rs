//! The trees of a home as lists show them: those in its own journal, and those in its side journals.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use spinney_journal::{CatalogKind, Head, Journal, JournalFault};
use spinney_kernel::primitives::TreeId;
use spinney_kernel::world::TreeState;
use spinney_store::SqliteJournal;

use crate::control::{RunningTrees, running};
use crate::home::ids::{self, TreeNameError};
use crate::home::side_journals::SideTree;
use crate::home::{HomeError, open_read_only, open_unchanged, side_journals};
use crate::listed_heads::{self, JournalFiles, NamedHead};

/// A tree in a list.
pub struct ListedTree {
    /// Its head in the journal.
    pub head: Head,
    /// The name in its tree file.
    pub name: String,
    /// Its state.
    pub state: ListedState,
    /// Whether a process is known to run it.
    pub is_run: bool,
    /// The home that has it.
    pub home: Arc<Path>,
}

impl ListedTree {
    /// For programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let Self { head, name, state, .. } = self;
        let mut line = json!({
            "tree": head.tree,
            "state": state.as_str(),
            "name": name,
            "events": head.seq,
            "started": head.started,
            "changed": head.changed,
            "event_hash": head.hash.to_string(),
        });
        let base = head.base.map(|base| json!({ "tree": base.tree, "seq": base.at }));
        if let (Some(base), Some(fields)) = (base, line.as_object_mut()) {
            fields.insert("branch_of".to_owned(), base);
        }
        line
    }
}

/// The state of a tree in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedState {
    /// As its journal says.
    Stored(TreeState),
    /// Its journal says that it runs, but no process runs it.
    Interrupted,
}

impl ListedState {
    /// If the process that has the home open does not answer, the stored state is shown.
    fn new(head: &Head, running: &RunningTrees) -> Self {
        match (head.state, running) {
            (TreeState::Running, RunningTrees::Nobody) => Self::Interrupted,
            (TreeState::Running, RunningTrees::Trees(trees)) if !trees.contains(&head.tree) => {
                Self::Interrupted
            }
            (state, _) => Self::Stored(state),
        }
    }

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stored(state) => state.as_str(),
            Self::Interrupted => "interrupted",
        }
    }
}

/// All trees at one moment.
#[derive(Default)]
pub struct Listing {
    /// Newest first.
    pub trees: Vec<ListedTree>,
    /// Homes of which it is unknown which trees run.
    pub unknown: Vec<UnknownRunner>,
    /// Why side journals cannot be read.
    pub unreadable: Vec<Arc<TreeNameError>>,
}

/// Why it is unknown which trees of a home run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownRunner {
    /// This process has the home open and does not answer.
    Silent(u32),
    /// It is another user's home.
    OtherUser,
}

/// Lists the trees of a home, any number of times. What has not changed since is not read again.
pub struct TreeList {
    home: Arc<Path>,
    /// Its own journal. A home may have side journals only.
    own: Option<Arc<SqliteJournal>>,
    runs: BTreeMap<TreeId, Run>,
}

/// A side journal, as it was read last.
struct Run {
    home: Arc<Path>,
    files: Option<JournalFiles>,
    trees: Result<Vec<NamedHead>, Arc<TreeNameError>>,
}

impl TreeList {
    /// A list that has read nothing yet.
    pub fn new(home: &Path) -> Self {
        Self { home: Arc::from(home), own: None, runs: BTreeMap::new() }
    }

    /// Reads it.
    pub async fn look(&mut self) -> Result<Listing, TreeNameError> {
        if self.own.is_none()
            && (side_journals::has_journal(&self.home) || !side_journals::has_any(&self.home))
        {
            self.own = Some(Arc::new(open_read_only(&self.home)?));
        }
        let mut listing = Listing::default();
        let found = side_journals::folders(&self.home);
        self.runs.retain(|tree, _| found.binary_search_by_key(tree, |side| side.tree).is_ok());
        for SideTree { tree, folder } in found {
            let run = self.runs.entry(tree).or_insert_with(|| Run::new(&folder));
            run.refresh().await;
            match &run.trees {
                Ok(trees) => listing.add(&run.home, trees.clone()).await,
                Err(why) => listing.unreadable.push(Arc::clone(why)),
            }
        }
        if let Some(journal) = &self.own {
            let mut trees = read(journal.as_ref()).await?;
            // One that had moved away and came back continues in its side journal.
            trees.retain(|own| !listing.trees.iter().any(|side| side.head.tree == own.head.tree));
            listing.add(&self.home, trees).await;
        }
        listing.trees.sort_by_key(|listed| Reverse((listed.head.started, listed.head.tree)));
        Ok(listing)
    }

    /// The journal that has a listed tree.
    pub fn journal(&self, listed: &ListedTree) -> Result<Arc<SqliteJournal>, HomeError> {
        match &self.own {
            Some(journal) if listed.home == self.home => Ok(Arc::clone(journal)),
            Some(_) | None => Ok(Arc::new(open_read_only(&listed.home)?)),
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
        let are_settled = files.are_settled();
        if are_settled && self.files.as_ref() == Some(&files) {
            return;
        }
        if are_settled && let Some(trees) = listed_heads::read(&self.home, &files) {
            (self.files, self.trees) = (Some(files), Ok(trees));
            return;
        }
        let trees = match open_read_only(&self.home) {
            Ok(journal) => read(&journal).await.map_err(TreeNameError::from),
            Err(error) => Err(error.into()),
        };
        self.trees = match trees {
            Ok(trees) => Ok(trees),
            // Its process died before it began, or it is being removed.
            Err(TreeNameError::Home(error)) if error.is_missing() => Ok(Vec::new()),
            Err(_) if !side_journals::has_journal(&self.home) => Ok(Vec::new()),
            Err(error) => Err(Arc::new(error)),
        };
        // What a writer changed meanwhile is not what was read.
        if let (Ok(trees), true) = (&self.trees, are_settled && files == JournalFiles::now(&self.home)) {
            listed_heads::write(&self.home, &files, trees);
        }
        self.files = Some(files);
    }
}

impl Listing {
    /// Adds the trees of one home.
    async fn add(&mut self, home: &Arc<Path>, trees: Vec<NamedHead>) {
        let is_over = trees.iter().all(|tree| tree.head.state.is_over());
        let running = if is_over { RunningTrees::Nobody } else { running(home).await };
        match running {
            RunningTrees::Silent(pid) => self.unknown.push(UnknownRunner::Silent(pid)),
            RunningTrees::Unknown => self.unknown.push(UnknownRunner::OtherUser),
            RunningTrees::Trees(_) | RunningTrees::Nobody => {}
        }
        self.trees.extend(trees.into_iter().map(|NamedHead { head, name }| ListedTree {
            state: ListedState::new(&head, &running),
            is_run: matches!(&running, RunningTrees::Trees(trees) if trees.contains(&head.tree)),
            home: Arc::clone(home),
            head,
            name,
        }));
    }
}

/// The newest trees of a home in all its journals, with their names, newest first. Changes nothing: the journal of an older
/// release is not read.
pub async fn newest_unchanged(home: &Path, most: usize) -> Result<Vec<(Head, String)>, TreeNameError> {
    let mut found = Vec::new();
    let sides = side_journals::folders(home).into_iter().rev().take(most);
    let homes = [home.to_owned()].into_iter().chain(sides.map(|side| side.folder));
    for home in homes.filter(|home| side_journals::has_journal(home)) {
        let journal = open_unchanged(&home)?;
        for head in journal.heads(&[]).await?.into_iter().rev().take(most) {
            let name = ids::name(&journal, head.tree).await?;
            found.push((head, name));
        }
    }
    found.sort_by_key(|(head, _)| Reverse((head.started, head.tree)));
    found.truncate(most);
    Ok(found)
}

/// The trees of a journal with their names.
async fn read(journal: &dyn Journal) -> Result<Vec<NamedHead>, JournalFault> {
    let heads = journal.heads(&[]).await?;
    let facts = journal.catalog(CatalogKind::Tree, "").await?;
    let mut names: BTreeMap<TreeId, String> = facts.into_iter().map(|fact| (fact.tree, fact.value)).collect();
    let named = |head: Head| NamedHead { name: names.remove(&head.tree).unwrap_or_default(), head };
    Ok(heads.into_iter().map(named).collect())
}
