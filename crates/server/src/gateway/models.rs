//! The models that a program calls: each is added to the tree when it is first named, with its price. One without a
//! price is refused, because its maximum cost is unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex as StdMutex, MutexGuard, PoisonError};

use spinney::Tree;
use spinney::bus::{Watch, WatchFault};
use spinney::tree::RequestError;
use spinney_drivers::prices::{NoPrice, PriceTable, PricedName};
use spinney_kernel::budget::{Price, usd};
use spinney_kernel::definition::{ModelSpec, Refusal};
use spinney_kernel::primitives::{Actor, ModelName, Seq};
use spinney_kernel::record::Event;
use spinney_kernel::rules::request::AddModel;
use tokio::sync::Mutex;

use super::wire::{GatewayError, GatewayErrorKind, MissingPrice, NeededPrice, ProviderApi};

/// Which models may be called, and where their prices come from.
#[derive(Clone, Debug, Default)]
pub struct ModelRules {
    /// Names as programs write them; a name may end in `*`. Everything is allowed if empty.
    pub allowed: Vec<String>,
    /// Prices that a person gave; these come first.
    pub prices: BTreeMap<PricedName, Price>,
    /// Whose prices in the table apply where the address is not the provider's own: the first that knows the model, and the
    /// provider of the format after them. No prices are known there if it is empty.
    pub prices_of: Vec<String>,
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
    /// Models without a price, as programs name them.
    unpriced: StdMutex<BTreeSet<String>>,
}

/// Most models without a price that a person is notified of: a program may name any number.
const UNPRICED_MAX: usize = 100;

/// Why a model cannot be called.
#[derive(Debug)]
pub(super) enum NotCallable {
    /// It has no price. The error says how to give it one.
    Unpriced(GatewayError),
    Refused(GatewayError),
}

impl From<GatewayError> for NotCallable {
    fn from(error: GatewayError) -> Self {
        Self::Refused(error)
    }
}

impl Models {
    pub(super) fn new(rules: ModelRules, table: PriceTable) -> Self {
        let (prices, unpriced) = (StdMutex::default(), StdMutex::default());
        Self { rules, table, added: Mutex::default(), prices, unpriced }
    }

    /// The tree's model for a name on the wire. `is_own` says whether the address is the provider's own.
    pub(super) async fn find(
        &self,
        tree: &Tree,
        api: ProviderApi,
        wire: &str,
        is_own: bool,
    ) -> Result<PricedModel, NotCallable> {
        if !self.is_allowed(wire) {
            let allowed = self.rules.allowed.join(", ");
            let error = refused(format!("model {wire} is not allowed in this run: use one of {allowed}"));
            return Err(error.into());
        }
        let full = format!("{}/{wire}", api.price_name());
        let Ok(name) = full.parse::<ModelName>() else {
            return Err(refused(format!("{wire:?} is not a valid model name")).into());
        };
        let mut added = self.added.lock().await;
        if let Some(known) = added.get(&full) {
            return Ok(known.clone());
        }
        let (price, context) = self.price(api, wire, is_own).map_err(NotCallable::Unpriced)?;
        // Before the first call, so readers of its events find it.
        self.prices().insert(name.clone(), price.clone());
        let spec =
            ModelSpec { price: Some(price.clone()), context, cache_wait_ms: Some(0), ..ModelSpec::default() };
        let add = AddModel { model: name.clone(), spec: Box::new(spec) };
        match tree.request(Actor::GATEWAY, add).await {
            Ok(_) => {}
            // An earlier process added it, with the price of then.
            Err(RequestError::Refused(Refusal::ModelExists { .. })) => {
                same_price(tree, &name, wire, &price).await?;
            }
            Err(RequestError::Refused(refusal)) => return Err(refused(refusal).into()),
            Err(error) => return Err(GatewayError::new(GatewayErrorKind::Ended, error.to_string()).into()),
        }
        let model = PricedModel { name, context };
        added.insert(full, model.clone());
        Ok(model)
    }

    /// What a model costs that was asked for in this process.
    pub(super) fn price_of(&self, model: &ModelName) -> Option<Price> {
        self.prices().get(model).cloned()
    }

