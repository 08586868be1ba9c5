//! The first message of an agent: its role's text around its goal. Agents of one role share what they have in common.

use std::fmt;
use std::sync::Arc;

use super::Message;
use crate::definition::{
    Allow, Builtin, Caps, Definition, FolderAccess, FolderGrants, HostRequests, Network, OutputSchema,
    ToolSpec, Turns,
};
use crate::primitives::{ByName, RoleName, TokenCount, ToolName, limit};
use crate::record::RULES;

/// A tool's description, as a provider gets it beside the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDescription {
    pub name: ToolName,
    /// What it does and when to use it.
    pub description: String,
    /// The JSON Schema of its arguments, as text; empty if there is none.
    pub schema: String,
}

impl ToolDescription {
    fn from_text(tool: ToolText<'_>) -> Option<Self> {
        let (description, schema) = (tool.description.to_owned(), tool.schema.to_owned());
        tool.name.parse().ok().map(|name| Self { name, description, schema })
    }
}

/// A tool's texts for models.
#[derive(Clone, Copy)]
struct ToolText<'a> {
    name: &'a str,
    description: &'a str,
    schema: &'a str,
}

/// The fixed texts around goal and tools in the first message.
const TASK: &str = "Your task: ";
/// Before the task of another agent that shares its first message. Not longer than [`TASK`], which is counted.
const OTHERS_TASK: &str = "Its task: ";
const _: () = assert!(OTHERS_TASK.len() <= TASK.len());
const TOOLS: &str = "Tools you may use:";
const ASK_FOR_HOSTS: &str =
    "A person decides about other hosts, one call at a time: name them in the call.\n";
const HOSTS: &str = "Hosts that your tools may connect to, on ports 80 and 443 unless a port is named:";
const FOLDERS: &str = "Folders of the user that you may use beside your own, by their absolute paths:";
/// The most bytes of the line breaks between them.
const GAPS: usize = 8;
const CLOSE: &str = "When you are done, answer with a clear summary of the result.";

/// The first message of an agent: its role's prompt, its goal and its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    brief: Arc<Brief>,
    goal: Arc<str>,
    shown: SystemPart,
}

/// What of a first message is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SystemPart {
    Whole,
    /// To another agent, which has its own tools and its own answer to give.
    Briefing,
    /// Everything but the task, which follows in its own message.
    Role,
    Task,
}

impl System {
    pub(super) fn new(brief: Arc<Brief>, goal: Arc<str>) -> Self {
        Self { brief, goal, shown: SystemPart::Whole }
    }

    /// For other agents: without its tools and answer format.
    pub(super) fn briefing(&self) -> Self {
        Self { shown: SystemPart::Briefing, ..self.clone() }
    }

    /// In two messages, the task for itself.
    pub(super) fn split(&self) -> (Self, Self) {
        let part = |shown| Self { shown, ..self.clone() };
        (part(SystemPart::Role), part(SystemPart::Task))
    }

    /// Its text, in the pieces in which it is stored.
    #[must_use]
    pub fn pieces(&self) -> [&str; 4] {
        let Brief { prompt, task, others_task, around, order, .. } = self.brief.as_ref();
        match (self.shown, order) {
            (SystemPart::Whole, Order::GoalLast) => [prompt, around, task, &self.goal],
            (SystemPart::Whole, Order::GoalFirst) => [prompt, task, &self.goal, around],
            (SystemPart::Briefing, _) => [prompt, others_task, &self.goal, ""],
            (SystemPart::Role, _) => [prompt, around, "", ""],
            (SystemPart::Task, _) => [task, &self.goal, "", ""],
        }
    }

    /// How many bytes it has in common with the other agents of its role that have the same tools.
    #[must_use]
    pub fn shared_bytes(&self) -> usize {
        let Brief { prompt, task, around, order, .. } = self.brief.as_ref();
        match (self.shown, order) {
            (SystemPart::Whole, Order::GoalLast) => prompt.len() + around.len() + task.len(),
            (SystemPart::Whole, Order::GoalFirst) => prompt.len() + task.len(),
            (SystemPart::Role, _) => prompt.len() + around.len(),
            (SystemPart::Briefing | SystemPart::Task, _) => 0,
        }
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces().into_iter().try_for_each(|piece| f.write_str(piece))
    }
}

