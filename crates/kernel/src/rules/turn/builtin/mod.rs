//! The built-in tools: what an agent asks of its own tree. Their arguments are the requests of this crate, as a model
//! writes them.

pub(super) use crate::definition::Builtin;

use crate::context::{
    CancelArgs, DelegateArgs, FollowupArgs, Frame, HandBackArgs, ListArgs, ListContextArgs, PipelineArgs,
    ReadContextArgs, SendArgs, SharedText, SpawnArgs, WaitArgs, WaitMessageArgs, WriteContextArgs, read,
};
use crate::definition::{BudgetKeys, BudgetSpec, GivenMessage, OutputSchema, Refusal, Share, TimeSpan};
use crate::primitives::{Actor, AgentId, Body, Category, Envelope, TokenCount, ToolName, cut, limit};
use crate::record::{Question, Sources, ToolAsk, ValueRead, WaitFor};
use crate::rules::compat::{check_timeout, read_ask, read_spawn, read_with_budget};
use crate::rules::request::{Ask, Cancel, Collect, Followup, Send, SendReply, Spawn, SpawnReply, Wait};
use crate::rules::shared::{self, Writing};
use crate::rules::{Draft, graph, turn};
use crate::world::AgentIx;

/// Returns nothing if a call was opened that ends with the answer.
pub(super) fn run(
    draft: &mut Draft<'_>,
    ix: AgentIx,
    builtin: Builtin,
    ask: &ToolAsk,
) -> Result<Option<Answer>, Refusal> {
    let (args, tokens) = (ask.args.as_str(), ask.told_tokens);
    let agent = draft.agent_id(ix).clone();
    let by = Actor::Agent(agent.clone());
    match builtin {
        Builtin::SpawnAgent => {
            let spawn_args = read_spawn(draft, args)?;
            check_timeout(draft, builtin, args, &spawn_args.budget)?;
            let spawn = spawn(agent, spawn_args, tokens)?;
            spawn.decide(draft, &by).map(spawned)
        }
        Builtin::WaitAgent => {
            let WaitArgs { agents, need, sources, timeout } = read(builtin, args)?;
            let sources = if sources { Sources::Listed } else { Sources::LeftOut };
            let (wait, timeout_ms) = (WaitFor::Children { agents, need, sources }, timeout.map(TimeSpan::ms));
            // A wait that is over at once has ended with the answer.
            Wait { agent, wait, timeout_ms }.decide(draft, &by).map(|_| None)
        }
        Builtin::SendMessage => {
            let SendArgs { to, text, topic, kind, correlation } = read(builtin, args)?;
            let envelope = Envelope { topic, kind, correlation, ..Envelope::default() };
            let send = Send { to, body: Body { tokens, ..Body::text(text) }, envelope };
            Ok(Some(match send.decide(draft, &by)? {
                SendReply::Delivered => done(),
                SendReply::Queued if draft.rules() >= 7 => Answer::text(format!(
                    "no agent has the id `{}` yet: it will read the message when it is spawned",
                    send.to
                )),
                SendReply::Queued => Answer::text(format!(
                    "no agent is called `{}` yet: the message is kept, and read when one is spawned under that id",
                    send.to
                )),
            }))
        }
        Builtin::FollowupTask => {
            let followup_args: FollowupArgs = read_with_budget(draft, builtin, args)?;
            check_timeout(draft, builtin, args, &followup_args.budget)?;
            followup(agent, followup_args, tokens).decide(draft, &by).map(spawned)
        }
        Builtin::DelegateToAgent => {
            let delegate_args: DelegateArgs = read(builtin, args)?;
            let role = draft.definition().roles.get(&delegate_args.agent);
            if role.is_some_and(|role| role.turns.is_none()) {
                return Err(Refusal::CannotTalk { role: delegate_args.agent });
            }
            delegate(agent, delegate_args, tokens).decide(draft, &by).map(spawned)
        }
        Builtin::HandBack => {
            let HandBackArgs { message } = read(builtin, args)?;
            turn::hand_back(draft, ix, message).map(|()| None)
        }
        Builtin::RunPipeline => {
            let PipelineArgs { .. } = read(builtin, args)?;
            let written: serde_json::Value = read(builtin, args)?;
            graph::run_pipeline(draft, ix, &written).map(|()| None)
        }
        Builtin::ListAgents => {
            let ListArgs {} = read(builtin, args)?;
            Ok(Some(directory(draft).into()))
        }
        Builtin::CancelAgent => {
            let CancelArgs { agent, reason } = read(builtin, args)?;
            Cancel { agent, reason }.decide(draft, &by).map(|_| Some(done()))
        }
        Builtin::AskHuman => {
            let mut args = read_ask(args, draft.rules())?;
            let mut timeout_ms = args.timeout.map(TimeSpan::ms);
            if let Some(policy) = draft.turns_of(ix).and_then(|turns| turns.questions.as_deref()) {
                args.complete(policy);
                timeout_ms = timeout_ms.or(policy.timeout_ms);
            }
            let (text, form) = (std::mem::take(&mut args.question), args.form()?);
            let question = Question::new(text, args.on_timeout()?).in_form(form);
            Ask { agent, question, timeout_ms }.decide(draft, &by).map(|_| None)
        }
        Builtin::WaitMessage => {
            let WaitMessageArgs { timeout } = read(builtin, args)?;
            let timeout_ms = timeout.map(TimeSpan::ms);
            Wait { agent, wait: WaitFor::Message, timeout_ms }.decide(draft, &by).map(|_| None)
        }
        Builtin::ReadContext => {
            let ReadContextArgs { key } = read(builtin, args)?;
            let (body, value) = shared::read(draft, ix, &key)?;
            Ok(Some(Answer { body, value: Some(Box::new(value)) }))
        }
        Builtin::WriteContext => {
            let WriteContextArgs { key, value, expect_version } = read(builtin, args)?;
            let text = SharedText::from_json(value.get()).ok_or_else(|| Refusal::BadArguments {
                tool: ToolName::of_builtin(builtin.as_str()),
                reason: "`value` is not JSON that can be read".to_owned(),
            })?;
            let writing = Writing { name: key, text, tokens, expect_version };
            let version = shared::write(draft, ix, &writing)?;
            Ok(Some(Answer::text(format!("wrote {} version {version}", writing.name))))
        }
        Builtin::ListContext => {
            let ListContextArgs { prefix } = read(builtin, args)?;
            Ok(Some(shared::list(draft, ix, &prefix).into()))
        }
    }
}