    /// Whether a model without a price is refused for the first time.
    pub(super) fn is_first_refusal(&self, wire: &str) -> bool {
        let mut unpriced = self.unpriced.lock().unwrap_or_else(PoisonError::into_inner);
        unpriced.len() < UNPRICED_MAX && unpriced.insert(wire.to_owned())
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
        if let Some(price) = PricedName::find(&self.rules.prices, wire) {
            // Its context is the same at every provider.
            let context = self.table.find(api.price_name(), wire).ok().and_then(|model| model.context);
            return Ok((with_cache_writes(api, price.clone()), context.map(context_max)));
        }
        let own = [api.price_name().to_owned()];
        let providers: Vec<&String> = match (is_own, self.rules.prices_of.as_slice()) {
            (true, _) => own.iter().collect(),
            (false, []) => {
                let provider = self.provider_in(wire).unwrap_or_else(|| api.price_name());
                let problem = format!("the price of model {wire} at your base URL is unknown");
                return Err(without_price(problem, wire, NeededPrice::OfProvider(provider.to_owned())));
            }
            (false, named) => named.iter().chain(own.iter().filter(|own| !named.contains(own))).collect(),
        };
        let mut unknown = None;
        for provider in &providers {
            for model in [Some(wire), below(provider, wire).filter(|_| !is_own)].into_iter().flatten() {
                match self.listed(provider, model) {
                    // Another provider, or the name without its provider, may know it.
                    Err(none @ NoPrice::UnknownModel { .. }) => unknown = unknown.or(Some(none)),
                    Err(none) => return Err(unpriced(&none, wire)),
                    Ok(found) => return Ok(found),
                }
            }
        }
        Err(match (unknown, providers.as_slice()) {
            (Some(none), [_]) => unpriced(&none, wire),
            (_, providers) => {
                let names: Vec<&str> = providers.iter().map(|name| name.as_str()).collect();
                let none = format!("no price for `{wire}` from {}", either(&names));
                match self.seller(wire) {
                    Some(seller) => {
                        without_price(none, wire, NeededPrice::OfAnotherProvider(seller.to_owned()))
                    }
                    None => unpriced(&none, wire),
                }
            }
        })
    }

    /// The price and the context of a provider's model.
    fn listed(&self, provider: &str, model: &str) -> Result<(Price, Option<u64>), NoPrice> {
        let context = self.table.find(provider, model)?.context.map(context_max);
        Ok((self.table.price(provider, model)?.clone(), context))
    }

    /// A provider that has a price for a model: the one that its name begins with, or else the first.
    fn seller<'s>(&'s self, wire: &'s str) -> Option<&'s str> {
        let named = self.provider_in(wire).filter(|provider| {
            below(provider, wire).is_some_and(|model| self.table.price(provider, model).is_ok())
        });
        named.or_else(|| self.table.providers().find(|provider| self.table.price(provider, wire).is_ok()))
    }

    /// The provider that a name begins with, if the table has it.
    fn provider_in<'w>(&self, wire: &'w str) -> Option<&'w str> {
        let (provider, _) = wire.split_once('/')?;
        let is_known = !matches!(self.table.find(provider, ""), Err(NoPrice::UnknownProvider { .. }));
        is_known.then_some(provider)
    }
}

/// The name of a model without its provider, as `gpt-4.1` in `openai/gpt-4.1`.
fn below<'w>(provider: &str, wire: &'w str) -> Option<&'w str> {
    let (first, model) = wire.split_once('/')?;
    first.eq_ignore_ascii_case(provider).then_some(model)
}

/// Names with `or` before the last.
fn either(names: &[&str]) -> String {
    match names {
        [before @ .., last] if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        names => names.concat(),
    }
}

fn unpriced(none: &impl std::fmt::Display, wire: &str) -> GatewayError {
    without_price(none.to_string(), wire, NeededPrice::Own)
}

/// Refuses a model until the user says what it costs.
fn without_price(problem: String, wire: &str, needs: NeededPrice) -> GatewayError {
    let helps = match &needs {
        NeededPrice::OfProvider(_) | NeededPrice::OfAnotherProvider(_) | NeededPrice::Own => {
            "the person who started this run can say what it costs, or use another model"
        }
        NeededPrice::AsBefore => "the run needs the price that it started with",
    };
    let error = refused(format!("{problem}: {helps}"));
    let missing = MissingPrice { problem, model: wire.to_owned(), needs };
    GatewayError { unpriced: Some(Box::new(missing)), ..error }
}

