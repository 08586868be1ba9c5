//! Installs one package: in a new folder, which takes its place in the cache when it is complete.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spinney_kernel::primitives::BlobHash;

use super::boxed_installer::BoxedInstaller;
use super::cache::{Manifest, PackageCache, write_manifest};
use super::npm;
use super::package::{Package, PackageIndex};
use super::programs::{self, IndexUrls, InstallerPrograms};
use super::uv;
use crate::commands::refusal_in_words;
use crate::network::{Outbound, SystemOutbound};
use crate::off_worker::off_worker;
use crate::sandbox::BoxLauncher;

/// What an installer keeps for itself while it works, below its folder.
const CACHES: [&str; 5] = [".npm", ".cache", ".config", ".local", "wanted.txt"];

/// How the folders of installations begin that are under way.
const STAGING: &str = ".new-";
/// How many one process has at most.
const STAGING_MAX: usize = 100;

/// Installs packages into a cache.
pub struct PackageInstaller {
    launcher: Arc<BoxLauncher>,
    outbound: Arc<dyn Outbound>,
    cache: PackageCache,
    programs: InstallerPrograms,
    indexes: IndexUrls,
}

/// What to install.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstallOrder {
    /// Exactly these files. If there is none, it is made.
    pub lock: Option<String>,
    /// Packages whose scripts the user allows.
    pub scripts: Vec<String>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallOutcome {
    /// Every file with its hash, as the installer of the index writes it.
    pub lock: String,
    /// The names of its programs.
    pub programs: Vec<String>,
}

/// What an index installed.
struct Installed {
    programs: BTreeMap<String, PathBuf>,
    main: Option<String>,
    lock: String,
}

impl PackageInstaller {
    /// `helper` and `mark` are as for [`BoxLauncher::with_mark`].
    ///
    /// # Errors
    /// If this machine has no boxes.
    pub async fn new(
        (helper, mark): (PathBuf, Vec<OsString>),
        cache: PackageCache,
        programs: InstallerPrograms,
        indexes: IndexUrls,
    ) -> Result<Self, String> {
        let launcher = BoxLauncher::with_mark(helper, mark).await;
        let launcher = Arc::new(launcher.map_err(|refusal| refusal_in_words(&refusal))?);
        Ok(Self { launcher, outbound: Arc::new(SystemOutbound::default()), cache, programs, indexes })
    }

    /// The newest version of a package.
    ///
    /// # Errors
    /// If the index cannot be asked, or does not have it.
    pub async fn newest(&self, package: &Package) -> Result<String, String> {
        let staging = Staging::new(&self.cache).await?;
        let installer = self.installer(package, &staging)?;
        match package.index {
            PackageIndex::Npm => npm::newest(&installer, &self.programs, package).await,
            PackageIndex::PyPi => uv::newest(&installer, &self.programs, (package, &self.indexes.pypi)).await,
        }
    }

    /// Whether a package is there as the lock has it, or in any way if there is no lock.
    ///
    /// # Errors
    /// If what is there is damaged.
    pub fn has(&self, package: &Package, lock: Option<&str>) -> Result<bool, String> {
        let is = |hash: String| lock.is_none_or(|lock| hash == lock_hash(lock));
        Ok(self.cache.lock_hash(package)?.is_some_and(is))
    }

    /// Installs a package at a version, in place of what is there.
    ///
    /// # Errors
    /// Why it is not installed. Then the cache is as it was.
    pub async fn install(&self, package: &Package, order: &InstallOrder) -> Result<InstallOutcome, String> {
        if package.version.is_none() {
            return Err(format!("{package} has no version"));
        }
        let staging = Staging::new(&self.cache).await?;
        let installer = self.installer(package, &staging)?;
        let (lock, programs) = (order.lock.as_deref(), &self.programs);
        let (installed, interpreter) = match package.index {
            PackageIndex::Npm => {
                let npm::NpmInstalled { programs: found, main, lock } =
                    npm::install(&installer, programs, package, (lock, &order.scripts)).await?;
                (Installed { programs: found, main, lock }, &programs.node)
            }
            PackageIndex::PyPi => {
                let from = (package, self.indexes.pypi.as_str());
                let uv::UvInstalled { programs: found, main, lock } =
                    uv::install(&installer, programs, from, (lock, &order.scripts)).await?;
                (Installed { programs: found, main, lock }, &programs.python)
            }
        };
        let interpreter = interpreter.clone().ok_or("there is nothing that runs it")?;
        let outcome = InstallOutcome {
            lock: installed.lock.clone(),
            programs: installed.programs.keys().cloned().collect(),
        };
        let place = self.cache.folder(package);
        let manifest = manifest(package, installed, interpreter);
        let shown = place.display().to_string();
        let kept = off_worker(move || staging.keep(&place, &manifest)).await;
        kept.map_err(|error| format!("{shown} cannot be written: {error}"))?;
        Ok(outcome)
    }

