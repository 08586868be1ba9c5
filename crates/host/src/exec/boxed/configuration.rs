//! The configuration of programs that we know, as they have it in a box. What decides what such a program runs can be read
//! and not be changed for good; its history is its own; logins are not there.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde_json::Value;
use spinney_drivers::sandbox::{Confinement, PlacedPath, PrivateFile};
use spinney_kernel::port::FolderAccess;

use crate::exec::other_keys;
use crate::system::private_files;
use crate::user::folders::user_home;
use crate::user::variables::of_environment;

/// A larger file is not copied: the program reads it where it is.
const COPIED_BYTES_MAX: u64 = 16 << 20;

/// A program with a folder of its own in the user's home.
struct Recipe {
    program: &'static str,
    /// The variable that names its folder.
    variable: &'static str,
    /// Its folder below the user's home.
    folder: &'static str,
    /// A file of settings beside that folder, or in a folder that the variable names.
    file: Option<&'static str>,
    /// What it writes and reads again, and nothing runs.
    history_folders: &'static [&'static str],
    history_files: &'static [&'static str],
    /// What it makes anew in each box: another run of the program would execute or open some of it.
    renewed: &'static [&'static str],
    /// Logins: the key of the run takes their place.
    logins: &'static [&'static str],
    /// What an administrator decides.
    machine: &'static str,
}

const RECIPES: [Recipe; 2] = [
    Recipe {
        program: "claude",
        variable: "CLAUDE_CONFIG_DIR",
        folder: ".claude",
        file: Some(".claude.json"),
        history_folders: &["plans", "projects", "tasks", "todos"],
        history_files: &["history.jsonl"],
        renewed: &[
            "backups",
            "cache",
            "debug",
            "file-history",
            "ide",
            "jobs",
            "paste-cache",
            "session-env",
            "sessions",
            "shell-snapshots",
            "statsig",
            "telemetry",
        ],
        logins: &[".credentials.json"],
        machine: "/etc/claude-code",
    },
    Recipe {
        program: "codex",
        variable: "CODEX_HOME",
        folder: ".codex",
        file: None,
        history_folders: &["archived_sessions", "sessions"],
        history_files: &["history.jsonl"],
        renewed: &[".tmp", "cache", "log", "memories", "shell_snapshots", "tmp"],
        logins: &[".credentials.json", "auth.json"],
        machine: "/etc/codex",
    },
];

/// Keys in settings that no budget covers.
const SECRET_SETTINGS: [&str; 9] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CODEX_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "OPENAI_API_KEY",
    "experimental_bearer_token",
    "primaryApiKey",
];

/// Why the configuration of a program cannot be in its box.
#[derive(Debug, thiserror::Error)]
pub enum ProgramConfigurationError {
    /// What it runs could be written.
    #[error(
        "the configuration of the program is in the folder that its box may write, {}: name one elsewhere in {variable}",
        folder.display()
    )]
    Writable {
        /// The folder of the configuration.
        folder: PathBuf,
        /// The variable that names it.
        variable: &'static str,
    },
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Adds the configuration of a program, by its name, to its box, which may write `project`. The home is the user's. Both
/// have no links in their paths.
pub(super) fn add(
    program: &str,
    home: &Path,
    project: &Path,
    confinement: &mut Confinement,
) -> Result<(), ProgramConfigurationError> {
    let Some(recipe) = RECIPES.iter().find(|recipe| recipe.program == program) else { return Ok(()) };
    let named = of_environment(recipe.variable).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let is_named = named.is_some();
    let folder = named.unwrap_or_else(|| home.join(recipe.folder));
    let folder = std::path::absolute(folder)?;
    if folder.canonicalize().is_ok_and(|found| found.starts_with(project)) || folder.starts_with(project) {
        return Err(ProgramConfigurationError::Writable { folder, variable: recipe.variable });
    }
    if !folder.starts_with(home) {
        confinement.private.push(folder.clone());
    }
    recipe.add_folder(&folder, project, confinement)?;
    if let Some(name) = recipe.file.filter(|_| !is_named) {
        // The user's home may be written with links in it.
        let path = user_home().unwrap_or_else(|| home.to_owned()).join(name);
        keep_in(project, &path, confinement);
        add_file(&path, &home.join(name), confinement)?;
    }
    let machine = Path::new(recipe.machine);
    if machine.is_dir() {
        confinement.read.push(machine.to_owned());
    }
    Ok(())
}

impl Recipe {
    fn add_folder(&self, folder: &Path, project: &Path, confinement: &mut Confinement) -> io::Result<()> {
        for name in self.history_folders {
            private_files::folders(&folder.join(name))?;
        }
        for name in self.history_files {
            make_if_missing(&folder.join(name))?;
        }
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            let is = |names: &[&str]| names.iter().any(|known| name == **known);
            let path = folder.join(&name);
            // A link that leads nowhere, and what is neither file nor folder.
            let Ok(found) = fs::metadata(&path) else { continue };
            let is_database = name.to_string_lossy().contains(".sqlite");
            if is(self.logins) || is(self.renewed) || is_database {
                continue;
            }
            let placed = |access| PlacedPath { from: path.clone(), at: path.clone(), access };
            if is(self.history_folders) || is(self.history_files) {
                confinement.placed.push(placed(FolderAccess::Write));
                continue;
            }
            keep_in(project, &path, confinement);
            if found.is_dir() {
                confinement.placed.push(placed(FolderAccess::Read));
            } else if found.is_file() {
                add_file(&path, &path, confinement)?;
            }
        }
        Ok(())
    }
}

