//! What a command made or changed, in the folders of the user, of what programs of the user run or obey: repositories and
//! settings that its box did not keep from it (decision 0062). The times are the kernel's, so a command cannot set them back.

use std::io;
use std::path::{Path, PathBuf};

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, DirEntry, MetadataExt as _};
use rustix::time::{ClockId, clock_gettime};
use spinney_kernel::port::{FolderAccess, Rights};
use spinney_kernel::primitives::AgentId;

use super::covers::{FolderCovers, is_out_of_reach};
use crate::folders::{HiddenFolders, is_protected, open_folder};

/// How deep, and how much, is looked at after a command.
const DEPTH_MAX: u32 = 64;
const ENTRIES_MAX: usize = 1_000_000;
/// The most paths that are named.
const NAMED_MAX: usize = 5;
/// Characters of a path that are shown.
const SHOWN_CHARS_MAX: usize = 120;
/// Of a repository, what nothing runs or obeys.
const GIT_DATA: [&str; 2] = ["objects", "logs"];

/// A moment, as the times of files have it: seconds and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileMoment(i64, i64);

impl FileMoment {
    /// Now, not later than the time of a file that is changed after this.
    pub(super) fn now() -> Self {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        Self(now.tv_sec, now.tv_nsec)
    }
}

/// What is looked at when a command of an agent has ended.
#[derive(Clone, Debug)]
pub(super) struct SettingsSearch {
    /// What ran, for people.
    by: String,
    rights: Rights,
    hidden: HiddenFolders,
    /// What its box keeps from it.
    kept: FolderCovers,
    began: FileMoment,
}

impl SettingsSearch {
    /// For a command that begins now; nothing if its agent may write no folder of the user.
    pub(super) fn begin(
        agent: &AgentId,
        rights: &Rights,
        hidden: &HiddenFolders,
        kept: &FolderCovers,
    ) -> Option<Self> {
        let may_write = rights.folders.iter().any(|folder| folder.access == FolderAccess::Write);
        may_write.then(|| Self::new(format!("a command of {agent}"), rights, hidden, kept))
    }

    /// For what begins now.
    pub(super) fn new(by: String, rights: &Rights, hidden: &HiddenFolders, kept: &FolderCovers) -> Self {
        Self {
            by,
            rights: rights.clone(),
            hidden: hidden.clone(),
            kept: kept.clone(),
            began: FileMoment::now(),
        }
    }

    /// What changed, in words for the agent. People are told in which folders.
    pub(super) fn end(&self) -> Option<String> {
        let mut changed = ChangedSettings::default();
        let mut entries = 0;
        for folder in self.rights.folders.iter().filter(|folder| folder.access == FolderAccess::Write) {
            let (before, path) = (changed.count, &folder.path);
            let looked = self.look_in(path, &mut entries, &mut changed);
            let (by, folder) = (&self.by, path.display());
            if changed.count > before {
                tracing::warn!(
                    "{by} made or changed what your programs obey in {folder}, such as a repository or settings of an editor: look at it before you use git or an editor there"
                );
            } else if looked.is_err() {
                tracing::warn!(
                    "{folder} could not be searched as a whole for repositories and settings that {by} made: look at it before you use git or an editor there"
                );
            }
        }
        changed.note()
    }
}

impl SettingsSearch {
    /// What changed in a folder, in words for a person.
    pub(super) fn changed_in(&self, folder: &Path) -> Option<String> {
        let mut changed = ChangedSettings::default();
        let looked = self.look_in(folder, &mut 0, &mut changed);
        let (by, folder) = (&self.by, folder.display());
        if changed.count > 0 {
            Some(format!(
                "{by} made or changed what your other programs run or obey: {}; look at it before you use git or an editor there",
                changed.names()
            ))
        } else {
            looked.is_err().then(|| {
                format!(
                    "{folder} could not be searched as a whole for repositories and settings that {by} made: look at it before you use git or an editor there"
                )
            })
        }
    }

    fn look_in(&self, folder: &Path, entries: &mut usize, changed: &mut ChangedSettings) -> io::Result<()> {
        let mut look = Look { search: self, entries, changed };
        let looked = open_folder(folder).and_then(|opened| look.below(&opened, folder, DEPTH_MAX));
        changed.is_unfinished |= looked.is_err();
        looked
    }

