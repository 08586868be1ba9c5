//! Commands that change a tree, whether a process runs it or not.

mod answer;
mod ask;
mod charge;
mod redirect;
mod send;

use std::path::Path;

use anyhow::{Result, bail};
use spinney_host::control::{Continues, SteerReply, steering};
use spinney_host::home::ids::{LAST, TreeInHome};
use spinney_kernel::budget::{Amounts, Resource};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{AgentId, ValueName};
use spinney_kernel::rules::request::{
    Broadcast, Cancel, Conclude, Pause, Raise, Refresh, Unpause, Verb, WriteValue,
};
use spinney_kernel::world::TreeState;
use spinney_terminal::out;
use spinney_view::agents::AgentPath;
use spinney_view::wording::{counted, short_id};

use crate::args;
use crate::error_text::of_address;
use crate::exit::Exit;
use crate::hint::{about, next_step};

pub(super) use answer::answer;
pub(super) use ask::ask as ask_agent;
pub(super) use charge::charge;
pub(super) use redirect::redirect;
pub(super) use send::send;

pub(super) async fn cancel(home: &Path, args: args::Cancel) -> Result<Exit> {
    let (place, agent) = whom_of(home, &args.tree, args.agent).await?;
    let said = format!("cancelled `{agent}`");
    let named = [agent.clone()];
    let done = ask(place, &named, Cancel { agent, reason: args.reason }).await?;
    finish(done, place, &said, Next::Nothing).await
}

pub(super) async fn refresh(home: &Path, args: args::Refresh) -> Result<Exit> {
    let (place, agent) = whom(home, args.tree.text(), Some(args.agent)).await?;
    let (named, replace) = ([agent.clone()], args.replace);
    let done = ask(place, &named, Refresh { agent, replace }).await?;
    let [agent] = named;
    let recorded = if let SteerReply::Done { reply, .. } = &done { reply.messages } else { 0 };
    let messages = counted(recorded.into(), "message");
    let (said, next) = match (recorded, replace) {
        (0, _) => (format!("`{agent}` already knew everything"), Next::Nothing),
        (_, false) => (format!("shared {messages} with `{agent}`"), Next::Resume),
        (_, true) => {
            (format!("shared {messages} with `{agent}`, replacing what it received before"), Next::Resume)
        }
    };
    finish(done, place, &said, next).await
}

pub(super) async fn broadcast(home: &Path, args: args::Broadcast) -> Result<Exit> {
    let args::Broadcast { tree, from, to, category } = args;
    let (place, from) = whom(home, tree.text(), Some(from)).await?;
    let to = steering::addresses(place, to).await.map_err(of_address)?;
    let named: Vec<AgentId> = [&from].into_iter().chain(&to).cloned().collect();
    let categories = category.into_iter().map(args::Knowledge::category).collect();
    let done = ask(place, &named, Broadcast { from, to, categories }).await?;
    let [from, to @ ..] = named.as_slice() else { unreachable!("somebody tells it") };
    let recorded: &[u32] = if let SteerReply::Done { reply, .. } = &done { &reply.messages } else { &[] };
    let each = to.iter().zip(recorded).map(|(agent, recorded)| match recorded {
        0 => format!("`{agent}` nothing new"),
        recorded => format!("`{agent}` {}", counted((*recorded).into(), "message")),
    });
    let each: Vec<String> = each.collect();
    let said = format!("shared what `{from}` knows: {}", each.join(", "));
    let is_new = recorded.iter().any(|recorded| *recorded > 0);
    finish(done, place, &said, if is_new { Next::Resume } else { Next::Nothing }).await
}

/// Cancels a whole tree, and returns what came of it.
pub(super) async fn cancel_tree(place: TreeInHome<'_>) -> Result<String> {
    let (_, agent) = whom(place.home, &place.tree.to_string(), None).await?;
    let cancel = Cancel { agent, reason: args::Cancel::REASON.to_owned() };
    Ok(match ask(place, &[], cancel).await? {
        SteerReply::Done { .. } => format!("cancelled {}", short_id(place.tree)),
        SteerReply::Refused { message, .. } | SteerReply::Failed { message } => message,
    })
}

/// Writes a shared value: JSON as it is, anything else as a text.
pub(super) async fn write_value(
    home: &Path,
    tree: &str,
    key: &str,
    set: &str,
    expect_version: Option<u64>,
) -> Result<Exit> {
    let (place, _) = whom(home, tree, None).await?;
    let name: ValueName = key.parse()?;
    let is_json = serde_json::from_str::<serde_json::Value>(set).is_ok();
    let json = if is_json { set.to_owned() } else { serde_json::Value::from(set).to_string() };
    let done = ask(place, &[], WriteValue { name, json, expect_version, tokens: None }).await?;
    let version = if let SteerReply::Done { reply, .. } = &done { reply.version } else { 0 };
    finish(done, place, &format!("wrote `{key}`, version {version}"), Next::Resume).await
}

pub(super) async fn pause(home: &Path, args: args::Whom) -> Result<Exit> {
    let (place, agent) = whom_of(home, &args.tree, args.agent).await?;
    let said = format!("paused `{agent}`: running calls finish, nothing new starts");
    let named = [agent.clone()];
    let done = ask(place, &named, Pause { agent }).await?;
    finish(done, place, &said, Next::ResumeUnpaused).await
}