/// What a link leads to in the folder that may be written can be changed there.
fn keep_in(project: &Path, path: &Path, confinement: &mut Confinement) {
    let leads_to = path.canonicalize().ok().filter(|found| found.starts_with(project) && found != project);
    confinement.read_only.extend(leads_to);
}

fn make_if_missing(file: &Path) -> io::Result<()> {
    match private_files::create(file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}

/// A copy that ends with the box: programs replace such files as a whole.
fn add_file(path: &Path, at: &Path, confinement: &mut Confinement) -> io::Result<()> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    if file.metadata()?.len() > COPIED_BYTES_MAX {
        let placed = PlacedPath { from: path.to_owned(), at: at.to_owned(), access: FolderAccess::Read };
        confinement.placed.push(placed);
        return Ok(());
    }
    let mut bytes = Vec::new();
    file.take(COPIED_BYTES_MAX).read_to_end(&mut bytes)?;
    let bytes = without_keys(&bytes).unwrap_or(bytes);
    confinement.files.push(PrivateFile { path: at.to_owned(), bytes });
    Ok(())
}

/// Settings without the user's keys, wherever in them they are. None if they are neither JSON nor TOML, or have none.
fn without_keys(bytes: &[u8]) -> Option<Vec<u8>> {
    if let Ok(mut settings) = serde_json::from_slice::<Value>(bytes) {
        return remove_json(&mut settings).then(|| settings.to_string().into_bytes());
    }
    let mut settings: toml::Table = toml::from_str(str::from_utf8(bytes).ok()?).ok()?;
    if !remove_toml(&mut settings) {
        return None;
    }
    toml::to_string(&settings).ok().map(String::into_bytes)
}

/// Whether something was removed.
fn remove_json(settings: &mut Value) -> bool {
    match settings {
        Value::Object(object) => {
            let before = object.len();
            object.retain(|name, _| !is_key(name));
            let is_removed = object.len() < before;
            object.values_mut().fold(is_removed, |is_removed, value| remove_json(value) | is_removed)
        }
        Value::Array(values) => {
            values.iter_mut().fold(false, |is_removed, value| remove_json(value) | is_removed)
        }
        _ => false,
    }
}

fn remove_toml(table: &mut toml::Table) -> bool {
    let before = table.len();
    table.retain(|name, _| !is_key(name));
    let is_removed = table.len() < before;
    table.iter_mut().fold(is_removed, |is_removed, (_, value)| remove_toml_value(value) | is_removed)
}

fn remove_toml_value(value: &mut toml::Value) -> bool {
    match value {
        toml::Value::Table(table) => remove_toml(table),
        toml::Value::Array(values) => {
            values.iter_mut().fold(false, |is_removed, value| remove_toml_value(value) | is_removed)
        }
        _ => false,
    }
}

fn is_key(name: &str) -> bool {
    SECRET_SETTINGS.contains(&name) || other_keys::is_key(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_copied_without_the_keys_in_them() {
        let settings =
            r#"{"primaryApiKey":"sk-1","theme":"dark","env":{"ANTHROPIC_API_KEY":"sk-2","A":"b"}}"#;
        let copied: Value = serde_json::from_slice(&without_keys(settings.as_bytes()).unwrap()).unwrap();
        assert_eq!(copied, serde_json::json!({ "theme": "dark", "env": { "A": "b" } }));
        let deep = r#"{"projects":{"/p":{"mcpServers":{"s":{"env":{"GROQ_API_KEY":"k","HOST":"h"}}}}},"list":[{"OPENAI_API_KEY":"k"}]}"#;
        let copied: Value = serde_json::from_slice(&without_keys(deep.as_bytes()).unwrap()).unwrap();
        let server = serde_json::json!({ "env": { "HOST": "h" } });
        let projects = serde_json::json!({ "/p": { "mcpServers": { "s": server } } });
        assert_eq!(copied, serde_json::json!({ "projects": projects, "list": [{}] }));
        let codex = "model = \"m\"\n[model_providers.x]\nenv_key = \"OPENAI_API_KEY\"\nexperimental_bearer_token = \"k\"\n[mcp_servers.s]\nenv = { OPENAI_API_KEY = \"k\", A = \"b\" }\n";
        let copied = String::from_utf8(without_keys(codex.as_bytes()).unwrap()).unwrap();
        let expected = "model = \"m\"\n[model_providers.x]\nenv_key = \"OPENAI_API_KEY\"\n[mcp_servers.s]\nenv = { A = \"b\" }\n";
        assert_eq!(toml::from_str::<toml::Table>(&copied), toml::from_str::<toml::Table>(expected));
        assert_eq!(without_keys(br#"{"theme":"dark"}"#), None);
        assert_eq!(without_keys(b"theme = 1"), None);
    }
}
