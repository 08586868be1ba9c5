//! Finds a tree by its id, a unique prefix of it, or `last`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use spinney_journal::{CatalogKind, Head, Journal, JournalFault};
use spinney_kernel::primitives::TreeId;
use spinney_store::SqliteJournal;

use super::open::{HomeError, open_read_only};
use super::side_journals;
use crate::redaction::{RedactedJournal, RedactionError};

/// The tree that started last.
pub const LAST: &str = "last";

/// Why a word names no tree.
#[derive(Debug, thiserror::Error)]
pub enum TreeNameError {
    /// The home cannot be opened.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Its journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalFault),
    /// It cannot be shown.
    #[error(transparent)]
    Unredacted(RedactionError),
    /// There is no last tree.
    #[error("this home has no trees yet")]
    NoTrees {
        /// The home.
        home: PathBuf,
    },
    /// It cannot be the beginning of an id.
    #[error("`{text}` is not a tree id")]
    NotAnId {
        /// The home.
        home: PathBuf,
        /// The word.
        text: String,
    },
    /// No id begins so.
    #[error("no tree starts with `{text}`")]
    Unknown {
        /// The home.
        home: PathBuf,
        /// The word.
        text: String,
        /// Whether the home has any tree.
        has_trees: bool,
    },
    /// Several ids begin so.
    #[error("{count} trees start with `{text}`: use more characters{}", listed(.some, *.count))]
    Several {
        /// The word.
        text: String,
        /// The number of them.
        count: usize,
        /// Some of them, with their states.
        some: Vec<String>,
    },
}

impl From<RedactionError> for TreeNameError {
    fn from(error: RedactionError) -> Self {
        match error {
            RedactionError::Journal(fault) => Self::Journal(fault),
            other => Self::Unredacted(other),
        }
    }
}

fn listed(some: &[String], count: usize) -> String {
    let lines: String = some.iter().map(|line| format!("\n  {line}")).collect();
    if count > some.len() { lines + "\n  …" } else { lines }
}

/// A tree and its home.
#[derive(Clone, Copy)]
pub struct TreeInHome<'a> {
    /// The home's folder, as the user named it.
    pub home: &'a Path,
    /// The tree.
    pub tree: TreeId,
}

/// Most trees that an error lists.
pub(super) const LISTED_MAX: usize = 8;

/// The name in its tree file.
pub async fn name(journal: &dyn Journal, tree: TreeId) -> Result<String, JournalFault> {
    let facts = journal.catalog(CatalogKind::Tree, &tree.to_string()).await?;
    Ok(facts.into_iter().next().map(|fact| fact.value).unwrap_or_default())
}

/// A tree that a word names, in a home or in a side journal of it.
pub struct NamedTree {
    /// The home that has it.
    pub home: PathBuf,
    /// Its journal, opened for reading.
    pub journal: SqliteJournal,
    /// The tree.
    pub tree: TreeId,
}

impl NamedTree {
    /// A tree of this very home.
    pub async fn in_home(home: &Path, word: &str) -> Result<Self, TreeNameError> {
        let journal = open_read_only(home)?;
        let tree = find(home, &journal, word).await?.tree;
        Ok(Self { home: home.to_owned(), journal, tree })
    }

    /// A tree of a home or of a side journal of it. `home` may be a side journal itself.
    pub async fn find(home: &Path, word: &str) -> Result<Self, TreeNameError> {
        Self::in_home(&side_journals::find(side_journals::above(home), word).await?, word).await
    }

    /// The tree and its home.
    pub fn place(&self) -> TreeInHome<'_> {
        TreeInHome { home: &self.home, tree: self.tree }
    }

    /// The same to be shown, without secrets.
    ///
    /// # Errors
    /// If it is not known what to redact.
    pub async fn redacted(self) -> Result<RedactedTree, RedactionError> {
        let Self { home, journal, tree } = self;
        Ok(RedactedTree { home, journal: RedactedJournal::of_tree(Arc::new(journal), tree).await?, tree })
    }
}

/// A tree that is shown.
pub struct RedactedTree {
    /// The home that has it.
    pub home: PathBuf,
    /// Its journal without secrets.
    pub journal: RedactedJournal<'static>,
    /// The tree.
    pub tree: TreeId,
}

impl RedactedTree {
    /// The tree and its home.
    pub fn place(&self) -> TreeInHome<'_> {
        TreeInHome { home: &self.home, tree: self.tree }
    }
}

/// The head of a tree of this home.
pub async fn find(home: &Path, journal: &dyn Journal, text: &str) -> Result<Head, TreeNameError> {
    let (place, text) = (|| home.to_owned(), text.to_owned());
    let mut heads = journal.heads(&[]).await?;
    let wanted = text.to_ascii_lowercase();
    if wanted == LAST {
        return heads.pop().ok_or_else(|| TreeNameError::NoTrees { home: place() });
    }
    if wanted.is_empty() || wanted.len() > 32 || !wanted.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(TreeNameError::NotAnId { home: place(), text });
    }
    let has_trees = !heads.is_empty();
    heads.retain(|head| head.tree.to_string().starts_with(&wanted));
    match heads.len() {
        0 => Err(TreeNameError::Unknown { home: place(), text, has_trees }),
        1 => Ok(heads.remove(0)),
        count => {
            let some = heads.iter().take(LISTED_MAX).map(|head| format!("{} {}", head.tree, head.state));
            Err(TreeNameError::Several { text, count, some: some.collect() })
        }
    }
}
