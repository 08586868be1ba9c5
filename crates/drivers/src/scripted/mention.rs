//! The roles and tools that a script names. Whether they exist only the caller knows, and a script may name others on
//! purpose.

use serde_saphyr::Location;
use spinney_kernel::primitives::RoleName;

use super::script::Script;

/// A name in a script, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptMention<'a> {
    /// What has that name.
    pub what: Mentioned,
    pub name: &'a str,
    /// The only role whose agents the rule answers, if it names one.
    pub by: Option<&'a RoleName>,
    /// The first line is 1.
    pub line: u64,
    /// The first column is 1.
    pub column: u64,
}

/// What a script names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mentioned {
    /// The role that a rule answers for, or that it spawns.
    Role,
    /// A tool that a rule calls.
    Tool,
}

impl Script {
    /// Every role and tool that its rules name, in the order of the file.
    pub fn mentions(&self) -> impl Iterator<Item = ScriptMention<'_>> {
        self.rules().iter().flat_map(|rule| {
            let by = rule.when.agent.as_ref().map(|agent| &agent.value);
            let mention = move |what, name, place| mention(what, name, by, place);
            let agent = rule.when.agent.iter();
            let agents =
                agent.map(move |agent| mention(Mentioned::Role, agent.value.as_str(), agent.referenced));
            let calls = rule.calls.iter().flat_map(move |call| {
                let spawned = call.spawns.iter();
                let spawned = spawned.map(move |role| mention(Mentioned::Role, role.as_str(), call.place));
                std::iter::once(mention(Mentioned::Tool, call.tool.as_str(), call.place)).chain(spawned)
            });
            agents.chain(calls)
        })
    }

    /// Whether some rule may answer an agent of this role.
    #[must_use]
    pub fn answers(&self, role: &RoleName) -> bool {
        self.rules().iter().any(|rule| {
            !rule.when.summary
                && !rule.when.of_tool
                && rule.when.agent.as_ref().is_none_or(|agent| agent.value == *role)
        })
    }
}

fn mention<'a>(
    what: Mentioned,
    name: &'a str,
    by: Option<&'a RoleName>,
    place: Location,
) -> ScriptMention<'a> {
    ScriptMention { what, name, by, line: place.line().max(1), column: place.column().max(1) }
}