impl From<&str> for System {
    fn from(text: &str) -> Self {
        Self { brief: Arc::default(), goal: text.into(), shown: SystemPart::Whole }
    }
}

/// Where the goal is in the first message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    /// Rules 2 to 4.
    #[default]
    GoalFirst,
    /// Since rules 5: agents of a role share everything before it, which providers cache.
    GoalLast,
}

/// What agents of one role with the same tools have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Brief {
    /// The role's prompt.
    prompt: String,
    task: &'static str,
    /// Before its goal as other agents see it.
    others_task: &'static str,
    /// The tools, and how to answer.
    around: String,
    order: Order,
    pub(super) tools: Arc<[ToolDescription]>,
    /// Whether results show what children used and what is left.
    pub(super) tells_facts: bool,
    /// The JSON Schema of their answers.
    pub(super) schema: Option<Arc<str>>,
}

impl Brief {
    /// Whether they may call a built-in tool.
    pub(super) fn may_call(&self, builtin: Builtin) -> bool {
        self.tools.iter().any(|tool| tool.name.as_str() == builtin.as_str())
    }

    fn new(definition: &Definition, role: &RoleName, own: Own<'_>, rules: u32) -> Self {
        let Own { tools, folders, network, requests, schema } = own;
        let turns = definition.roles.get(role).and_then(|role| role.turns.as_ref());
        let prompt = turns.map_or("", |turns| turns.prompt.text.as_str());
        let gap = if prompt.is_empty() { "" } else { "\n\n" };
        let lines: String = described(definition, tools, rules).map(ToolText::line).collect();
        let schema = schema.or_else(|| turns?.output_schema.as_deref());
        let close = schema.map_or_else(|| CLOSE.to_owned(), OutputSchema::paragraph);
        let listed = if lines.is_empty() { String::new() } else { format!("{TOOLS}\n{lines}\n") };
        let granted = folders.map(folder_lines).unwrap_or_default() + &host_lines(network, requests);
        let order = if rules >= 5 { Order::GoalLast } else { Order::GoalFirst };
        Self {
            prompt: format!("{prompt}{gap}"),
            task: TASK,
            others_task: if rules >= 6 { OTHERS_TASK } else { TASK },
            around: match order {
                Order::GoalFirst => format!("\n\n{listed}{granted}{close}"),
                Order::GoalLast => format!("{listed}{granted}{close}\n\n"),
            },
            order,
            tools: described(definition, tools, rules).filter_map(ToolDescription::from_text).collect(),
            tells_facts: turns.is_some_and(|turns| turns.facts_tokens.is_some()),
            schema: schema.map(|schema| schema.text().into()),
        }
    }
}

/// What distinguishes an agent from others of its role.
#[derive(Clone, Copy)]
pub(super) struct Own<'a> {
    pub(super) tools: &'a Allow<ToolName>,
    pub(super) folders: Option<&'a FolderGrants>,
    pub(super) network: &'a Network,
    pub(super) requests: HostRequests,
    /// The schema of its answer, if its spawner gave one.
    pub(super) schema: Option<&'a OutputSchema>,
}

/// The latest brief of each role. Most agents of a role have the same tools, folders and hosts; one with others replaces the
/// shared brief.
#[derive(Clone, Debug)]
pub(super) struct Briefs {
    /// The tree's rules decide the arguments of the built-in tools.
    rules: u32,
    by_role: ByName<RoleName, SharedBrief>,
}

#[derive(Clone, Debug)]
struct SharedBrief {
    tools: Allow<ToolName>,
    folders: Option<FolderGrants>,
    network: Network,
    requests: HostRequests,
    brief: Arc<Brief>,
}

impl Briefs {
    pub(super) fn new(rules: u32) -> Self {
        Self { rules, by_role: ByName::default() }
    }

