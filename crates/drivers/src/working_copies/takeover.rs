//! Takes the changes of a copy over into its repository, as a branch. What reads the copy runs in a box and makes a pack;
//! the repository gets the pack, checked, and a reference. It can be done again at any time and gives the same branch.

use std::fs;
use std::io;
use std::path::Path;

use super::boxed_git::{BoxedGit, BoxedGitError, Boxes, DISK_BYTES_MAX};
use super::changed_files::ChangedFiles;
use super::commit_id::CommitId;
use super::copy_lock::{CopyLock, CopyUse};
use super::git::{COMMITTER, GitError};
use super::ignore_rules;
use super::record::{CopyRecord, CopyTakeover, UntakenFiles, copy_folder, open_plain, read_bounded};
use super::tips::{self, Tips};
use crate::off_worker::off_worker;

const PLACE: &str = ".unfinished-takeover";
/// Bytes of a list of names.
const LIST_BYTES_MAX: u64 = 64 << 20;
const HASHES_BYTES_MAX: u64 = 4_096;

/// What is tracked, what is not and what is ignored, from the commit `$1`; which of the other hashes are commits.
const LIST: &str = r#"set -eu
git cat-file -e "$1^{commit}"
git read-tree "$1"
git ls-files -z --stage > "$GIT_DIR/tracked"
git ls-files -z --others --exclude-standard > "$GIT_DIR/untracked"
git ls-files -z --others --ignored --exclude-standard --directory > "$GIT_DIR/ignored"
shift
: > "$GIT_DIR/others"
for tip; do
  if git cat-file -e "$tip^{commit}" 2> /dev/null; then echo "$tip" >> "$GIT_DIR/others"; fi
done
"#;

/// A commit on top of `$1` if anything differs from it, and a pack of everything that `$2` does not have.
const COMMIT: &str = r#"set -eu
git update-index -z --force-remove --stdin < "$3/remove"
git update-index -z --add --stdin < "$3/add"
tree=$(git write-tree)
commit=$1
if [ "$tree" != "$(git rev-parse "$1^{tree}")" ]; then
  commit=$(git commit-tree -p "$1" -m "$4" "$tree")
fi
echo "$commit" > "$GIT_DIR/commit"
{ echo "$commit"; cat "$GIT_DIR/others"; echo "^$2"; } | git pack-objects -q --revs --stdout > "$GIT_DIR/pack"
"#;

