//! The servers of a tree file that are packages: which of them are installed, and the lock beside the file, with a hash of
//! everything that is installed for it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use spinney_drivers::packages::{
    IndexUrls, InstallOrder, InstallOutcome, InstallerPrograms, Package, PackageCache, PackageCommand,
    PackageIndex, PackageInstaller,
};
use spinney_kernel::definition::{Definition, ServerAddress};
use spinney_kernel::primitives::ServerName;

use crate::defaults::{Defaults, DefaultsError};
use crate::inside::{OURSELVES, command_mark};
use crate::own_drivers::OwnDrivers;
use crate::system::private_files::{self, Links};
use crate::text_file::{self, FileAction, FileFault, UnreadText};
use crate::tree_file::problems::{ProblemsKind, TreeFileProblems};
use crate::tree_file::source::{self, Keys, Scripts, SourceError};
use crate::user::folders;
use crate::user::variables::{Variables, VariablesError};

const LOCK_VERSION: u32 = 1;
const LOCK_BYTES_MAX: u64 = 16 << 20;

/// A server that is a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackagedServer {
    /// The server.
    pub server: ServerName,
    /// What its command names, or why that cannot be installed.
    pub command: Result<PackageCommand, String>,
}

/// The servers of a definition that are packages.
#[must_use]
pub fn packaged(definition: &Definition) -> Vec<PackagedServer> {
    let packaged = definition.servers.iter().filter_map(|(server, it)| {
        let ServerAddress::Command(words) = &it.address else { return None };
        Some(PackagedServer { server: server.clone(), command: PackageCommand::read(words)? })
    });
    packaged.collect()
}

/// The servers of a definition that are packages and cannot be started, each with the reason.
#[must_use]
pub fn missing(definition: &Definition) -> Vec<(ServerName, String)> {
    let cache = folders::packages().map(PackageCache::new);
    let found = packaged(definition).into_iter().filter_map(|PackagedServer { server, command }| {
        let why = match command {
            Err(why) => why,
            Ok(command) => match cache.as_ref().map(|cache| cache.find(&command)) {
                Some(Ok(Some(_))) => return None,
                Some(Err(why)) => why,
                Some(Ok(None)) | None if command.package.version.is_none() => {
                    format!("{} is named without a version", command.package)
                }
                Some(Ok(None)) | None => format!("{} is not installed", command.package),
            },
        };
        Some((server, why))
    });
    found.collect()
}

/// What a tree file says of its servers. The rest of it need not be ready to start: no key of a model is needed.
///
/// # Errors
/// If the file cannot be read, or has errors.
pub fn read_file(file: &Path, home: &Path) -> Result<Definition, PackageError> {
    let user = Variables::read(&Defaults::of_tree_file(file)?.configuration)?;
    let own = OwnDrivers::default();
    let examined = source::examine(file, home, Scripts::Anywhere, Keys::Optional, &user, &own)?;
    match examined.source {
        Some(source) => Ok(source.file.definition),
        None => {
            let problems = TreeFileProblems::new(home, file, examined.problems, ProblemsKind::InFile);
            Err(SourceError::from(problems).into())
        }
    }
}

/// Why packages cannot be installed.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// The defaults cannot be read.
    #[error(transparent)]
    Defaults(#[from] DefaultsError),
    /// The user's variables cannot be read.
    #[error(transparent)]
    Variables(#[from] VariablesError),
    /// The tree file cannot be read, or is wrong.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A file or folder failed.
    #[error(transparent)]
    File(#[from] FileFault),
    /// The environment names no home folder.
    #[error("there is no folder for packages: set HOME or XDG_CACHE_HOME")]
    NoCache,
    /// It cannot be read.
    #[error("{} is not a lock of packages ({why})", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The installer says so.
    #[error("{0}")]
    Installer(String),
}

/// The lock of a tree file: for each package, what its index's installer wrote.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageLock {
    version: u32,
    packages: BTreeMap<String, String>,
    #[serde(skip)]
    path: PathBuf,
}

impl PackageLock {
    /// The lock beside a tree file; an empty one if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn beside(file: &Path) -> Result<Self, PackageError> {
        let path = file.with_extension("lock");
        let text = match text_file::read(&path, LOCK_BYTES_MAX, Links::Refuse) {
            Err(UnreadText::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { version: LOCK_VERSION, packages: BTreeMap::new(), path });
            }
            read => read.map_err(FileFault::when(FileAction::Read, &path))?,
        };
        let unread = |why: String| PackageError::Lock { path: path.clone(), why };
        let lock: Self = serde_json::from_str(&text).map_err(|error| unread(error.to_string()))?;
        match lock.version {
            LOCK_VERSION => Ok(Self { path, ..lock }),
            other => Err(unread(format!("version {other}"))),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it has of a package.
    #[must_use]
    pub fn of(&self, package: &Package) -> Option<&str> {
        self.packages.get(&key(package)).map(String::as_str)
    }

    /// Adds a package, and writes it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn record(&mut self, package: &Package, lock: String) -> Result<(), PackageError> {
        self.packages.insert(key(package), lock);
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::from);
        let written = text.and_then(|text| private_files::replace(&self.path, &text));
        Ok(written.map_err(FileFault::when(FileAction::Write, &self.path))?)
    }
}