    pub(super) const fn rules(&self) -> u32 {
        self.rules
    }

    /// A message as another agent sees it.
    pub(super) fn without_tools(&self, message: Arc<Message>) -> Arc<Message> {
        match message.as_ref() {
            Message::System(system) if self.rules >= 3 => Arc::new(Message::System(system.briefing())),
            _ => message,
        }
    }

    /// The brief of an agent of this role. One with a schema from its spawner is not shared.
    pub(super) fn for_role(&mut self, definition: &Definition, role: &RoleName, own: Own<'_>) -> Arc<Brief> {
        if own.schema.is_some() {
            return Arc::new(Brief::new(definition, role, own, self.rules));
        }
        if let Some(shared) = self.by_role.get(role)
            && shared.tools == *own.tools
            && shared.folders.as_ref() == own.folders
            && shared.network == *own.network
            && shared.requests == own.requests
        {
            return Arc::clone(&shared.brief);
        }
        let brief = Arc::new(Brief::new(definition, role, own, self.rules));
        let (tools, folders) = (own.tools.clone(), own.folders.cloned());
        let (network, requests) = (own.network.clone(), own.requests);
        let shared = SharedBrief { tools, folders, network, requests, brief: Arc::clone(&brief) };
        self.by_role.insert(role.clone(), shared);
        brief
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Goal<'a> {
    pub(crate) text: &'a str,
    /// The tokens that it adds, if counted.
    pub(crate) tokens: Option<TokenCount>,
    /// The schema of the answer, if the spawner gave one.
    pub(crate) schema: Option<&'a OutputSchema>,
}

impl Goal<'_> {
    /// Counts a goal as the first message contains it: not at the start of a line, so tokens may span the text before
    /// it.
    pub(crate) fn tokens(text: &str, tokens: &dyn Fn(&str) -> TokenCount) -> TokenCount {
        tokens(&format!("{TASK}{text}"))
    }

    fn counted(&self) -> TokenCount {
        self.tokens.unwrap_or(TokenCount::of_bytes(self.text.len()))
    }
}

/// The tokens of the first message and the tools. Anything uncounted counts by its bytes.
pub(crate) fn first_tokens(
    definition: &Definition,
    caps: &Caps,
    turns: &Turns,
    goal: Goal<'_>,
) -> TokenCount {
    let schema = goal.schema.or(turns.output_schema.as_deref()).map(OutputSchema::counted);
    let tools = tools_tokens(definition, caps, turns);
    let parts = [turns.prompt.counted(), goal.counted(), schema.unwrap_or_default(), tools];
    parts.into_iter().fold(limit::MESSAGE_TOKENS, TokenCount::plus)
}

/// The part of `tokens` that other agents see when the first message is shared.
pub(crate) fn briefing_tokens(
    definition: &Definition,
    caps: &Caps,
    turns: &Turns,
    first: TokenCount,
) -> TokenCount {
    let around = TokenCount::of_bytes(TASK.len() + GAPS);
    let shared = first.minus(tools_tokens(definition, caps, turns)).plus(around);
    TokenCount::new(shared.bound().min(first.bound()), shared.estimate().min(first.estimate()))
}

/// The tokens of the kernel's own text in a first message and of the tools.
fn tools_tokens(definition: &Definition, caps: &Caps, turns: &Turns) -> TokenCount {
    let around = turns.around_tokens.unwrap_or_else(|| {
        let allowed = Builtin::ALL.into_iter().filter(|builtin| caps.tools.has(builtin.as_str()));
        let tools = allowed.map(uncounted_bytes).sum::<usize>();
        TokenCount::of_bytes(TASK.len() + TOOLS.len() + CLOSE.len() + GAPS + tools)
    });
    let bytes = |(name, tool): (&ToolName, &ToolSpec)| {
        let texts = name.as_str().len() + tool.description.trim().len() + tool.schema.len();
        TokenCount::of_bytes("- : \n".len() + texts)
    };
    let allowed = definition.tools.iter().filter(|(name, _)| caps.tools.has(*name));
    let tools = allowed.map(|(name, tool)| tool.tokens.unwrap_or_else(|| bytes((name, tool))));
    let folders = caps.folders.as_ref().map(folder_lines).unwrap_or_default();
    tools
        .fold(around, TokenCount::plus)
        .plus(TokenCount::of_bytes(folders.len() + host_lines(&caps.network, caps.host_requests).len()))
}