pub(super) async fn conclude(home: &Path, args: args::Whom) -> Result<Exit> {
    let (place, agent) = whom_of(home, &args.tree, args.agent).await?;
    let said = format!("`{agent}` has ended with its last answer");
    let named = [agent.clone()];
    let done = ask(place, &named, Conclude { agent }).await?;
    finish(done, place, &said, Next::Nothing).await
}

pub(super) async fn unpause(home: &Path, args: args::Whom) -> Result<Exit> {
    let (place, agent) = whom_of(home, &args.tree, args.agent).await?;
    let said = format!("unpaused `{agent}`");
    let named = [agent.clone()];
    let done = ask(place, &named, Unpause::now(agent)).await?;
    finish(done, place, &said, Next::Resume).await
}

pub(super) async fn budget(home: &Path, args: args::Budget) -> Result<Exit> {
    let (place, agent) = whom_of(home, &args.tree, args.agent).await?;
    let given = [
        (Resource::Cost, args.add_usd.map(|usd| usd.nanos())),
        (Resource::Tokens, args.add_tokens),
        (Resource::Steps, args.add_steps),
        (Resource::ToolCalls, args.add_tool_calls),
        (Resource::Retries, args.add_retries),
    ];
    let add =
        given.iter().fold(Amounts::ZERO, |add, (resource, more)| add.with(*resource, more.unwrap_or(0)));
    let add_ms = args.add_time.map_or(0, |span| span.ms());
    let said = format!("`{agent}` may {}", spinney_view::wording::more(&add, add_ms));
    let named = [agent.clone()];
    let done = ask(place, &named, Raise { agent, add, add_ms }).await?;
    finish(done, place, &said, Next::Resume).await
}

/// What to suggest if no process runs the tree.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Nothing,
    Resume,
    /// Resume and end the pause: a tree with running calls does not show it yet.
    ResumeUnpaused,
    /// Only wait: the recipient does not exist yet.
    Spawn,
}

/// Sends the request. If it is refused and an agent in it does not exist, the error lists the existing ones.
pub(super) async fn ask<V: Verb>(
    place: TreeInHome<'_>,
    named: &[AgentId],
    verb: V,
) -> Result<SteerReply<V::Reply>> {
    Ok(steering::ask_about(place, named, verb, Vec::new()).await?)
}

/// Prints the result of a request and the command to run next.
pub(super) async fn finish<R>(
    answer: SteerReply<R>,
    place: TreeInHome<'_>,
    said: &str,
    next: Next,
) -> Result<Exit> {
    let TreeInHome { home, tree } = place;
    match answer {
        SteerReply::Done { continues, .. } => {
            out::note(&match (continues, next) {
                (Continues::WhenResumed, Next::Resume) => {
                    format!("{said}; {}", next_of(place).await?)
                }
                (Continues::WhenResumed, Next::ResumeUnpaused) => {
                    format!("{said}; {}", next_step(home, tree, TreeState::Paused).await)
                }
                (_, Next::Spawn) => format!("{said}; it gets the message when it is spawned"),
                (Continues::Now | Continues::WhenResumed, _) => said.to_owned(),
            });
            Ok(Exit::Completed)
        }
        SteerReply::Refused { message, refusal } => {
            let way = match refusal {
                Some(refusal) => way_out(&refusal, place).await?,
                None => None,
            };
            out::complain(&way.map_or_else(|| message.clone(), |way| format!("{message}; {way}")));
            Ok(Exit::Usage)
        }
        SteerReply::Failed { message } => {
            out::complain(&message);
            Ok(Exit::Failed)
        }
    }
}

/// What to do with a tree that is not running, by the state in its journal.
async fn next_of(place: TreeInHome<'_>) -> Result<String> {
    Ok(next_step(place.home, place.tree, steering::stored_state(place).await?).await)
}

/// A command that helps after a refusal, if there is one.
async fn way_out(refusal: &Refusal, place: TreeInHome<'_>) -> Result<Option<String>> {
    let TreeInHome { home, tree } = place;
    Ok(match refusal {
        Refusal::NotPaused { .. } if !steering::may_run(place).await => Some(next_of(place).await?),
        Refusal::AlreadyPaused { agent } => {
            Some(format!("end the pause with: {}", about(home, "unpause", tree, &[agent.as_str()])))
        }
        Refusal::UnknownQuestion { open, .. } if !open.is_empty() => {
            Some(format!("list open questions: {}", about(home, "questions", tree, &[])))
        }
        Refusal::Sealed { .. } => Some(next_of(place).await?),
        Refusal::TreeEnded => Some(format!("see how it ended: {}", about(home, "resume", tree, &[]))),
        _ => None,
    })
}

/// The tree and the agent; the root if none is named.
async fn whom<'a>(home: &'a Path, id: &str, agent: Option<AgentPath>) -> Result<(TreeInHome<'a>, AgentId)> {
    steering::address(home, id, agent).await.map_err(of_address)
}

/// The same for a verb whose agent may be left out. An agent in place of the tree is an error that says how to name it.
async fn whom_of<'a>(
    home: &'a Path,
    tree: &args::TreeArg,
    agent: Option<AgentPath>,
) -> Result<(TreeInHome<'a>, AgentId)> {
    let (is_alone, word) = (agent.is_none(), tree.text());
    match whom(home, word, agent).await {
        Err(_) if is_alone && steering::has_agent(home, LAST, word).await => {
            bail!("`{word}` is an agent: name its tree before it, as in `{LAST} {word}`")
        }
        found => found,
    }
}
