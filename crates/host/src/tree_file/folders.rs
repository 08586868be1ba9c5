//! Folders of the user that a tree file names or that are given with it: from what is written to absolute paths without
//! links, of folders that exist and may be granted.

use std::path::{Path, PathBuf};

use spinney_drivers::folders::{HiddenFolders, check_folder};
use spinney_kernel::definition::{Definition, FolderAccess, FolderGrants};
use spinney_kernel::primitives::FolderPath;

use crate::user::folders::{hidden_folders, user_home};

/// A folder that the user gives for one start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenFolder {
    /// Relative to where the user is.
    pub path: PathBuf,
    /// What may be done in it.
    pub access: FolderAccess,
}

/// Why a folder cannot be granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("folder `{}` {why}", path.display())]
pub struct GivenFolderError {
    path: PathBuf,
    why: String,
}

/// Where a folder is that is written in a file of this folder. `~` is the user's home folder.
///
/// # Errors
/// What is wrong with it.
pub fn resolve(
    written: &str,
    access: FolderAccess,
    from: &Path,
    hidden: &HiddenFolders,
) -> Result<FolderPath, String> {
    let path = match written.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let home = user_home().ok_or_else(|| format!("folder `{written}`: there is no HOME"))?;
            home.join(rest.trim_start_matches('/'))
        }
        _ => from.join(written),
    };
    resolved(&path, access, hidden).map_err(|why| format!("folder `{written}` {why}"))
}

fn resolved(path: &Path, access: FolderAccess, hidden: &HiddenFolders) -> Result<FolderPath, String> {
    let found = path.canonicalize().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        _ => format!("cannot be found: {error}"),
    })?;
    check_folder(&found, access, hidden).map_err(|problem| problem.to_string())?;
    let text = found.to_str().ok_or("has a name that is not text")?;
    text.parse().map_err(|_| "has a name that cannot be shown, or too many names".to_owned())
}

/// Those that are given, by their absolute paths.
///
/// # Errors
/// The first that cannot be granted.
pub fn given_grants(given: &[GivenFolder], home: &Path) -> Result<FolderGrants, GivenFolderError> {
    let hidden = hidden_folders(home);
    let mut grants = FolderGrants::default();
    for GivenFolder { path, access } in given {
        let found = resolved(path, *access, &hidden);
        grants.add(found.map_err(|why| GivenFolderError { path: path.clone(), why })?, *access);
    }
    Ok(grants)
}

/// Adds folders to those of the root.
pub fn grant(definition: &mut Definition, grants: &FolderGrants) {
    if grants.is_empty() {
        return;
    }
    let of_role = definition.roles.get_mut(&definition.entry).and_then(|role| role.caps.folders.as_mut());
    let root = match of_role {
        Some(folders) => folders,
        None => definition.folders.get_or_insert_default(),
    };
    grants.iter().for_each(|(path, access)| root.add(path.clone(), access));
}
