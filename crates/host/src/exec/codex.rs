//! Codex takes its address from its configuration only, and its arguments win over every file of it.

use std::ffi::OsString;

use spinney_drivers::wire::Permitted;

use super::{BadArguments, OwnSandbox};

/// The mode without a sandbox.
const NO_SANDBOX: &str = "danger-full-access";

/// Whether the gateway lets a provider search the web.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebSearch {
    /// The user allows it although no budget bounds it.
    Allowed,
    /// It refuses it.
    Refused,
}

impl WebSearch {
    /// By what the user allows.
    #[must_use]
    pub fn from_permitted(permitted: &Permitted) -> Self {
        let is_allowed = permitted.iter().any(|name| name.to_string().starts_with("tool:web_search"));
        if is_allowed { Self::Allowed } else { Self::Refused }
    }
}

/// The arguments of Codex.
#[derive(Debug)]
pub struct CodexArguments {
    args: Vec<OsString>,
    /// Whether the user turns web search on or off.
    decides_search: bool,
    /// An argument that chooses a sandbox.
    chosen_sandbox: Option<String>,
}

impl CodexArguments {
    /// Refuses arguments that lead past the gateway: later ones win over ours.
    pub fn read(args: &[OsString]) -> Result<Self, BadArguments> {
        let (mut decides_search, mut chosen_sandbox) = (false, None);
        let mut words = args.iter().map(|arg| arg.to_string_lossy());
        while let Some(word) = words.next().filter(|word| word != "--") {
            let option = word.split('=').next().unwrap_or_default();
            if option == "--oss" || option == "--local-provider" {
                return Err(BadArguments(format!(
                    "`{option}` would take codex past the gateway: leave it out, or run codex without exec"
                )));
            }
            let value = match word.as_ref() {
                "-c" | "--config" => words.next().map(|value| value.into_owned()),
                word => {
                    let value = word.strip_prefix("--config=").or_else(|| word.strip_prefix("-c"));
                    value.map(|value| value.trim_start_matches('=').to_owned())
                }
            };
            let key = value.as_deref().and_then(|value| value.split('=').next()).unwrap_or_default();
            let parts: Vec<&str> = key.split('.').map(|part| part.trim().trim_matches(['"', '\''])).collect();
            if matches!(
                parts[..],
                ["model_provider"] | ["model_providers"] | ["model_providers", "spinney", ..]
            ) {
                return Err(BadArguments(format!(
                    "`-c {}` would take codex past the gateway: leave it out; the gateway sends calls to OPENAI_BASE_URL if it is set",
                    key.trim()
                )));
            }
            let sandbox = match option {
                "-s" | "--sandbox" => {
                    let given = word.split_once('=').map(|(_, mode)| mode.to_owned());
                    given.or_else(|| words.next().map(|mode| mode.into_owned()))
                }
                "--full-auto" => Some(String::new()),
                _ if parts == ["sandbox_mode"] => value.as_deref().and_then(after_equals),
                _ => None,
            };
            let is_off = |mode: &String| mode.trim().trim_matches(['"', '\'']) == NO_SANDBOX;
            if sandbox.is_some_and(|mode| !is_off(&mode)) {
                chosen_sandbox = Some(word.to_string());
            }
            decides_search |= option == "--search" || parts.iter().any(|part| part.contains("web_search"));
        }
        Ok(Self { args: args.to_vec(), decides_search, chosen_sandbox })
    }

    /// Refuses a choice of Codex's own sandbox where it cannot have one.
    pub(super) fn check_sandbox(&self) -> Result<(), BadArguments> {
        match &self.chosen_sandbox {
            Some(option) => Err(BadArguments(format!(
                "`{option}` chooses a sandbox of codex, which cannot be made in a box: leave it out, because the box is around all of codex"
            ))),
            None => Ok(()),
        }
    }

    /// The arguments that lead to the gateway, as our own provider: at a terminal Codex would send the key of a stored
    /// login to OpenAI's provider, and ask for a login if there is none. The provider's web search, which Codex offers with
    /// most models, is off unless the user allows or asks for it: no budget bounds it, so the gateway refuses it.
    pub fn leading_to(self, url: &str, search: WebSearch, sandbox: OwnSandbox) -> Vec<OsString> {
        let provider = format!(
            "model_providers.spinney={{name=\"OpenAI\", base_url=\"{url}\", env_key=\"OPENAI_API_KEY\", wire_api=\"responses\"}}"
        );
        let mut settings = vec!["model_provider=\"spinney\"".to_owned(), provider];
        if search == WebSearch::Refused && !self.decides_search {
            settings.push("web_search=\"disabled\"".to_owned());
        }
        if sandbox == OwnSandbox::Off {
            settings.push(format!("sandbox_mode=\"{NO_SANDBOX}\""));
        }
        let ours = settings.into_iter().flat_map(|setting| ["-c".into(), OsString::from(setting)]);
        ours.chain(self.args).collect()
    }
}

fn after_equals(setting: &str) -> Option<String> {
    setting.split_once('=').map(|(_, value)| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_of_its_own_is_refused_in_a_box() {
        let is_refused = |args: &[&str]| {
            let args: Vec<OsString> = args.iter().map(OsString::from).collect();
            CodexArguments::read(&args).unwrap().check_sandbox().is_err()
        };
        for chosen in [
            &["-s", "read-only"][..],
            &["--sandbox=workspace-write"],
            &["--full-auto"],
            &["-c", "sandbox_mode=\"read-only\""],
        ] {
            assert!(is_refused(chosen), "{chosen:?}");
        }
        for other in [
            &["exec", "-m", "m", "text"][..],
            &["-s", "danger-full-access"],
            &["-c", "sandbox_mode='danger-full-access'"],
            &["--", "-s", "read-only"],
        ] {
            assert!(!is_refused(other), "{other:?}");
        }
    }
}
