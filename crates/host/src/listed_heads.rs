//! What a listing read in a side journal, in a file beside it, so the next one need not open the journal. It counts only
//! while the files of the journal are as they were; without it, and if anything in it is wrong, the journal is read.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use spinney::clock::{Clock, SystemClock};
use spinney_journal::{Base, ChainHash, Head};
use spinney_kernel::primitives::{Seq, Time, TreeId};
use spinney_kernel::world::TreeState;
use spinney_store::layout::{JOURNAL, LISTED};

use crate::system::files;
use crate::system::private_files::{self, Links};
use crate::text_file;

/// Another version is read again.
const VERSION: u32 = 1;
/// A side journal has one tree, and its branches.
const BYTES_MAX: u64 = 1024 * 1024;
/// Files that changed more recently are read again: a later write may leave the same time.
const SETTLED_MS: i64 = 2_000;

/// The head of a tree with the name in its tree file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedHead {
    pub(crate) head: Head,
    pub(crate) name: String,
}

/// The files of a journal: every write changes one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JournalFiles([Option<FileTraits>; 2]);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTraits {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl JournalFiles {
    /// As they are. A reader leaves an empty write-ahead file, which says nothing.
    pub(crate) fn now(home: &Path) -> Self {
        Self(["", "-wal"].map(|ending| {
            let about = fs::symlink_metadata(home.join(format!("{JOURNAL}{ending}"))).ok()?;
            let (_, inode) = files::identity(&about);
            let traits = FileTraits { inode, bytes: about.len(), modified: files::modified(&about) };
            Some(traits).filter(|traits| traits.bytes > 0)
        }))
    }

    /// Whether a further change would change their times, however coarse those are.
    pub(crate) fn are_settled(&self) -> bool {
        let now_ms = SystemClock::new().now_ms() as i64;
        let is_old = |file: &FileTraits| file.modified.0.saturating_mul(1_000) < now_ms - SETTLED_MS;
        self.0.iter().flatten().all(is_old)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListedFile {
    version: u32,
    files: JournalFiles,
    trees: Vec<ListedHead>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListedHead {
    tree: TreeId,
    name: String,
    seq: Seq,
    hash: [u8; 32],
    state: TreeState,
    started: Time,
    changed: Time,
    base: Option<(TreeId, Seq)>,
    seed: TreeId,
}

impl From<&NamedHead> for ListedHead {
    fn from(NamedHead { head, name }: &NamedHead) -> Self {
        Self {
            tree: head.tree,
            name: name.clone(),
            seq: head.seq,
            hash: *head.hash.bytes(),
            state: head.state,
            started: head.started,
            changed: head.changed,
            base: head.base.map(|base| (base.tree, base.at)),
            seed: head.seed,
        }
    }
}

impl ListedHead {
    fn read(self) -> NamedHead {
        let Self { tree, name, seq, hash, state, started, changed, base, seed } = self;
        let base = base.map(|(tree, at)| Base { tree, at });
        let hash = ChainHash::from_bytes(hash);
        NamedHead { head: Head { tree, seq, hash, state, started, changed, base, seed }, name }
    }
}

/// What was read while the files of a journal were as they are.
pub(crate) fn read(home: &Path, files: &JournalFiles) -> Option<Vec<NamedHead>> {
    let text = text_file::read(&home.join(LISTED), BYTES_MAX, Links::Refuse).ok()?;
    let file: ListedFile = serde_json::from_str(&text).ok()?;
    if file.version != VERSION || file.files != *files {
        return None;
    }
    Some(file.trees.into_iter().map(ListedHead::read).collect())
}

/// Remembers what was read. A home that cannot be written is read again the next time.
pub(crate) fn write(home: &Path, files: &JournalFiles, trees: &[NamedHead]) {
    let trees = trees.iter().map(ListedHead::from).collect();
    let Ok(text) = serde_json::to_vec(&ListedFile { version: VERSION, files: files.clone(), trees }) else {
        return;
    };
    let new = home.join(format!(".{LISTED}.{}.new", std::process::id()));
    if private_files::write(&new, &text).and_then(|()| fs::rename(&new, home.join(LISTED))).is_err() {
        let _ = fs::remove_file(&new);
    }
}
