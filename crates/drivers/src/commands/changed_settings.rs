//! What a command made or changed, in the folders of the user, of what programs of the user run or obey: repositories and
//! settings that its box did not keep from it (decision 0062). The times are the kernel's, so a command cannot set them back.
//! A repository that would run programs is switched off.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, DirEntry, Metadata, MetadataExt as _};
use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use spinney_kernel::port::{FolderAccess, Rights};
use spinney_kernel::primitives::{AgentId, CommandExit, CommandLimit};

use super::covers::{FolderCovers, is_out_of_reach};
use crate::folders::{
    HEAD, HiddenFolders, REPOSITORY, RepositoryNames, is_dangerous, is_protected, is_protected_file,
    open_folder,
};

/// How deep, and how much, is looked at after a command.
const DEPTH_MAX: u32 = 64;
const ENTRIES_MAX: usize = 1_000_000;
/// The most paths that are named.
const NAMED_MAX: usize = 5;
/// Characters of a path that are shown.
const SHOWN_CHARS_MAX: usize = 120;
/// Of a repository, what nothing runs or obeys.
const GIT_DATA: [&str; 2] = ["objects", "logs"];
/// What is added to a name so that git does not find it, and how many such names are tried.
const OFF: &str = "disabled";
const OFF_NAMES_MAX: u32 = 100;

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

/// Folders that could not be searched as a whole: what was made in them may have been missed. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct UnsearchedFolders(Arc<Mutex<BTreeMap<PathBuf, Unsearched>>>);

/// What a search that was not finished was about.
#[derive(Clone, Debug)]
struct Unsearched {
    since: FileMoment,
    /// What was kept from the command then. What is kept now may have been made meanwhile.
    kept: FolderCovers,
}

impl UnsearchedFolders {
    /// The earliest search around or in a folder that was not finished.
    fn earliest(&self, folder: &Path) -> Option<Unsearched> {
        let overlaps = |path: &Path| path.starts_with(folder) || folder.starts_with(path);
        let folders = self.lock();
        let overlapping = folders.iter().filter(|(path, _)| overlaps(path)).map(|(_, search)| search);
        overlapping.min_by_key(|search| search.since).cloned()
    }

