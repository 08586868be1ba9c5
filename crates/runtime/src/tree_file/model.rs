//! Where a model's answers come from: a provider with its parameters, a script, or a script in place of a provider.
//! API keys never appear here: a file names the environment variable.

use std::ops::RangeInclusive;

use serde_json::Number;
use spinney_kernel::budget::{AMOUNT_MAX, Price};
use spinney_kernel::definition::{CacheTime, ModelProvider, Thinking};
use spinney_kernel::primitives::{ModelName, limit};

use super::ERRORS_MAX;
use super::definition::Reader;
use super::error::FileError;
use super::keys::{ModelKeys, ParamKeys, ThinkingWord};
use super::node::{Key, Kind, Node, OwnedStep, Step};
use super::value_error::{ValueError, cut};

/// Facts about models that are not in the file.
pub trait ModelCatalog {
    /// The price of a provider's model.
    ///
    /// # Errors
    /// Why the price is unknown.
    fn price(&self, provider: &str, model: &str) -> Result<Price, String>;

    /// Its context size: input and output tokens together.
    fn context(&self, provider: &str, model: &str) -> Option<u64>;

    /// Why a request parameter is refused, by the provider's name for it.
    fn refused_param(&self, name: &str) -> Option<&'static str>;
}

/// Knows no model.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCatalog;

impl ModelCatalog for NoCatalog {
    fn price(&self, _: &str, _: &str) -> Result<Price, String> {
        Err("there is no price table here".to_owned())
    }

    fn context(&self, _: &str, _: &str) -> Option<u64> {
        None
    }

    fn refused_param(&self, _: &str) -> Option<&'static str> {
        None
    }
}

/// Where a model's answers come from.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelSource {
    /// From a script.
    Scripted {
        /// The script's path as written; relative to the tree file.
        script: String,
    },
    /// From a provider.
    Provider(Box<ProviderSource>),
}

/// A model of a provider, as a file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderSource {
    /// The provider.
    pub provider: ModelProvider,
    /// The provider's name of the model.
    pub model: String,
    /// Its URL, if not the provider's default.
    pub base_url: Option<String>,
    /// The environment variable with the API key, if it is not the usual one.
    pub key_env: Option<String>,
    /// Parameters of its calls.
    pub params: ModelParams,
    /// The script to use without a key; a path as written.
    pub script: Option<String>,
}

/// Parameters of a model's calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelParams {
    /// From 0 to 2.
    pub temperature: Option<Number>,
    /// From 0 to 1.
    pub top_p: Option<Number>,
    /// How much it reasons, in the provider's own words.
    pub reasoning_effort: Option<String>,
    /// Whether and how much it thinks before it answers.
    pub thinking: Option<Thinking>,
    /// How long its provider keeps prompts that it was asked to cache.
    pub cache: Option<CacheTime>,
    /// Texts at which it stops.
    pub stop: Vec<String>,
    /// Repeatable answers, if the provider supports it.
    pub seed: Option<i64>,
    /// Additional headers, each with the environment variable of its value.
    pub headers: Vec<(String, String)>,
}

/// Most stop texts; no provider allows more.
const STOPS_MAX: usize = 16;
/// Longest stop text, effort, header name and variable name, in bytes.
const WORD_BYTES_MAX: usize = 256;
/// Words in the names of headers that authenticate. The key of a model goes into its own header.
const SECRET_WORDS: [&str; 12] = [
    "apikey",
    "auth",
    "authentication",
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "key",
    "password",
    "secret",
    "session",
    "token",
];
/// Most headers.
const HEADERS_MAX: usize = 16;
const SCRIPTED: &str = "scripted";

impl ProviderSource {
    /// The provider's name in a catalog. Self-hosted servers have no entry there.
    #[must_use]
    pub const fn in_catalog(&self) -> Option<&'static str> {
        match self.provider {
            ModelProvider::OpenAi | ModelProvider::OpenAiChat => Some("openai"),
            ModelProvider::Anthropic => Some("anthropic"),
            ModelProvider::Gemini => Some("gemini"),
            ModelProvider::Ollama | ModelProvider::OpenAiCompatible => None,
        }
    }
}

impl ModelSource {
    /// Whether the file turns its prompt cache off.
    pub(super) fn is_uncached(&self) -> bool {
        matches!(self, Self::Provider(source) if source.params.cache == Some(CacheTime::Off))
    }

