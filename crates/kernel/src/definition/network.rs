//! What an agent's own effects may connect to. It only shrinks downwards, which is decided by the text of the rules;
//! drivers enforce it for each connection, after names are resolved.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Refusal;
use crate::primitives::{HostRule, RemoteHost, limit};

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    #[default]
    Denied,
    /// At least one.
    Hosts(BTreeSet<HostRule>),
    /// Every host. Journals have it from before rules named hosts; nothing grants it.
    #[serde(rename = "granted")]
    Any,
}

impl Network {
    #[must_use]
    pub fn hosts(rules: impl IntoIterator<Item = HostRule>) -> Self {
        let rules: BTreeSet<HostRule> = rules.into_iter().collect();
        if rules.is_empty() { Self::Denied } else { Self::Hosts(rules) }
    }

    #[must_use]
    pub fn is_denied(&self) -> bool {
        match self {
            Self::Denied => true,
            Self::Hosts(rules) => rules.is_empty(),
            Self::Any => false,
        }
    }

    /// The rules, if it has any.
    pub fn rules(&self) -> impl Iterator<Item = &HostRule> {
        match self {
            Self::Hosts(rules) => Some(rules),
            Self::Denied | Self::Any => None,
        }
        .into_iter()
        .flatten()
    }

    /// Whether a rule covers a port of a host, by name alone.
    #[must_use]
    pub fn has(&self, host: &RemoteHost, port: u16) -> bool {
        matches!(self, Self::Any) || self.rules().any(|rule| rule.has(host, port))
    }

    /// What both have.
    #[must_use]
    pub fn with(&self, more: &Self) -> Self {
        match (self, more) {
            (Self::Any, _) | (_, Self::Any) => Self::Any,
            _ => Self::hosts(self.rules().chain(more.rules()).cloned()),
        }
    }

    /// What `self` has and `other` does not cover by one rule.
    #[must_use]
    pub fn beyond(&self, other: &Self) -> Self {
        match (self, other) {
            (_, Self::Any) => Self::Denied,
            (Self::Any, _) => Self::Any,
            _ => Self::hosts(
                self.rules().filter(|rule| !other.rules().any(|wider| wider.covers(rule))).cloned(),
            ),
        }
    }

    pub(super) fn check(&self) -> Result<(), Refusal> {
        let (count, count_max) = (self.rules().count(), limit::HOST_RULES_MAX);
        if count > count_max {
            return Err(Refusal::TooMany { what: "hosts".to_owned(), count, count_max });
        }
        Ok(())
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => return f.write_str("every host"),
            _ if self.is_denied() => return f.write_str("no host"),
            Self::Hosts(_) | Self::Denied => {}
        }
        for (at, rule) in self.rules().enumerate() {
            let gap = if at == 0 { "" } else { ", " };
            write!(f, "{gap}`{rule}`")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        match text {
            "any" => Network::Any,
            _ => Network::hosts(
                text.split_whitespace().map(|rule| rule.parse().unwrap_or_else(|error| panic!("{error}"))),
            ),
        }
    }

    /// G26 (by text): what a child asks for beyond its parent's hosts.
    #[test]
    fn g26_hosts_are_covered_by_one_rule_of_the_parent() {
        for (wanted, parent, beyond) in [
            ("", "", ""),
            ("a.org", "", "a.org"),
            ("a.org", "a.org", ""),
            ("b.a.org:443", "*.a.org", ""),
            ("a.org b.org", "a.org", "b.org"),
            ("*.a.org", "b.a.org", "*.a.org"),
            ("a.org", "a.org:80 a.org:443", "a.org"),
            ("a.org", "any", ""),
            ("any", "a.org", "any"),
            ("any", "any", ""),
        ] {
            assert_eq!(network(wanted).beyond(&network(parent)), network(beyond), "{wanted} in {parent}");
        }
    }

    #[test]
    fn old_journals_have_every_host_or_none() {
        for (json, network) in [
            (r#""denied""#, Network::Denied),
            (r#""granted""#, Network::Any),
            (r#"{"hosts":["b.org:22","*.a.org"]}"#, network("*.a.org b.org:22")),
        ] {
            assert_eq!(
                serde_json::from_str::<Network>(json).unwrap_or_else(|error| panic!("{error}")),
                network
            );
            assert_eq!(serde_json::to_string(&network).unwrap_or_else(|error| panic!("{error}")), json);
        }
    }
}