    fn note(&self, folder: &Path, search: Unsearched, is_finished: bool) {
        let mut folders = self.lock();
        if is_finished {
            folders.retain(|path, earlier| !path.starts_with(folder) || earlier.since < search.since);
        } else if folders.get(folder).is_none_or(|earlier| search.since < earlier.since) {
            folders.insert(folder.to_owned(), search);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Unsearched>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// Folders that are like protected names.
    also_named: Vec<PathBuf>,
    began: FileMoment,
    unsearched: UnsearchedFolders,
}

/// What a search says to an agent.
#[derive(Debug)]
pub(super) struct SearchEnd {
    /// What was found, in words.
    note: Option<String>,
    /// Whether it looked at everything.
    is_whole: bool,
}

impl SearchEnd {
    /// The words, and how the command has ended if not everything was looked at: nothing found is not nothing there.
    pub(super) fn into_parts(self) -> (Option<String>, Option<CommandExit>) {
        (self.note, (!self.is_whole).then_some(CommandExit::PastLimit(CommandLimit::Folders)))
    }
}

impl SettingsSearch {
    /// For a command that begins now; nothing if its agent may write no folder of the user.
    pub(super) fn begin(
        agent: &AgentId,
        rights: &Rights,
        hidden: &HiddenFolders,
        kept: &FolderCovers,
        unsearched: &UnsearchedFolders,
    ) -> Option<Self> {
        let may_write = rights.folders.iter().any(|folder| folder.access == FolderAccess::Write);
        let mut search =
            may_write.then(|| Self::new(format!("a command of {agent}"), rights, hidden, kept))?;
        search.unsearched = unsearched.clone();
        Some(search)
    }

    /// For what begins now.
    pub(super) fn new(by: String, rights: &Rights, hidden: &HiddenFolders, kept: &FolderCovers) -> Self {
        Self {
            by,
            rights: rights.clone(),
            hidden: hidden.clone(),
            kept: kept.clone(),
            also_named: Vec::new(),
            began: FileMoment::now(),
            unsearched: UnsearchedFolders::default(),
        }
    }

    /// Looks at folders as if their names were protected.
    pub(super) fn also_named(&mut self, folders: impl IntoIterator<Item = PathBuf>) {
        self.also_named.extend(folders);
    }

    /// Looks again where an earlier search was not finished. If this one is not either, nothing may begin there. May take a
    /// while.
    pub(super) fn check_earlier(&self) -> Result<(), String> {
        for folder in self.writable() {
            if self.unsearched.earliest(folder).is_none() {
                continue;
            }
            let mut changed = ChangedSettings::default();
            self.look_in(folder, &mut 0, &mut changed);
            self.warn(folder, &changed);
            if changed.is_unfinished {
                return Err(format!(
                    "{} cannot be searched for repositories and settings that an earlier command made, because it is too deep, has too many files or has closed folders: a person has to look at it",
                    folder.display()
                ));
            }
        }
        Ok(())
    }

    /// What changed, in words for the agent. People are told in which folders.
    pub(super) fn end(&self) -> SearchEnd {
        let mut all = ChangedSettings::default();
        let mut entries = 0;
        for folder in self.writable() {
            let mut changed = ChangedSettings::default();
            self.look_in(folder, &mut entries, &mut changed);
            self.warn(folder, &changed);
            all.add_all(changed);
        }
        SearchEnd { note: all.note(), is_whole: !all.is_unfinished }
    }

    /// What changed in a folder, in words for a person.
    pub(super) fn changed_in(&self, folder: &Path) -> Option<String> {
        let mut changed = ChangedSettings::default();
        self.look_in(folder, &mut 0, &mut changed);
        let said = self.words(folder, &changed);
        (!said.is_empty()).then(|| said.join("; "))
    }

    fn writable(&self) -> impl Iterator<Item = &PathBuf> {
        let folders = self.rights.folders.iter();
        folders.filter(|folder| folder.access == FolderAccess::Write).map(|folder| &folder.path)
    }

    fn warn(&self, folder: &Path, changed: &ChangedSettings) {
        for said in self.words(folder, changed) {
            tracing::warn!("{said}");
        }
    }

    /// For people.
    fn words(&self, folder: &Path, changed: &ChangedSettings) -> Vec<String> {
        let (by, folder) = (&self.by, folder.display());
        let mut said = Vec::new();
        if changed.off.count > 0 {
            said.push(format!(
                "{by} made what would run programs when you use git or other tools there, so these were renamed, with `.{OFF}` at their end: {}; look at them before you rename them back",
                changed.off.names()
            ));
        }
        if changed.found.count > 0 {
            said.push(format!(
                "{by} made or changed what your other programs run or obey: {}; look at it before you use git or an editor there",
                changed.found.names()
            ));
        }
        if changed.is_unfinished {
            said.push(format!(
                "{folder} could not be searched as a whole for repositories and settings that {by} made: look at it before you use git or an editor there"
            ));
        }
        said
    }

    fn look_in(&self, folder: &Path, entries: &mut usize, changed: &mut ChangedSettings) {
        let earlier = self.unsearched.earliest(folder).filter(|earlier| earlier.since < self.began);
        let about = earlier.unwrap_or_else(|| Unsearched { since: self.began, kept: self.kept.clone() });
        let mut look = Look { search: self, about: &about, entries, changed };
        let looked = open_folder(folder).and_then(|opened| look.below(&opened, folder, DEPTH_MAX));
        changed.is_unfinished |= looked.is_err();
        self.unsearched.note(folder, about, !changed.is_unfinished);
    }
}

/// Paths of which some are named.
#[derive(Debug, Default)]
struct NamedPaths {
    paths: Vec<PathBuf>,
    count: usize,
}

impl NamedPaths {
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

    fn add_all(&mut self, others: Self) {
        self.count += others.count;
        let room = NAMED_MAX - self.paths.len();
        self.paths.extend(others.paths.into_iter().take(room));
    }
}

/// What was found.
#[derive(Debug, Default)]
struct ChangedSettings {
    found: NamedPaths,
    /// Renamed, by their old names.
    off: NamedPaths,
    is_unfinished: bool,
}

impl ChangedSettings {
    /// What the agent should know; nothing if nothing changed.
    fn note(&self) -> Option<String> {
        let changed = (self.found.count > 0).then(|| {
            format!(
                "made or changed what programs of the user obey, and the user is told: {}",
                self.found.names()
            )
        });
        let off = (self.off.count > 0).then(|| {
            format!(
                "made what would run programs when the user uses git or other tools there, so these were renamed, with `.{OFF}` at their end: {}",
                self.off.names()
            )
        });
        let unfinished = self.is_unfinished.then(|| {
            "left folders that cannot all be searched for such files, and the user is told".to_owned()
        });
        let parts: Vec<String> = changed.into_iter().chain(off).chain(unfinished).collect();
        (!parts.is_empty()).then(|| format!("it {}", parts.join("; it ")))
    }

    fn add_all(&mut self, others: Self) {
        self.found.add_all(others.found);
        self.off.add_all(others.off);
        self.is_unfinished |= others.is_unfinished;
    }
}

struct Look<'a> {
    search: &'a SettingsSearch,
    about: &'a Unsearched,
    entries: &'a mut usize,
    changed: &'a mut ChangedSettings,
}

impl Look<'_> {
    /// What cannot be looked at is noted, and the rest is looked at.
    fn below(&mut self, folder: &Dir, path: &Path, depth: u32) -> io::Result<()> {
        let mut names = RepositoryNames::default();
        for entry in folder.entries()? {
            let entry = entry?;
            self.count()?;
            let name = entry.file_name();
            names.see(&name);
            let at = path.join(&name);
            if self.is_kept(&at) {
                continue;
            }
            let looked = if is_protected(&name) || self.search.also_named.contains(&at) {
                self.protected(folder, &entry, at, depth)
            } else if entry.file_type()?.is_dir() {
                self.enter(folder, &entry, depth, |look, below, depth| look.below(below, &at, depth))
            } else {
                Ok(())
            };
            self.changed.is_unfinished |= looked.is_err();
        }
        self.repository(folder, path, names)
    }

