//! The models that a program calls: each is added to the tree when it is first named, with its price. One without a
//! price is refused, because nobody could say what it costs at most.

use std::collections::BTreeMap;

use spinney::Tree;
use spinney::tree::RequestError;
use spinney_drivers::prices::PriceTable;
use spinney_kernel::budget::Price;
use spinney_kernel::definition::{ModelSpec, Refusal};
use spinney_kernel::rules::request::AddModel;
use spinney_kernel::words::{By, ModelName};
use tokio::sync::Mutex;

use super::bytes::{GatewayError, GatewayErrorKind, ProviderApi};

/// Which models may be called, and where their prices come from.
#[derive(Clone, Debug, Default)]
pub struct ModelRules {
    /// Names as programs write them; `*` at the end stands for the rest. Everything is allowed if empty.
    pub allowed: Vec<String>,
    /// Prices that a person gave, by name; these come first.
    pub prices: BTreeMap<String, Price>,
    /// Whose prices in the table apply where the address is not the provider's own.
    pub prices_of: Option<String>,
}

/// A model that may be called.
#[derive(Clone, Debug)]
pub(super) struct PricedModel {
    pub(super) name: ModelName,
    /// The most tokens of input and output together, if known.
    pub(super) context: Option<u64>,
}

/// The models of a run.
pub(super) struct Models {
    rules: ModelRules,
    table: PriceTable,
    added: Mutex<BTreeMap<String, PricedModel>>,
}

impl Models {
    pub(super) fn new(rules: ModelRules, table: PriceTable) -> Self {
        Self { rules, table, added: Mutex::default() }
    }

    /// The tree's model for a name on the wire. `is_own` says whether the address is the provider's own.
    pub(super) async fn find(
        &self,
        tree: &Tree,
        api: ProviderApi,
        wire: &str,
        is_own: bool,
    ) -> Result<PricedModel, GatewayError> {
        if !self.is_allowed(wire) {
            let allowed = self.rules.allowed.join(", ");
            return Err(refused(format!("model {wire} is not allowed in this run: use one of {allowed}")));
        }
        let full = format!("{}/{wire}", api.price_name());
        let Ok(name) = full.parse::<ModelName>() else {
            return Err(refused(format!("{wire:?} cannot be the name of a model")));
        };
        let mut added = self.added.lock().await;
        if let Some(known) = added.get(&full) {
            return Ok(known.clone());
        }
        let (price, context) = self.price(api, wire, is_own)?;
        let spec = ModelSpec { price: Some(price), context, cache_wait_ms: Some(0), ..ModelSpec::default() };
        let add = AddModel { model: name.clone(), spec: Box::new(spec) };
        match tree.request(By::Person, add).await {
            // An earlier process added it, with the price of then.
            Ok(_) | Err(RequestError::Refused(Refusal::ModelExists { .. })) => {}
            Err(RequestError::Refused(refusal)) => return Err(refused(refusal)),
            Err(error) => return Err(GatewayError::new(GatewayErrorKind::Ended, error.to_string())),
        }
        let model = PricedModel { name, context };
        added.insert(full, model.clone());
        Ok(model)
    }

    fn is_allowed(&self, wire: &str) -> bool {
        let fits = |allowed: &String| match allowed.strip_suffix('*') {
            Some(beginning) => wire.starts_with(beginning),
            None => wire == allowed,
        };
        self.rules.allowed.is_empty() || self.rules.allowed.iter().any(fits)
    }

    fn price(
        &self,
        api: ProviderApi,
        wire: &str,
        is_own: bool,
    ) -> Result<(Price, Option<u64>), GatewayError> {
        if let Some(price) = self.rules.prices.get(wire) {
            // Its context is the same whoever sells it.
            let context = self.table.find(api.price_name(), wire).ok().and_then(|model| model.context);
            return Ok((price.clone(), context));
        }
        let provider = match (&self.rules.prices_of, is_own) {
            (Some(provider), false) => provider.as_str(),
            (_, true) => api.price_name(),
            (None, false) => {
                let provider = api.price_name();
                return Err(refused(format!(
                    "the price of model {wire} at your own base URL is unknown: run with --prices-of {provider} if \
                     it charges what {provider} does, or with --price {wire}=IN,OUT in dollars per million tokens"
                )));
            }
        };
        let found = self
            .table
            .find(provider, wire)
            .and_then(|model| self.table.price(provider, wire).map(|price| (price.clone(), model.context)));
        found.map_err(|none| {
            refused(format!(
                "{none}: run with --price {wire}=IN,OUT in dollars per million tokens, or use another model"
            ))
        })
    }
}

fn refused(message: impl std::fmt::Display) -> GatewayError {
    GatewayError::new(GatewayErrorKind::Refused, format!("spinney: {message}"))
}
