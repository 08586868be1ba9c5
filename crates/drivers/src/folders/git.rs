//! What git uses of a folder outside of `.git` itself: the repository that a `.git` file names, as worktrees and submodules
//! have it, and what its configuration and that of the user name: hooks, other configurations, programs. All of it is read up
//! to a bound: it may be hostile.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::git_config::{GitSetting, settings};
use super::hidden::resolved;

/// How much of a file of git is read.
const BYTES_MAX: u64 = 256 << 10;
/// How many configurations are read for one folder; git has at most ten within each other.
const CONFIGURATIONS_MAX: usize = 64;
/// Entries of a folder that are looked at for links.
const ENTRIES_MAX: usize = 1_000;
/// What of a repository may lead out of it by a link, and is used.
const LINKED: [&str; 3] = ["", "hooks", "info"];
/// The name of a repository in its folder.
pub(crate) const REPOSITORY: &str = ".git";

/// Where the user's own configuration of git is. It may name files of any folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserGit {
    /// What `~` stands for in it.
    pub home: Option<PathBuf>,
    /// Files of configuration, whether or not they exist.
    pub files: Vec<PathBuf>,
}

/// What git uses because of what is in a folder, with its links followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GitPaths {
    pub(crate) existing: BTreeSet<PathBuf>,
    /// They are named, and would be used if they were made.
    pub(crate) missing: BTreeSet<PathBuf>,
    /// The same of configurations: git fails where a folder is in their place.
    pub(crate) missing_configurations: BTreeSet<PathBuf>,
}

impl GitPaths {
    /// Those of the repository to which a folder belongs, which may be further up.
    pub(crate) fn around(folder: &Path, user: &UserGit) -> Self {
        let top = folder.ancestors().find(|above| above.join(REPOSITORY).symlink_metadata().is_ok());
        Self::of(top.unwrap_or(folder), user)
    }

    /// Those of a folder that is the top of a work tree, or that may become one.
    pub(crate) fn of(top: &Path, user: &UserGit) -> Self {
        let mut look = Look { top, user, found: Self::default(), configurations: BTreeSet::new() };
        for repository in repositories(top) {
            look.found.add(&repository);
            for name in LINKED {
                look.linked_in(&repository.join(name));
            }
            look.configuration(&repository.join("config"));
            look.configuration(&repository.join("config.worktree"));
        }
        user.files.iter().for_each(|file| look.configuration(file));
        look.found
    }

    fn add(&mut self, path: &Path) {
        match path.canonicalize() {
            Ok(path) => self.existing.insert(path),
            Err(_) => self.missing.insert(resolved(path)),
        };
    }
}

/// The repository of a folder, and the one that it shares with others.
fn repositories(top: &Path) -> Vec<PathBuf> {
    let entry = top.join(REPOSITORY);
    let repository = match text(&entry) {
        Some(link) => match named(&link, "gitdir:") {
            Some(to) => top.join(to),
            None => return Vec::new(),
        },
        None => entry,
    };
    let common = text(&repository.join("commondir")).map(|to| repository.join(to.trim()));
    common.into_iter().chain([repository]).collect()
}

struct Look<'a> {
    top: &'a Path,
    user: &'a UserGit,
    found: GitPaths,
    configurations: BTreeSet<PathBuf>,
}

impl Look<'_> {
    /// Where links in a folder lead, and the folder itself if it is one.
    fn linked_in(&mut self, folder: &Path) {
        let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
        if is_link(folder) {
            self.add_link(folder);
        }
        for entry in folder.read_dir().into_iter().flatten().flatten().take(ENTRIES_MAX) {
            let path = entry.path();
            if is_link(&path) {
                self.add_link(&path);
            }
        }
    }

    fn add_link(&mut self, link: &Path) {
        match (link.canonicalize(), link.read_link(), link.parent()) {
            (Ok(target), ..) => drop(self.found.existing.insert(target)),
            // It leads to what is not there yet.
            (Err(_), Ok(target), Some(folder)) => {
                self.found.missing.insert(resolved(&folder.join(target)));
            }
            (Err(_), ..) => {}
        }
    }

    fn configuration(&mut self, file: &Path) {
        if self.configurations.len() >= CONFIGURATIONS_MAX || !self.configurations.insert(file.to_owned()) {
            return;
        }
        let Some(text) = text(file) else { return };
        for setting in settings(&text) {
            if setting.is_include() {
                let beside = file.parent().unwrap_or(self.top);
                let included = beside.join(self.expanded(&setting.value));
                match included.canonicalize() {
                    Ok(found) => drop(self.found.existing.insert(found)),
                    Err(_) => drop(self.found.missing_configurations.insert(resolved(&included))),
                }
                self.configuration(&included);
            } else if setting.is_hooks_path() {
                let hooks = self.top.join(self.expanded(&setting.value));
                self.found.add(&hooks);
                self.linked_in(&hooks);
            } else if setting.is_command() {
                self.programs(&setting);
            }
        }
    }

    /// Existing files that a command names. One that does not exist yet is not told from any other word.
    fn programs(&mut self, setting: &GitSetting) {
        let is_between = |letter: char| letter.is_whitespace() || "'\"`;|&(){}<>!=".contains(letter);
        for word in setting.value.split(is_between).filter(|word| !word.is_empty()) {
            let path = self.top.join(self.expanded(word));
            let found = path.canonicalize().ok().filter(|found| found.is_file());
            self.found.existing.extend(found);
        }
    }

    fn expanded(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), &self.user.home) {
            (Some(below), Some(home)) => home.join(below),
            _ => path.into(),
        }
    }
}

/// A file that is a text; none for anything else.
fn text(path: &Path) -> Option<String> {
    // A pipe or a device would not end.
    let is_file = path.metadata().is_ok_and(|found| found.is_file());
    let file = is_file.then(|| std::fs::File::open(path).ok()).flatten()?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// What a `.git` file or the like says after a word.
pub(super) fn named<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}