    /// Whether the command could not change it: its box kept it, or another folder around it is only read.
    fn is_kept(&self, path: &Path) -> bool {
        let kept = [&self.kept.read_only, &self.kept.reserved, &self.kept.hidden];
        kept.iter().any(|paths| paths.iter().any(|kept| kept == path))
            || self.hidden.contain(path)
            || self.rights.access(path) != Some(FolderAccess::Write)
    }
}

/// Paths that changed.
#[derive(Debug, Default)]
struct ChangedSettings {
    paths: Vec<PathBuf>,
    count: usize,
    is_unfinished: bool,
}

impl ChangedSettings {
    /// What the agent should know; nothing if nothing changed.
    fn note(&self) -> Option<String> {
        let changed = (self.count > 0).then(|| {
            format!("made or changed what programs of the user obey, and the user is told: {}", self.names())
        });
        let unfinished = self.is_unfinished.then(|| {
            "left folders that cannot all be searched for such files, and the user is told".to_owned()
        });
        let parts: Vec<String> = changed.into_iter().chain(unfinished).collect();
        (!parts.is_empty()).then(|| format!("it {}", parts.join("; it ")))
    }

    fn names(&self) -> String {
        let shown: Vec<String> = self.paths.iter().map(|path| shown(path)).collect();
        let more = self.count - shown.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        shown.join(", ") + &more
    }

    fn add(&mut self, path: PathBuf) {
        self.count += 1;
        if self.paths.len() < NAMED_MAX {
            self.paths.push(path);
        }
    }
}

struct Look<'a> {
    search: &'a SettingsSearch,
    entries: &'a mut usize,
    changed: &'a mut ChangedSettings,
}

impl Look<'_> {
    fn below(&mut self, folder: &Dir, path: &Path, depth: u32) -> io::Result<()> {
        for entry in folder.entries()? {
            let entry = entry?;
            self.count()?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            let at = path.join(&name);
            if self.search.is_kept(&at) {
                continue;
            }
            if is_protected(&name) {
                if self.is_changed(&entry)? || (kind.is_dir() && self.has_changed(folder, &entry, depth)?) {
                    self.changed.add(at);
                }
            } else if kind.is_dir() {
                self.enter(folder, &entry, depth, |look, below, depth| look.below(below, &at, depth))?;
            }
        }
        Ok(())
    }

    /// Whether anything in a protected folder changed.
    fn has_changed(&mut self, folder: &Dir, entry: &DirEntry, depth: u32) -> io::Result<bool> {
        let mut has_changed = false;
        self.enter(folder, entry, depth, |look, below, depth| {
            for entry in below.entries()? {
                let entry = entry?;
                look.count()?;
                let is_data = GIT_DATA.iter().any(|data| entry.file_name() == *data);
                has_changed |= !is_data && look.is_changed(&entry)?;
                if !has_changed && !is_data && entry.file_type()?.is_dir() {
                    has_changed |= look.has_changed(below, &entry, depth)?;
                }
                if has_changed {
                    break;
                }
            }
            Ok(())
        })?;
        Ok(has_changed)
    }

    /// Looks into a folder. One that is gone has nothing.
    fn enter(
        &mut self,
        folder: &Dir,
        entry: &DirEntry,
        depth: u32,
        look: impl FnOnce(&mut Self, &Dir, u32) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(depth) = depth.checked_sub(1) else { return Err(io::ErrorKind::FileTooLarge.into()) };
        match folder.open_dir_nofollow(entry.file_name()) {
            Ok(below) => look(self, &below, depth),
            Err(error) if is_out_of_reach(folder, &entry.file_name(), &error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn is_changed(&self, entry: &DirEntry) -> io::Result<bool> {
        match entry.metadata() {
            Ok(found) => Ok(FileMoment(found.ctime(), found.ctime_nsec()) >= self.search.began),
            Err(error) if is_gone(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn count(&mut self) -> io::Result<()> {
        *self.entries += 1;
        if *self.entries > ENTRIES_MAX { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(()) }
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.chars().take(SHOWN_CHARS_MAX).map(|c| if c.is_control() { '?' } else { c }).collect()
}
