//! The first message of an agent: what its role says around its goal. What agents of one role have in common is
//! written once and shared.

use std::fmt;
use std::sync::Arc;

use crate::caps::{Allow, Caps};
use crate::definition::{Definition, Turns};
use crate::hash::ByName;
use crate::id::{RoleName, ToolName};
use crate::limit;
use crate::turn::Builtin;

/// What stands around goal and tools in the first message.
const TASK: &str = "Your task: ";
const TOOLS: &str = "Tools you may use:";
const CLOSE: &str = "When you are done, answer with a clear summary of the result.";

/// The first message of an agent: its role's prompt, its goal, its tools, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    brief: Arc<Brief>,
    goal: Arc<str>,
}

impl System {
    pub(super) fn new(brief: Arc<Brief>, goal: Arc<str>) -> Self {
        Self { brief, goal }
    }

    /// Its text, in the pieces that it is kept in.
    #[must_use]
    pub fn pieces(&self) -> [&str; 3] {
        [&self.brief.before, &self.goal, &self.brief.after]
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces().into_iter().try_for_each(|piece| f.write_str(piece))
    }
}

impl From<&str> for System {
    /// A first message that is only this text.
    fn from(text: &str) -> Self {
        Self { brief: Arc::default(), goal: text.into() }
    }
}

/// What agents of one role with the same tools have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Brief {
    before: String,
    after: String,
    /// The tools that they may call.
    pub(super) tools: Arc<[ToolName]>,
}

impl Brief {
    fn new(definition: &Definition, role: &RoleName, tools: &Allow<ToolName>) -> Self {
        let turns = definition.roles.get(role).and_then(|role| role.turns.as_ref());
        let prompt = turns.map_or("", |turns| turns.prompt.text.as_str());
        let gap = if prompt.is_empty() { "" } else { "\n\n" };
        let lines: String =
            lines(definition, tools).map(|(name, told)| format!("- {name}: {told}\n")).collect();
        let listed = if lines.is_empty() { String::new() } else { format!("{TOOLS}\n{lines}\n") };
        Self {
            before: format!("{prompt}{gap}{TASK}"),
            after: format!("\n\n{listed}{CLOSE}"),
            tools: definition.tool_names().filter(|name| tools.has(name)).collect(),
        }
    }
}

/// The last brief of each role. Agents of one role mostly have the same tools; one with others gets its own, and it
/// is the one to be shared from then on.
#[derive(Clone, Debug, Default)]
pub(super) struct Briefs(ByName<RoleName, (Allow<ToolName>, Arc<Brief>)>);

impl Briefs {
    /// The brief of an agent of this role with these tools.
    pub(super) fn of(
        &mut self,
        definition: &Definition,
        role: &RoleName,
        tools: &Allow<ToolName>,
    ) -> Arc<Brief> {
        if let Some((of, brief)) = self.0.get(role)
            && of == tools
        {
            return Arc::clone(brief);
        }
        let brief = Arc::new(Brief::new(definition, role, tools));
        self.0.insert(role.clone(), (tools.clone(), Arc::clone(&brief)));
        brief
    }
}

/// The most tokens that the first message can have.
pub(crate) fn first_tokens(definition: &Definition, caps: &Caps, turns: &Turns, goal: &str) -> u64 {
    let around = TASK.len() + TOOLS.len() + CLOSE.len() + 8;
    let allowed = definition.tools.iter().filter(|(name, _)| caps.tools.has(*name));
    let schemas: usize = allowed.map(|(_, tool)| tool.schema.len()).sum();
    let line = |(name, told): (&str, &str)| "- : \n".len() + name.len() + told.len();
    let lines: usize = lines(definition, &caps.tools).map(line).sum();
    let text = goal.len() + lines + schemas + around;
    turns.prompt.tokens_max().saturating_add(text as u64).saturating_add(limit::MESSAGE_TOKENS)
}

/// Each allowed tool by its name, and what a model is told about it.
fn lines<'d>(
    definition: &'d Definition,
    allowed: &Allow<ToolName>,
) -> impl Iterator<Item = (&'d str, &'d str)> {
    let own = definition.tools.iter().map(|(name, tool)| (name.as_str(), tool.description.as_str()));
    let builtin = Builtin::ALL.into_iter().map(|builtin| (builtin.word(), builtin.description()));
    let all = builtin.chain(own).filter(|(name, _)| allowed.has(*name));
    all.map(|(name, description)| (name, description.trim()))
}
