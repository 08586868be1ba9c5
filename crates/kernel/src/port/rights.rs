//! What an agent's own effects may touch outside Spinney: the network and folders. A driver that starts or reaches
//! something outside keeps it within these; what it cannot enforce, it refuses.

use std::path::{Path, PathBuf};

use crate::definition::{Caps, FolderAccess, HostRequests, Network};

/// The rights of the agent that calls. Its own workspace needs none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rights {
    pub network: Network,
    /// Whether the agent may ask a person for other hosts, which is what a tool says when it refuses one.
    pub host_requests: HostRequests,
    /// Folders beside its workspace. Those that are not here, or below one that is, it may not open; of several around a
    /// path the nearest decides.
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

    /// Sets whether the agent may ask for other hosts.
    #[must_use]
    pub const fn with_host_requests(mut self, requests: HostRequests) -> Self {
        self.host_requests = requests;
        self
    }

    /// Adds a folder, by its absolute path.
    #[must_use]
    pub fn with_folder(mut self, path: impl Into<PathBuf>, access: FolderAccess) -> Self {
        self.folders.push(FolderRight { path: path.into(), access });
        self
    }

    /// The nearest folder around a path, by its name alone: a driver must also keep links from leading out of it. `None`
    /// if there is none.
    #[must_use]
    pub fn folder_around(&self, path: &Path) -> Option<&FolderRight> {
        let around = self.folders.iter().filter(|folder| path.starts_with(&folder.path));
        around.max_by_key(|folder| (folder.path.components().count(), folder.access))
    }

    /// What may be done with a path, by the nearest folder around it.
    #[must_use]
    pub fn access(&self, path: &Path) -> Option<FolderAccess> {
        self.folder_around(path).map(|folder| folder.access)
    }
}

impl From<&Caps> for Rights {
    fn from(caps: &Caps) -> Self {
        let rights = Self::none().with_network(caps.network.clone()).with_host_requests(caps.host_requests);
        let granted = caps.folders.iter().flat_map(|folders| folders.iter());
        granted.fold(rights, |rights, (path, access)| rights.with_folder(path.as_str(), access))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_folder_around_a_path_decides() {
        let rights = Rights::none()
            .with_folder("/data", FolderAccess::Read)
            .with_folder("/data/out", FolderAccess::Write)
            .with_folder("/data/out/kept", FolderAccess::Read);
        assert_eq!(rights.access(Path::new("/data/in.csv")), Some(FolderAccess::Read));
        assert_eq!(rights.access(Path::new("/data/out/a/b.csv")), Some(FolderAccess::Write));
        assert_eq!(rights.access(Path::new("/data/out/kept/a.csv")), Some(FolderAccess::Read));
        assert_eq!(rights.access(Path::new("/database")), None);
        assert_eq!(Rights::none().access(Path::new("/")), None);
    }
}