    /// Whether the command could not change it: its box kept it, or another folder around it is only read.
    fn is_kept(&self, path: &Path) -> bool {
        let FolderCovers { hidden, read_only, reserved } = &self.about.kept;
        [hidden, read_only, reserved].iter().any(|paths| paths.iter().any(|kept| kept == path))
            || self.search.hidden.contain(path)
            || self.search.rights.access(path) != Some(FolderAccess::Write)
    }

    /// A protected name that the command could change.
    fn protected(&mut self, folder: &Dir, entry: &DirEntry, at: PathBuf, depth: u32) -> io::Result<()> {
        let is_folder = entry.file_type()?.is_dir();
        let is_changed = self.is_changed(entry)? || is_folder && self.has_changed(folder, entry, depth)?;
        if !is_changed {
            return Ok(());
        }
        self.changed.found.add(at.clone());
        let name = entry.file_name();
        let is_repository = name.as_encoded_bytes().eq_ignore_ascii_case(REPOSITORY.as_bytes());
        if !is_repository && !is_protected_file(&name) {
            return Ok(());
        }
        if is_repository && is_folder {
            return self
                .enter(folder, entry, depth, |look, below, depth| look.repositories(below, &at, depth));
        }
        // A `.git` that is no folder leads to a repository that may be anywhere, and may be replaced later.
        switch_off(folder, &name)?;
        self.changed.off.add(at);
        Ok(())
    }

    /// Every repository in a `.git`: those of submodules are in there.
    fn repositories(&mut self, folder: &Dir, path: &Path, depth: u32) -> io::Result<()> {
        let mut names = RepositoryNames::default();
        for entry in folder.entries()? {
            let entry = entry?;
            self.count()?;
            let name = entry.file_name();
            names.see(&name);
            let is_data = GIT_DATA.iter().any(|data| name == *data);
            if !is_data && entry.file_type()?.is_dir() {
                let at = path.join(&name);
                self.enter(folder, &entry, depth, |look, below, depth| look.repositories(below, &at, depth))?;
            }
        }
        self.repository(folder, path, names)
    }

    /// Switches a repository off that would run programs.
    fn repository(&mut self, folder: &Dir, path: &Path, names: RepositoryNames) -> io::Result<()> {
        let is_new = |found: &Metadata| self.is_recent(found);
        if names.are_of_unfinished_repository() && is_dangerous(folder, &is_new)? {
            switch_off(folder, OsStr::new(HEAD))?;
            self.changed.off.add(path.join(HEAD));
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
            Ok(found) => Ok(self.is_recent(&found)),
            Err(error) if is_gone(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn is_recent(&self, found: &Metadata) -> bool {
        FileMoment(found.ctime(), found.ctime_nsec()) >= self.about.since
    }

    fn count(&mut self) -> io::Result<()> {
        *self.entries += 1;
        if *self.entries > ENTRIES_MAX { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(()) }
    }
}

/// Renames what makes a repository of a folder. Nothing is replaced by it.
fn switch_off(folder: &Dir, name: &OsStr) -> io::Result<()> {
    for number in 0..OFF_NAMES_MAX {
        let mut off = name.to_owned();
        off.push(format!(".{OFF}"));
        if number > 0 {
            off.push(format!(".{number}"));
        }
        match renameat_with(folder, name, folder, &off, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            renamed => return Ok(renamed?),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.chars().take(SHOWN_CHARS_MAX).map(|c| if c.is_control() { '?' } else { c }).collect()
}