/// Why the changes of a copy are not in its repository. The copy stays as it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TakeoverError {
    #[error("the copy cannot be used")]
    Folder(#[from] io::Error),
    #[error("{} does not know this working copy: its reference {reference} is missing", repository.display())]
    Unknown { repository: std::path::PathBuf, reference: String },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Boxed(#[from] BoxedGitError),
}

/// What git made of a copy, in a box.
pub(super) struct Packed {
    pub(super) commit: CommitId,
    /// Tips that the agent did not work on last.
    others: Vec<CommitId>,
    left_out: UntakenFiles,
}

/// Takes a copy over. The record is written before and after.
pub(super) async fn take_over(
    agent: &Path,
    record: &mut CopyRecord,
    boxes: Boxes<'_>,
    now_ms: u64,
) -> Result<CopyTakeover, TakeoverError> {
    let _alone = CopyLock::take(agent, CopyUse::Alone).await?;
    // Another process may have taken it meanwhile.
    if let Some(newer) = CopyRecord::read(agent)? {
        *record = newer;
    }
    let reference = record.base_ref();
    if record.repository.read_ref(&reference).await?.as_ref() != Some(&record.base) {
        let repository = record.repository.path.clone();
        return Err(TakeoverError::Unknown { repository, reference });
    }
    if !copy_folder(agent).symlink_metadata().is_ok_and(|found| found.is_dir()) {
        // It was never made, or a person removed it.
        let nothing = CopyTakeover {
            commit: record.base.clone(),
            branches: Vec::new(),
            left_out: UntakenFiles::default(),
        };
        return Ok(record.taken.clone().unwrap_or(nothing));
    }
    // The same time at every try, so that the same changes are the same commit.
    record.taken_ms.get_or_insert(now_ms);
    record.write(agent)?;
    let objects = &record.repository.objects;
    let mut git = BoxedGit::with_copy(boxes, agent, PLACE, objects, record.repository.is_sha256).await?;
    let taken = match pack(&mut git, agent, record, now_ms).await {
        Ok(packed) => place(&git, record, packed).await,
        Err(error) => Err(error),
    };
    let cleaned = git.clean().await;
    let taken = taken?;
    cleaned?;
    record.taken = Some(taken.clone());
    record.write(agent)?;
    Ok(taken)
}

/// Makes a commit and a pack of what is in a copy.
pub(super) async fn pack(
    git: &mut BoxedGit<'_>,
    agent: &Path,
    record: &CopyRecord,
    now_ms: u64,
) -> Result<Packed, TakeoverError> {
    let copy = copy_folder(agent);
    let (at, like, git_dir) = (copy.clone(), record.base.clone(), record.repository.git_dir.clone());
    let place = git.written("");
    let tips = off_worker(move || -> io::Result<Tips> {
        ignore_rules::write(&place, &ignore_rules::of_copy(&git_dir, &at)?)?;
        Ok(tips::read(&at, &like))
    });
    let tips = tips.await?;
    let head = tips.head.unwrap_or_else(|| record.base.clone());
    let words: Vec<&str> = std::iter::once(&head).chain(&tips.others).map(CommitId::as_str).collect();
    git.run(LIST, &words).await?;
    let [tracked, untracked, ignored] = ["tracked", "untracked", "ignored"].map(|name| git.written(name));
    let lists = git.lists();
    let left_out = off_worker(move || -> io::Result<UntakenFiles> {
        let read = |path: &Path| read_bounded(path, LIST_BYTES_MAX);
        let changed = ChangedFiles::new(&copy, &read(&tracked)?, &read(&untracked)?, &read(&ignored)?)?;
        fs::write(lists.join("add"), &changed.add)?;
        fs::write(lists.join("remove"), &changed.remove)?;
        Ok(changed.left_out)
    });
    let left_out = left_out.await?;
    let agent = record.agent.as_str();
    let date = format!("@{} +0000", record.taken_ms.unwrap_or(now_ms) / 1_000);
    git.set("GIT_AUTHOR_NAME", agent);
    git.set("GIT_AUTHOR_EMAIL", format!("{agent}@spinney.invalid"));
    COMMITTER.into_iter().for_each(|(name, value)| git.set(name, value));
    git.set("GIT_AUTHOR_DATE", date.as_str());
    git.set("GIT_COMMITTER_DATE", date.as_str());
    let message = format!("Uncommitted changes of {agent}\n\nIn its working copy, tree {}.", record.tree);
    let lists = git.lists();
    let lists = lists.to_str().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))?;
    git.run(COMMIT, &[head.as_str(), record.base.as_str(), lists, &message]).await?;
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "git named no commit");
    let commit = read_bounded(&git.written("commit"), HASHES_BYTES_MAX)?;
    let commit = CommitId::from_output(&commit).filter(|commit| commit.is_like(&record.base));
    let others = read_bounded(&git.written("others"), HASHES_BYTES_MAX)?;
    let others = String::from_utf8_lossy(&others).lines().filter_map(|line| line.parse().ok()).collect();
    Ok(Packed { commit: commit.ok_or_else(bad)?, others, left_out })
}

/// Adds a pack to the repository and gives its commits branches.
async fn place(
    git: &BoxedGit<'_>,
    record: &CopyRecord,
    packed: Packed,
) -> Result<CopyTakeover, TakeoverError> {
    let Packed { commit, others, left_out } = packed;
    let repository = &record.repository;
    let mut branches = Vec::new();
    if commit != record.base || !others.is_empty() {
        let file = open_plain(&git.written("pack"))?;
        repository.add_pack(file, DISK_BYTES_MAX).await?;
    }
    let name = record.branch();
    if commit != record.base {
        let ours = record.taken.as_ref().map(|taken| &taken.commit);
        branches.push(repository.place(&name, 1, &commit, ours).await?);
    }
    for other in others {
        let is_in = repository.is_ancestor(&other, &commit).await?
            || repository.is_ancestor(&other, &record.base).await?;
        if !is_in {
            branches.push(repository.place(&name, 2, &other, None).await?);
        }
    }
    Ok(CopyTakeover { commit, branches, left_out })
}
