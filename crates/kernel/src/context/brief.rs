//! The first message of an agent: what its role says around its goal. What agents of one role have in common is
//! written once and shared.

use std::fmt;
use std::sync::Arc;

use crate::caps::{Allow, Caps};
use crate::definition::{Definition, Tool, Turns};
use crate::hash::ByName;
use crate::id::{RoleName, ToolName};
use crate::limit;
use crate::output_schema::OutputSchema;
use crate::turn::Builtin;

/// What stands around goal and tools in the first message.
const TASK: &str = "Your task: ";
const TOOLS: &str = "Tools you may use:";
/// The most bytes of the line breaks between them.
const GAPS: usize = 8;
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
    /// What their answers must look like.
    pub(super) schema: Option<Arc<str>>,
}

impl Brief {
    fn new(definition: &Definition, role: &RoleName, own: Own<'_>) -> Self {
        let Own { tools, schema } = own;
        let turns = definition.roles.get(role).and_then(|role| role.turns.as_ref());
        let prompt = turns.map_or("", |turns| turns.prompt.text.as_str());
        let gap = if prompt.is_empty() { "" } else { "\n\n" };
        let lines: String = lines(definition, tools).map(line).collect();
        let schema = schema.or_else(|| turns?.output_schema.as_deref());
        let close = schema.map_or_else(|| CLOSE.to_owned(), OutputSchema::paragraph);
        let listed = if lines.is_empty() { String::new() } else { format!("{TOOLS}\n{lines}\n") };
        Self {
            before: format!("{prompt}{gap}{TASK}"),
            after: format!("\n\n{listed}{close}"),
            tools: definition.tool_names().filter(|name| tools.has(name)).collect(),
            schema: schema.map(|schema| schema.text().into()),
        }
    }
}

/// What an agent has that others of its role may have otherwise.
#[derive(Clone, Copy)]
pub(super) struct Own<'a> {
    pub(super) tools: &'a Allow<ToolName>,
    /// What its answer must look like, if its spawner said so.
    pub(super) schema: Option<&'a OutputSchema>,
}

/// The last brief of each role. Agents of one role mostly have the same tools; one with others gets its own, and it
/// is the one to be shared from then on.
#[derive(Clone, Debug, Default)]
pub(super) struct Briefs(ByName<RoleName, (Allow<ToolName>, Arc<Brief>)>);

impl Briefs {
    /// The brief of an agent of this role. One with a schema from its spawner is seldom like the next.
    pub(super) fn of(&mut self, definition: &Definition, role: &RoleName, own: Own<'_>) -> Arc<Brief> {
        if own.schema.is_some() {
            return Arc::new(Brief::new(definition, role, own));
        }
        if let Some((of, brief)) = self.0.get(role)
            && of == own.tools
        {
            return Arc::clone(brief);
        }
        let brief = Arc::new(Brief::new(definition, role, own));
        self.0.insert(role.clone(), (own.tools.clone(), Arc::clone(&brief)));
        brief
    }
}

/// What an agent is to do.
#[derive(Clone, Copy)]
pub(crate) struct Goal<'a> {
    pub(crate) text: &'a str,
    /// How many tokens it adds at most, if somebody counted.
    pub(crate) tokens: Option<u64>,
    /// What the answer must look like, if its spawner said so.
    pub(crate) schema: Option<&'a OutputSchema>,
}

impl Goal<'_> {
    /// Has a goal counted as it stands in the first message: not at the beginning of a line, so tokens may cross from
    /// what is before it.
    pub(crate) fn tokens(text: &str, tokens: &dyn Fn(&str) -> u64) -> u64 {
        tokens(&format!("{TASK}{text}"))
    }

    fn tokens_max(&self) -> u64 {
        self.tokens.unwrap_or(self.text.len() as u64)
    }
}

/// The most tokens that the first message can have, and the tools that are told beside it. What nobody counted counts
/// by its bytes.
pub(crate) fn first_tokens(definition: &Definition, caps: &Caps, turns: &Turns, goal: Goal<'_>) -> u64 {
    let around = turns.around_tokens.unwrap_or_else(|| {
        let lines = builtins(&caps.tools).map(line_bytes).sum::<usize>();
        (TASK.len() + TOOLS.len() + CLOSE.len() + GAPS + lines) as u64
    });
    let bytes = |(name, tool): (&ToolName, &Tool)| (line_bytes(told(name, tool)) + tool.schema.len()) as u64;
    let allowed = definition.tools.iter().filter(|(name, _)| caps.tools.has(*name));
    let tools = allowed.map(|(name, tool)| tool.tokens.unwrap_or_else(|| bytes((name, tool))));
    let schema = goal.schema.or(turns.output_schema.as_deref()).map_or(0, OutputSchema::tokens_max);
    let parts = [turns.prompt.tokens_max(), goal.tokens_max(), around, schema, limit::MESSAGE_TOKENS];
    parts.into_iter().chain(tools).fold(0, u64::saturating_add)
}

/// How many tokens the kernel's own words in a first message have, and the tools that it answers itself. They stand on
/// lines of their own, but for what is before the goal, which is counted with it once more.
pub(crate) fn around_tokens(allowed: &Allow<ToolName>, tokens: &dyn Fn(&str) -> u64) -> u64 {
    let words: u64 = [TASK, TOOLS, CLOSE].map(tokens).into_iter().sum();
    let tools: u64 = builtins(allowed).map(|told| tool_tokens(told, "", tokens)).sum();
    words + GAPS as u64 + tools
}

/// How many tokens a tool has: its line in the first message, and its name, description and schema as a provider is
/// told them beside the messages.
pub(crate) fn tool_tokens(
    (name, description): (&str, &str),
    schema: &str,
    tokens: &dyn Fn(&str) -> u64,
) -> u64 {
    let line = line((name, description.trim()));
    limit::TOOL_TOKENS + [&line, name, description, schema].map(tokens).into_iter().sum::<u64>()
}

/// Each allowed tool by its name, and what a model is told about it.
fn lines<'d>(
    definition: &'d Definition,
    allowed: &Allow<ToolName>,
) -> impl Iterator<Item = (&'d str, &'d str)> {
    let own = definition.tools.iter().filter(|(name, _)| allowed.has(*name));
    builtins(allowed).chain(own.map(|(name, tool)| told(name, tool)))
}

/// Each allowed tool that the kernel answers itself.
fn builtins<'a>(allowed: &Allow<ToolName>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let all = Builtin::ALL.into_iter().map(|builtin| (builtin.word(), builtin.description()));
    all.filter(|(name, _)| allowed.has(*name))
}

fn told<'d>(name: &'d ToolName, tool: &'d Tool) -> (&'d str, &'d str) {
    (name.as_str(), tool.description.trim())
}

/// The line with which the first message tells of a tool.
fn line((name, told): (&str, &str)) -> String {
    format!("- {name}: {told}\n")
}

const fn line_bytes((name, told): (&str, &str)) -> usize {
    "- : \n".len() + name.len() + told.len()
}
