//! The repository of the user that a working copy is made of, and the few things that are done in it: a look at HEAD, our
//! own references, and a pack that is added.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde::{Deserialize, Serialize};

use super::commit_id::CommitId;
use super::git::{Git, GitError, word};

/// How many numbered names of a branch are tried.
const NAMES_MAX: u32 = 100;

/// Why no working copy can be made of a folder.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryError {
    #[error("{} is not an absolute path in plain characters", path.display())]
    Path { path: PathBuf },
    #[error("{} cannot be opened", path.display())]
    Unread {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is not a git repository ({said})", path.display())]
    NotOne { path: PathBuf, said: String },
    #[error("{} is in the repository {}: name that one", path.display(), top.display())]
    Inside { path: PathBuf, top: PathBuf },
    #[error("{} has no commit yet: make one first", path.display())]
    NoCommit { path: PathBuf },
    #[error("{} is a shallow clone: `git fetch --unshallow` completes it", path.display())]
    Shallow { path: PathBuf },
    #[error("{} is a partial clone, whose objects are elsewhere: use a whole one", path.display())]
    Partial { path: PathBuf },
    #[error(
        "{} borrows objects of another repository: `git repack -a -d` copies them, then remove {}",
        path.display(),
        alternates.display()
    )]
    Borrows { path: PathBuf, alternates: PathBuf },
    #[error("the git directory of {} is elsewhere, at {}, and does not point back to it", path.display(), git_dir.display())]
    Elsewhere { path: PathBuf, git_dir: PathBuf },
    #[error(transparent)]
    Git(#[from] GitError),
}

/// A repository that copies can be made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repository {
    /// Its top folder, or itself if it has no work tree.
    pub(super) path: PathBuf,
    /// The git directory that all its work trees share.
    pub(super) git_dir: PathBuf,
    pub(super) objects: PathBuf,
    /// Whether hashes are SHA-256.
    #[serde(default)]
    pub(super) is_sha256: bool,
    /// Whether it has no work tree.
    #[serde(default)]
    pub(super) is_bare: bool,
}

impl Repository {
    /// Looks at a folder, and runs nothing that it could name.
    ///
    /// # Errors
    /// Why no copy can be made of it.
    pub async fn open(path: &Path) -> Result<Self, RepositoryError> {
        let is_plain = |path: &Path| word(path).is_some_and(|text| !text.contains(char::is_control));
        if !path.is_absolute() || !is_plain(path) {
            return Err(RepositoryError::Path { path: path.to_owned() });
        }
        let unread = |source| RepositoryError::Unread { path: path.to_owned(), source };
        let path = path.canonicalize().map_err(unread)?;
        let looked = look(&path).await?;
        let Looked { git_dir, common, objects, is_bare, is_shallow, is_sha256 } = looked;
        let unread = |source| RepositoryError::Unread { path: path.clone(), source };
        if !is_bare {
            let top = Git::at(&path).run(&["rev-parse", "--path-format=absolute", "--show-toplevel"]).await?;
            let top = lines(&top).into_iter().next().unwrap_or_default();
            if top.canonicalize().map_err(unread)? != path {
                return Err(RepositoryError::Inside { path, top });
            }
        }
        check_place(&path, &git_dir, &common, is_bare)?;
        let common = common.canonicalize().map_err(unread)?;
        // A link in its place would make something else readable.
        let objects = objects.canonicalize().map_err(unread)?;
        if objects != common.join("objects") || !is_plain(&objects) {
            return Err(RepositoryError::Elsewhere { path, git_dir: objects });
        }
        if is_shallow {
            return Err(RepositoryError::Shallow { path });
        }
        let alternates = objects.join("info/alternates");
        if fs::symlink_metadata(&alternates).is_ok_and(|found| !found.is_file() || found.len() > 0) {
            return Err(RepositoryError::Borrows { path, alternates });
        }
        let partial = r"^(extensions\.partialclone|remote\..*\.promisor)$";
        if Git::at(&path).ask(&["config", "--get-regexp", partial]).await?.is_some() {
            return Err(RepositoryError::Partial { path });
        }
        let repository = Self { path, git_dir: common, objects, is_sha256, is_bare };
        repository.head().await?;
        Ok(repository)
    }

    /// Its path, for people.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The commit that a copy begins at.
    ///
    /// # Errors
    /// If there is none.
    pub async fn head(&self) -> Result<CommitId, RepositoryError> {
        let no_commit = || RepositoryError::NoCommit { path: self.path.clone() };
        match Git::at(&self.path).run(&["rev-list", "--max-count=1", "HEAD"]).await {
            Err(GitError::Failed { .. }) => Err(no_commit()),
            head => CommitId::from_output(&head?).ok_or_else(no_commit),
        }
    }

