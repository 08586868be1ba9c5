//! The names in a request whose cost the gateway can bound: fields, betas, query parameters, and the types of tools,
//! parts, items and edits. The list is data with a date, `allow_list.json`; a newer SDK or program may send names that
//! are not on it yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;
use spinney_drivers::wire::NameKind;

use super::route::{CallFormat, ProviderApi};

const DATA: &str = include_str!("allow_list.json");

static LIST: LazyLock<AllowList> = LazyLock::new(|| match serde_json::from_str(DATA) {
    Ok(list) => list,
    Err(error) => unreachable!("allow_list.json is checked by a test: {error}"),
});

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowList {
    /// When it was last compared with the providers' SDKs and with agent programs.
    pub date: String,
    /// The versions that it was compared with.
    pub seen_with: BTreeMap<String, String>,
    messages: FormatNames,
    chat: FormatNames,
    responses: FormatNames,
    gemini: FormatNames,
    betas: Betas,
    query: Queries,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FormatNames {
    fields: Names,
    /// The fields of an object of settings, of which only Gemini has one.
    #[serde(default)]
    config: Names,
    blocks: Names,
    #[serde(default)]
    items: Names,
    tools: Names,
    edits: Names,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Betas {
    anthropic: Names,
    openai: Names,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Queries {
    anthropic: Names,
    openai: Names,
    gemini: Names,
}

/// Formats without something have no names for it.
static NONE: Names = Names { allowed: BTreeSet::new(), refused: BTreeMap::new() };

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Names {
    allowed: BTreeSet<String>,
    /// Names known to cost more than their hold, with the reason and what to do instead.
    refused: BTreeMap<String, String>,
}

/// What the list says about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listed {
    Allowed,
    Refused(&'static str),
    Unlisted,
}

impl AllowList {
    #[must_use]
    pub fn get() -> &'static Self {
        &LIST
    }

    pub(super) fn find(&'static self, format: CallFormat, kind: NameKind, name: &str) -> Listed {
        self.names(format, kind).find(name)
    }

    /// What it says about a field of Gemini's `generationConfig`.
    pub(super) fn find_config(&'static self, name: &str) -> Listed {
        self.gemini.config.find(name)
    }

    /// The fields of Gemini, on both levels.
    pub(super) fn gemini_names(&self) -> impl Iterator<Item = &str> {
        [&self.gemini.fields, &self.gemini.config].into_iter().flat_map(Names::all)
    }

    /// Whether the list has a name, for a test that compares it with the SDKs and programs.
    #[must_use]
    pub fn knows(&'static self, format: CallFormat, kind: NameKind, name: &str) -> bool {
        let is_setting = kind == NameKind::Field && format == CallFormat::Gemini;
        self.find(format, kind, name) != Listed::Unlisted
            || (is_setting && self.find_config(name) != Listed::Unlisted)
    }

    fn names(&self, format: CallFormat, kind: NameKind) -> &Names {
        let names = match format {
            CallFormat::Messages => &self.messages,
            CallFormat::Chat => &self.chat,
            CallFormat::Responses => &self.responses,
            CallFormat::Gemini => &self.gemini,
        };
        match kind {
            NameKind::Field => &names.fields,
            NameKind::Tool => &names.tools,
            NameKind::Block => &names.blocks,
            NameKind::Item => &names.items,
            NameKind::Edit => &names.edits,
            NameKind::Query => match format.api() {
                ProviderApi::Anthropic => &self.query.anthropic,
                ProviderApi::OpenAi => &self.query.openai,
                ProviderApi::Gemini => &self.query.gemini,
            },
            NameKind::Beta => match format.api() {
                ProviderApi::Anthropic => &self.betas.anthropic,
                ProviderApi::OpenAi => &self.betas.openai,
                ProviderApi::Gemini => &NONE,
            },
        }
    }
}

impl Names {
    fn find(&'static self, name: &str) -> Listed {
        if self.allowed.contains(name) {
            return Listed::Allowed;
        }
        self.refused.get(name).map_or(Listed::Unlisted, |why| Listed::Refused(why))
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        self.allowed.iter().chain(self.refused.keys()).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_and_no_name_is_both_allowed_and_refused() {
        let list = AllowList::get();
        assert_eq!(list.date.len(), "2026-11-17".len());
        for format in CallFormat::ALL {
            for kind in NameKind::PREFIXED.into_iter().chain([NameKind::Field]) {
                let names = list.names(format, kind);
                let both: Vec<_> =
                    names.allowed.iter().filter(|name| names.refused.contains_key(*name)).collect();
                assert!(both.is_empty(), "{format:?} {kind:?} {both:?}");
            }
        }
    }
}
