//! Gemini CLI takes its address and its key from the environment, but logs in as its settings say. Nothing that we could
//! give it wins over those, so a login that leads elsewhere is refused.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::BadArguments;
use crate::system::private_files::Links;
use crate::text_file;
use crate::user::folders;
use crate::user::variables::of_environment;

/// Names another home for Gemini CLI.
pub(super) const HOME: &str = "GEMINI_CLI_HOME";
/// The most that a file of settings may have.
const SETTINGS_BYTES_MAX: u64 = 4 << 20;
/// The choices that call the address in the environment with its key.
const KEYS: [&str; 2] = ["gateway", "gemini-api-key"];

/// Refuses a login of the user's settings that leads past the gateway.
pub(super) fn check_login() -> Result<(), BadArguments> {
    let named = of_environment(HOME).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    match named.or_else(folders::user_home) {
        Some(home) => check(&home.join(".gemini/settings.json")),
        None => Ok(()),
    }
}

fn check(settings: &Path) -> Result<(), BadArguments> {
    // Without a file, or with one that has comments, it says itself what is missing.
    let text = text_file::read(settings, SETTINGS_BYTES_MAX, Links::Follow).unwrap_or_default();
    let read: Value = serde_json::from_str(&text).unwrap_or_default();
    match read["security"]["auth"]["selectedType"].as_str() {
        Some(login) if !KEYS.contains(&login) => Err(BadArguments(format!(
            "the settings of gemini choose the login `{login}`, which takes it past the gateway: set `security.auth.selectedType` to `gemini-api-key` in {}, or run gemini without exec",
            settings.display()
        ))),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_that_leads_past_the_gateway_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("settings.json");
        let is_refused = |text: &str| {
            std::fs::write(&file, text).unwrap();
            check(&file).is_err()
        };
        for login in ["oauth-personal", "vertex-ai", "compute-default-credentials"] {
            assert!(
                is_refused(&format!(r#"{{"security":{{"auth":{{"selectedType":"{login}"}}}}}}"#)),
                "{login}"
            );
        }
        for other in [
            r#"{"security":{"auth":{"selectedType":"gemini-api-key"}}}"#,
            r#"{"security":{"auth":{"selectedType":"gateway"}}}"#,
            r#"{"security":{"auth":{}}}"#,
            r#"{"ui":{}}"#,
            "",
            "// a comment",
        ] {
            assert!(!is_refused(other), "{other}");
        }
        assert!(check(&folder.path().join("none.json")).is_ok());
    }
}
