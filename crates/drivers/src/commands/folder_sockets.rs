//! Sockets in a folder that a program may read. A folder that is only read does not close a socket in it, and nothing limits
//! what is behind one.

use std::io;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt as _;
use cap_std::fs::Dir;

use super::covers::is_out_of_reach;
use crate::folders::{HiddenFolders, open_folder};

/// How deep, and how much, is looked at.
const DEPTH_MAX: u32 = 64;
const ENTRIES_MAX: usize = 1_000_000;

/// Every socket in a folder, apart from those in what is hidden anyway. An error says why they are not all known.
pub(super) fn sockets_in(folder: &Path, hidden: &HiddenFolders) -> io::Result<Vec<PathBuf>> {
    let mut look = Look { hidden, entries: 0, found: Vec::new() };
    look.below(&open_folder(folder)?, folder, DEPTH_MAX)?;
    Ok(look.found)
}

struct Look<'a> {
    hidden: &'a HiddenFolders,
    entries: usize,
    found: Vec<PathBuf>,
}

impl Look<'_> {
    fn below(&mut self, folder: &Dir, path: &Path, depth: u32) -> io::Result<()> {
        for entry in folder.entries()? {
            let entry = entry?;
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                return Err(io::Error::other(
                    "has too many files to find the sockets in it: name a smaller one",
                ));
            }
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            let at = path.join(&name);
            if self.hidden.contain(&at) {
                continue;
            }
            if cap_fs_ext::FileTypeExt::is_socket(&kind) {
                self.found.push(at);
            } else if kind.is_dir() {
                let Some(depth) = depth.checked_sub(1) else {
                    return Err(io::Error::other(
                        "is too deep to find the sockets in it: name a folder in it",
                    ));
                };
                match folder.open_dir_nofollow(&name).and_then(|below| self.below(&below, &at, depth)) {
                    Err(error) if is_out_of_reach(folder, &name, &error) => {}
                    looked => looked?,
                }
            }
        }
        Ok(())
    }
}
