//! The folder in which a program of a person works in a box: writable, apart from what the person's other programs run or
//! obey.

use std::path::{Path, PathBuf};

use spinney_kernel::port::{FolderAccess, Rights};

use super::changed_settings::SettingsSearch;
use super::covers::{FolderCovers, hidden_below};
use crate::folders::HiddenFolders;
use crate::sandbox::Confinement;

/// A folder as a program in a box has it.
#[derive(Clone, Debug)]
pub struct ProgramFolder {
    covers: FolderCovers,
    changes: ProgramChanges,
}

/// What is looked for when a program has ended, in folders below its own.
#[derive(Clone, Debug)]
pub struct ProgramChanges {
    folder: PathBuf,
    search: SettingsSearch,
}

impl ProgramChanges {
    /// What the program made or changed that the person's other programs run or obey, in words. May take a while.
    #[must_use]
    pub fn look(&self) -> Option<String> {
        self.search.changed_in(&self.folder)
    }
}

/// What may be done with the repository of a program's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepositoryAccess {
    ReadOnly,
    /// A person allows it: hooks and settings in it run outside of the box.
    Writable,
}

/// The name of a repository in its folder.
const REPOSITORY: &str = ".git";

impl ProgramFolder {
    /// Looks at a folder as it is now, and at paths that a person lets the program read.
    ///
    /// # Errors
    /// Why no program can have one of them.
    pub fn look(
        path: &Path,
        repository: RepositoryAccess,
        read: &[PathBuf],
        hidden: &HiddenFolders,
    ) -> Result<Self, String> {
        let rights = Rights::none().with_folder(path, FolderAccess::Write);
        let mut covers = FolderCovers::new(&rights, hidden)?;
        let search = SettingsSearch::new("the program".to_owned(), &rights, hidden, &covers);
        let changes = ProgramChanges { folder: path.to_owned(), search };
        if repository == RepositoryAccess::Writable {
            let is_of_repository = |kept: &Path| {
                kept.strip_prefix(path).is_ok_and(|below| below.iter().any(|name| name == REPOSITORY))
            };
            covers.read_only.retain(|kept| !is_of_repository(kept));
            covers.reserved.retain(|kept| !is_of_repository(kept));
        }
        for folder in read.iter().filter(|path| path.is_dir()) {
            covers.hidden.extend(hidden_below(folder, hidden)?);
        }
        Ok(Self { covers, changes })
    }

    /// Also looks afterwards for what the program changed in these folders, as far as they are in its own: a person's shell
    /// finds programs there.
    #[must_use]
    pub fn naming_programs_in(mut self, folders: &[PathBuf]) -> Self {
        let found = folders.iter().filter_map(|folder| folder.canonicalize().ok());
        let below = found.filter(|folder| folder.starts_with(&self.changes.folder));
        self.changes.search.also_named(below);
        self
    }

    /// Adds what it keeps from the program to a box, and returns what to look for afterwards.
    #[must_use]
    pub fn add_to(self, confinement: &mut Confinement) -> ProgramChanges {
        let FolderCovers { hidden, read_only, reserved } = self.covers;
        confinement.hidden.extend(hidden);
        confinement.read_only.extend(read_only);
        confinement.reserved.extend(reserved);
        self.changes
    }
}