    /// The provider and model of its catalog entry; `None` with its own URL, where the price is unknown.
    pub(super) fn in_catalog(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Provider(source) if source.base_url.is_none() => {
                Some((source.in_catalog()?, source.model.as_str()))
            }
            Self::Scripted { .. } | Self::Provider(_) => None,
        }
    }

    /// The entry with the price of a model at a URL of its own, in case that is what its server charges.
    pub(super) fn usual_price(&self, catalog: &dyn ModelCatalog) -> Option<String> {
        let Self::Provider(source) = self else { return None };
        source.base_url.as_ref()?;
        // Servers for many providers have both in their names of models.
        let of_name = source.model.split_once('/');
        let entries = source.in_catalog().map(|provider| (provider, source.model.as_str()));
        let mut entries = entries.into_iter().chain(of_name);
        let found = entries.find(|(provider, model)| catalog.price(provider, model).is_ok());
        found.map(|(provider, model)| format!("{provider}/{model}"))
    }
}

/// Parameters that make a call cost more than its hold, with the reason: otherwise they are unknown keys.
pub(super) fn refused_params(root: &Node, catalog: &dyn ModelCatalog) -> Vec<ValueError> {
    let models = inner(root, "models").into_iter().flat_map(entries);
    let params = models.flat_map(|(name, model)| {
        let params = inner(model, "params").into_iter().flat_map(entries);
        params.map(move |(key, _)| (name, key))
    });
    let refused = params.filter_map(|(name, key)| {
        let reason = catalog.refused_param(&key.text)?;
        let wrong =
            ValueError::new(format!("`{}` is refused", cut(&key.text))).with_help(reason).at(key.place);
        let path = [key.text.as_str(), "params", &name.text, "models"];
        Some(path.into_iter().fold(wrong, |wrong, key| wrong.within(OwnedStep::Key(key.to_owned()))))
    });
    refused.take(ERRORS_MAX).collect()
}

fn inner<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    entries(node).iter().find(|(key, _)| key.text == name).map(|(_, value)| value)
}

fn entries(node: &Node) -> &[(Key, Node)] {
    match &node.kind {
        Kind::Map(entries) => entries,
        Kind::Empty | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::List(_) => &[],
    }
}