    fn installer(&self, package: &Package, staging: &Staging) -> Result<BoxedInstaller, String> {
        let InstallerPrograms { npm, node, uv, python } = &self.programs;
        let (index, used) = match package.index {
            PackageIndex::Npm => (&self.indexes.npm, [npm, node]),
            PackageIndex::PyPi => (&self.indexes.pypi, [uv, python]),
        };
        let used: Vec<&PathBuf> = used.into_iter().flatten().collect();
        let reads = used.iter().flat_map(|program| programs::reads(program)).collect();
        let folders: Vec<PathBuf> =
            used.iter().filter_map(|program| program.parent()).map(Path::to_owned).collect();
        let folders = folders.into_iter().chain(["/usr/bin".into(), "/bin".into()]);
        let path =
            std::env::join_paths(folders).map_err(|error| format!("the path of a program: {error}"))?;
        let settings = [
            ("npm_config_registry", index.as_str()),
            ("npm_config_update_notifier", "false"),
            ("npm_config_audit", "false"),
            ("npm_config_fund", "false"),
            ("UV_NO_PROGRESS", "1"),
            ("UV_PYTHON_DOWNLOADS", "never"),
        ];
        let settings = settings.into_iter().map(|(name, value)| (name.into(), value.into()));
        Ok(BoxedInstaller {
            launcher: Arc::clone(&self.launcher),
            outbound: Arc::clone(&self.outbound),
            network: programs::hosts(index)?,
            folder: staging.folder.clone(),
            reads,
            environment: settings.chain([("PATH".into(), path)]).collect(),
        })
    }
}

fn manifest(package: &Package, installed: Installed, interpreter: PathBuf) -> Manifest {
    let text = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let (environment, settings) = match package.index {
        PackageIndex::Npm => (BTreeMap::new(), vec![text("NODE_ENV", "production")]),
        PackageIndex::PyPi => (
            BTreeMap::from([("PYTHONPATH".to_owned(), uv::LIBRARY.into())]),
            vec![text("PYTHONDONTWRITEBYTECODE", "1"), text("PYTHONNOUSERSITE", "1")],
        ),
    };
    Manifest {
        package: package.to_string(),
        reads: programs::reads(&interpreter),
        interpreter,
        programs: installed.programs,
        main: installed.main,
        environment,
        settings: settings.into_iter().collect(),
        lock: lock_hash(&installed.lock),
    }
}

fn lock_hash(lock: &str) -> String {
    BlobHash::digest(lock.as_bytes()).as_str().to_owned()
}

/// A new folder in the cache, removed unless it is kept.
struct Staging {
    folder: PathBuf,
}

impl Staging {
    async fn new(cache: &PackageCache) -> Result<Self, String> {
        let root = cache.root().to_owned();
        let shown = root.display().to_string();
        let made = off_worker(move || new_folder(&root)).await;
        let folder = made.map_err(|error| format!("{shown} cannot be written: {error}"))?;
        Ok(Self { folder })
    }

    /// Takes the place of what is there.
    fn keep(self, place: &Path, manifest: &Manifest) -> io::Result<()> {
        for cache in CACHES {
            let cache = self.folder.join(cache);
            match cache.symlink_metadata() {
                Ok(about) if about.is_dir() => fs::remove_dir_all(cache)?,
                Ok(_) => fs::remove_file(cache)?,
                Err(_) => {}
            }
        }
        write_manifest(&self.folder, manifest)?;
        fs::create_dir_all(place.parent().unwrap_or(place))?;
        let before = self.folder.with_extension("before");
        let had_one = match fs::rename(place, &before) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            renamed => renamed.map(|()| true)?,
        };
        fs::rename(&self.folder, place)?;
        if had_one { fs::remove_dir_all(before) } else { Ok(()) }
    }
}

/// A folder that was not there, for the user alone. What installers left that were killed goes.
fn new_folder(root: &Path) -> io::Result<PathBuf> {
    for entry in fs::read_dir(root)?.flatten() {
        let name = entry.file_name();
        let left = name.to_str().and_then(|name| name.strip_prefix(STAGING)?.split('-').next());
        if left.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    for number in 0..STAGING_MAX {
        let folder = root.join(format!("{STAGING}{}-{number}", std::process::id()));
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What is left of it is not used by anything.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
