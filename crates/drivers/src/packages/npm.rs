//! Packages of npm: installed with a lock that has a hash of every file, and without scripts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use super::boxed_installer::BoxedInstaller;
use super::cache::read_bounded;
use super::package::Package;
use super::programs::InstallerPrograms;

const PACKAGE_BYTES_MAX: u64 = 4 << 20;
const LOCK: &str = "package-lock.json";

/// The programs of a package that is installed, and its lock.
pub(super) struct NpmInstalled {
    pub(super) programs: BTreeMap<String, PathBuf>,
    pub(super) main: Option<String>,
    pub(super) lock: String,
}

/// The newest version of a package.
pub(super) async fn newest(
    installer: &BoxedInstaller,
    programs: &InstallerPrograms,
    package: &Package,
) -> Result<String, String> {
    let npm = npm(programs)?;
    let said = installer.run(npm, &["view", &package.name, "version"]).await?;
    let version = said.split_whitespace().next_back().unwrap_or_default();
    Ok(version.trim_matches('\'').to_owned())
}

/// Installs a package into the folder of the installer: exactly what the lock has, if there is one. `scripts` are the
/// packages whose scripts are run.
pub(super) async fn install(
    installer: &BoxedInstaller,
    programs: &InstallerPrograms,
    package: &Package,
    (lock, scripts): (Option<&str>, &[String]),
) -> Result<NpmInstalled, String> {
    let npm = npm(programs)?;
    let folder = &installer.folder;
    let written = |error: std::io::Error| format!("{} cannot be written: {error}", folder.display());
    let version = package.version.as_deref().unwrap_or_default();
    let wanted = json!({ "private": true, "dependencies": { package.name.as_str(): version } });
    fs::write(folder.join("package.json"), wanted.to_string()).map_err(written)?;
    match lock {
        Some(lock) => {
            fs::write(folder.join(LOCK), lock).map_err(written)?;
            installer.run(npm, &["ci", "--ignore-scripts"]).await?;
        }
        None => {
            installer.run(npm, &["install", "--ignore-scripts", "--omit-lockfile-registry-resolved"]).await?;
        }
    }
    if !scripts.is_empty() {
        let mut arguments = vec!["rebuild", "--ignore-scripts=false"];
        arguments.extend(scripts.iter().map(String::as_str));
        installer.run(npm, &arguments).await?;
    }
    let read = |path: &Path| {
        let read = read_bounded(path, PACKAGE_BYTES_MAX).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        read.ok_or_else(|| {
            format!("{package}: npm wrote no {}", path.file_name().unwrap_or_default().to_string_lossy())
        })
    };
    let lock = read(&folder.join(LOCK))?;
    check_lock(&lock)?;
    let below = Path::new("node_modules").join(&package.name);
    let about: Value = serde_json::from_str(&read(&folder.join(&below).join("package.json"))?)
        .map_err(|error| format!("{package}: its package.json cannot be read: {error}"))?;
    if about["version"].as_str() != Some(version) {
        return Err(format!("{package}: npm installed another version"));
    }
    let programs = programs_of(package, &about, folder, &below);
    if programs.is_empty() {
        return Err(format!("{package} has no program to start"));
    }
    let short = package.name.rsplit('/').next().unwrap_or_default();
    let only = programs.keys().next().filter(|_| programs.len() == 1);
    let main = programs.get_key_value(short).map(|(name, _)| name).or(only).cloned();
    Ok(NpmInstalled { programs, main, lock })
}

fn npm(programs: &InstallerPrograms) -> Result<&PathBuf, String> {
    programs.npm.as_ref().filter(|_| programs.node.is_some()).ok_or_else(|| {
        "npm and node are needed for this and are not in your PATH: install Node.js".to_owned()
    })
}

/// Every file that is not part of another package has a hash.
fn check_lock(lock: &str) -> Result<(), String> {
    let lock: Value =
        serde_json::from_str(lock).map_err(|error| format!("the lock of npm cannot be read: {error}"))?;
    let packages = lock["packages"].as_object().ok_or("the lock of npm has no list of packages")?;
    let is_hashed = |about: &Value| {
        about["integrity"].as_str().is_some_and(|hash| hash.starts_with("sha512-"))
            || about["inBundle"] == true
    };
    match packages.iter().find(|(path, about)| !path.is_empty() && !is_hashed(about)) {
        Some((path, _)) => Err(format!("the lock of npm has no hash of {}", path.escape_debug())),
        None => Ok(()),
    }
}

/// The files of `bin` that are there, each below the folder.
fn programs_of(package: &Package, about: &Value, folder: &Path, below: &Path) -> BTreeMap<String, PathBuf> {
    let short = package.name.rsplit('/').next().unwrap_or_default().to_owned();
    let named: Vec<(String, &str)> = match &about["bin"] {
        Value::String(file) => vec![(short, file)],
        Value::Object(all) => {
            all.iter().filter_map(|(name, file)| Some((name.clone(), file.as_str()?))).collect()
        }
        _ => Vec::new(),
    };
    let place = |file: &str| {
        let file = Path::new(file);
        let is_inside =
            file.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let place = below.join(file);
        let found = folder.join(&place).canonicalize().ok()?;
        (is_inside && found.is_file() && found.starts_with(folder.canonicalize().ok()?)).then_some(place)
    };
    named.into_iter().filter_map(|(name, file)| Some((name, place(file)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_a_hash_of_every_file() {
        let lock = |about: Value| json!({ "packages": { "": {}, "node_modules/a": about } }).to_string();
        assert_eq!(check_lock(&lock(json!({ "integrity": "sha512-AAAA" }))), Ok(()));
        assert_eq!(check_lock(&lock(json!({ "inBundle": true }))), Ok(()));
        for about in [json!({}), json!({ "integrity": "md5-AAAA" }), json!({ "link": true })] {
            assert!(check_lock(&lock(about)).is_err());
        }
        assert!(check_lock("{}").is_err());
    }

    /// G14: the programs of a package are its own files.
    #[test]
    fn g14_a_program_outside_of_its_package_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let below = Path::new("node_modules/a");
        fs::create_dir_all(folder.path().join(below)).unwrap();
        fs::write(folder.path().join(below).join("main.js"), "").unwrap();
        std::os::unix::fs::symlink("/bin/sh", folder.path().join(below).join("link.js")).unwrap();
        let package = Package { index: super::super::PackageIndex::Npm, name: "a".to_owned(), version: None };
        let about = json!({ "bin": { "a": "./main.js", "b": "../../../bin/sh", "c": "/bin/sh", "d": "link.js", "e": "none.js" } });
        let found = programs_of(&package, &about, folder.path(), below);
        assert_eq!(found.keys().map(String::as_str).collect::<Vec<_>>(), ["a"]);
    }
}
