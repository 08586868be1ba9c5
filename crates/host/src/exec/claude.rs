//! The settings of Claude Code win over its environment. So those that lead to the gateway are put over the user's own.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{fs, io, path};

use serde_json::{Map, Value, json};

use super::{BadArguments, OwnSandbox};
use crate::system::files;
use crate::system::private_files::{self, Links};
use crate::text_file;

/// What else could lead past the gateway: providers and sockets that Claude Code would call instead of an address.
pub const SWITCHES: [&str; 8] = [
    "ANTHROPIC_UNIX_SOCKET",
    "CLAUDE_CODE_USE_ANTHROPIC_AWS",
    "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_GATEWAY",
    "CLAUDE_CODE_USE_MANTLE",
    "CLAUDE_CODE_USE_VERTEX",
];

/// A longer name of a folder of sessions is cut, and gets a hash.
const PROJECT_NAME_MAX: usize = 200;
/// The most that a file of settings may have.
const SETTINGS_BYTES_MAX: u64 = 4 << 20;

/// The arguments of Claude Code, and the settings that were among them. Only one `--settings` counts, the last.
#[derive(Debug)]
pub struct ClaudeArguments {
    args: Vec<OsString>,
    settings: Map<String, Value>,
}

/// A private file with the settings of a run. Gone with it, because the run's key is among them.
pub struct SettingsFile(PathBuf);

impl SettingsFile {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SettingsFile {
    fn drop(&mut self) {
        // What is left of it after a crash is the key of a gateway that is gone.
        let _ = fs::remove_file(&self.0);
    }
}

/// The folder of a folder's sessions, as Claude Code names it.
pub fn project_name(folder: &Path) -> String {
    let path = folder.to_string_lossy();
    let plain = |unit: u16| char::from_u32(unit.into()).filter(char::is_ascii_alphanumeric).unwrap_or('-');
    let name: String = path.encode_utf16().map(plain).collect();
    if name.len() <= PROJECT_NAME_MAX {
        return name;
    }
    let hash =
        path.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    format!("{}-{}", &name[..PROJECT_NAME_MAX], base_36(hash.unsigned_abs()))
}

fn base_36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

impl ClaudeArguments {
    /// Takes the settings out of the arguments.
    pub fn read(args: &[OsString]) -> Result<Self, BadArguments> {
        let (mut rest, mut given) = (Vec::new(), None);
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            if arg == "--" {
                rest.push(arg.clone());
                rest.extend(args.by_ref().cloned());
            } else if arg == "--settings" {
                let value = args.next();
                let value =
                    value.ok_or_else(|| BadArguments(format!("`--settings` has no value: {REMEDY}")))?;
                given = Some(value.as_os_str());
            } else if let Some(value) = files::after_prefix(arg, "--settings=") {
                given = Some(value);
            } else {
                rest.push(arg.clone());
            }
        }
        let settings = given.map(settings_in).transpose()?.unwrap_or_default();
        Ok(Self { args: rest, settings })
    }

    /// The arguments that lead to the gateway. The settings are a file, because every user of the machine can read arguments.
    pub fn leading_to(
        mut self,
        url: &str,
        key: &str,
        folder: &Path,
        sandbox: OwnSandbox,
    ) -> io::Result<(Vec<OsString>, SettingsFile)> {
        let environment = self.settings.entry("env").or_insert_with(|| json!({}));
        environment["ANTHROPIC_BASE_URL"] = json!(url);
        environment["ANTHROPIC_AUTH_TOKEN"] = json!(key);
        for name in SWITCHES {
            environment[name] = json!("");
        }
        if sandbox == OwnSandbox::Off {
            let settings = self.settings.entry("sandbox").or_insert_with(|| json!({}));
            match settings.as_object_mut() {
                Some(settings) => drop(settings.insert("enabled".to_owned(), json!(false))),
                None => *settings = json!({ "enabled": false }),
            }
        }
        let path = path::absolute(folder.join("claude-settings.json"))?;
        // That of a run that crashed.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        private_files::write(&path, Value::Object(self.settings).to_string().as_bytes())?;
        let args = ["--settings".into(), path.clone().into_os_string()];
        Ok((args.into_iter().chain(self.args).collect(), SettingsFile(path)))
    }
}

const REMEDY: &str = "give it a JSON object, or the path of a file with one";

/// The settings in a value of `--settings`.
fn settings_in(value: &OsStr) -> Result<Map<String, Value>, BadArguments> {
    let inline = value.to_str().map(str::trim).filter(|text| text.starts_with('{'));
    let (text, place) = match inline {
        // It may have keys in it.
        Some(text) => (text.to_owned(), "`--settings`".to_owned()),
        None => {
            let place = format!("the file `{}` of `--settings`", value.display());
            let text = text_file::read(Path::new(value), SETTINGS_BYTES_MAX, Links::Follow)
                .map_err(|why| BadArguments(format!("cannot read {place}: {why}")))?;
            (text, place)
        }
    };
    let settings: Map<String, Value> = serde_json::from_str(&text)
        .map_err(|error| BadArguments(format!("{place} is not a settings object ({error}): {REMEDY}")))?;
    if settings.get("env").is_some_and(|environment| !environment.is_object()) {
        return Err(BadArguments(format!("`env` in {place} is not an object: make it one, or leave it out")));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Claude Code 2.1.325 names them; the hash is that of its JavaScript.
    #[test]
    fn a_folder_of_sessions_is_named_as_claude_code_names_it() {
        assert_eq!(project_name(Path::new("/a/.home/a_b-c")), "-a--home-a-b-c");
        assert_eq!(project_name(Path::new("/wörk/𝒳")), "-w-rk---");
        let long = format!("/{}", "wörk/".repeat(50));
        let name = project_name(Path::new(&long));
        assert_eq!((name.len(), &name[PROJECT_NAME_MAX..]), (207, "-xkjui9"));
    }
}
