//! Files of an agent's working copy, written and removed by handles. They are in no journal.

use std::io::{self, ErrorKind};

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, MetadataExt as _};
use rustix::fs::{Mode, fchmod};
use spinney_kernel::primitives::Durability;

use super::atomic::{self, Sync};
use super::outputs::NotRemoved;
use super::{COPY, Workspace, folder};

/// The name of a file that is not whole yet. It is beside the copy.
const UNFINISHED: &str = ".unfinished-copy-file";
const PLAIN: u32 = 0o644;
const EXECUTABLE: u32 = 0o111;

impl Workspace {
    /// Writes a file whole, in place of what has its name; it can be run if that could.
    pub(crate) fn write_copy(
        &self,
        folders: &[String],
        file: &str,
        bytes: &[u8],
        durability: Durability,
    ) -> io::Result<()> {
        let (agent, sync) = (self.folder(), Sync::new(durability));
        let copy = agent.open_dir_nofollow(COPY)?;
        let folder = folders.iter().try_fold(copy, |above, name| {
            let folder = folder::open(&above, name)?;
            atomic::keep_names(&above, sync)?;
            io::Result::Ok(folder)
        })?;
        let before = match folder.symlink_metadata(file) {
            Ok(found) if found.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Ok(found) if found.is_file() => found.mode() & EXECUTABLE,
            _ => 0,
        };
        atomic::create(agent, UNFINISHED, bytes, sync)?;
        let written =
            agent.open(UNFINISHED).and_then(|file| Ok(fchmod(&file, Mode::from_raw_mode(PLAIN | before))?));
        let renamed = written.and_then(|()| agent.rename(UNFINISHED, &folder, file));
        if renamed.is_err() {
            atomic::remove(agent, UNFINISHED)?;
        }
        renamed?;
        atomic::keep_names(&folder, sync)
    }

    /// Removes a plain file.
    pub(crate) fn remove_copy(
        &self,
        folders: &[String],
        file: &str,
        durability: Durability,
    ) -> Result<(), NotRemoved> {
        let copy = self.folder().open_dir_nofollow(COPY)?;
        let folder: Dir = folders.iter().try_fold(copy, |above, name| above.open_dir_nofollow(name))?;
        let found = folder.symlink_metadata(file)?;
        if found.is_dir() {
            return Err(NotRemoved::Io(ErrorKind::IsADirectory.into()));
        }
        if !found.is_file() || found.nlink() != 1 {
            return Err(NotRemoved::NotPlain);
        }
        folder.remove_file_or_symlink(file)?;
        Ok(atomic::keep_names(&folder, Sync::new(durability))?)
    }
}
