//! The file of a project, `spinney.yaml`: defaults for what is run in it. A stranger may have written it, so it can only
//! lower what a run may spend. Where keys go and what is started is for the user's own configuration.

pub mod import;
pub mod new_files;
pub mod scenario;
pub mod template;

use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;
use spinney::tree_file::{FileError, KeyFile};
use spinney_kernel::definition::PriceKeys;

use self::template::bad_template;
use crate::system::private_files::Links;
use crate::text_file::{self, FileAction, FileFault, UnreadText};
use crate::user::allowed_host::AllowedHost;
use crate::user::box_allowance::BoxAllowance;
use crate::user::configuration::{AllowedField, DefaultBudget, written_price};
use crate::user::low_policy::LowPolicy;
use crate::user::settings::SettingChange;

/// Why the file of a project cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] FileFault),
    /// Something in it is wrong.
    #[error(transparent)]
    Wrong(#[from] FileError),
    /// It has keys that are not its own.
    #[error(transparent)]
    Refused(#[from] RefusedKeys),
}

/// Keys that a project's file must not have.
#[derive(Debug)]
pub struct RefusedKeys(pub Vec<RefusedKey>);

/// A key that a project's file must not have.
#[derive(Debug)]
pub struct RefusedKey {
    /// Where it is, and why not.
    pub error: FileError,
    /// The settings of the user that say the same. `None` if the key is the project's and its value is wrong.
    pub settings: Option<Vec<UsersSetting>>,
}

/// A change of the user's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsersSetting {
    /// Set or add.
    pub change: SettingChange,
    /// The setting.
    pub name: String,
    /// Its values.
    pub values: Vec<String>,
}

impl fmt::Display for RefusedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors: Vec<String> = self.0.iter().map(|key| key.error.to_string()).collect();
        f.write_str(&errors.join("\n"))
    }
}

impl std::error::Error for RefusedKeys {}

/// Its name.
pub const FILE: &str = "spinney.yaml";
/// The largest file that is read, in bytes.
const BYTES_MAX: u64 = 64 * 1024;
/// Folders above the first one that are searched.
const ABOVE_MAX: usize = 64;
/// What is the root of a repository.
const REPOSITORY: &str = ".git";

/// The file of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFile {
    /// Its path.
    pub path: PathBuf,
    /// Ceilings that it lowers.
    pub budget: DefaultBudget,
    /// What happens first to a call that does not fit.
    pub on_low: Option<LowPolicy>,
    /// The folders that `init` copies, by name.
    pub templates: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the keys of a project's file")]
struct ProjectKeys {
    budget: DefaultBudget,
    on_low: Option<LowPolicy>,
    templates: BTreeMap<String, String>,
    // These are the user's to say.
    allow_hosts: Option<Vec<AllowedHost>>,
    allow_field: Option<Vec<AllowedField>>,
    allow_box: Option<Vec<BoxAllowance>>,
    prices: Option<BTreeMap<String, PriceKeys>>,
    notify: Option<Vec<String>>,
    env_files: Option<Vec<String>>,
}

impl ProjectFile {
    /// The one that applies in a folder: there, or in a folder above it up to the root of the repository that it is in.
    /// Outside a repository only the folder itself is searched: another user may own those above.
    pub fn find(folder: &Path) -> Result<Option<Self>, ProjectError> {
        let folder = folder.canonicalize().map_err(FileFault::when(FileAction::Read, folder))?;
        let folders: Vec<&Path> = folder.ancestors().take(ABOVE_MAX).collect();
        let root = folders.iter().position(|folder| folder.join(REPOSITORY).symlink_metadata().is_ok());
        for folder in folders.iter().take(root.unwrap_or(0) + 1) {
            let path = folder.join(FILE);
            match text_file::read(&path, BYTES_MAX, Links::Refuse) {
                Ok(text) if !is_tree_file(&path, &text) => return Self::parse(&path, &text).map(Some),
                Ok(_) => {}
                Err(UnreadText::Io(error)) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(FileFault::when(FileAction::Read, &path)(error).into()),
            }
        }
        Ok(None)
    }

