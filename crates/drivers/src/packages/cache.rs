//! Where packages are once they are installed:
//!
//! ```text
//! <cache>/npm/<name>@<version>/       `/` of a scope is `+`
//! <cache>/pypi/<name>@<version>/
//!   program.json                      how its programs are started; written last
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::package::{Package, PackageCommand};

const MANIFEST: &str = "program.json";
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// A folder of installed packages. Only the user may write there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageCache {
    root: PathBuf,
}

/// How the programs of a package are started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    /// For people.
    pub(super) package: String,
    /// Runs each of the programs.
    pub(super) interpreter: PathBuf,
    /// Each below the folder of the package.
    pub(super) programs: BTreeMap<String, PathBuf>,
    /// The one that is meant if none is named.
    pub(super) main: Option<String>,
    /// What else a box needs to read.
    pub(super) reads: Vec<PathBuf>,
    /// A variable with the path of a folder of the package.
    pub(super) environment: BTreeMap<String, PathBuf>,
    /// Variables with these values.
    pub(super) settings: BTreeMap<String, String>,
    /// Of the lock that it was installed with.
    pub(super) lock: String,
}

/// What a server of an installed package is started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledProgram {
    pub words: Vec<String>,
    /// What its box reads.
    pub reads: Vec<PathBuf>,
    pub environment: Vec<(String, String)>,
}

impl PackageCache {
    #[must_use]
    pub const fn new(root: PathBuf) -> Self {
        Self { root }
    }

    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a package at a version.
    pub(super) fn folder(&self, package: &Package) -> PathBuf {
        self.root.join(package.index.as_str()).join(package.spec().replace('/', "+"))
    }

    /// What an installed program is started with; none if it is not installed. This may block.
    ///
    /// # Errors
    /// If the package has no such program, or is damaged.
    pub fn find(&self, command: &PackageCommand) -> Result<Option<InstalledProgram>, String> {
        if command.package.version.is_none() {
            return Ok(None);
        }
        let folder = self.folder(&command.package);
        let Some(manifest) = self.manifest(&command.package)? else { return Ok(None) };
        let package = &command.package;
        let name = command.program.as_ref().or(manifest.main.as_ref());
        let all = || manifest.programs.keys().cloned().collect::<Vec<_>>().join(", ");
        let name =
            name.ok_or_else(|| format!("{package} has several programs, name one of them: {}", all()))?;
        let file = manifest.programs.get(name);
        let file = file.ok_or_else(|| format!("{package} has no program `{name}`, but: {}", all()))?;
        let text = |path: &Path| {
            path.to_str()
                .map(str::to_owned)
                .ok_or_else(|| format!("{package}: its folder has a name that is no text"))
        };
        let mut words = vec![text(&manifest.interpreter)?, text(&folder.join(file))?];
        words.extend(command.arguments.iter().cloned());
        let paths = manifest.environment.iter();
        let paths = paths.map(|(name, path)| Ok((name.clone(), text(&folder.join(path))?)));
        let settings = manifest.settings.iter().map(|(name, value)| Ok((name.clone(), value.clone())));
        let environment = paths.chain(settings).collect::<Result<_, String>>()?;
        let reads = manifest.reads.iter().cloned().chain([folder]).collect();
        Ok(Some(InstalledProgram { words, reads, environment }))
    }

    /// The hash of the lock that a package was installed with; none if it is not installed. This may block.
    pub(super) fn lock_hash(&self, package: &Package) -> Result<Option<String>, String> {
        Ok(self.manifest(package)?.map(|manifest| manifest.lock))
    }

    fn manifest(&self, package: &Package) -> Result<Option<Manifest>, String> {
        let path = self.folder(package).join(MANIFEST);
        let damaged =
            |why: String| format!("{package}: {} is damaged: {why}: remove its folder", path.display());
        let bytes = match read_bounded(&path, MANIFEST_BYTES_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| damaged(error.to_string()))?,
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| damaged(error.to_string()))
    }
}

/// Writes how programs are started, into the folder of a package that is complete. A package that put something there, such
/// as a link to a file of the user, is not installed.
pub(super) fn write_manifest(folder: &Path, manifest: &Manifest) -> io::Result<()> {
    let mut file = fs::File::create_new(folder.join(MANIFEST))?;
    file.write_all(&serde_json::to_vec_pretty(manifest)?)
}

/// A whole file of a package, if it is not too long.
pub(super) fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let about = path.symlink_metadata()?;
    if !about.is_file() || about.len() > bytes_max {
        return Err(io::Error::other("it is not a file of a usual size"));
    }
    fs::read(path)
}

#[cfg(test)]
mod tests {
    use super::super::package::PackageIndex;
    use super::*;

    fn manifest(main: Option<&str>) -> Manifest {
        Manifest {
            package: "a".to_owned(),
            interpreter: "/usr/bin/node".into(),
            programs: ["a", "b"].map(|name| (name.to_owned(), format!("bin/{name}.js").into())).into(),
            main: main.map(str::to_owned),
            reads: vec!["/opt/node".into()],
            environment: BTreeMap::from([("LIBRARY".to_owned(), "lib".into())]),
            settings: BTreeMap::new(),
            lock: "hash".to_owned(),
        }
    }

    #[test]
    fn an_installed_program_is_started_from_its_folder() {
        let root = tempfile::tempdir().unwrap();
        let cache = PackageCache::new(root.path().to_owned());
        let package = Package { index: PackageIndex::Npm, name: "@x/a".to_owned(), version: None };
        let command = |version: Option<&str>, program: Option<&str>| PackageCommand {
            package: Package { version: version.map(str::to_owned), ..package.clone() },
            program: program.map(str::to_owned),
            arguments: vec!["--all".to_owned()],
        };
        assert_eq!(cache.find(&command(None, None)), Ok(None));
        assert_eq!(cache.find(&command(Some("1.0"), None)), Ok(None));
        let folder = root.path().join("npm/@x+a@1.0");
        fs::create_dir_all(&folder).unwrap();
        write_manifest(&folder, &manifest(None)).unwrap();
        let found = cache.find(&command(Some("1.0"), Some("b"))).unwrap().unwrap();
        let below = |name: &str| folder.join(name).display().to_string();
        assert_eq!(found.words, ["/usr/bin/node".to_owned(), below("bin/b.js"), "--all".to_owned()]);
        assert_eq!(found.reads, [PathBuf::from("/opt/node"), folder.clone()]);
        assert_eq!(found.environment, [("LIBRARY".to_owned(), below("lib"))]);
        assert!(cache.find(&command(Some("1.0"), None)).unwrap_err().ends_with("name one of them: a, b"));
        assert!(
            cache
                .find(&command(Some("1.0"), Some("c")))
                .unwrap_err()
                .ends_with("has no program `c`, but: a, b")
        );
    }

    /// G14: what a package left in its folder is not written through.
    #[test]
    fn g14_a_link_in_the_place_of_our_file_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let of_user = root.path().join("precious");
        fs::write(&of_user, "mine").unwrap();
        let folder = root.path().join("package");
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(&of_user, folder.join(MANIFEST)).unwrap();
        assert!(write_manifest(&folder, &manifest(None)).is_err());
        assert_eq!(fs::read_to_string(of_user).unwrap(), "mine");
    }
}
