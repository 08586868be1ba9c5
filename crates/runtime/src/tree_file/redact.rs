//! What a tree file says about redaction and visibility.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use spinney_kernel::definition::{RedactionSpec, RoleVisibility};
use spinney_kernel::primitives::{ByName, RoleName, ToolName};

use super::definition::Reader;
use super::nearest;
use super::node::Step;

impl Reader<'_> {
    /// What is redacted of the tree.
    pub(super) fn redaction(&self) -> RedactionSpec {
        let keys = match &self.keys.redact {
            None => return RedactionSpec::default(),
            Some(WrittenRedaction::Journal) => {
                return RedactionSpec { journal: true, ..RedactionSpec::default() };
            }
            Some(WrittenRedaction::Keys(keys)) => keys,
        };
        let at = [Step::Key("redact"), Step::Key("env")];
        self.noted(self.few(&at, keys.env.len()));
        for (index, name) in keys.env.iter().enumerate() {
            self.noted(self.names_a_variable(&[at[0], at[1], Step::Item(index)], name));
        }
        RedactionSpec { variables: keys.env.iter().cloned().collect(), journal: keys.journal }
    }

    /// How much is shown of each role that says anything about it.
    pub(super) fn visibility(&self) -> ByName<RoleName, RoleVisibility> {
        let mut all = ByName::default();
        for (name, agent) in &self.keys.agents {
            for tool in agent.tool_visibility.keys().filter(|tool| !agent.tools.contains(tool)) {
                let at = [
                    Step::Key("agents"),
                    Step::Key(name.as_str()),
                    Step::Key("tool_visibility"),
                    Step::Key(tool.as_str()),
                ];
                let error = self.wrong_key(&at, format!("`{name}` has no tool `{tool}`"));
                let tools = agent.tools.iter().map(ToolName::as_str);
                self.note(error.with_help(nearest::help(tool.as_str(), tools, "tools")));
            }
            let visibility = RoleVisibility { agent: agent.visibility, tools: agent.tool_visibility.clone() };
            if !visibility.is_full() {
                all.insert(name.clone(), visibility);
            }
        }
        all
    }
}

/// The keys of a redaction, or `journal`.
pub(super) enum WrittenRedaction {
    Keys(RedactionKeys),
    Journal,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the keys of a redaction")]
pub(super) struct RedactionKeys {
    pub(super) env: Vec<String>,
    pub(super) journal: bool,
}

impl WrittenRedaction {
    pub(super) const JOURNAL: &str = "journal";
}

impl<'de> Deserialize<'de> for WrittenRedaction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RedactionVisitor)
    }
}

struct RedactionVisitor;

impl<'de> Visitor<'de> for RedactionVisitor {
    type Value = WrittenRedaction;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the keys of a redaction, or `journal`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<WrittenRedaction, E> {
        match text {
            WrittenRedaction::JOURNAL => Ok(WrittenRedaction::Journal),
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WrittenRedaction, A::Error> {
        RedactionKeys::deserialize(MapAccessDeserializer::new(map)).map(WrittenRedaction::Keys)
    }
}
