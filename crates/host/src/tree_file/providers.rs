//! The models of providers that a tree file names. API keys come only from the user's variables. Also finds the prices of
//! models, and which models answer from a script.

use std::cell::OnceCell;
use std::sync::Arc;

use spinney::Drivers;
use spinney::tree_file::{FileError, ModelCatalog, ModelSource, ProviderSource, TreeFile};
use spinney_drivers::http::{HttpHeader, HttpLimits, HttpSetupError, ModelKey};
use spinney_drivers::prices::{PriceTable, refused_param};
use spinney_drivers::providers::{ProviderClients, ProviderModel, ProviderSetup, usual_key_env};
use spinney_drivers::wire::WireParams;
use spinney_kernel::budget::Price;
use spinney_kernel::definition::ModelProvider;
use spinney_kernel::primitives::ModelName;

use crate::user::variables::Variables;

/// The price table of this binary, parsed on first use.
#[derive(Default)]
pub struct Catalog(OnceCell<Result<PriceTable, String>>);

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
pub struct Scripted {
    models: Vec<ModelName>,
    extent: ScriptedExtent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScriptedExtent {
    AllModels,
    SomeModels,
}

impl Scripted {
    /// The models that answer from a script, in a tree that also calls these.
    pub fn new(models: Vec<ModelName>, called: &[ModelName]) -> Self {
        let extent = if called.is_empty() { ScriptedExtent::AllModels } else { ScriptedExtent::SomeModels };
        Self { models, extent }
    }

    /// Their names.
    pub fn models(&self) -> &[ModelName] {
        &self.models
    }

    /// Printed once wherever answers come from a script.
    pub fn note(&self) -> Option<String> {
        if self.models.is_empty() {
            return None;
        }
        Some(match self.extent {
            ScriptedExtent::AllModels => "SCRIPTED: answers come from a file, no model is called".to_owned(),
            ScriptedExtent::SomeModels => {
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
pub fn missing<'s>(source: &'s ProviderSource, user: &Variables) -> Option<&'s str> {
    variables(source).find(|variable| !is_set(variable, user))
}

/// The environment variables that a model needs.
pub fn variables(source: &ProviderSource) -> impl Iterator<Item = &str> {
    let headers = source.params.headers.iter().map(|(_, variable)| variable.as_str());
    key_env(source).into_iter().chain(headers)
}

/// Whether a variable has a value that is not blank.
pub fn is_set(variable: &str, user: &Variables) -> bool {
    value(variable, user).is_some()
}

/// Why a model of a provider cannot be called.
pub enum NoModel {
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
pub fn with_models(
    drivers: Drivers,
    file: &TreeFile,
    called: &[ModelName],
    user: &Variables,
) -> Result<(Drivers, Vec<NoModel>), HttpSetupError> {
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
            match model(file, name, source, &clients, user) {
                Ok(model) => drivers = drivers.with_model(name.clone(), Arc::new(model)),
                Err(error) => errors.push(error),
            }
        }
    }
    Ok((drivers, errors))
}

/// A model of a provider.
pub fn model(
    file: &TreeFile,
    name: &ModelName,
    source: &ProviderSource,
    clients: &ProviderClients,
    user: &Variables,
) -> Result<ProviderModel, NoModel> {
    if let Some(variable) = missing(source, user) {
        let key = if source.key_env.is_some() { "key_env" } else { "provider" };
        let remedy = format!(
            "type `export {variable}=…` with your key, or give the model a `script` that answers without one"
        );
        let message = format!("model `{name}` needs a key, but {variable} is not set");
        return Err(NoModel::Key(file.bad_model(name, key, message).with_help(remedy)));
    }
    let params = &source.params;
    if let Some((header, variable)) = params.headers.iter().find(|(_, variable)| is_usual_key(variable)) {
        let message = format!("the header `{header}` would carry the key in {variable}");
        let error = file
            .bad_model(name, "params", message)
            .with_help("name the variable of the key in `key_env` instead");
        return Err(NoModel::Setting(error));
    }
    let headers = params.headers.iter().filter_map(|(header, variable)| {
        Some(HttpHeader::Secret { name: header.clone(), value: value(variable, user)? })
    });
    let setup = ProviderSetup {
        provider: source.provider,
        model: source.model.clone(),
        base_url: source.base_url.clone(),
        key: key_env(source).and_then(|variable| value(variable, user)).map(ModelKey::new),
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

/// Whether a variable usually has the key of some provider.
pub fn is_usual_key(variable: &str) -> bool {
    ModelProvider::ALL.into_iter().any(|by| usual_key_env(by) == Some(variable))
}

/// Whether a value is the key of a provider, under whatever name.
pub fn is_key_value(value: &str, user: &Variables) -> bool {
    let keys = ModelProvider::ALL.into_iter().filter_map(usual_key_env);
    keys.filter_map(|variable| user.get(variable))
        .any(|key| !key.trim().is_empty() && key.trim() == value.trim())
}

/// The environment variable of a model's key, if it needs one.
pub fn key_env(source: &ProviderSource) -> Option<&str> {
    source.key_env.as_deref().or_else(|| usual_key_env(source.provider))
}

/// The value of a variable. Copied lines often leave blanks around a key.
pub fn value(variable: &str, user: &Variables) -> Option<String> {
    let value = user.get(variable)?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}
