//! Names in the requests of programs: fields, betas, query parameters, and the types of tools, parts, items and edits, as
//! people write them to allow one.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The longest name that is printed or saved, in characters.
const NAME_CHARS_MAX: usize = 128;

/// Names that the user has allowed although their cost has no bound.
pub type Permitted = BTreeSet<RequestName>;

/// Where a name appears in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameKind {
    /// A top-level field of the body.
    Field,
    /// A value of `anthropic-beta` or `openai-beta`.
    Beta,
    /// A query parameter.
    Query,
    /// The type of a tool.
    Tool,
    /// The type of a message part.
    Block,
    /// The type of a Responses item.
    Item,
    /// The type of a context edit.
    Edit,
}

/// A name in a request, as the user writes it to allow it: `multi_agent`, `beta:NAME`, `tool:TYPE`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestName {
    kind: NameKind,
    name: String,
}

/// A text that is not a name in a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a name in a request: write the name of a field, or beta:NAME, query:NAME, tool:TYPE, block:TYPE, item:TYPE or edit:TYPE"
)]
pub struct NotRequestName(String);

impl NameKind {
    /// All but fields, whose names have no prefix.
    pub const PREFIXED: [Self; 6] =
        [Self::Beta, Self::Query, Self::Tool, Self::Block, Self::Item, Self::Edit];

    /// The word before the colon.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Field => "field",
            Self::Beta => "beta",
            Self::Query => "query",
            Self::Tool => "tool",
            Self::Block => "block",
            Self::Item => "item",
            Self::Edit => "edit",
        }
    }
}

impl RequestName {
    /// A name as a program sent it. None if the user could not write this name: parsing it would give another name or none.
    #[must_use]
    pub fn new(kind: NameKind, name: &str) -> Option<Self> {
        let named = Self { kind, name: name.to_owned() };
        named.to_string().parse().ok().filter(|read| *read == named)
    }
}

impl fmt::Display for RequestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            NameKind::Field => f.write_str(&self.name),
            kind => write!(f, "{}:{}", kind.as_str(), self.name),
        }
    }
}

impl FromStr for RequestName {
    type Err = NotRequestName;

    fn from_str(text: &str) -> Result<Self, NotRequestName> {
        let (kind, name) = match text.split_once(':') {
            None => (Some(NameKind::Field), text),
            Some((prefix, name)) => {
                (NameKind::PREFIXED.into_iter().find(|kind| kind.as_str() == prefix), name)
            }
        };
        let is_name = !name.is_empty()
            && name.chars().count() <= NAME_CHARS_MAX
            && !name.contains(|letter: char| letter.is_control() || letter.is_whitespace());
        match kind.filter(|_| is_name) {
            Some(kind) => Ok(Self { kind, name: name.to_owned() }),
            None => {
                Err(NotRequestName(text.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_written_as_it_is_read() {
        for text in
            ["multi_agent", "beta:context-1m-2025-08-07", "query:beta", "tool:web_search", "item:program"]
        {
            assert_eq!(text.parse::<RequestName>().unwrap().to_string(), text);
        }
        for wrong in ["", "beta:", "thing:x", "a b", "beta:a\nb", ":x"] {
            assert!(wrong.parse::<RequestName>().is_err(), "{wrong:?}");
        }
    }

    /// A name that reads as another one, or as none, is not one that a person can allow.
    #[test]
    fn a_name_of_a_program_is_one_that_a_person_can_write() {
        assert!(RequestName::new(NameKind::Field, "multi_agent").is_some());
        let long = "x".repeat(NAME_CHARS_MAX + 1);
        for odd in ["", "a b", "tool:web_search", "x:y", "multi_agent\u{1}", "a\nb", &long] {
            assert_eq!(RequestName::new(NameKind::Field, odd), None, "{odd:?}");
        }
        assert!(
            RequestName::new(NameKind::Tool, "tool:x").is_some_and(|name| name.to_string() == "tool:tool:x")
        );
    }
}