/// What a model reads as the result of a tool call that the kernel answers.
pub(super) struct Answer {
    pub(super) body: Body,
    /// The shared value that follows it.
    pub(super) value: Option<Box<ValueRead>>,
}

impl Answer {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Body::text(text).into()
    }
}

impl From<Body> for Answer {
    fn from(body: Body) -> Self {
        Self { body, value: None }
    }
}

fn done() -> Answer {
    Answer::text("done")
}

fn spawned(SpawnReply { agent, call }: SpawnReply) -> Option<Answer> {
    call.is_none().then(|| Answer::text(format!("spawned {agent}")))
}

fn spawn(parent: AgentId, args: SpawnArgs, goal_tokens: Option<TokenCount>) -> Result<Spawn, Refusal> {
    let SpawnArgs {
        agent: role,
        goal,
        id,
        model,
        tools,
        budget,
        timeout,
        detach,
        share,
        output_schema,
        window,
        messages,
    } = args;
    let (budget, collect) = terms(&budget, timeout, detach);
    let given = |text| GivenMessage { category: Category::Context, body: Body::text(text) };
    let messages = messages.into_iter().map(given).collect();
    let output_schema = output_schema.as_deref().map(OutputSchema::written).transpose()?.map(Box::new);
    Ok(Spawn {
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
        talks: false,
        frame: Frame { window, output_schema },
    })
}

fn delegate(parent: AgentId, args: DelegateArgs, goal_tokens: Option<TokenCount>) -> Spawn {
    let DelegateArgs { agent: role, task, id, turns, budget } = args;
    Spawn {
        parent,
        role,
        goal: task,
        goal_tokens,
        id,
        model: None,
        tools: None,
        budget: budget.spec(),
        collect: Collect::Call,
        share: Some(Share::Fork(turns.unwrap_or(limit::DELEGATED_TURNS))),
        messages: Vec::new(),
        talks: true,
        frame: Frame::default(),
    }
}

fn followup(parent: AgentId, args: FollowupArgs, task_tokens: Option<TokenCount>) -> Followup {
    let FollowupArgs { agent, task, budget, timeout, detach } = args;
    let (budget, collect) = terms(&budget, timeout, detach);
    Followup { parent, agent, task, task_tokens, budget, collect }
}

/// A child's budget, and how its parent gets the result.
fn terms(budget: &BudgetKeys, timeout: Option<TimeSpan>, detach: bool) -> (BudgetSpec, Collect) {
    let mut budget = budget.spec();
    if let Some(timeout) = timeout {
        (budget.timeout_ms, budget.timeout_wall) = (Some(timeout.ms()), false);
    }
    (budget, if detach { Collect::Detached } else { Collect::Call })
}

/// One line per agent, as far as a text may be long.
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
