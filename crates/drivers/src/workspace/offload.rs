//! Long tool outputs of an agent, whole, one file each. The fold decides which and how many; they do not count as
//! outputs of the agent.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use spinney_kernel::context::offload::{FOLDER, Offloads};

use super::atomic::{self, Sync};
use super::folder;

/// Writes a file, unless it is there. Most agents have none, so the folder comes with the first.
pub(super) fn write(agent: &Dir, file: &str, bytes: &[u8], sync: Sync) -> io::Result<()> {
    atomic::write(&folder::ours(agent, FOLDER)?, file, bytes, sync)
}

/// Removes everything but these files.
pub(super) fn sweep(agent: &Dir, offloads: &Offloads) -> io::Result<()> {
    match agent.symlink_metadata(FOLDER) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return atomic::remove(agent, FOLDER),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    let (offload, names) = (agent.open_dir_nofollow(FOLDER)?, offloads.names().collect::<BTreeSet<_>>());
    for entry in offload.entries()? {
        let name = entry?.file_name();
        if !name.to_str().is_some_and(|name| names.contains(name)) {
            atomic::remove(&offload, &name)?;
        }
    }
    Ok(())
}
