//! The models of providers that a tree file names. API keys come only from the environment. Also finds the prices of
//! models, and which models answer from a script.

use std::cell::OnceCell;
use std::sync::Arc;

use anyhow::Result;
use spinney::Drivers;
use spinney::tree_file::{FileError, ModelCatalog, ModelSource, ProviderSource, TreeFile};
use spinney_drivers::http::{HttpHeader, HttpLimits, ModelKey};
use spinney_drivers::prices::{PriceTable, refused_param};
use spinney_drivers::providers::{ProviderClients, ProviderModel, ProviderSetup, usual_key_env};
use spinney_drivers::wire::WireParams;
use spinney_kernel::budget::Price;
use spinney_kernel::words::ModelName;

/// The price table of this binary, parsed on first use.
#[derive(Default)]
pub(crate) struct Catalog(OnceCell<Result<PriceTable, String>>);

impl Catalog {
    fn table(&self) -> Result<&PriceTable, String> {
        let table = self.0.get_or_init(|| PriceTable::embedded().map_err(|error| error.to_string()));
        table.as_ref().map_err(Clone::clone)
    }
}

impl ModelCatalog for Catalog {
    fn price(&self, provider: &str, model: &str) -> Result<Price, String> {
        self.table()?.price(provider, model).cloned().map_err(|error| error.to_string())
    }

    fn context(&self, provider: &str, model: &str) -> Option<u64> {
        self.table().ok()?.find(provider, model).ok()?.context
    }

    fn refused_param(&self, name: &str) -> Option<&'static str> {
        refused_param(name)
    }
}

/// The models of a tree that answer from a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scripted {
    models: Vec<ModelName>,
    extent: Extent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    AllModels,
    SomeModels,
}

impl Scripted {
    /// The models that answer from a script, in a tree that also calls these.
    pub(crate) fn new(models: Vec<ModelName>, called: &[ModelName]) -> Self {
        let extent = if called.is_empty() { Extent::AllModels } else { Extent::SomeModels };
        Self { models, extent }
    }

    pub(crate) fn models(&self) -> &[ModelName] {
        &self.models
    }

    /// Printed once wherever answers come from a script.
    pub(crate) fn note(&self) -> Option<String> {
        if self.models.is_empty() {
            return None;
        }
        Some(match self.extent {
            Extent::AllModels => "SCRIPTED: answers come from a file, no model is called".to_owned(),
            Extent::SomeModels => {
                let names: Vec<String> = self.models.iter().map(|model| format!("`{model}`")).collect();
                format!(
                    "SCRIPTED: answers of {} come from a file, no model is called there",
                    names.join(", ")
                )
            }
        })
    }
}

/// The environment variable that a model needs and that is not set.
pub(crate) fn missing(source: &ProviderSource) -> Option<&str> {
    variables(source).find(|variable| !is_set(variable))
}

/// The environment variables that a model needs.
pub(crate) fn variables(source: &ProviderSource) -> impl Iterator<Item = &str> {
    let headers = source.params.headers.iter().map(|(_, variable)| variable.as_str());
    key_env(source).into_iter().chain(headers)
}

/// Whether a variable has a value that is not blank.
pub(crate) fn is_set(variable: &str) -> bool {
    value(variable).is_some()
}

/// Why a model of a provider cannot be called.
pub(crate) enum NoModel {
    /// Its key is missing here.
    Key(FileError),
    /// The file says something that cannot be.
    Setting(FileError),
}

impl From<NoModel> for FileError {
    fn from(no_model: NoModel) -> Self {
        match no_model {
            NoModel::Key(error) | NoModel::Setting(error) => error,
        }
    }
}

/// Adds the models that providers answer, and returns why others cannot be called.
pub(crate) fn with_models(
    drivers: Drivers,
    file: &TreeFile,
    called: &[ModelName],
) -> Result<(Drivers, Vec<NoModel>)> {
    let mut errors = Vec::new();
    if called.is_empty() {
        return Ok((drivers, errors));
    }
    let clients = ProviderClients::new(HttpLimits::default())?;
    let mut drivers = drivers;
    for (name, source) in &file.models {
        if let ModelSource::Provider(source) = source
            && called.contains(name)
        {
            match model(file, name, source, &clients) {
                Ok(model) => drivers = drivers.with_model(name.clone(), Arc::new(model)),
                Err(error) => errors.push(error),
            }
        }
    }
    Ok((drivers, errors))
}

/// A model of a provider.
pub(crate) fn model(
    file: &TreeFile,
    name: &ModelName,
    source: &ProviderSource,
    clients: &ProviderClients,
) -> Result<ProviderModel, NoModel> {
    if let Some(variable) = missing(source) {
        let key = if source.key_env.is_some() { "key_env" } else { "provider" };
        let remedy = format!(
            "type `export {variable}=…` with the key of your account, or give the model a `script` that answers without one"
        );
        let message = format!("model `{name}` needs a key, and {variable} is not set");
        return Err(NoModel::Key(file.bad_model(name, key, message).with_help(remedy)));
    }
    let params = &source.params;
    let headers = params.headers.iter().filter_map(|(header, variable)| {
        Some(HttpHeader::Secret { name: header.clone(), value: value(variable)? })
    });
    let setup = ProviderSetup {
        provider: source.provider,
        model: source.model.clone(),
        base_url: source.base_url.clone(),
        key: key_env(source).and_then(value).map(ModelKey::new),
        headers: headers.collect(),
        params: WireParams {
            temperature: params.temperature.clone(),
            top_p: params.top_p.clone(),
            stop: params.stop.clone(),
            seed: params.seed,
            effort: params.reasoning_effort.clone(),
            thinking: params.thinking,
            cache: params.cache,
            ..WireParams::default()
        },
    };
    ProviderModel::new(setup, clients).map_err(|fault| {
        let key = if fault.message.contains("base_url") { "base_url" } else { "params" };
        NoModel::Setting(file.bad_model(name, key, fault))
    })
}

/// The environment variable of a model's key, if it needs one.
pub(crate) fn key_env(source: &ProviderSource) -> Option<&str> {
    source.key_env.as_deref().or_else(|| usual_key_env(source.provider))
}

/// The value of a variable. Copied lines often leave blanks around a key.
#[expect(clippy::disallowed_methods, reason = "keys come from the environment and nowhere else")]
fn value(variable: &str) -> Option<String> {
    let value = std::env::var(variable).ok()?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}
