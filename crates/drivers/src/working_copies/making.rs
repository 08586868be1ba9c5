//! Makes the copy of an agent when it is first needed: under another name first, then renamed, so that a copy is whole or
//! not there. The base is kept in the repository before anything is borrowed from it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use spinney_kernel::port::AgentFolder;

use super::commit_id::CommitId;
use super::copy_lock::{CopyLock, CopyUse};
use super::gate::with_source;
use super::git::{Git, GitError, word};
use super::ignore_rules;
use super::own_git;
use super::record::{CopyRecord, UNFINISHED_COPY, copy_folder};
use super::repository::{Repository, RepositoryError};
use crate::off_worker::off_worker;

const UNFINISHED_LOOK: &str = ".unfinished-look";
/// A file that is a submodule, as git lists it.
const SUBMODULE: &[u8] = b"160000 ";
const SUBMODULES_NAMED: usize = 20;

/// Why an agent has no working copy.
#[derive(Debug, thiserror::Error)]
pub enum NoCopy {
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    #[error("its folder cannot be used")]
    Folder(#[from] io::Error),
    #[error("the path of its folder has characters that git does not accept")]
    Path,
}

impl NoCopy {
    /// With its cause, as its agent reads it.
    pub(crate) fn in_words(&self) -> String {
        with_source(self)
    }
}

impl From<GitError> for NoCopy {
    fn from(error: GitError) -> Self {
        Self::Repository(error.into())
    }
}

/// A copy that a tool uses.
#[derive(Debug)]
pub(crate) struct OpenCopy {
    pub(crate) folder: PathBuf,
    /// The objects of its repository.
    pub(crate) objects: PathBuf,
    /// What the agent should know of it, if it was made now.
    pub(crate) note: Option<String>,
    pub(crate) lock: CopyLock,
}

impl OpenCopy {
    /// The copy of an agent, whose folder exists; it is made if it is not there.
    pub(crate) async fn open(folder: &AgentFolder, repository: &Path) -> Result<Self, NoCopy> {
        let agent = folder.path().canonicalize()?;
        let lock = CopyLock::take(&agent, CopyUse::Shared).await?;
        if let Some(record) = found(&agent)? {
            return Ok(Self::new(&agent, &record, None, lock));
        }
        drop(lock);
        let alone = CopyLock::take(&agent, CopyUse::Alone).await?;
        let (record, is_new) = match found(&agent)? {
            Some(record) => (record, false),
            None => (make(folder, &agent, repository).await?, true),
        };
        drop(alone);
        let note = is_new.then(|| note(&record));
        Ok(Self::new(&agent, &record, note, CopyLock::take(&agent, CopyUse::Shared).await?))
    }

