//! The files of a program itself: it may be installed in the user's home, which its box does not have.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use spinney_drivers::sandbox::{Confinement, PlacedPath};
use spinney_kernel::port::FolderAccess;

/// What every box has anyway.
const OF_SYSTEM: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];
/// Bytes of a program's first line.
const FIRST_LINE_BYTES_MAX: u64 = 512;
/// What is installed with a program beside `bin`.
const LIBRARIES: [&str; 4] = ["lib", "lib64", "libexec", "share"];
/// Where packages of Node lie.
const PACKAGES: &str = "node_modules";

/// Adds the folders of `PATH`, and what the program needs of its own, to a box. `folder` is where it is started. Returns
/// its file where links lead to it: what it looks for beside itself is there.
pub(in crate::exec) fn add(
    program: &OsStr,
    folder: &Path,
    home: &Path,
    confinement: &mut Confinement,
) -> Option<PathBuf> {
    let mut readable = Readable { folder, home, confinement };
    let searched = searched();
    searched.iter().for_each(|folder| readable.add(folder));
    let found = found(program, folder, &searched)?;
    // What is in there may have been written by a program in an earlier box: it shows nothing beside itself.
    let place = found.parent().and_then(|place| place.canonicalize().ok());
    if place.is_some_and(|place| place.starts_with(folder)) {
        return None;
    }
    readable.add_installation(&found);
    if let Some(interpreter) = interpreter(&found) {
        readable.add_installation(&interpreter);
    }
    found.canonicalize().ok().filter(|file| !OF_SYSTEM.iter().any(|system| file.starts_with(system)))
}

/// The folders of `PATH`.
#[expect(clippy::disallowed_methods, reason = "the variable says where a user's own programs are")]
pub(in crate::exec) fn searched() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).filter(|folder| folder.is_absolute()).collect()
}

struct Readable<'a> {
    folder: &'a Path,
    home: &'a Path,
    confinement: &'a mut Confinement,
}

impl Readable<'_> {
    fn add(&mut self, path: &Path) {
        let Ok(found) = path.canonicalize() else { return };
        let is_there = OF_SYSTEM.iter().any(|system| path.starts_with(system) || found.starts_with(system))
            || found.starts_with(self.folder);
        // What is around the home or the folder would show what is hidden, or write-protect what is writable.
        if !is_there && !self.is_around(&found) {
            let placed = PlacedPath { from: found, at: path.to_owned(), access: FolderAccess::Read };
            if !self.confinement.placed.contains(&placed) {
                self.confinement.placed.push(placed);
            }
        }
    }

    fn is_around(&self, path: &Path) -> bool {
        self.home.starts_with(path) || self.folder.starts_with(path)
    }

    /// Where a program leads to, and what is installed with it.
    fn add_installation(&mut self, program: &Path) {
        let Ok(found) = program.canonicalize() else { return };
        let packages =
            found.ancestors().filter(|above| above.file_name().is_some_and(|name| name == PACKAGES));
        let prefix = found.parent().filter(|folder| folder.file_name().is_some_and(|name| name == "bin"));
        let prefix = prefix.and_then(Path::parent).filter(|prefix| *prefix != self.home.join(".local"));
        let is_installed = |path: &&Path| !self.is_around(path);
        match (packages.last().filter(is_installed), prefix.filter(is_installed)) {
            (Some(packages), _) => self.add(packages),
            (None, Some(prefix)) => {
                self.add(&found);
                // Beside these, programs keep settings and keys in their folder.
                for libraries in LIBRARIES {
                    self.add(&prefix.join(libraries));
                }
            }
            (None, None) => self.add(&found),
        }
    }
}

/// Where a program is, by its path or by `PATH`.
fn found(program: &OsStr, folder: &Path, searched: &[PathBuf]) -> Option<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(folder.join(program));
    }
    searched.iter().map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// The interpreter that the first line of a program names by its path.
fn interpreter(program: &Path) -> Option<PathBuf> {
    let mut line = Vec::new();
    let file = program.is_file().then(|| File::open(program).ok()).flatten()?;
    BufReader::new(file.take(FIRST_LINE_BYTES_MAX)).read_until(b'\n', &mut line).ok()?;
    let words = line.strip_prefix(b"#!")?.trim_ascii();
    let first = words.split(|byte| byte.is_ascii_whitespace()).next()?;
    str::from_utf8(first).ok().map(PathBuf::from).filter(|path| path.is_absolute())
}
