//! Tools that the kernel itself answers: what an agent asks of its own tree. Their arguments are the requests of
//! this crate as a model writes them.

mod words;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::agent::AgentIx;
use crate::body::{Body, cut};
use crate::call::{OnTimeout, Question, Sources, Wait};
use crate::context::{Frame, Goal, Share, ToolAsk};
use crate::decide::{Draft, Reply};
use crate::definition::BudgetSpec;
use crate::envelope::Envelope;
use crate::findings::WaitNeed;
use crate::id::{AgentId, Correlation, MessageKind, ModelName, RoleName, ToolName, Topic};
use crate::input::By;
use crate::limit;
use crate::output_schema::OutputSchema;
use crate::refusal::Refusal;
use crate::request::{self, Collect, Request};
use crate::written::{BudgetKeys, Span};

/// A tool that the kernel itself answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    /// Spawn a child.
    SpawnAgent,
    /// Wait for children.
    WaitAgent,
    /// Send a message.
    SendMessage,
    /// Give a child that has completed one more task.
    FollowupTask,
    /// List the agents of the tree.
    ListAgents,
    /// Cancel a descendant.
    CancelAgent,
    /// Ask a person.
    AskHuman,
}

impl Builtin {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::SpawnAgent,
        Self::WaitAgent,
        Self::SendMessage,
        Self::FollowupTask,
        Self::ListAgents,
        Self::CancelAgent,
        Self::AskHuman,
    ];

    /// The name that a model calls it by.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::SpawnAgent => "spawn_agent",
            Self::WaitAgent => "wait_agent",
            Self::SendMessage => "send_message",
            Self::FollowupTask => "followup_task",
            Self::ListAgents => "list_agents",
            Self::CancelAgent => "cancel_agent",
            Self::AskHuman => "ask_human",
        }
    }

    /// The one called so.
    #[must_use]
    pub fn named(name: &ToolName) -> Option<Self> {
        Self::ALL.into_iter().find(|builtin| builtin.word() == name.as_str())
    }

    /// How many tokens a call of the tool `name` adds to what another agent reads: a goal or a message. None if it
    /// adds nothing, or is not as it should be and will be refused.
    pub(crate) fn told_tokens(name: &str, args: &str, tokens: &dyn Fn(&str) -> u64) -> Option<u64> {
        match Self::ALL.into_iter().find(|builtin| builtin.word() == name)? {
            Self::SpawnAgent => {
                let SpawnArgs { goal, .. } = serde_json::from_str(args).ok()?;
                Some(Goal::tokens(&goal, tokens))
            }
            Self::SendMessage => {
                let SendArgs { text, .. } = serde_json::from_str(args).ok()?;
                Some(tokens(&text))
            }
            Self::FollowupTask => {
                let FollowupArgs { task, .. } = serde_json::from_str(args).ok()?;
                Some(Goal::tokens(&task, tokens))
            }
            Self::WaitAgent | Self::ListAgents | Self::CancelAgent | Self::AskHuman => None,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpawnArgs {
    agent: RoleName,
    goal: String,
    id: Option<AgentId>,
    model: Option<ModelName>,
    tools: Option<Vec<ToolName>>,
    #[serde(default)]
    budget: BudgetKeys,
    timeout: Option<Span>,
    #[serde(default)]
    detach: bool,
    share: Option<Share>,
    output_schema: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitArgs {
    agents: Vec<AgentId>,
    #[serde(default)]
    need: WaitNeed,
    #[serde(default)]
    sources: bool,
    timeout: Option<Span>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FollowupArgs {
    agent: AgentId,
    task: String,
    #[serde(default)]
    budget: BudgetKeys,
    timeout: Option<Span>,
    #[serde(default)]
    detach: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SendArgs {
    to: AgentId,
    text: String,
    topic: Option<Topic>,
    #[serde(rename = "type")]
    kind: Option<MessageKind>,
    correlation: Option<Correlation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListArgs {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelArgs {
    agent: AgentId,
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskArgs {
    question: String,
    timeout: Option<Span>,
    default: Option<String>,
    on_timeout: Option<TimeoutPolicy>,
}

/// What the tool took before rules 3.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskArgsRules2 {
    question: String,
    timeout: Option<Span>,
    default: Option<String>,
}

/// What a model wants to happen if nobody answers in time.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TimeoutPolicy {
    Fail,
    Default,
    Cancel,
}

impl AskArgs {
    fn read(args: &str, rules: u32) -> Result<Self, Refusal> {
        if rules >= 3 {
            return read(Builtin::AskHuman, args);
        }
        let AskArgsRules2 { question, timeout, default } = read(Builtin::AskHuman, args)?;
        Ok(Self { question, timeout, default, on_timeout: None })
    }

    /// Without a word, a default answer is what it is given for.
    fn on_timeout(&mut self) -> Result<OnTimeout, Refusal> {
        let bad = |reason: &str| Refusal::BadArguments {
            tool: ToolName::of_builtin(Builtin::AskHuman.word()),
            reason: reason.to_owned(),
        };
        match (self.on_timeout, self.default.take()) {
            (None | Some(TimeoutPolicy::Default), Some(answer)) => Ok(OnTimeout::answer(answer)),
            (None | Some(TimeoutPolicy::Fail), None) => Ok(OnTimeout::Fail),
            (Some(TimeoutPolicy::Cancel), None) => Ok(OnTimeout::Cancel),
            (Some(TimeoutPolicy::Default), None) => Err(bad("`on_timeout: default` needs `default`")),
            (Some(TimeoutPolicy::Fail | TimeoutPolicy::Cancel), Some(_)) => {
                Err(bad("`default` is for `on_timeout: default`; leave one of them out"))
            }
        }
    }
}

/// Does what the model asked for. Nothing is returned where a call was opened that ends with the answer.
pub(super) fn run(
    draft: &mut Draft<'_>,
    ix: AgentIx,
    builtin: Builtin,
    ask: &ToolAsk,
) -> Result<Option<Body>, Refusal> {
    let (args, tokens) = (ask.args.as_str(), ask.told_tokens.map(u64::from));
    let agent = draft.agent_id(ix).clone();
    let request = match builtin {
        Builtin::SpawnAgent => {
            let spawn_args: SpawnArgs = read(builtin, args)?;
            check_timeout(draft, builtin, (args, &spawn_args.budget))?;
            spawn(agent.clone(), spawn_args, tokens)?
        }
        Builtin::WaitAgent => {
            let WaitArgs { agents, need, sources, timeout } = read(builtin, args)?;
            let sources = if sources { Sources::Listed } else { Sources::LeftOut };
            let (wait, timeout_ms) = (Wait::Children { agents, need, sources }, timeout.map(Span::ms));
            Request::Wait(request::Wait { agent: agent.clone(), wait, timeout_ms })
        }
        Builtin::SendMessage => {
            let SendArgs { to, text, topic, kind, correlation } = read(builtin, args)?;
            let envelope = Envelope { topic, kind, correlation, ..Envelope::default() };
            Request::Send(request::Send { to, body: Body { tokens, ..Body::text(text) }, envelope })
        }
        Builtin::FollowupTask => {
            let followup_args: FollowupArgs = read(builtin, args)?;
            check_timeout(draft, builtin, (args, &followup_args.budget))?;
            followup(agent.clone(), followup_args, tokens)
        }
        Builtin::ListAgents => {
            let ListArgs {} = read(builtin, args)?;
            return Ok(Some(directory(draft)));
        }
        Builtin::CancelAgent => {
            let CancelArgs { agent, reason } = read(builtin, args)?;
            Request::Cancel(request::Cancel { agent, reason })
        }
        Builtin::AskHuman => {
            let mut args = AskArgs::read(args, draft.rules())?;
            let question = Question::new(std::mem::take(&mut args.question), args.on_timeout()?);
            let timeout_ms = args.timeout.map(Span::ms);
            Request::Ask(request::Ask { agent: agent.clone(), question, timeout_ms })
        }
    };
    let waits = matches!(builtin, Builtin::WaitAgent | Builtin::AskHuman);
    let reply = request.decide(draft, &By::Agent(agent))?;
    Ok(match reply {
        Reply::Spawned { call: Some(_), .. } | Reply::Waiting { .. } => None,
        Reply::Queued { agent } => Some(Body::text(format!(
            "no agent is called `{agent}` yet: the message is kept, and read when one is spawned under that id"
        ))),
        Reply::Spawned { agent, call: None } => Some(Body::text(format!("spawned {agent}"))),
        // A wait that had at once what it waited for has ended with the answer.
        Reply::Done if waits => None,
        Reply::Done
        | Reply::Told { .. }
        | Reply::Started { .. }
        | Reply::Refused { .. }
        | Reply::Checkpoint { .. }
        | Reply::RolledBack { .. }
        | Reply::Stale => Some(Body::text("done")),
    })
}

fn read<'a, T: Deserialize<'a>>(builtin: Builtin, args: &'a str) -> Result<T, Refusal> {
    serde_json::from_str(args).map_err(|error| {
        let reason = cut(&error.to_string(), limit::NOTICE_BYTES_MAX / 2);
        Refusal::BadArguments { tool: ToolName::of_builtin(builtin.word()), reason }
    })
}

/// Refuses what rules 2 refused: a timeout was a time and nothing else.
fn check_timeout(
    draft: &Draft<'_>,
    builtin: Builtin,
    (args, budget): (&str, &BudgetKeys),
) -> Result<(), Refusal> {
    #[derive(Deserialize)]
    struct Rules2 {
        #[serde(rename = "budget")]
        _budget: Rules2Budget,
    }
    #[derive(Deserialize)]
    struct Rules2Budget {
        #[serde(rename = "timeout")]
        _timeout: Option<Span>,
    }
    let is_wall = budget.timeout.is_some_and(|timeout| timeout.is_wall);
    if is_wall && draft.rules() < 3 { read::<Rules2>(builtin, args).map(drop) } else { Ok(()) }
}

fn spawn(parent: AgentId, args: SpawnArgs, goal_tokens: Option<u64>) -> Result<Request, Refusal> {
    let SpawnArgs { agent: role, goal, id, model, tools, budget, timeout, detach, share, output_schema } =
        args;
    let (budget, collect) = terms(&budget, timeout, detach);
    let messages = Vec::new();
    let output_schema = output_schema.as_deref().map(OutputSchema::written).transpose()?.map(Box::new);
    Ok(Request::Spawn(request::Spawn {
        parent,
        role,
        goal,
        goal_tokens,
        id,
        model,
        tools,
        budget,
        collect,
        share,
        messages,
        frame: Frame { window: None, output_schema },
    }))
}

fn followup(parent: AgentId, args: FollowupArgs, task_tokens: Option<u64>) -> Request {
    let FollowupArgs { agent, task, budget, timeout, detach } = args;
    let (budget, collect) = terms(&budget, timeout, detach);
    Request::Followup(request::Followup { parent, agent, task, task_tokens, budget, collect })
}

/// What a child may use, and how its parent gets its result.
fn terms(budget: &BudgetKeys, timeout: Option<Span>, detach: bool) -> (BudgetSpec, Collect) {
    let mut budget = budget.spec();
    if let Some(timeout) = timeout {
        (budget.timeout_ms, budget.timeout_wall) = (Some(timeout.ms()), false);
    }
    (budget, if detach { Collect::Detached } else { Collect::Call })
}

/// Every agent, one line each, as far as a text may be long.
fn directory(draft: &Draft<'_>) -> Body {
    let line = |view: crate::world::AgentView| {
        let parent = view.parent.map_or_else(|| "-".to_owned(), |parent| parent.to_string());
        format!("{} role={} parent={parent} depth={} {}\n", view.agent, view.role, view.depth, view.status)
    };
    let mut text = String::new();
    for line in draft.directory().map(line) {
        if text.len() + line.len() > limit::TEXT_BYTES_MAX {
            text.push_str("…\n");
            break;
        }
        text.push_str(&line);
    }
    Body::text(cut(&text, limit::TEXT_BYTES_MAX))
}
