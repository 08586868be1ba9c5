//! The user's own folders for this program, by the XDG rules.

use std::io;
use std::path::{Path, PathBuf};

use spinney_drivers::folders::{HiddenFolders, UserGit};

use crate::shell_word;
use crate::side_folders;
use crate::system::{files, private_files};

/// Why nothing can be recorded for a user.
#[derive(Debug, thiserror::Error)]
pub enum StateFolderError {
    /// The environment names no home folder.
    #[error("there is no state folder: set HOME or XDG_STATE_HOME")]
    NoHome,
    /// What another user writes is not what this one decided.
    #[error("{} belongs to another user: set XDG_STATE_HOME to a folder that you own", folder.display())]
    OtherUser {
        /// The state folder.
        folder: PathBuf,
    },
    /// Others can write there.
    #[error("other users can write to {}: run `chmod go-w {}`", folder.display(), shell_word::of_path(folder))]
    Writable {
        /// The state folder.
        folder: PathBuf,
    },
}

/// The variable that says where configurations are.
pub const CONFIGURATION_VARIABLE: &str = "XDG_CONFIG_HOME";

/// Where the user's configuration is. None if the environment names no home folder.
pub fn configuration() -> Option<PathBuf> {
    folder(CONFIGURATION_VARIABLE, ".config")
}

/// Whether a variable says so.
pub fn has_configuration_variable() -> bool {
    absolute(CONFIGURATION_VARIABLE).is_some()
}

/// Makes such a folder and what is above it, for this user only, unless it exists.
pub fn make(folder: &Path) -> io::Result<()> {
    private_files::folders(folder)
}

/// The user's home folder, which `~` stands for.
pub fn user_home() -> Option<PathBuf> {
    absolute("HOME")
}

fn folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let folder = absolute(variable).or_else(|| Some(user_home()?.join(below_home)))?;
    Some(folder.join("spinney"))
}

/// Where the state folder is, without a check of it. None if the environment names no home folder.
pub fn state_path() -> Option<PathBuf> {
    folder("XDG_STATE_HOME", ".local/state")
}

/// Where packages of servers are. None if the environment names no home folder.
#[must_use]
pub fn packages() -> Option<PathBuf> {
    Some(folder("XDG_CACHE_HOME", ".cache")?.join("packages"))
}

/// What stays hidden from the agents of a home, whatever is granted around it: the home, what the user decided and
/// recorded, and the packages that servers are started from. With where git's own configuration of the user is.
#[must_use]
pub fn hidden_folders(home: &Path) -> HiddenFolders {
    let home = side_folders::above(home).to_owned();
    let hidden = [Some(home), configuration(), state_path(), packages()];
    HiddenFolders::new(hidden.into_iter().flatten()).with_git(git())
}

/// Where git looks for the configuration of the user and of the machine, by its own rules.
fn git() -> UserGit {
    let home = user_home();
    let below_home = |below: &str| home.as_ref().map(|home| home.join(below));
    let configurations = absolute(CONFIGURATION_VARIABLE).or_else(|| below_home(".config"));
    let of_user = match absolute("GIT_CONFIG_GLOBAL") {
        Some(named) => vec![named],
        None => [configurations.map(|folder| folder.join("git/config")), below_home(".gitconfig")]
            .into_iter()
            .flatten()
            .collect(),
    };
    let of_machine = absolute("GIT_CONFIG_SYSTEM").unwrap_or_else(|| "/etc/gitconfig".into());
    UserGit { home, files: [of_machine].into_iter().chain(of_user).collect() }
}

/// Where we remember what the user made and decided. Fails if the environment names no home folder, or if others can write
/// there: what they write is not what the user decided.
pub fn state() -> Result<PathBuf, StateFolderError> {
    let Some(folder) = state_path() else {
        return Err(StateFolderError::NoHome);
    };
    match folder.metadata() {
        Ok(about) if !files::is_ours(&about) => Err(StateFolderError::OtherUser { folder }),
        Ok(about) if files::mode(&about) & 0o022 != 0 => Err(StateFolderError::Writable { folder }),
        Ok(_) | Err(_) => Ok(folder),
    }
}

/// A relative path in such a variable is ignored, as the rules say: it would mean another folder in each project.
#[expect(clippy::disallowed_methods, reason = "these variables say where a user's own files are")]
fn absolute(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
