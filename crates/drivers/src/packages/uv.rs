//! Packages of Python: installed by `uv` from wheels, whose hashes are in the lock. Wheels have no scripts; what has to be
//! built is built only for packages that the user allows.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::boxed_installer::BoxedInstaller;
use super::cache::read_bounded;
use super::package::Package;
use super::programs::InstallerPrograms;

/// Where the packages are below the folder of an installation.
pub(super) const LIBRARY: &str = "lib";
const LOCK: &str = "requirements.lock";
const LOCK_BYTES_MAX: u64 = 4 << 20;

/// The programs of a package that is installed, and its lock.
pub(super) struct UvInstalled {
    pub(super) programs: BTreeMap<String, PathBuf>,
    pub(super) main: Option<String>,
    pub(super) lock: String,
}

/// The newest version of a package.
pub(super) async fn newest(
    installer: &BoxedInstaller,
    programs: &InstallerPrograms,
    (package, index): (&Package, &str),
) -> Result<String, String> {
    let lock = compile(installer, programs, (&package.name, index), &[]).await?;
    let begin = format!("{}==", package.name);
    let version = lock.lines().find_map(|line| line.strip_prefix(&begin));
    let version = version.and_then(|rest| rest.split(|c: char| c.is_whitespace() || c == ';').next());
    version.map(str::to_owned).ok_or_else(|| format!("uv found no version of {package}"))
}

/// Installs a package into the folder of the installer: exactly what the lock has, if there is one. `scripts` are the
/// packages that may be built.
pub(super) async fn install(
    installer: &BoxedInstaller,
    programs: &InstallerPrograms,
    (package, index): (&Package, &str),
    (lock, scripts): (Option<&str>, &[String]),
) -> Result<UvInstalled, String> {
    let (uv, python) = found(programs)?;
    let folder = &installer.folder;
    let version = package.version.as_deref().unwrap_or_default();
    let pin = format!("{}=={version}", package.name);
    let lock = match lock {
        Some(lock) => lock.to_owned(),
        None => compile(installer, programs, (&pin, index), scripts).await?,
    };
    if !lock.lines().any(|line| line.split([' ', '\\']).next() == Some(&pin)) {
        return Err(format!("the lock of {package} has another version"));
    }
    fs::write(folder.join(LOCK), &lock)
        .map_err(|error| format!("{} cannot be written: {error}", folder.display()))?;
    let mut arguments =
        vec!["pip", "install", "--require-hashes", "--target", LIBRARY, "--link-mode", "copy"];
    // The folder cannot be written later, and compiling at each start takes seconds.
    arguments.push("--compile-bytecode");
    arguments.extend(["--no-config", "--python", python, "--index-url", index, "-r", LOCK]);
    let built = without_building(scripts);
    arguments.extend(built.iter().map(String::as_str));
    installer.run(uv, &arguments).await?;
    let programs = programs_of(folder);
    if programs.is_empty() {
        return Err(format!("{package} has no program to start"));
    }
    let main = programs
        .keys()
        .find(|name| **name == package.name || name.replace('_', "-") == package.name)
        .cloned();
    Ok(UvInstalled { programs, main, lock })
}

/// A list of everything that a package needs, with hashes.
async fn compile(
    installer: &BoxedInstaller,
    programs: &InstallerPrograms,
    (pin, index): (&str, &str),
    scripts: &[String],
) -> Result<String, String> {
    let (uv, python) = found(programs)?;
    let folder = &installer.folder;
    let failed = |error: std::io::Error| format!("{} cannot be used: {error}", folder.display());
    fs::write(folder.join("wanted.txt"), format!("{pin}\n")).map_err(failed)?;
    let mut arguments =
        vec!["pip", "compile", "wanted.txt", "--generate-hashes", "--no-header", "--no-annotate"];
    arguments.extend(["--quiet", "--no-config", "--python", python, "--index-url", index, "-o", LOCK]);
    let built = without_building(scripts);
    arguments.extend(built.iter().map(String::as_str));
    installer.run(uv, &arguments).await?;
    let bytes = read_bounded(&folder.join(LOCK), LOCK_BYTES_MAX).map_err(failed)?;
    String::from_utf8(bytes).map_err(|_| "the lock of uv is not text".to_owned())
}

fn found(programs: &InstallerPrograms) -> Result<(&Path, &str), String> {
    let uv = programs.uv.as_deref().ok_or("uv is needed for this and is not in your PATH: install uv")?;
    let python = programs.python.as_deref().and_then(Path::to_str);
    Ok((uv, python.ok_or("Python is needed for this and is not in your PATH: install python3")?))
}

fn without_building(scripts: &[String]) -> Vec<String> {
    let built = scripts.iter().flat_map(|package| ["--no-binary".to_owned(), package.clone()]);
    ["--only-binary", ":all:"].map(str::to_owned).into_iter().chain(built).collect()
}

/// The programs that a package and what it needs have.
fn programs_of(folder: &Path) -> BTreeMap<String, PathBuf> {
    let bin = Path::new(LIBRARY).join("bin");
    let all = fs::read_dir(folder.join(&bin)).into_iter().flatten().flatten();
    let plain = all.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    plain
        .filter_map(|entry| Some((entry.file_name().to_str()?.to_owned(), bin.join(entry.file_name()))))
        .collect()
}
