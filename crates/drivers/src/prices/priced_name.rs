//! Which models a price is for that a person gives.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of a model, or with `*` at its end all names that begin so.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PricedName(String);

/// A name that no model could fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not the name of a model: `*` stands for the rest of a name and comes last")]
pub struct PricedNameError {
    name: String,
}

impl PricedName {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is for this model.
    #[must_use]
    pub fn fits(&self, model: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => model.starts_with(beginning),
            None => model == self.0,
        }
    }

    /// Whether it is for every model that the other one is for.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self == other || (self.0.ends_with('*') && self.fits(other.0.trim_end_matches('*')))
    }

    /// The price of a model: that of its name, or of the longest beginning of it.
    pub fn find<'p, P>(prices: &'p BTreeMap<Self, P>, model: &str) -> Option<&'p P> {
        let fitting = prices.iter().filter(|(name, _)| name.fits(model));
        fitting.max_by_key(|(name, _)| (!name.0.ends_with('*'), name.0.len())).map(|(_, price)| price)
    }
}

impl TryFrom<String> for PricedName {
    type Error = PricedNameError;

    fn try_from(name: String) -> Result<Self, PricedNameError> {
        let beginning = name.strip_suffix('*').unwrap_or(&name);
        if name.is_empty() || beginning.contains('*') {
            Err(PricedNameError { name })
        } else {
            Ok(Self(name))
        }
    }
}

impl FromStr for PricedName {
    type Err = PricedNameError;

    fn from_str(name: &str) -> Result<Self, PricedNameError> {
        name.to_owned().try_into()
    }
}

impl From<PricedName> for String {
    fn from(name: PricedName) -> Self {
        name.0
    }
}

impl fmt::Display for PricedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> PricedName {
        text.parse().unwrap()
    }

    #[test]
    fn the_longest_name_that_fits_counts() {
        let prices = ["*", "b*", "big-*", "big-1"].map(|text| (name(text), text)).into();
        for (model, found) in [("big-1", "big-1"), ("big-12", "big-*"), ("bit", "b*"), ("x", "*")] {
            assert_eq!(PricedName::find(&prices, model), Some(&found), "{model}");
        }
        assert_eq!(PricedName::find(&[(name("b*"), ())].into(), "x"), None);
    }

    #[test]
    fn a_name_covers_those_that_begin_like_it() {
        assert!(name("b*").covers(&name("big-*")) && name("b*").covers(&name("big")));
        assert!(name("b").covers(&name("b")) && name("b*").covers(&name("b*")));
        assert!(!name("b").covers(&name("b*")) && !name("big-*").covers(&name("b*")));
        for wrong in ["", "b*g", "*b", "b**"] {
            assert!(wrong.parse::<PricedName>().is_err(), "{wrong}");
        }
    }
}
