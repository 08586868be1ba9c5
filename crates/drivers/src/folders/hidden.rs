//! What the user has around the folders of agents: folders that no agent sees, whatever it was granted (the home of its
//! tree, and what the user decided and recorded), and the user's own configuration of git.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_fs_ext::MetadataExt as _;
use cap_std::fs::Dir;

use super::git::UserGit;

/// Folders that are in no grant. Clones share them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HiddenFolders {
    folders: Arc<[PathBuf]>,
    git: Arc<UserGit>,
}

impl HiddenFolders {
    /// Those at these paths, whether or not they exist yet. Links in them are followed now.
    #[must_use]
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { folders: paths.into_iter().map(|path| resolved(&path)).collect(), git: Arc::default() }
    }

    /// With the user's configuration of git: what it names in a folder is not for agents to write.
    #[must_use]
    pub fn with_git(mut self, git: UserGit) -> Self {
        self.git = Arc::new(git);
        self
    }

    /// The user's configuration of git.
    pub(crate) fn git(&self) -> &UserGit {
        &self.git
    }

    /// Whether a path without links is one of them or in one.
    #[must_use]
    pub fn contain(&self, path: &Path) -> bool {
        self.folders.iter().any(|hidden| path.starts_with(hidden))
    }

    /// Those in a folder.
    pub(crate) fn below<'a>(&'a self, folder: &'a Path) -> impl Iterator<Item = &'a PathBuf> {
        self.folders.iter().filter(move |hidden| hidden.starts_with(folder))
    }

    /// The same as the files that they are now.
    pub(crate) fn ids(&self) -> HiddenIds {
        let id = |path: &PathBuf| {
            let found = std::fs::metadata(path).ok()?;
            Some((std::os::unix::fs::MetadataExt::dev(&found), std::os::unix::fs::MetadataExt::ino(&found)))
        };
        HiddenIds(self.folders.iter().filter_map(id).collect())
    }
}

/// Hidden folders by device and inode, however they are reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct HiddenIds(Arc<[(u64, u64)]>);

impl HiddenIds {
    /// Whether it is one of them.
    pub(crate) fn has(&self, id: (u64, u64)) -> bool {
        self.0.contains(&id)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an open folder is one of them. One that cannot be asked is.
    pub(crate) fn has_folder(&self, folder: &Dir) -> bool {
        !self.is_empty() && folder.dir_metadata().map_or(true, |found| self.has((found.dev(), found.ino())))
    }
}

/// Where a path leads: as far as it exists its links are followed, and the rest is as it is written.
pub(super) fn resolved(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let Ok(found) = above.canonicalize() {
            let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
            return if rest.as_os_str().is_empty() { found } else { found.join(rest) };
        }
    }
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
