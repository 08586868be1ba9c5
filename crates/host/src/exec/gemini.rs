//! Gemini CLI takes its address and its key from the environment, but logs in as its settings say. The settings of the
//! system win over all others, so those that choose a key are put over them.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::BadArguments;
use super::settings_file::SettingsFile;
use crate::system::private_files::Links;
use crate::text_file;
use crate::user::variables::of_environment;

/// Where Gemini CLI looks for the settings of the system.
pub(super) const SYSTEM_SETTINGS: &str = "GEMINI_CLI_SYSTEM_SETTINGS_PATH";
const DEFAULT_PATH: &str = "/etc/gemini-cli/settings.json";
/// The most that a file of settings may have.
const SETTINGS_BYTES_MAX: u64 = 4 << 20;

/// The settings of the system, if there are any.
#[derive(Debug)]
pub struct GeminiSettings(Map<String, Value>);

impl GeminiSettings {
    /// Reads those of this system.
    pub fn read() -> Result<Self, BadArguments> {
        let named = of_environment(SYSTEM_SETTINGS).filter(|path| !path.is_empty());
        let path = PathBuf::from(named.as_deref().unwrap_or(DEFAULT_PATH));
        if !path.exists() {
            return Ok(Self(Map::new()));
        }
        let unread = |why: &dyn std::fmt::Display| {
            BadArguments(format!("cannot read the settings of Gemini CLI in {}: {why}", path.display()))
        };
        let text = text_file::read(&path, SETTINGS_BYTES_MAX, Links::Follow).map_err(|why| unread(&why))?;
        serde_json::from_str(&text).map(Self).map_err(|why| unread(&why))
    }

    /// The file with which it calls the gateway with its key, whatever login it has.
    pub(super) fn leading_to_key(mut self, folder: &Path) -> io::Result<SettingsFile> {
        let security = self.0.entry("security").or_insert_with(|| json!({}));
        if !security.is_object() {
            *security = json!({});
        }
        if !security["auth"].is_object() {
            security["auth"] = json!({});
        }
        security["auth"]["selectedType"] = json!("gemini-api-key");
        SettingsFile::write(folder, "gemini-settings.json", &Value::Object(self.0).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_chosen_and_the_other_settings_of_the_system_stay() {
        let folder = tempfile::tempdir().unwrap();
        let written = |system: Value| {
            let Value::Object(system) = system else { unreachable!("settings are an object") };
            let file = GeminiSettings(system).leading_to_key(folder.path()).unwrap();
            serde_json::from_str::<Value>(&std::fs::read_to_string(file.path()).unwrap()).unwrap()
        };
        let chosen = json!({ "selectedType": "gemini-api-key" });
        for nothing in [json!({}), json!({ "security": null }), json!({ "security": { "auth": [] } })] {
            assert_eq!(written(nothing), json!({ "security": { "auth": chosen } }));
        }
        let system = json!({ "tools": { "exclude": ["web_fetch"] },
            "security": { "folderTrust": {}, "auth": { "selectedType": "oauth-personal", "useExternal": true } } });
        let expected = json!({ "tools": { "exclude": ["web_fetch"] },
            "security": { "folderTrust": {}, "auth": { "selectedType": "gemini-api-key", "useExternal": true } } });
        assert_eq!(written(system), expected);
        assert!(!folder.path().join("gemini-settings.json").exists(), "it is gone with its run");
    }
}
