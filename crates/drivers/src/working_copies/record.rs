//! What is known of a working copy, in a file beside it that its agent cannot reach: `<agent>/copy.json`.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use spinney_kernel::primitives::{AgentId, TreeId};

use super::commit_id::CommitId;
use super::repository::Repository;
use crate::workspace::COPY;

/// Of the copy while it is made.
pub(super) const UNFINISHED_COPY: &str = ".unfinished-copy";
const RECORD: &str = "copy.json";
const UNFINISHED_RECORD: &str = ".unfinished-copy.json";
/// Bytes of a record that are read.
const BYTES_MAX: u64 = 1 << 20;

/// What is known of a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CopyRecord {
    pub(super) tree: TreeId,
    pub(super) agent: AgentId,
    pub(super) repository: Repository,
    /// Where it began.
    pub(super) base: CommitId,
    /// Whether the user had changes that are not in it.
    #[serde(default)]
    pub(super) is_without_changes: bool,
    /// The submodules that it does not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) submodules: Vec<String>,
    /// When it was first taken over, in milliseconds: the time of the commit that this makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) taken_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) taken: Option<CopyTakeover>,
}

/// A copy whose changes are in its repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyTakeover {
    pub commit: CommitId,
    /// The branches in the repository; none if nothing was changed. The first has what the agent worked on last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<String>,
    /// What stayed in the folder.
    #[serde(default, skip_serializing_if = "UntakenFiles::is_empty")]
    pub left_out: UntakenFiles,
}

/// What is in a copy and is not taken over. Names are bounded, counts are not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UntakenFiles {
    /// Files and folders that ignore files name.
    pub ignored: LeftNames,
    /// Files of more than 10 MB.
    pub large: LeftNames,
    /// Repositories in the copy, files that cannot be read, pipes and other files that are not plain.
    pub other: LeftNames,
}

/// Some names, and how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftNames {
    pub count: u64,
    pub names: Vec<String>,
}

/// How many names are kept.
const NAMES_MAX: usize = 20;

impl LeftNames {
    pub(super) fn add(&mut self, path: &[u8]) {
        self.count += 1;
        if self.names.len() < NAMES_MAX {
            self.names.push(String::from_utf8_lossy(path).into_owned());
        }
    }
}

impl UntakenFiles {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ignored.count + self.large.count + self.other.count == 0
    }
}

impl CopyRecord {
    /// The branch that its changes become.
    pub(super) fn branch(&self) -> String {
        format!("spinney/{}/{}", self.tree, self.agent)
    }

    /// The reference that keeps its base in the repository.
    pub(super) fn base_ref(&self) -> String {
        format!("refs/spinney/base/{}/{}", self.tree, self.agent)
    }

    /// The record in the folder of an agent, if there is one.
    pub(super) fn read(agent: &Path) -> io::Result<Option<Self>> {
        let bytes = match read_bounded(&agent.join(RECORD), BYTES_MAX) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            bytes => bytes?,
        };
        serde_json::from_slice(&bytes).map(Some).map_err(io::Error::from)
    }

    /// Writes it whole, or not at all.
    pub(super) fn write(&self, agent: &Path) -> io::Result<()> {
        let bytes = serde_json::to_vec(self)?;
        let unfinished = agent.join(UNFINISHED_RECORD);
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600).custom_flags(nofollow());
        io::Write::write_all(&mut options.open(&unfinished)?, &bytes)?;
        std::fs::rename(unfinished, agent.join(RECORD))
    }
}

/// A plain file of at most so many bytes, not opened through a link.
pub(super) fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = open_plain(path)?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::new(ErrorKind::FileTooLarge, "too large"));
    }
    Ok(bytes)
}

/// Opens a plain file, not through a link as its last name.
pub(super) fn open_plain(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(nofollow()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(ErrorKind::InvalidInput.into()) }
}

const fn nofollow() -> i32 {
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed()
}

/// The folders of a copy and of what is made beside it.
pub(super) fn copy_folder(agent: &Path) -> PathBuf {
    agent.join(COPY)
}