fn key(package: &Package) -> String {
    format!("{}:{}", package.index.as_str(), package.spec())
}

/// Installs packages for the user, into the cache of this machine.
pub struct UserPackages {
    installer: PackageInstaller,
    indexes: IndexUrls,
}

impl UserPackages {
    /// With the user's programs and indexes. A project's own settings are not read.
    ///
    /// # Errors
    /// If there is no folder for them, or no box on this machine.
    pub async fn new() -> Result<Self, PackageError> {
        let root = folders::packages().ok_or(PackageError::NoCache)?;
        let made = private_files::folders(&root);
        made.map_err(FileFault::when(FileAction::Make, &root))?;
        let mark = command_mark(&root).map_err(FileFault::when(FileAction::Read, &root))?;
        let programs = InstallerPrograms::find(&variable("PATH").unwrap_or_default());
        let indexes = indexes();
        let made = PackageInstaller::new(
            (OURSELVES.into(), mark),
            PackageCache::new(root),
            programs,
            indexes.clone(),
        );
        Ok(Self { installer: made.await.map_err(PackageError::Installer)?, indexes })
    }

    /// Where packages of an index come from.
    #[must_use]
    pub fn url(&self, index: PackageIndex) -> &str {
        match index {
            PackageIndex::Npm => &self.indexes.npm,
            PackageIndex::PyPi => &self.indexes.pypi,
        }
    }

    /// The newest version of a package.
    ///
    /// # Errors
    /// If the index cannot be asked.
    pub async fn newest(&self, package: &Package) -> Result<String, PackageError> {
        self.installer.newest(package).await.map_err(PackageError::Installer)
    }

    /// Whether a package is there as the lock has it.
    ///
    /// # Errors
    /// If what is there is damaged.
    pub fn has(&self, package: &Package, lock: &PackageLock) -> Result<bool, PackageError> {
        // What is there and in no lock is installed again, so that there is one.
        let Some(lock) = lock.of(package) else { return Ok(false) };
        self.installer.has(package, Some(lock)).map_err(PackageError::Installer)
    }

    /// Installs a package as the lock has it. `scripts` are packages whose scripts the user allows.
    ///
    /// # Errors
    /// Why it is not installed.
    pub async fn install(
        &self,
        package: &Package,
        lock: &PackageLock,
        scripts: &[String],
    ) -> Result<InstallOutcome, PackageError> {
        let order = InstallOrder { lock: lock.of(package).map(str::to_owned), scripts: scripts.to_vec() };
        self.installer.install(package, &order).await.map_err(PackageError::Installer)
    }
}

/// The indexes that the user set, in the environment or in npm's own file.
fn indexes() -> IndexUrls {
    let named = |names: &[&str]| names.iter().find_map(|name| variable(name)?.into_string().ok());
    let named = |names: &[&str]| named(names).filter(|url| !url.is_empty());
    let usual = IndexUrls::default();
    let npm = named(&["npm_config_registry", "NPM_CONFIG_REGISTRY"]).or_else(registry_of_npmrc);
    let pypi = named(&["UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"]);
    IndexUrls { npm: npm.unwrap_or(usual.npm), pypi: pypi.unwrap_or(usual.pypi) }
}

fn registry_of_npmrc() -> Option<String> {
    let text = text_file::read(&folders::user_home()?.join(".npmrc"), 1 << 20, Links::Follow).ok()?;
    let value = text.lines().find_map(|line| line.trim().strip_prefix("registry")?.trim().strip_prefix('='));
    value.map(|url| url.trim().to_owned()).filter(|url| !url.is_empty())
}

#[expect(clippy::disallowed_methods, reason = "these variables say what the user's installers do")]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_keeps_what_was_installed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tree.yaml");
        let package =
            Package { index: PackageIndex::Npm, name: "a".to_owned(), version: Some("1.0.0".to_owned()) };
        let mut lock = PackageLock::beside(&file).unwrap();
        assert_eq!(lock.of(&package), None);
        lock.record(&package, "hashes".to_owned()).unwrap();
        assert_eq!(PackageLock::beside(&file).unwrap().of(&package), Some("hashes"));
        assert_eq!(PackageLock::beside(&file).unwrap().of(&package.at("1.0.1")), None);
        std::fs::write(lock.path(), "{\"version\":2,\"packages\":{}}").unwrap();
        assert!(matches!(PackageLock::beside(&file), Err(PackageError::Lock { .. })));
    }
}
