//! Prices in a tree file that are lower than what the provider charges at its own address. A ceiling in dollars would not
//! hold with them, and a stranger may have written the file: the user's own configuration must also say so.

use spinney::tree_file::{FileError, ModelSource, ProviderSource};
use spinney_drivers::prices::{PriceTable, PriceTableError};
use spinney_drivers::providers::Destination;
use spinney_kernel::budget::Price;
use spinney_kernel::primitives::Time;

use super::source::TreeSource;
use crate::project::UsersSetting;
use crate::user::configuration::{Configuration, written_price};
use crate::user::settings::SettingChange;

/// Calls whose holds are compared: prices may rise with the size of the input.
const CALLS: [(u64, u64); 5] = [(1_000_000, 0), (0, 1_000_000), (1_000, 1_000), (150_000, 1), (300_000, 1)];

/// A price that is too low to be believed.
pub struct LowPrice {
    /// Where it is, and why.
    pub error: FileError,
    /// The setting by which the user says that it is right.
    pub setting: UsersSetting,
}

impl LowPrice {
    /// As an error of the file, with how the user changes the setting.
    #[must_use]
    pub fn with_help(self, setting: fn(&UsersSetting) -> String) -> FileError {
        let own_price = setting(&self.setting);
        self.error.with_help(format!("delete `price`; or, if this is what you pay, {own_price}"))
    }
}

/// One for each model whose price in the file is too low.
pub fn find(
    source: &TreeSource,
    configuration: &Configuration,
    now: Time,
) -> Result<Vec<LowPrice>, PriceTableError> {
    let mut found = Vec::new();
    let mut table = None;
    for model in source.called.iter().filter(|model| source.file.writes_price(model)) {
        let price = source.file.definition.models.get(model).and_then(|spec| spec.price.as_ref());
        let (Some(ModelSource::Provider(by)), Some(price)) = (source.file.models.get(model), price) else {
            continue;
        };
        if !is_at_its_provider(by) {
            continue;
        }
        if table.is_none() {
            table = Some(PriceTable::embedded()?);
        }
        let charged = table.as_ref().zip(by.in_catalog());
        let charged = charged.and_then(|(table, provider)| table.price(provider, &by.model).ok());
        let own = configuration.price(&by.model);
        let Some(least) = own.as_ref().or(charged).filter(|least| is_lower(price, least, now)) else {
            continue;
        };
        let message = format!(
            "the price of `{model}` is lower than what {} charges for {} ({} by {}), so a ceiling in dollars would not hold",
            by.provider.as_str(),
            by.model,
            written_price(least),
            if own.is_some() { "your configuration" } else { "the price table" },
        );
        let setting = UsersSetting {
            change: SettingChange::Set,
            name: format!("prices.{}", by.model),
            values: vec![written_price(price)],
        };
        found.push(LowPrice { error: source.file.bad_model(model, "price", message), setting });
    }
    Ok(found)
}

fn is_at_its_provider(source: &ProviderSource) -> bool {
    Destination::new(source.provider, source.base_url.as_deref()).is_some_and(|to| to.is_own)
}

fn is_lower(price: &Price, least: &Price, now: Time) -> bool {
    CALLS.iter().any(|(input, output)| {
        price.worst_case(*input, *output, now) < least.worst_case(*input, *output, now)
    })
}