/// A paragraph for an agent that has hosts. One that has every host is of an old journal and was told nothing.
fn host_lines(network: &Network, requests: HostRequests) -> String {
    let may_ask = match requests {
        HostRequests::Ask => ASK_FOR_HOSTS,
        HostRequests::Refused => "",
    };
    let lines: String = network.rules().map(|rule| format!("- {rule}\n")).collect();
    let listed = if lines.is_empty() { String::new() } else { format!("{HOSTS}\n{lines}") };
    if listed.is_empty() && may_ask.is_empty() { listed } else { format!("{listed}{may_ask}\n") }
}

/// A paragraph for an agent that has folders, and nothing for others.
fn folder_lines(folders: &FolderGrants) -> String {
    if folders.is_empty() {
        return String::new();
    }
    let line = |(path, access)| match access {
        FolderAccess::Read => format!("- {path} (read)\n"),
        FolderAccess::Write => format!("- {path} (read and write)\n"),
    };
    let lines: String = folders.iter().map(line).collect();
    format!("{FOLDERS}\n{lines}\n")
}

/// Tokens of the kernel's own text in a first message and of the built-in tools. They are on lines of their own,
/// except the text before the goal, which is counted with the goal again.
pub(crate) fn around_tokens(allowed: &Allow<ToolName>, tokens: &dyn Fn(&str) -> TokenCount) -> TokenCount {
    let words: TokenCount = [TASK, TOOLS, CLOSE].map(tokens).into_iter().sum();
    let tools: TokenCount = builtins(allowed, RULES).map(|tool| tool.tokens(tokens)).sum();
    words.plus(TokenCount::of_bytes(GAPS)).plus(tools)
}

/// Tokens of a tool: its line in the first message, and its name, description and schema as a provider gets them.
pub(crate) fn tool_tokens(
    name: &str,
    description: &str,
    schema: &str,
    tokens: &dyn Fn(&str) -> TokenCount,
) -> TokenCount {
    ToolText { name, description, schema }.tokens(tokens)
}

impl ToolText<'_> {
    fn tokens(self, tokens: &dyn Fn(&str) -> TokenCount) -> TokenCount {
        let texts = [&self.line(), self.name, self.description, self.schema];
        texts.map(tokens).into_iter().fold(limit::TOOL_TOKENS, TokenCount::plus)
    }

    /// Its line in the first message: what it does. When to use it is in its description.
    fn line(self) -> String {
        let does = self.description.split("; ").next().unwrap_or(self.description);
        format!("- {}: {}\n", self.name, does.trim())
    }
}

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

fn builtins<'a>(allowed: &Allow<ToolName>, rules: u32) -> impl Iterator<Item = ToolText<'a>> {
    let text = move |builtin: Builtin| ToolText {
        name: builtin.as_str(),
        description: builtin.description(),
        schema: builtin.schema_under(rules),
    };
    Builtin::under(rules).map(text).filter(|tool| allowed.has(tool.name))
}

/// The size of a built-in tool in a definition that was not counted. No real driver sees such a definition, so no
/// bill depends on these numbers; they must not change, because journals were decided by them.
const fn uncounted_bytes(builtin: Builtin) -> usize {
    match builtin {
        Builtin::SpawnAgent => 86,
        Builtin::WaitAgent => 55,
        Builtin::SendMessage => 46,
        Builtin::ListAgents => 45,
        Builtin::CancelAgent => 55,
        Builtin::AskHuman => 61,
        Builtin::FollowupTask
        | Builtin::DelegateToAgent
        | Builtin::HandBack
        | Builtin::WaitMessage
        | Builtin::ReadContext
        | Builtin::WriteContext
        | Builtin::ListContext
        | Builtin::RunPipeline => 0,
    }
}
