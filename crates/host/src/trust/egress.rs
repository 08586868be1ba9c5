//! Where the keys and variables of a tree file would go, and whether the user allows it. A file may name any host and any
//! variable, so it decides neither: a key goes to its own provider's server, and anything else only to a host that the user
//! allowed outside the file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use spinney::tree_file::{ModelSource, ProviderSource, TreeFile};
use spinney_drivers::http::HostName;
use spinney_drivers::providers::{Destination, usual_key_env};
use spinney_kernel::definition::ModelProvider;
use spinney_kernel::primitives::ModelName;

use super::allowed_hosts::AllowedHosts;
use super::file_answers::FileAnswers;
use crate::error_text::with_causes;
use crate::tree_file::providers;
use crate::tree_file::source::Text;
use crate::user::state_files::StateFileError;

/// What one model of a file sends to its server.
#[derive(Clone, Debug)]
pub struct Egress {
    /// The model.
    pub model: ModelName,
    provider: ModelProvider,
    to: Destination,
    /// The environment variables that go there.
    pub variables: SentVariables,
}

/// Environment variables, and how each one is sent.
pub type SentVariables = BTreeMap<String, BTreeSet<SentAs>>;

/// How a variable is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SentAs {
    /// As the key of a model.
    Key,
    /// In a header that the file names.
    Header,
    /// In the value of an input.
    Input,
}

impl SentAs {
    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Header => "header",
            Self::Input => "input",
        }
    }
}

/// Which inputs of a file are read from the environment.
#[derive(Clone, Copy)]
pub enum InputValues<'a> {
    /// All but those that are given.
    Given(&'a [(String, String)]),
    /// None: the journal has their values, or nothing needs them.
    Known,
}

impl Egress {
    /// What goes where if these models of a file are called.
    pub fn all(file: &TreeFile, called: &[ModelName], inputs: InputValues<'_>) -> Vec<Self> {
        let is_read = |name: &str| match inputs {
            InputValues::Given(given) => !given.iter().any(|(given, _)| given == name),
            InputValues::Known => false,
        };
        let inputs = file.inputs.iter().filter(|(name, _)| is_read(name));
        let inputs: BTreeSet<&str> = inputs.filter_map(|(_, input)| input.env.as_deref()).collect();
        let of_model = |model: &ModelName| match file.models.get(model)? {
            ModelSource::Provider(source) => Self::new(model, source, &inputs),
            ModelSource::Scripted { .. } => None,
        };
        called.iter().filter_map(of_model).collect()
    }

    /// A model without a valid address is reported elsewhere, and never called.
    fn new(model: &ModelName, source: &ProviderSource, inputs: &BTreeSet<&str>) -> Option<Self> {
        let to = Destination::new(source.provider, source.base_url.as_deref())?;
        let headers = source.params.headers.iter().map(|(_, variable)| (variable.as_str(), SentAs::Header));
        let inputs = inputs.iter().map(|variable| (*variable, SentAs::Input));
        let key = providers::key_env(source).map(|variable| (variable, SentAs::Key));
        let mut variables = SentVariables::new();
        for (variable, sent_as) in inputs.chain(headers).chain(key) {
            variables.entry(variable.to_owned()).or_default().insert(sent_as);
        }
        Some(Self { model: model.clone(), provider: source.provider, to, variables })
    }

    /// The server.
    pub const fn host(&self) -> &HostName {
        &self.to.host
    }

    /// Whether no variable leaves but this one, as a key.
    fn has_only_key(&self, key: Option<&str>) -> bool {
        self.variables
            .iter()
            .all(|(variable, sent_as)| Some(variable.as_str()) == key && sent_as.iter().eq([&SentAs::Key]))
    }

    /// Whether it needs no permission: a provider gets its own key, or a server on this machine gets no variable.
    fn is_harmless(&self) -> bool {
        (self.to.is_own && self.has_only_key(usual_key_env(self.provider)))
            || (self.host().is_loopback() && self.variables.is_empty())
    }

    /// Whether the user's own environment sends this key to this address.
    fn is_in_environment(&self, allowed: &AllowedHosts) -> bool {
        let (base_url, key) = match self.provider {
            ModelProvider::OpenAi | ModelProvider::OpenAiChat | ModelProvider::OpenAiCompatible => {
                (allowed.open_ai_base_url(), "OPENAI_API_KEY")
            }
            ModelProvider::Anthropic => (allowed.anthropic_base_url(), "ANTHROPIC_API_KEY"),
            ModelProvider::Gemini | ModelProvider::Ollama => return false,
        };
        self.has_only_key(Some(key)) && base_url.is_some_and(|url| self.to.is_below(url))
    }

    /// Whether the user allows all of it.
    pub fn is_allowed(&self, allowed: &AllowedHosts, answers: &FileAnswers) -> bool {
        self.is_harmless()
            || allowed.allow(self.host())
            || answers.allow(self.host(), &self.variables)
            || self.is_in_environment(allowed)
    }

    /// What goes where, for people.
    pub fn line(&self) -> String {
        let Self { model, variables, .. } = self;
        let how = |sent_as: &BTreeSet<SentAs>| {
            sent_as.iter().map(|sent_as| sent_as.as_str()).collect::<Vec<_>>().join(" and ")
        };
        let what: Vec<String> =
            variables.iter().map(|(variable, sent_as)| format!("{variable} ({})", how(sent_as))).collect();
        let what = if what.is_empty() { "prompts".to_owned() } else { what.join(", ") };
        format!("{what} to {} for model `{model}`", self.host())
    }
}

/// The lines of what a tree would send, if it sends any variable.
pub fn sent(all: &[Egress]) -> Vec<String> {
    let sending = all.iter().filter(|egress| !egress.variables.is_empty());
    sending.map(|egress| format!("send {}", egress.line())).collect()
}

/// What a file would send and the user has not allowed.
pub struct EgressQuestion<'e> {
    /// The file's name, which may come from a stranger's home.
    file: &'e str,
    answers: FileAnswers,
    asked: Vec<&'e Egress>,
}

impl<'e> EgressQuestion<'e> {
    /// None if everything is allowed.
    pub fn about(
        text: &'e Text,
        all: &'e [Egress],
        allowed: &AllowedHosts,
    ) -> Result<Option<Self>, StateFileError> {
        let answers = FileAnswers::read(&text.hash())?;
        let asked: Vec<&Egress> = all.iter().filter(|egress| !egress.is_allowed(allowed, &answers)).collect();
        Ok((!asked.is_empty()).then_some(Self { file: &text.name, answers, asked }))
    }

    /// What stays refused unless the user allows it.
    #[must_use]
    pub fn refused(&self) -> &[&'e Egress] {
        &self.asked
    }

    /// Its hosts.
    #[must_use]
    pub fn hosts(&self) -> BTreeSet<&'e HostName> {
        hosts(&self.asked)
    }

    /// Records a yes. One that cannot be recorded holds for this time.
    pub fn accept(mut self) {
        if let Err(error) = self.answers.add(&self.asked, self.file) {
            tracing::warn!("your answer could not be saved: {}", with_causes(&error));
        }
    }
}

impl fmt::Display for EgressQuestion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} would send", self.file.escape_debug())?;
        self.asked.iter().try_for_each(|egress| writeln!(f, "  - {}", egress.line()))?;
        f.write_str("and you have not allowed that.")
    }
}

/// The hosts that these go to.
#[must_use]
pub fn hosts<'e>(all: &[&'e Egress]) -> BTreeSet<&'e HostName> {
    all.iter().map(|egress| egress.host()).collect()
}