    fn git(&self) -> Git<'_> {
        // Only its own directory: not what its folder has in it.
        Git::at(&self.git_dir)
    }

    /// What a reference has, if it exists.
    pub(super) async fn read_ref(&self, name: &str) -> Result<Option<CommitId>, GitError> {
        // It also lists what is below the name.
        let listed = self.git().run(&["for-each-ref", "--format=%(objectname) %(refname)", name]).await?;
        let listed = String::from_utf8_lossy(&listed);
        let found = listed.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' '));
        Ok(found.and_then(|found| found.parse().ok()))
    }

    /// Sets a reference that has what was read of it before.
    pub(super) async fn set_ref(
        &self,
        name: &str,
        to: &CommitId,
        before: Option<&CommitId>,
    ) -> Result<(), GitError> {
        let none = "0".repeat(to.as_str().len());
        let before = before.map_or(none.as_str(), CommitId::as_str);
        let words = ["update-ref", "--no-deref", "-m", "spinney: taken over", name, to.as_str(), before];
        self.git().run(&words).await.map(drop)
    }

    pub(super) async fn remove_ref(&self, name: &str) -> Result<(), GitError> {
        self.git().run(&["update-ref", "--no-deref", "-d", name]).await.map(drop)
    }

    /// Adds the objects of a pack, each checked.
    pub(super) async fn add_pack(&self, pack: File, bytes_max: u64) -> Result<(), GitError> {
        let most = format!("--max-input-size={bytes_max}");
        let words = ["index-pack", "--stdin", "--strict", most.as_str()];
        self.git().run_with(&words, Stdio::from(pack)).await.map(drop)
    }

    pub(super) async fn is_ancestor(&self, one: &CommitId, of: &CommitId) -> Result<bool, GitError> {
        let words = ["merge-base", "--is-ancestor", one.as_str(), of.as_str()];
        Ok(self.git().ask(&words).await?.is_some())
    }

    /// Gives a commit a branch: one of this name, or of a numbered one if that has commits that this one does not contain.
    /// `ours` is what we gave it before.
    pub(super) async fn place(
        &self,
        name: &str,
        first: u32,
        commit: &CommitId,
        ours: Option<&CommitId>,
    ) -> Result<String, GitError> {
        for number in first..=NAMES_MAX {
            let branch = if number == 1 { name.to_owned() } else { format!("{name}+{number}") };
            let full = format!("refs/heads/{branch}");
            let there = self.read_ref(&full).await?;
            let is_free = match &there {
                None => true,
                Some(there) if there == commit => return Ok(branch),
                Some(there) => Some(there) == ours || self.is_ancestor(there, commit).await?,
            };
            if is_free {
                self.set_ref(&full, commit, there.as_ref()).await?;
                return Ok(branch);
            }
        }
        Err(GitError::Failed { command: "update-ref".to_owned(), said: format!("too many branches {name}") })
    }
}

struct Looked {
    git_dir: PathBuf,
    common: PathBuf,
    objects: PathBuf,
    is_bare: bool,
    is_shallow: bool,
    is_sha256: bool,
}

async fn look(path: &Path) -> Result<Looked, RepositoryError> {
    let words = [
        "rev-parse",
        "--path-format=absolute",
        "--git-dir",
        "--git-common-dir",
        "--git-path",
        "objects",
        "--is-bare-repository",
        "--is-shallow-repository",
        "--show-object-format",
    ];
    let not_one = |said: String| RepositoryError::NotOne { path: path.to_owned(), said };
    let looked = match Git::at(path).run(&words).await {
        Err(GitError::Failed { said, .. }) => return Err(not_one(said)),
        looked => looked?,
    };
    let looked = lines(&looked);
    let [git_dir, common, objects, bare, shallow, format] = looked.as_slice() else {
        return Err(not_one("its paths have line breaks".to_owned()));
    };
    let is = |word: &PathBuf, wanted: &str| word.as_os_str() == wanted;
    Ok(Looked {
        git_dir: git_dir.clone(),
        common: common.clone(),
        objects: objects.clone(),
        is_bare: is(bare, "true"),
        is_shallow: is(shallow, "true"),
        is_sha256: is(format, "sha256"),
    })
}

/// The git directory is in the folder, or it knows the folder as one of its work trees. Otherwise a folder could lead to
/// a repository that its user did not mean.
fn check_place(path: &Path, git_dir: &Path, common: &Path, is_bare: bool) -> Result<(), RepositoryError> {
    let same = |one: &Path, other: &Path| match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    };
    let own = if is_bare { path.to_owned() } else { path.join(".git") };
    let is_own =
        same(git_dir, &own) && same(common, &own) && own.symlink_metadata().is_ok_and(|found| found.is_dir());
    let names_it = || {
        let named = fs::read_to_string(git_dir.join("gitdir")).unwrap_or_default();
        same(Path::new(named.trim_end()), &path.join(".git"))
            && git_dir.parent().is_some_and(|above| same(above, &common.join("worktrees")))
    };
    if is_own || (!is_bare && names_it()) {
        Ok(())
    } else {
        Err(RepositoryError::Elsewhere { path: path.to_owned(), git_dir: git_dir.to_owned() })
    }
}

fn lines(bytes: &[u8]) -> Vec<PathBuf> {
    String::from_utf8_lossy(bytes).lines().map(PathBuf::from).collect()
}
