//! The working copies of a tree, for what takes them over, shows and removes them.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use spinney_kernel::primitives::{AgentId, TreeId};

use super::boxed_git::{BoxedGit, Boxes};
use super::commit_id::CommitId;
use super::record::{CopyRecord, CopyTakeover, copy_folder};
use super::takeover::{TakeoverError, pack, take_over};
use crate::sandbox::{BoxLauncher, BoxTierChoice};

/// Of a difference so many bytes from its beginning and from its end are shown.
const DIFF_BYTES: usize = 256 << 10;

/// What changed from `$1` to `$2`: a summary, then the lines.
const DIFF: &str = r#"set -eu
git diff --no-color --no-ext-diff --no-textconv --stat --patch "$1" "$2"
"#;

/// The working copy of an agent.
#[derive(Clone, Debug)]
pub struct WorkingCopy {
    /// The agent's.
    folder: PathBuf,
    record: CopyRecord,
    tier: BoxTierChoice,
}

/// What an agent changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyDiff {
    /// As git prints it.
    pub text: String,
    /// How many bytes in its middle are left out.
    pub omitted_bytes: u64,
}

impl WorkingCopy {
    /// Those of a tree, below the folder of all trees.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn all(workspaces: &Path, tree: TreeId) -> io::Result<Vec<Self>> {
        let entries = match fs::read_dir(workspaces.join(tree.to_string())) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names: Vec<AgentId> = Vec::new();
        for entry in entries {
            names.extend(entry?.file_name().to_str().and_then(|name| name.parse().ok()));
        }
        names.sort_unstable();
        let found = names.iter().map(|agent| Self::find(workspaces, tree, agent));
        found.filter_map(Result::transpose).collect()
    }

    /// That of an agent, if it has one.
    ///
    /// # Errors
    /// The operating system's error, or a record that is not one.
    pub fn find(workspaces: &Path, tree: TreeId, agent: &AgentId) -> io::Result<Option<Self>> {
        let folder = workspaces.join(tree.to_string()).join(agent.as_str());
        let folder = match folder.canonicalize() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            folder => folder?,
        };
        let record = CopyRecord::read(&folder)?;
        let record = record.filter(|record| record.tree == tree && record.agent == *agent);
        Ok(record.map(|record| Self { folder, record, tier: BoxTierChoice::Best }))
    }

    /// The same, read in boxes of one tier.
    #[must_use]
    pub fn with_tier(self, tier: BoxTierChoice) -> Self {
        Self { tier, ..self }
    }

    #[must_use]
    pub fn agent(&self) -> &AgentId {
        &self.record.agent
    }

    /// Where the agent works.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        copy_folder(&self.folder)
    }

    /// The repository that it is a copy of.
    #[must_use]
    pub fn repository(&self) -> &Path {
        self.record.repository.path()
    }

    /// The commit that it began at.
    #[must_use]
    pub const fn base(&self) -> &CommitId {
        &self.record.base
    }

    /// Whether the user had uncommitted changes then, which it does not have.
    #[must_use]
    pub const fn is_without_changes(&self) -> bool {
        self.record.is_without_changes
    }

    /// What was taken over last.
    #[must_use]
    pub const fn taken(&self) -> Option<&CopyTakeover> {
        self.record.taken.as_ref()
    }

    /// Takes its changes over into the repository. The same changes give the same branch, however often.
    ///
    /// # Errors
    /// Why they are not taken. Then the copy stays as it is.
    pub async fn take_over(
        &mut self,
        launcher: &BoxLauncher,
        now_ms: u64,
    ) -> Result<CopyTakeover, TakeoverError> {
        let boxes = Boxes { launcher, tier: self.tier };
        take_over(&self.folder, &mut self.record, boxes, now_ms).await
    }

    /// What the agent changed up to now, also while it works. Nothing is written into the repository.
    ///
    /// # Errors
    /// Why that cannot be said.
    pub async fn diff(&self, launcher: &BoxLauncher, now_ms: u64) -> Result<CopyDiff, TakeoverError> {
        let boxes = Boxes { launcher, tier: self.tier };
        let place = format!(".unfinished-diff-{}", std::process::id());
        let repository = &self.record.repository;
        let (objects, is_sha256) = (&repository.objects, repository.is_sha256);
        let (git, commit) = if self.folder().is_dir() {
            let mut git = BoxedGit::with_copy(boxes, &self.folder, &place, objects, is_sha256).await?;
            let packed = pack(&mut git, &self.folder, &self.record, now_ms).await;
            (git, packed.map(|packed| packed.commit))
        } else {
            let git = BoxedGit::with_objects(boxes, &self.folder, &place, objects, is_sha256).await?;
            let taken = self.taken().map_or(self.base(), |taken| &taken.commit);
            (git, Ok(taken.clone()))
        };
        let ended = match commit {
            Ok(commit) => {
                let words = [self.base().as_str(), commit.as_str()];
                git.start(DIFF, &words, DIFF_BYTES).await.map_err(TakeoverError::from)
            }
            Err(error) => Err(error),
        };
        let cleaned = git.clean().await;
        let printed = ended?.stdout;
        cleaned?;
        let (head, tail) = (String::from_utf8_lossy(printed.head()).into_owned(), printed.tail());
        let omitted_bytes = printed.omitted_bytes();
        let gap = if omitted_bytes > 0 {
            format!("\n[{omitted_bytes} bytes are left out here]\n")
        } else {
            String::new()
        };
        Ok(CopyDiff { text: head + &gap + &String::from_utf8_lossy(&tail), omitted_bytes })
    }

    /// Lets the repository forget the copy, which is about to be removed.
    ///
    /// # Errors
    /// If its reference cannot be removed.
    pub async fn release(&self) -> Result<(), TakeoverError> {
        let name = self.record.base_ref();
        match self.record.repository.read_ref(&name).await? {
            Some(_) => Ok(self.record.repository.remove_ref(&name).await?),
            None => Ok(()),
        }
    }
}