impl Reader<'_> {
    /// Where the answers of a model come from. `None` if what says so is wrong and reported.
    pub(super) fn source(&self, name: &ModelName, keys: &ModelKeys) -> Option<ModelSource> {
        let at = |key| [Step::Key("models"), Step::Key(name.as_str()), Step::Key(key)];
        let is_lost = |key| self.is_lost(&["models", name.as_str(), key]);
        if let Some(script) = &keys.script {
            self.noted(self.said(&at("script"), script, limit::NOTE_BYTES_MAX));
        }
        if keys.provider == SCRIPTED {
            return self.scripted(name, keys);
        }
        let named = ModelProvider::ALL.into_iter().find(|provider| provider.as_str() == keys.provider);
        if named.is_none() && !is_lost("provider") {
            let words = ModelProvider::ALL.map(ModelProvider::as_str).join(", ");
            let message = format!("unknown provider `{}`", cut(&keys.provider));
            let help = format!("write one of {SCRIPTED}, {words}");
            self.note(self.wrong(&at("provider"), message).with_help(help));
        } else if named.is_some() && keys.model.is_none() && !is_lost("model") {
            let error = self.wrong(&at("provider"), format!("`model` of model `{name}` is missing"));
            self.note(error.with_help("write the provider's name for it"));
        }
        if let Some(model) = &keys.model {
            self.noted(self.said(&at("model"), model, WORD_BYTES_MAX));
        }
        if let Some(base_url) = &keys.base_url {
            self.noted(self.said(&at("base_url"), base_url, limit::NOTE_BYTES_MAX));
        } else if named == Some(ModelProvider::OpenAiCompatible) && !is_lost("base_url") {
            let error = self.wrong(&at("provider"), format!("`base_url` of model `{name}` is missing"));
            self.note(error.with_help("write the address of the server, such as http://127.0.0.1:8000/v1"));
        }
        if let Some(variable) = &keys.key_env {
            self.noted(self.names_a_variable(&at("key_env"), variable));
        }
        let params = keys.params.as_ref().map(|params| self.params(name, params));
        Some(ModelSource::Provider(Box::new(ProviderSource {
            provider: named?,
            model: keys.model.clone()?,
            base_url: keys.base_url.clone(),
            key_env: keys.key_env.clone(),
            params: params.unwrap_or_default(),
            script: keys.script.clone(),
        })))
    }

    fn scripted(&self, name: &ModelName, keys: &ModelKeys) -> Option<ModelSource> {
        let at = |key| [Step::Key("models"), Step::Key(name.as_str()), Step::Key(key)];
        let written = [
            ("model", keys.model.is_some()),
            ("base_url", keys.base_url.is_some()),
            ("key_env", keys.key_env.is_some()),
            ("params", keys.params.is_some()),
        ];
        for (key, _) in written.into_iter().filter(|(_, is_written)| *is_written) {
            let error = self.wrong(&at(key), format!("a scripted model has no `{key}`"));
            self.note(error.with_help("delete it, or name another `provider`"));
        }
        if keys.script.is_none() && !self.is_lost(&["models", name.as_str(), "script"]) {
            let error = self.wrong(&at("provider"), format!("`script` of model `{name}` is missing"));
            self.note(error.with_help("a scripted model answers from a file: name it"));
        }
        Some(ModelSource::Scripted { script: keys.script.clone()? })
    }

    fn params(&self, name: &ModelName, keys: &ParamKeys) -> ModelParams {
        let at = |key| [Step::Key("models"), Step::Key(name.as_str()), Step::Key("params"), Step::Key(key)];
        self.noted(self.between(&at("temperature"), keys.temperature.as_ref(), 0.0..=2.0));
        self.noted(self.between(&at("top_p"), keys.top_p.as_ref(), 0.0..=1.0));
        if let Some(effort) = &keys.reasoning_effort {
            self.noted(self.said(&at("reasoning_effort"), effort, WORD_BYTES_MAX));
        }
        let budget = self.noted(self.bounded(&at("thinking_budget"), keys.thinking_budget, 1..=AMOUNT_MAX));
        let thinking = match (keys.thinking, budget) {
            (Some(ThinkingWord::Adaptive), Some(_)) => {
                let error = self.wrong(&at("thinking"), "`thinking: adaptive` has no `thinking_budget`");
                self.note(error.with_help("delete one of them"));
                None
            }
            (Some(ThinkingWord::Adaptive), None) => Some(Thinking::Adaptive),
            (None, budget) => budget.map(Thinking::Budget),
        };
        self.noted(self.few_of(&at("stop"), keys.stop.len(), STOPS_MAX));
        for stop in &keys.stop {
            self.noted(self.short(&at("stop"), stop, WORD_BYTES_MAX));
            if stop.is_empty() {
                self.note(self.wrong(&at("stop"), "a text of `stop` is empty").with_help("write something"));
            }
        }
        self.noted(self.few_of(&at("headers"), keys.headers.len(), HEADERS_MAX));
        for (header, variable) in &keys.headers {
            let [models, model, params, headers] = at("headers");
            let path = [models, model, params, headers, Step::Key(header)];
            let is_header = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            if header.is_empty() || header.len() > WORD_BYTES_MAX || !header.bytes().all(is_header) {
                let error = self.wrong(&path, format!("`{}` is not a valid header name", cut(header)));
                self.note(error.with_help("write letters, digits and dashes"));
            }
            let is_secret = |word: &str| SECRET_WORDS.contains(&word.to_ascii_lowercase().as_str());
            if header.split(['-', '_']).any(is_secret) {
                let error = self.wrong(&path, format!("the header `{}` carries a secret", cut(header)));
                self.note(error.with_help("name the variable of the key as `key_env`"));
            }
            self.noted(self.names_a_variable(&path, variable));
        }
        ModelParams {
            temperature: keys.temperature.clone(),
            top_p: keys.top_p.clone(),
            reasoning_effort: keys.reasoning_effort.clone(),
            thinking,
            cache: keys.cache,
            stop: keys.stop.clone(),
            seed: keys.seed,
            headers: keys.headers.clone().into_iter().collect(),
        }
    }

    fn between(
        &self,
        path: &[Step<'_>],
        number: Option<&Number>,
        range: RangeInclusive<f64>,
    ) -> Result<(), FileError> {
        let Some(number) = number else { return Ok(()) };
        if number.as_f64().is_some_and(|number| range.contains(&number)) {
            return Ok(());
        }
        let error = self.wrong(path, format!("{number} is out of bounds"));
        Err(error.with_help(format!("write a number from {} to {}", range.start(), range.end())))
    }

    fn few_of(&self, path: &[Step<'_>], count: usize, most: usize) -> Result<(), FileError> {
        if count <= most {
            return Ok(());
        }
        Err(self.wrong(path, format!("{count} entries are more than {most}")))
    }

    /// A value that is not a variable name may be the key itself, so it is not repeated.
    pub(super) fn names_a_variable(&self, path: &[Step<'_>], variable: &str) -> Result<(), FileError> {
        let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        let begins = variable.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
        if begins && variable.len() <= WORD_BYTES_MAX && variable.bytes().all(is_name) {
            return Ok(());
        }
        let error = self.wrong(path, "this is not the name of an environment variable");
        Err(error.with_help(
            "keys do not belong in files: write a name such as MY_API_KEY, and set it in the shell",
        ))
    }
}
