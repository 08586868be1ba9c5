//! The models that a program calls: each is added to the tree when it is first named, with its price. One without a
//! price is refused, because nobody could say what it costs at most.

use std::collections::BTreeMap;
use std::sync::{Mutex as StdMutex, MutexGuard, PoisonError};

use spinney::Tree;
use spinney::bus::{Watch, WatchFault};
use spinney::tree::RequestError;
use spinney_drivers::prices::PriceTable;
use spinney_kernel::budget::{Price, usd};
use spinney_kernel::definition::{ModelSpec, Refusal};
use spinney_kernel::record::Event;
use spinney_kernel::rules::request::AddModel;
use spinney_kernel::words::{By, ModelName, Seq};
use tokio::sync::Mutex;

use super::wire::{GatewayError, GatewayErrorKind, ProviderApi};

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
    /// What those cost.
    prices: StdMutex<BTreeMap<ModelName, Price>>,
}

impl Models {
    pub(super) fn new(rules: ModelRules, table: PriceTable) -> Self {
        Self { rules, table, added: Mutex::default(), prices: StdMutex::default() }
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
        // Before the first call, so that whoever reads its events finds it.
        self.prices().insert(name.clone(), price.clone());
        let spec =
            ModelSpec { price: Some(price.clone()), context, cache_wait_ms: Some(0), ..ModelSpec::default() };
        let add = AddModel { model: name.clone(), spec: Box::new(spec) };
        match tree.request(By::Person, add).await {
            Ok(_) => {}
            // An earlier process added it, with the price of then.
            Err(RequestError::Refused(Refusal::ModelExists { .. })) => {
                same_price(tree, &name, wire, &price).await?;
            }
            Err(RequestError::Refused(refusal)) => return Err(refused(refusal)),
            Err(error) => return Err(GatewayError::new(GatewayErrorKind::Ended, error.to_string())),
        }
        let model = PricedModel { name, context };
        added.insert(full, model.clone());
        Ok(model)
    }

    /// What a model costs that was asked for in this process.
    pub(super) fn price_of(&self, model: &ModelName) -> Option<Price> {
        self.prices().get(model).cloned()
    }

    fn prices(&self) -> MutexGuard<'_, BTreeMap<ModelName, Price>> {
        self.prices.lock().unwrap_or_else(PoisonError::into_inner)
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
            return Ok((with_cache_writes(api, price.clone()), context));
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

/// Anthropic charges more for input that it writes to a cache, which a person who names two rates does not say: a quarter
/// more for minutes, twice as much for an hour.
fn with_cache_writes(api: ProviderApi, mut price: Price) -> Price {
    if api == ProviderApi::Anthropic {
        let input = price.input_per_mtok;
        let write = *price.cache_write_per_mtok.get_or_insert(input.saturating_add(input.div_ceil(4)));
        price.cache_write_1h_per_mtok.get_or_insert(input.saturating_mul(2).max(write));
    }
    price
}

/// Refuses a model that costs something else than when it was added to this tree: the tree would book at the old price.
async fn same_price(tree: &Tree, name: &ModelName, wire: &str, now: &Price) -> Result<(), GatewayError> {
    let then = price_in(tree, name).await?;
    let is_same = rates(&then) == rates(now) && then.tiers == now.tiers && then.changes == now.changes;
    if is_same {
        return Ok(());
    }
    let (then, now) = (written(&then), written(now));
    Err(refused(format!(
        "model {wire} has the price {then} in this run and {now} now, in dollars per million tokens (input, output, \
         cached input, cache writes, those for an hour, reasoning): resume with --price and what it cost then, or start a new run"
    )))
}

/// What a model of the tree costs.
async fn price_in(tree: &Tree, name: &ModelName) -> Result<Price, GatewayError> {
    let mut events = tree.watch(Watch::after(Seq(0)));
    loop {
        match events.next_event().await {
            Some(Ok(traced)) => match &traced.recorded.event {
                Event::ModelAdded { model, spec } if model == name => {
                    return spec
                        .price
                        .clone()
                        .ok_or_else(|| refused(format!("model {name} has no price in this run")));
                }
                _ => {}
            },
            Some(Err(WatchFault::TooSlow { seen })) => events = tree.watch(Watch::after(seen)),
            Some(Err(fault)) => return Err(GatewayError::new(GatewayErrorKind::Ended, fault.to_string())),
            None => return Err(refused(format!("the price of model {name} in this run is not known"))),
        }
    }
}

/// All rates of a price, whether it names them or not, in the order of `--price`.
fn rates(price: &Price) -> [u64; 6] {
    let (input, output) = (price.input_per_mtok, price.output_per_mtok);
    let cached = price.cached_input_per_mtok.unwrap_or(input);
    let write = price.cache_write_per_mtok.unwrap_or(input);
    let write_1h = price.cache_write_1h_per_mtok.unwrap_or(write);
    [input, output, cached, write, write_1h, price.reasoning_per_mtok.unwrap_or(output)]
}

fn written(price: &Price) -> String {
    let mut text = rates(price).map(usd).join(",");
    if !price.tiers.is_empty() {
        text.push_str(" (more for long inputs)");
    }
    if !price.changes.is_empty() {
        text.push_str(" (other prices at other times)");
    }
    text
}

fn refused(message: impl std::fmt::Display) -> GatewayError {
    GatewayError::new(GatewayErrorKind::Refused, format!("spinney: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_of_two_rates_includes_what_anthropic_charges_for_cache_writes() {
        let anthropic = |price| with_cache_writes(ProviderApi::Anthropic, price);
        let writes = |price: Price| (price.cache_write_per_mtok, price.cache_write_1h_per_mtok);
        assert_eq!(
            writes(anthropic(Price::flat(3_000_000_000, 15_000_000_000))),
            (Some(3_750_000_000), Some(6_000_000_000))
        );
        // A part of a nano-dollar is a whole one.
        assert_eq!(writes(anthropic(Price::flat(3, 0))), (Some(4), Some(6)));
        assert_eq!(writes(anthropic(Price::flat(u64::MAX, 0))), (Some(u64::MAX), Some(u64::MAX)));
        // What a person says stays.
        let named = Price { cache_write_per_mtok: Some(9), ..Price::flat(3, 0) };
        assert_eq!(writes(anthropic(named)), (Some(9), Some(9)));
        assert_eq!(writes(with_cache_writes(ProviderApi::OpenAi, Price::flat(3, 0))), (None, None));
    }

    #[test]
    fn a_price_that_a_person_gave_is_used_with_cache_writes() {
        let prices = [("m".to_owned(), Price::flat(4, 8))].into();
        let rules = ModelRules { prices, ..ModelRules::default() };
        let models = Models::new(rules, PriceTable::embedded().unwrap());
        let (price, _) = models.price(ProviderApi::Anthropic, "m", false).unwrap();
        assert_eq!((price.cache_write_per_mtok, price.cache_write_1h_per_mtok), (Some(5), Some(8)));
    }
}
