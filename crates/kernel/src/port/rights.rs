//! What an agent's own effects may touch outside Spinney: the network and folders. A driver that starts or reaches
//! something outside keeps it within these; what it cannot enforce, it refuses.

use std::path::{Path, PathBuf};

use crate::definition::{Caps, Network};

/// The rights of the agent that calls. Its own workspace needs none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rights {
    pub network: Network,
    /// Folders beside its workspace. Those that are not here, or below one that is, it may not open.
    pub folders: Vec<FolderRight>,
}

/// A folder that was granted, with everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FolderRight {
    /// Absolute.
    pub path: PathBuf,
    pub access: FolderAccess,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FolderAccess {
    Read,
    /// Writing includes reading.
    Write,
}

impl Rights {
    /// Neither network nor folders.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn with_network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// Adds a folder, by its absolute path.
    #[must_use]
    pub fn with_folder(mut self, path: impl Into<PathBuf>, access: FolderAccess) -> Self {
        self.folders.push(FolderRight { path: path.into(), access });
        self
    }

    /// What may be done with a path, by its name alone: a driver must also keep links from leading out of the folder.
    /// `None` if nothing.
    #[must_use]
    pub fn access(&self, path: &Path) -> Option<FolderAccess> {
        let around = self.folders.iter().filter(|folder| path.starts_with(&folder.path));
        around.map(|folder| folder.access).max()
    }
}

impl From<&Caps> for Rights {
    /// Capabilities grant no folders, so there are none.
    fn from(caps: &Caps) -> Self {
        Self::none().with_network(caps.network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_folder_around_a_path_decides() {
        let rights = Rights::none()
            .with_folder("/data", FolderAccess::Read)
            .with_folder("/data/out", FolderAccess::Write);
        assert_eq!(rights.access(Path::new("/data/in.csv")), Some(FolderAccess::Read));
        assert_eq!(rights.access(Path::new("/data/out/a/b.csv")), Some(FolderAccess::Write));
        assert_eq!(rights.access(Path::new("/database")), None);
        assert_eq!(Rights::none().access(Path::new("/")), None);
    }
}
