//! The models that files of other programs name, as models of a tree file. Only models whose price is known are taken:
//! a tree under a cost ceiling needs one.

use spinney_drivers::prices::PriceTable;

/// A model of a provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ModelOfProvider {
    pub(super) provider: &'static str,
    pub(super) model: String,
}

/// What Claude Code calls its models.
const ALIASES: [&str; 4] = ["sonnet", "opus", "haiku", "fable"];

/// The model that a word means.
pub(super) fn find(word: &str, table: &PriceTable) -> Option<ModelOfProvider> {
    let word = word.trim().trim_end_matches("[1m]");
    if ALIASES.contains(&word) {
        return newest(&format!("claude-{word}"), "anthropic", table);
    }
    let known = |provider: &'static str| {
        let model = table.find(provider, word).ok()?;
        model.price().is_ok().then(|| ModelOfProvider { provider, model: word.to_owned() })
    };
    known("anthropic").or_else(|| known("openai"))
}

/// The model of an agent for which no file names one.
pub(super) fn usual(table: &PriceTable) -> ModelOfProvider {
    let model = newest("claude-sonnet", "anthropic", table).or_else(|| newest("gpt-", "openai", table));
    model.unwrap_or_else(|| ModelOfProvider { provider: "anthropic", model: "claude-sonnet-4-5".to_owned() })
}

fn newest(begin: &str, provider: &'static str, table: &PriceTable) -> Option<ModelOfProvider> {
    let names = table.models().filter(|listed| listed.provider == provider && listed.is_current);
    let names = names.map(|listed| listed.model.name.clone()).filter(|name| name.starts_with(begin));
    names.max().map(|model| ModelOfProvider { provider, model })
}