    /// The one that applies to a tree file.
    pub fn of_tree_file(file: &Path) -> Result<Option<Self>, ProjectError> {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if folder.is_dir() { Self::find(folder) } else { Ok(None) }
    }

    /// Reads a text; errors name the path.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ProjectError> {
        let file: KeyFile<ProjectKeys> = KeyFile::parse(&path.display().to_string(), text)?;
        let refused = refused(&file, path.parent().unwrap_or(Path::new("/")));
        if !refused.is_empty() {
            return Err(RefusedKeys(refused).into());
        }
        let ProjectKeys { budget, on_low, templates, .. } = file.keys;
        Ok(Self { path: path.to_owned(), budget, on_low, templates })
    }
}

/// A tree file may have the name of a project's file.
fn is_tree_file(path: &Path, text: &str) -> bool {
    let keys = KeyFile::<BTreeMap<String, IgnoredAny>>::parse(&path.display().to_string(), text);
    keys.is_ok_and(|file| ["agents", "models", "pipeline"].iter().any(|key| file.keys.contains_key(*key)))
}

/// The keys that are not the project's to say, and the names of templates that cannot be used.
fn refused(file: &KeyFile<ProjectKeys>, folder: &Path) -> Vec<RefusedKey> {
    let keys = &file.keys;
    let mut refused = Vec::new();
    for (name, folder) in &keys.templates {
        let error = bad_template(name, folder).map(|reason| file.bad_key(&["templates", name], reason));
        refused.extend(error.map(|error| RefusedKey { error, settings: None }));
    }
    let mut refuse = |key: &str, settings: Option<Vec<UsersSetting>>| {
        let Some(settings) = settings else { return };
        let error = file.bad_key(&[key], format!("`{key}` is not allowed in the file of a project"));
        refused.push(RefusedKey { error, settings: Some(settings) });
    };
    let setting = |change, name: &str, values: Vec<String>| {
        let setting = UsersSetting { change, name: name.to_owned(), values };
        Some(setting).filter(|setting| !setting.values.is_empty()).into_iter().collect()
    };
    let hosts = keys.allow_hosts.as_ref().map(|hosts| hosts.iter().map(ToString::to_string).collect());
    refuse("allow_hosts", hosts.map(|hosts| setting(SettingChange::Add, "allow_hosts", hosts)));
    let boxes = keys.allow_box.as_ref().map(|all| all.iter().map(ToString::to_string).collect());
    refuse("allow_box", boxes.map(|boxes| setting(SettingChange::Add, "allow_box", boxes)));
    let field = |field: &AllowedField| UsersSetting {
        change: SettingChange::Add,
        name: "allow_field".to_owned(),
        values: vec![field.program.clone(), field.name.to_string()],
    };
    refuse("allow_field", keys.allow_field.as_ref().map(|fields| fields.iter().map(field).collect()));
    let price = |(model, keys): (&String, &PriceKeys)| UsersSetting {
        change: SettingChange::Set,
        name: format!("prices.{model}"),
        values: vec![written_price(&keys.price())],
    };
    refuse("prices", keys.prices.as_ref().map(|prices| prices.iter().map(price).collect()));
    refuse("notify", keys.notify.as_ref().map(|words| setting(SettingChange::Set, "notify", words.clone())));
    let whole = |file: &String| match file.starts_with("~/") {
        true => file.clone(),
        false => folder.join(file).display().to_string(),
    };
    let files = keys.env_files.as_ref().map(|files| files.iter().map(whole).collect());
    refuse("env_files", files.map(|files| setting(SettingChange::Add, "env_files", files)));
    refused.sort_by_key(|key| (key.error.line, key.error.column));
    refused
}
