//! Every option of a run or a configuration, its value and where that comes from. Nothing is started, and no secret is
//! shown.

mod program;
mod settings;
mod tree;

use serde::Serialize;
use spinney_kernel::budget::Price;
use spinney_view::wording::one_line;

pub use self::program::{ProgramExplainError, ProgramRequest};
pub use self::settings::{ExplainedSetting, ExplainedSettings};
use crate::defaults::{Defaults, OptionSource, Sourced};
use crate::user::configuration::{self, written_price};
use crate::user::folders;
use crate::user::settings::Setting;
use crate::user::variables::Variables;

/// Longest part of a text that people see.
const TEXT_CHARS_MAX: usize = 60;
/// What is shown instead of a value that may be secret.
const SET: &str = "set";

/// The options of a run.
#[derive(Default, Serialize)]
#[serde(tag = "type", rename = "explain")]
pub struct Explanation {
    /// In the order that people read them.
    pub options: Vec<ExplainedOption>,
}

/// An option of a run.
#[derive(Serialize)]
#[non_exhaustive]
pub struct ExplainedOption {
    /// Its name.
    #[serde(rename = "option")]
    pub name: String,
    /// Its value, if it has one.
    pub value: Option<String>,
    /// Where the value comes from.
    #[serde(rename = "from")]
    pub source: OptionSource,
    /// Whether people see only its beginning.
    #[serde(skip)]
    is_text: bool,
}

impl ExplainedOption {
    /// Its value for people: a path is there to be copied, and a text to be recognised.
    #[must_use]
    pub fn shown(&self) -> Option<String> {
        let value = self.value.as_deref()?;
        Some(if self.is_text { one_line(value, TEXT_CHARS_MAX) } else { value.to_owned() })
    }
}

impl Explanation {
    fn add(&mut self, name: impl Into<String>, value: impl Into<String>, source: OptionSource) {
        self.add_some(name, Some(Sourced::new(value.into(), source)));
    }

    /// A value, or none, which is the default.
    fn add_some(&mut self, name: impl Into<String>, value: Option<Sourced<String>>) {
        let Sourced { value, source } = Sourced::of_some(value);
        self.options.push(ExplainedOption { name: name.into(), value, source, is_text: false });
    }

    /// The same for a text that may be long.
    fn add_text(&mut self, name: impl Into<String>, text: Option<Sourced<String>>) {
        let Sourced { value, source } = Sourced::of_some(text);
        self.options.push(ExplainedOption { name: name.into(), value, source, is_text: true });
    }

    /// Whether a variable is set, and where; never its value.
    fn add_variable(&mut self, name: &str, user: &Variables) {
        let set = user
            .source(name)
            .map(|source| Sourced::new(SET.to_owned(), OptionSource::of_variable(name, source)));
        self.add_some(name, set);
    }

    /// The server of an address in a variable. The rest of a URL may have a key in it.
    fn add_server(&mut self, name: &str, user: &Variables) {
        let server = user.source(name).and_then(|source| {
            let (_, url) = user.first(&[name])?;
            Some(Sourced::new(server_of(&url).to_owned(), OptionSource::of_variable(name, source)))
        });
        self.add_some(name, server);
    }

    fn add_price(&mut self, model: &str, price: Option<&Price>, source: OptionSource) {
        self.add_some(
            format!("price of {model}"),
            price.map(|price| Sourced::new(written_price(price), source)),
        );
    }

    /// What the user's configuration says for every run.
    fn add_user(&mut self, defaults: &Defaults) {
        let Defaults { configuration, project } = defaults;
        for (setting, name) in [
            (Setting::AllowHosts, "allow_hosts"),
            (Setting::Notify, "notify"),
            (Setting::EnvFiles, "env_files"),
            (Setting::RedactEnv, "redact_env"),
        ] {
            let values = setting.values(configuration);
            let texts = values.iter().map(|(_, words)| shown(&setting, words));
            let texts: Vec<Sourced<String>> =
                texts.map(|text| Sourced::new(text, OptionSource::Configuration)).collect();
            if texts.is_empty() {
                self.add_some(name, None);
            }
            texts.into_iter().for_each(|text| self.add_some(name, Some(text)));
        }
        for (_, words) in Setting::AllowBox.values(configuration) {
            let text = shown(&Setting::AllowBox, &words);
            self.add_some("allow_box", Some(Sourced::new(text, OptionSource::Configuration)));
        }
        let path = configuration::path().filter(|path| path.exists()).map(|path| path.display().to_string());
        let source = match folders::has_configuration_variable() {
            true => OptionSource::Environment(folders::CONFIGURATION_VARIABLE.to_owned()),
            false => OptionSource::Default,
        };
        self.add_some("configuration", path.map(|path| Sourced::new(path, source)));
        let path = project.as_ref().map(|project| project.path.display().to_string());
        self.add_some("project", path.map(|path| Sourced::new(path, OptionSource::Default)));
    }
}

/// The host and the port of a URL.
fn server_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['/', '?', '#']).next().unwrap_or_default();
    rest.rsplit_once('@').map_or(rest, |(_, server)| server)
}

/// A value of a setting. The arguments of a command may be secret.
fn shown(setting: &Setting, words: &[String]) -> String {
    match (setting, words) {
        (Setting::Notify, [program, _, ..]) => format!("{program} …"),
        (_, words) => words.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_server_of_a_url_is_shown() {
        assert_eq!(server_of("https://user:key@a.b:8080/v1?key=x#y"), "a.b:8080");
        assert_eq!(server_of("http://127.0.0.1:1"), "127.0.0.1:1");
        assert_eq!(server_of("a.b/secret@c"), "a.b");
    }
}
