//! When git takes a folder for a repository without a `.git`, and what in a repository runs programs. Git obeys the
//! configuration and the hooks of any repository that it finds around the folder it is used in.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _};
use cap_std::fs::{Dir, Metadata, OpenOptions, OpenOptionsExt as _};
use rustix::fs::OFlags;

use super::git_config::{GitSetting, settings};

/// A longer configuration is not looked through.
const CONFIG_BYTES_MAX: u64 = 256 << 10;
/// The file without which nothing is a repository.
pub(crate) const HEAD: &str = "HEAD";
/// How the hooks of git's own template end, which are not run.
const SAMPLE: &[u8] = b".sample";

/// The names in a folder that tell whether it is a repository.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RepositoryNames {
    has_head: bool,
    has_objects: bool,
    has_refs: bool,
    has_common: bool,
    has_config: bool,
    has_hooks: bool,
}

impl RepositoryNames {
    /// Those in the folder at a path.
    pub(crate) fn at(folder: &Path) -> Self {
        let mut names = Self::default();
        for name in [HEAD, "objects", "refs", "commondir", "config", "hooks"] {
            if folder.join(name).symlink_metadata().is_ok() {
                names.see(OsStr::new(name));
            }
        }
        names
    }

    /// Notes a name of the folder, in any case: some file systems do not tell them apart. Whether it is one of them.
    pub(crate) fn see(&mut self, name: &OsStr) -> bool {
        let has = [
            (HEAD, &mut self.has_head),
            ("objects", &mut self.has_objects),
            ("refs", &mut self.has_refs),
            ("commondir", &mut self.has_common),
            ("config", &mut self.has_config),
            ("hooks", &mut self.has_hooks),
        ];
        let is = |known: &str| name.as_encoded_bytes().eq_ignore_ascii_case(known.as_bytes());
        match has.into_iter().find(|(known, _)| is(known)) {
            Some((_, has)) => *has = true,
            None => return false,
        }
        true
    }

    /// Whether git takes the folder for a repository.
    pub(crate) const fn are_of_repository(self) -> bool {
        self.has_head && ((self.has_objects && self.has_refs) || self.has_common)
    }

    /// Whether it is one, or becomes one with names that say nothing about what it runs.
    pub(crate) const fn are_of_unfinished_repository(self) -> bool {
        let has_more = self.has_objects || self.has_refs || self.has_common;
        self.has_head && (has_more || self.has_config || self.has_hooks)
    }
}

/// Whether what is new in a repository makes git run a program or read what is elsewhere. If its `HEAD` is new, all of it is.
pub(crate) fn is_dangerous(repository: &Dir, is_new: &dyn Fn(&Metadata) -> bool) -> io::Result<bool> {
    let Some(head) = found(repository, HEAD)? else { return Ok(false) };
    let is_new_repository = is_new(&head);
    let matters = |found: &Metadata| is_new_repository || is_new(found);
    for name in ["config", "config.worktree"] {
        let config = found(repository, name)?.filter(matters);
        if let Some(config) = config
            && (!config.is_file() || !has_harmless_settings(repository, name)?)
        {
            return Ok(true);
        }
    }
    if found(repository, "commondir")?.is_some_and(|found| matters(&found)) {
        return Ok(true);
    }
    let Some(hooks) = found(repository, "hooks")? else { return Ok(false) };
    if !hooks.is_dir() {
        return Ok(matters(&hooks));
    }
    for hook in repository.open_dir_nofollow("hooks")?.entries()? {
        let hook = hook?;
        let is_run = !hook.file_name().as_encoded_bytes().ends_with(SAMPLE);
        if is_run && (matters(&hooks) || hook.metadata().is_ok_and(|found| is_new(&found))) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn found(folder: &Dir, name: &str) -> io::Result<Option<Metadata>> {
    match folder.symlink_metadata(name) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

fn has_harmless_settings(repository: &Dir, name: &str) -> io::Result<bool> {
    let mut reading = OpenOptions::new();
    reading.read(true).follow(FollowSymlinks::No).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let mut bytes = Vec::new();
    repository.open_with(name, &reading)?.take(CONFIG_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    let is_whole = bytes.len() as u64 <= CONFIG_BYTES_MAX;
    Ok(is_whole && settings(&String::from_utf8_lossy(&bytes)).iter().all(GitSetting::is_harmless))
}