    fn new(agent: &Path, record: &CopyRecord, note: Option<String>, lock: CopyLock) -> Self {
        Self { folder: copy_folder(agent), objects: record.repository.objects.clone(), note, lock }
    }
}

/// The record of a copy that is whole.
fn found(agent: &Path) -> io::Result<Option<CopyRecord>> {
    let is_there = copy_folder(agent).symlink_metadata().is_ok_and(|found| found.is_dir());
    if is_there { CopyRecord::read(agent) } else { Ok(None) }
}

async fn make(folder: &AgentFolder, agent: &Path, repository: &Path) -> Result<CopyRecord, NoCopy> {
    let repository = Repository::open(repository).await?;
    let base = repository.head().await?;
    let (tree, name) = (folder.origin().tree, folder.origin().agent().clone());
    let mut record = CopyRecord {
        tree,
        agent: name,
        repository,
        base,
        is_without_changes: false,
        submodules: Vec::new(),
        taken_ms: None,
        taken: None,
    };
    // First, so that whatever is left of it is found when the tree is removed.
    record.write(agent)?;
    let kept = record.repository.read_ref(&record.base_ref()).await?;
    record.repository.set_ref(&record.base_ref(), &record.base, kept.as_ref()).await?;
    record.is_without_changes = has_changes(&record.repository, agent, &record.base).await?;
    let unfinished = agent.join(UNFINISHED_COPY);
    let old = unfinished.clone();
    off_worker(move || own_git::remove(&old)).await?;
    check_out(&record, agent, &unfinished).await?;
    record.submodules = submodules(&unfinished).await?;
    record.write(agent)?;
    fs::rename(&unfinished, copy_folder(agent))?;
    Ok(record)
}

/// A work tree with its own git directory, at the base.
async fn check_out(record: &CopyRecord, agent: &Path, copy: &Path) -> Result<(), NoCopy> {
    let branch = format!("--initial-branch={}", record.branch());
    let format = if record.repository.is_sha256 { "sha256" } else { "sha1" };
    let format = format!("--object-format={format}");
    let copy_word = word(copy).ok_or(NoCopy::Path)?;
    Git::at(agent).run(&["init", "-q", &branch, &format, copy_word]).await?;
    let git_dir = copy.join(".git");
    own_git::borrow(&git_dir, std::slice::from_ref(&record.repository.objects))?;
    fs::create_dir_all(git_dir.join("info"))?;
    fs::write(git_dir.join("info/attributes"), own_git::ATTRIBUTES)?;
    ignore_rules::write(&git_dir, &ignore_rules::of_repository(&record.repository.git_dir)?)?;
    let config = git_dir.join("config");
    // So that the agent can commit, and git does not clean up what others borrow from.
    let settings = format!(
        "[user]\n\tname = {0}\n\temail = {0}@spinney.invalid\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n",
        record.agent
    );
    fs::write(&config, fs::read_to_string(&config)? + &settings)?;
    let git = Git::at(copy).with_git_dir(&git_dir);
    let branch = format!("refs/heads/{}", record.branch());
    git.run(&["update-ref", &branch, record.base.as_str()]).await?;
    git.run(&["reset", "-q", "--hard"]).await?;
    Ok(())
}

async fn submodules(copy: &Path) -> Result<Vec<String>, NoCopy> {
    let git_dir = copy.join(".git");
    let listed = Git::at(copy).with_git_dir(&git_dir).run(&["ls-files", "-z", "--stage"]).await?;
    let entries = listed.split(|byte| *byte == 0).filter(|entry| entry.starts_with(SUBMODULE));
    let names = entries.filter_map(|entry| entry.split(|byte| *byte == b'\t').nth(1));
    Ok(names.take(SUBMODULES_NAMED).map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// Whether tracked files of the user's work tree differ from the base. Its own configuration is not used: it could name
/// programs.
async fn has_changes(repository: &Repository, agent: &Path, base: &CommitId) -> Result<bool, NoCopy> {
    if repository.is_bare {
        return Ok(false);
    }
    let look = agent.join(UNFINISHED_LOOK);
    own_git::remove(&look)?;
    own_git::make(&look, std::slice::from_ref(&repository.objects), repository.is_sha256)?;
    fs::write(look.join("HEAD"), format!("{base}\n"))?;
    let words = ["rev-parse", "--path-format=absolute", "--git-path", "index"];
    let index = Git::at(&repository.path).run(&words).await?;
    let index = PathBuf::from(String::from_utf8_lossy(&index).trim_end());
    let copied = look.join("index");
    let (from, to) = (index, copied.clone());
    let changed = match off_worker(move || fs::copy(from, to)).await {
        // Nothing was ever added: then nothing of the base is there.
        Err(_) => true,
        Ok(_) => {
            let git = Git::at(&repository.path).with_git_dir(&look).with_index(&copied);
            let words = ["status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=all"];
            // What cannot be said is not ruled out.
            git.run(&words).await.map_or(true, |changes| !changes.is_empty())
        }
    };
    own_git::remove(&look)?;
    Ok(changed)
}

/// What the agent and people should know.
fn note(record: &CopyRecord) -> String {
    let mut text = format!("`copy/` is your working copy, at commit {}", record.base.short());
    if record.is_without_changes {
        text += "; the user's uncommitted changes are not in it";
    }
    if !record.submodules.is_empty() {
        text += &format!("; without the submodules {}", record.submodules.join(", "));
    }
    text
}
