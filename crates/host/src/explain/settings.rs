//! The settings of the user, with what a project's file lowers.

use serde::Serialize;

use crate::defaults::{Defaults, OptionSource, Sourced};
use crate::user::configuration::{self, Ceiling};
use crate::user::settings::Setting;

/// Every setting as it is for a run.
#[derive(Serialize)]
#[serde(tag = "type", rename = "config")]
#[non_exhaustive]
pub struct ExplainedSettings {
    /// The user's configuration, whether it exists or not.
    pub file: Option<String>,
    /// The project's file, if there is one.
    pub project: Option<String>,
    /// In the order that people read them.
    pub settings: Vec<ExplainedSetting>,
}

/// A setting.
#[derive(Serialize)]
#[non_exhaustive]
pub struct ExplainedSetting {
    /// Its name.
    #[serde(rename = "setting")]
    pub name: String,
    /// Its value, if it has one.
    pub value: Option<String>,
    /// Where the value comes from.
    #[serde(rename = "from")]
    pub source: OptionSource,
}

impl ExplainedSettings {
    /// The settings behind these defaults. What happens first to a call that does not fit depends on what is run: a face
    /// says how.
    #[must_use]
    pub fn new(defaults: &Defaults, usual_on_low: &str) -> Self {
        let project = defaults.project.as_ref();
        Self {
            file: configuration::path().map(|path| path.display().to_string()),
            project: project.map(|project| project.path.display().to_string()),
            settings: rows(defaults, usual_on_low),
        }
    }
}

fn rows(defaults: &Defaults, usual_on_low: &str) -> Vec<ExplainedSetting> {
    let configuration = &defaults.configuration;
    let mut rows = Vec::new();
    let mut add = |name: String, value: Option<Sourced<String>>| {
        let Sourced { value, source } = Sourced::of_some(value);
        rows.push(ExplainedSetting { name, value, source });
    };
    for ceiling in Ceiling::ALL {
        let most =
            defaults.ceiling(ceiling).map(|most| Sourced::new(ceiling.written(most.value), most.source));
        add(Setting::Ceiling(ceiling).name(), most);
    }
    let on_low =
        defaults.on_low().map(|policy| Sourced::new(policy.value.as_str().to_owned(), policy.source));
    let on_low = on_low.unwrap_or(Sourced::new(usual_on_low.to_owned(), OptionSource::Default));
    add(Setting::OnLow.name(), Some(on_low));
    for setting in [
        Setting::AllowHosts,
        Setting::AllowField,
        Setting::AllowBox,
        Setting::Prices,
        Setting::Notify,
        Setting::EnvFiles,
        Setting::RedactEnv,
    ] {
        let values = setting.values(configuration);
        if values.is_empty() {
            add(setting.name(), None);
        }
        for (name, words) in values {
            add(name, Some(Sourced::new(words.join(" "), OptionSource::Configuration)));
        }
    }
    rows
}