/// A context that lists write as a million is up to 1,050,000 tokens; `gpt-4.1` takes 1,047,576.
const fn context_max(listed: u64) -> u64 {
    if listed == 1_000_000 { 1_050_000 } else { listed }
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
    let problem = format!(
        "model {wire} has the price {then} in this run and {now} now, in dollars per million tokens (input, output, \
         cached input, cache writes, one-hour cache writes, reasoning)"
    );
    Err(without_price(problem, wire, NeededPrice::AsBefore))
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

    fn models(prices_of: &[&str]) -> Models {
        let prices_of = prices_of.iter().map(|provider| (*provider).to_owned()).collect();
        Models::new(ModelRules { prices_of, ..ModelRules::default() }, PriceTable::embedded().unwrap())
    }

    /// The providers are asked in their order, and the one of the format last; a name may begin with its provider.
    #[test]
    fn prices_at_another_address_are_those_of_the_providers_that_are_named() {
        let table = PriceTable::embedded().unwrap();
        let found = |models: &Models, api, wire: &str| models.price(api, wire, false).map(|(price, _)| price);
        let open_ai = |model: &str| table.price("openai", model).unwrap().clone();
        let anthropic = with_cache_writes(
            ProviderApi::Anthropic,
            table.price("anthropic", "claude-sonnet-4-5").unwrap().clone(),
        );
        let both = models(&["anthropic", "openai"]);
        assert_eq!(found(&both, ProviderApi::OpenAi, "gpt-4.1"), Ok(open_ai("gpt-4.1")));
        assert_eq!(found(&both, ProviderApi::OpenAi, "openai/gpt-4.1"), Ok(open_ai("gpt-4.1")));
        assert_eq!(found(&both, ProviderApi::OpenAi, "OpenAI/gpt-4.1"), Ok(open_ai("gpt-4.1")));
        let claude = found(&both, ProviderApi::OpenAi, "anthropic/claude-sonnet-4-5").unwrap();
        assert_eq!(rates(&with_cache_writes(ProviderApi::Anthropic, claude)), rates(&anthropic));
        // One provider for both formats: that of the format is the second guess.
        let one = models(&["anthropic"]);
        assert_eq!(found(&one, ProviderApi::OpenAi, "gpt-4.1"), Ok(open_ai("gpt-4.1")));
        // The first that knows a model decides.
        for order in [["cerebras", "openai"], ["openai", "cerebras"]] {
            let first = table.price(order[0], "gpt-oss-120b").unwrap().clone();
            assert_eq!(found(&models(&order), ProviderApi::OpenAi, "gpt-oss-120b"), Ok(first), "{order:?}");
        }
    }

    #[test]
    fn a_model_that_no_named_provider_has_is_refused_with_what_to_do() {
        let refused =
            |models: &Models, wire: &str| models.price(ProviderApi::OpenAi, wire, false).unwrap_err();
        let needed = |models: &Models, wire: &str| {
            let MissingPrice { problem, model, needs } = *refused(models, wire).unpriced.unwrap();
            assert_eq!(model, wire);
            (problem, needs)
        };
        let large = "mistral/mistral-large-latest";
        let another = NeededPrice::OfAnotherProvider("mistral".to_owned());
        assert_eq!(
            needed(&models(&["anthropic"]), large),
            ("no price for `mistral/mistral-large-latest` from anthropic or openai".to_owned(), another)
        );
        let unknown = |model: &str, provider: &str| {
            let problem = format!("the price of model {model} at your base URL is unknown");
            (problem, NeededPrice::OfProvider(provider.to_owned()))
        };
        assert_eq!(needed(&models(&[]), "gpt-4.1"), unknown("gpt-4.1", "openai"));
        assert_eq!(needed(&models(&[]), large), unknown(large, "mistral"));
        assert_eq!(
            refused(&models(&[]), "gpt-4.1").message,
            "spinney: the price of model gpt-4.1 at your base URL is unknown: the person who started this run can say what it costs, or use another model"
        );
        // A provider that lists it without a price has the last word.
        let searches = refused(&models(&["perplexity", "openai"]), "sonar").message;
        assert!(searches.contains("the maximum price of `sonar` is unknown"), "{searches}");
    }

    #[test]
    fn a_price_that_a_person_gave_is_used_with_cache_writes() {
        let prices = [("m".parse().unwrap(), Price::flat(4, 8))].into();
        let rules = ModelRules { prices, ..ModelRules::default() };
        let models = Models::new(rules, PriceTable::embedded().unwrap());
        let (price, _) = models.price(ProviderApi::Anthropic, "m", false).unwrap();
        assert_eq!((price.cache_write_per_mtok, price.cache_write_1h_per_mtok), (Some(5), Some(8)));
    }
}
