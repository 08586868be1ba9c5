//! The first message of an agent: what its role says around its goal. What agents of one role have in common is
//! written once and shared.

use std::fmt;
use std::sync::Arc;

use super::Message;
use crate::definition::{Allow, Builtin, Caps, Definition, OutputSchema, ToolSpec, Turns};
use crate::record::RULES;
use crate::words::{ByName, RoleName, ToolName, limit};

/// A tool as a model is told of it beside its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDescription {
    /// What it is called.
    pub name: ToolName,
    /// What it does and when to use it.
    pub description: String,
    /// What its arguments look like: a JSON Schema, as text; empty if nobody said.
    pub schema: String,
}

impl ToolDescription {
    fn of(tool: ToolText<'_>) -> Option<Self> {
        let (description, schema) = (tool.description.to_owned(), tool.schema.to_owned());
        tool.name.parse().ok().map(|name| Self { name, description, schema })
    }
}

/// What models read of a tool.
#[derive(Clone, Copy)]
struct ToolText<'a> {
    name: &'a str,
    description: &'a str,
    schema: &'a str,
}

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
    /// Whether it is told to somebody else, who has tools of its own and another answer to give.
    is_briefing: bool,
}

impl System {
    pub(super) fn new(brief: Arc<Brief>, goal: Arc<str>) -> Self {
        Self { brief, goal, is_briefing: false }
    }

    /// The same as others are told it: what its agent is and has to do, without its tools and how it is to answer.
    pub(super) fn briefing(&self) -> Self {
        Self { is_briefing: true, ..self.clone() }
    }

    /// Its text, in the pieces that it is kept in.
    #[must_use]
    pub fn pieces(&self) -> [&str; 3] {
        let after = if self.is_briefing { "" } else { self.brief.after.as_str() };
        [&self.brief.before, &self.goal, after]
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
        Self { brief: Arc::default(), goal: text.into(), is_briefing: false }
    }
}

/// What agents of one role with the same tools have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Brief {
    before: String,
    after: String,
    /// The tools that they may call.
    pub(super) tools: Arc<[ToolDescription]>,
    /// Whether they are told what children used, and what is left.
    pub(super) tells_facts: bool,
    /// What their answers must look like.
    pub(super) schema: Option<Arc<str>>,
}

impl Brief {
    /// Whether they may call a tool that the kernel answers itself.
    pub(super) fn may_call(&self, builtin: Builtin) -> bool {
        self.tools.iter().any(|tool| tool.name.as_str() == builtin.word())
    }

