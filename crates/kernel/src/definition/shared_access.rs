//! Who may read and write which values of a tree's shared store. The most specific rule that covers a name decides; a
//! name without a rule is open to every agent that has the tools.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::bounded;
use crate::definition::{Definition, Refusal};
use crate::primitives::{RoleName, ValueName, ValuePattern};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SharedAccess(BTreeMap<ValuePattern, ValueAccess>);

/// The roles that may read and write a value. `None` is every role, an empty set is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueAccess {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<BTreeSet<RoleName>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<BTreeSet<RoleName>>,
}

impl FromIterator<(ValuePattern, ValueAccess)> for SharedAccess {
    fn from_iter<I: IntoIterator<Item = (ValuePattern, ValueAccess)>>(rules: I) -> Self {
        Self(rules.into_iter().collect())
    }
}

impl SharedAccess {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn rules(&self) -> impl Iterator<Item = (&ValuePattern, &ValueAccess)> {
        self.0.iter()
    }

    /// The rule that decides about a name.
    #[must_use]
    pub fn rule(&self, name: &ValueName) -> Option<&ValueAccess> {
        let covering = self.0.iter().filter_map(|(pattern, rule)| Some((pattern.covers(name)?, rule)));
        covering.max_by_key(|(fixed, _)| *fixed).map(|(_, rule)| rule)
    }

    #[must_use]
    pub fn may_read(&self, role: &RoleName, name: &ValueName) -> bool {
        has(self.rule(name).and_then(|rule| rule.read.as_ref()), role)
    }

    #[must_use]
    pub fn may_write(&self, role: &RoleName, name: &ValueName) -> bool {
        has(self.rule(name).and_then(|rule| rule.write.as_ref()), role)
    }

    pub(super) fn check(&self, definition: &Definition) -> Result<(), Refusal> {
        bounded("shared", self.0.len())?;
        for rule in self.0.values() {
            for roles in [&rule.read, &rule.write].into_iter().flatten() {
                roles.iter().try_for_each(|role| definition.role(role).map(|_| ()))?;
            }
        }
        Ok(())
    }
}

fn has(roles: Option<&BTreeSet<RoleName>>, role: &RoleName) -> bool {
    roles.is_none_or(|roles| roles.contains(role))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_rule_decides() {
        let access: SharedAccess = serde_json::from_str(
            r#"{"*": {"write": []}, "plan*": {"write": ["lead"]}, "plan.draft": {}, "secret": {"read": ["lead"]}}"#,
        )
        .unwrap();
        let (lead, writer): (RoleName, RoleName) = ("lead".parse().unwrap(), "writer".parse().unwrap());
        let may = |role: &RoleName, name: &str| {
            let name: ValueName = name.parse().unwrap();
            (access.may_read(role, &name), access.may_write(role, &name))
        };
        assert_eq!([may(&lead, "other"), may(&writer, "other")], [(true, false), (true, false)]);
        assert_eq!([may(&lead, "plan"), may(&writer, "plan.b")], [(true, true), (true, false)]);
        assert_eq!(may(&writer, "plan.draft"), (true, true));
        assert_eq!([may(&lead, "secret"), may(&writer, "secret")], [(true, true), (false, true)]);
    }

    #[test]
    fn a_pattern_is_a_name_or_the_beginning_of_one() {
        for text in ["a", "a*", "*", "_x.y-*"] {
            assert!(text.parse::<ValuePattern>().is_ok(), "{text}");
        }
        for text in ["", "**", "a*b", "1", ".*", "a b"] {
            assert!(text.parse::<ValuePattern>().is_err(), "{text}");
        }
    }
}