    fn new(definition: &Definition, role: &RoleName, own: Own<'_>, rules: u32) -> Self {
        let Own { tools, schema } = own;
        let turns = definition.roles.get(role).and_then(|role| role.turns.as_ref());
        let prompt = turns.map_or("", |turns| turns.prompt.text.as_str());
        let gap = if prompt.is_empty() { "" } else { "\n\n" };
        let lines: String = described(definition, tools, rules).map(ToolText::line).collect();
        let schema = schema.or_else(|| turns?.output_schema.as_deref());
        let close = schema.map_or_else(|| CLOSE.to_owned(), OutputSchema::paragraph);
        let listed = if lines.is_empty() { String::new() } else { format!("{TOOLS}\n{lines}\n") };
        Self {
            before: format!("{prompt}{gap}{TASK}"),
            after: format!("\n\n{listed}{close}"),
            tools: described(definition, tools, rules).filter_map(ToolDescription::of).collect(),
            tells_facts: turns.is_some_and(|turns| turns.facts_tokens.is_some()),
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
#[derive(Clone, Debug)]
pub(super) struct Briefs {
    /// The rules of the tree: they say what the kernel's own tools take.
    rules: u32,
    by_role: ByName<RoleName, (Allow<ToolName>, Arc<Brief>)>,
}

impl Briefs {
    pub(super) fn new(rules: u32) -> Self {
        Self { rules, by_role: ByName::default() }
    }

    /// A message as another agent is told it.
    pub(super) fn without_tools(&self, message: Arc<Message>) -> Arc<Message> {
        match message.as_ref() {
            Message::System(system) if self.rules >= 3 => Arc::new(Message::System(system.briefing())),
            _ => message,
        }
    }

    /// The brief of an agent of this role. One with a schema from its spawner is seldom like the next.
    pub(super) fn of(&mut self, definition: &Definition, role: &RoleName, own: Own<'_>) -> Arc<Brief> {
        if own.schema.is_some() {
            return Arc::new(Brief::new(definition, role, own, self.rules));
        }
        if let Some((of, brief)) = self.by_role.get(role)
            && of == own.tools
        {
            return Arc::clone(brief);
        }
        let brief = Arc::new(Brief::new(definition, role, own, self.rules));
        self.by_role.insert(role.clone(), (own.tools.clone(), Arc::clone(&brief)));
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
    let schema = goal.schema.or(turns.output_schema.as_deref()).map_or(0, OutputSchema::tokens_max);
    let tools = tools_tokens(definition, caps, turns);
    let parts = [turns.prompt.tokens_max(), goal.tokens_max(), schema, tools, limit::MESSAGE_TOKENS];
    parts.into_iter().fold(0, u64::saturating_add)
}

/// What of a first message is not told to others: of so many tokens in all, how many they are told at most.
pub(crate) fn briefing_tokens(definition: &Definition, caps: &Caps, turns: &Turns, first: u64) -> u64 {
    let around = (TASK.len() + GAPS) as u64;
    first.saturating_sub(tools_tokens(definition, caps, turns)).saturating_add(around).min(first)
}

/// The most tokens of the kernel's own words in a first message, and of the tools beside it.
fn tools_tokens(definition: &Definition, caps: &Caps, turns: &Turns) -> u64 {
    let around = turns.around_tokens.unwrap_or_else(|| {
        let allowed = Builtin::ALL.into_iter().filter(|builtin| caps.tools.has(builtin.word()));
        let tools = allowed.map(uncounted_bytes).sum::<usize>();
        (TASK.len() + TOOLS.len() + CLOSE.len() + GAPS + tools) as u64
    });
    let bytes = |(name, tool): (&ToolName, &ToolSpec)| {
        ("- : \n".len() + name.as_str().len() + tool.description.trim().len() + tool.schema.len()) as u64
    };
    let allowed = definition.tools.iter().filter(|(name, _)| caps.tools.has(*name));
    let tools = allowed.map(|(name, tool)| tool.tokens.unwrap_or_else(|| bytes((name, tool))));
    tools.fold(around, u64::saturating_add)
}

/// How many tokens the kernel's own words in a first message have, and the tools that it answers itself. They stand on
/// lines of their own, but for what is before the goal, which is counted with it once more.
pub(crate) fn around_tokens(allowed: &Allow<ToolName>, tokens: &dyn Fn(&str) -> u64) -> u64 {
    let words: u64 = [TASK, TOOLS, CLOSE].map(tokens).into_iter().sum();
    let tools: u64 = builtins(allowed, RULES).map(|tool| tool.tokens(tokens)).sum();
    words + GAPS as u64 + tools
}

/// How many tokens a tool has: its line in the first message, and its name, description and schema as a provider is
/// told them beside the messages.
pub(crate) fn tool_tokens(name: &str, description: &str, schema: &str, tokens: &dyn Fn(&str) -> u64) -> u64 {
    ToolText { name, description, schema }.tokens(tokens)
}

impl ToolText<'_> {
    fn tokens(self, tokens: &dyn Fn(&str) -> u64) -> u64 {
        let texts = [&self.line(), self.name, self.description, self.schema];
        limit::TOOL_TOKENS + texts.map(tokens).into_iter().sum::<u64>()
    }

    /// Its line in the first message: what it does. When to use it stands beside the messages.
    fn line(self) -> String {
        let does = self.description.split("; ").next().unwrap_or(self.description);
        format!("- {}: {}\n", self.name, does.trim())
    }
}

/// Each allowed tool.
fn described<'d>(
    definition: &'d Definition,
    allowed: &Allow<ToolName>,
    rules: u32,
) -> impl Iterator<Item = ToolText<'d>> {
    let own = definition.tools.iter().filter(|(name, _)| allowed.has(*name));
    builtins(allowed, rules).chain(own.map(|(name, tool)| ToolText {
        name: name.as_str(),
        description: tool.description.trim(),
        schema: &tool.schema,
    }))
}

/// Each allowed tool that the kernel answers itself.
fn builtins<'a>(allowed: &Allow<ToolName>, rules: u32) -> impl Iterator<Item = ToolText<'a>> {
    let text = move |builtin: Builtin| ToolText {
        name: builtin.word(),
        description: builtin.description(),
        schema: builtin.schema_under(rules),
    };
    Builtin::ALL.into_iter().map(text).filter(|tool| allowed.has(tool.name))
}

/// What a tool of the kernel counts in a definition that nobody has counted. No driver has seen such a one, so nobody
/// is billed by these numbers; they stay what they are, because journals were decided by them.
const fn uncounted_bytes(builtin: Builtin) -> usize {
    match builtin {
        Builtin::SpawnAgent => 86,
        Builtin::WaitAgent => 55,
        Builtin::SendMessage => 46,
        Builtin::ListAgents => 45,
        Builtin::CancelAgent => 55,
        Builtin::AskHuman => 61,
        Builtin::FollowupTask => 0,
    }
}
