//! Steering: what a person asks of a tree, whether a process runs it or nobody does.

use std::path::Path;

use anyhow::{Result, anyhow};
use spinney_journal::Journal;
use spinney_kernel::budget::{Amounts, Resource};
use spinney_kernel::record::Event;
use spinney_kernel::rules::request::{
    Answer, Broadcast, Cancel, Pause, Raise, Refresh, Request, Send, Unpause,
};
use spinney_kernel::words::{AgentId, Body, CallId, Envelope, Seq, TreeId, enclose};

use crate::control::{self, GoesOn};
use crate::exit::Exit;
use crate::hint::command;
use crate::ids::{find, short};
use crate::wording::counted;
use crate::{agents, args, enclosing, out, place};

pub(super) async fn cancel(home: &Path, args: args::Cancel) -> Result<Exit> {
    let (tree, agent) = whom(home, &args.id, args.agent)?;
    let said = format!("cancelled `{agent}`");
    let named = [agent.clone()];
    let done = ask((home, tree), &named, Request::Cancel(Cancel { agent, reason: args.reason })).await?;
    Ok(finish(done, (home, tree), &said, Next::Nothing))
}

pub(super) async fn answer(home: &Path, args: args::Answer) -> Result<Exit> {
    let (tree, _) = whom(home, &args.id, None)?;
    let (question, answer) = (CallId(args.question), Body::text(args.text));
    let done = ask((home, tree), &[], Request::Answer(Answer { question, answer })).await?;
    Ok(finish(done, (home, tree), &format!("answered question {}", args.question), Next::Resume))
}

pub(super) async fn send(home: &Path, args: args::Send) -> Result<Exit> {
    let (tree, to) = whom(home, &args.id, Some(args.agent))?;
    let named = [to.clone()];
    let envelope = Envelope { category: args.category.category(), ..Envelope::default() };
    let enclosures = args.files.iter().map(|path| enclosing::read(path)).collect::<Result<Vec<_>>>()?;
    let (parts, bytes) = enclose(enclosures)?;
    let with = match parts.len() {
        0 => String::new(),
        count => format!(" with {}", counted(count as u64, "file")),
    };
    let send = Send { to, body: Body::text(args.text).with_parts(parts), envelope };
    let done = ask_with((home, tree), &named, (Request::Send(send), bytes)).await?;
    let [to] = named;
    let mut said = format!("sent to `{to}`{with}");
    if let control::Answer::Done { goes_on: GoesOn::WhenSpawned, .. } = done {
        let known = agents::known(&place::look(home)?, tree)?;
        said += &format!(": no agent is called so yet ({})", agents::meant(&to, &known));
    }
    Ok(finish(done, (home, tree), &said, Next::Resume))
}

pub(super) async fn refresh(home: &Path, args: args::Refresh) -> Result<Exit> {
    let (tree, agent) = whom(home, &args.id, Some(args.agent))?;
    let (named, replace) = ([agent.clone()], args.replace);
    let done = ask((home, tree), &named, Request::Refresh(Refresh { agent, replace })).await?;
    let [agent] = named;
    let told = told(&done).first().copied().unwrap_or(0);
    let messages = counted(told.into(), "message");
    let (said, next) = match (told, replace) {
        (0, _) => (format!("nothing was new to `{agent}`"), Next::Nothing),
        (_, false) => (format!("`{agent}` is told {messages} that it did not know"), Next::Resume),
        (_, true) => {
            (format!("`{agent}` is told {messages} instead of what it was told before"), Next::Resume)
        }
    };
    Ok(finish(done, (home, tree), &said, next))
}

pub(super) async fn broadcast(home: &Path, args: args::Broadcast) -> Result<Exit> {
    let args::Broadcast { id, from, to, category } = args;
    let (tree, from) = whom(home, &id, Some(from))?;
    let named: Vec<AgentId> = [&from].into_iter().chain(&to).cloned().collect();
    let categories = category.into_iter().map(args::Knowledge::category).collect();
    let done = ask((home, tree), &named, Request::Broadcast(Broadcast { from, to, categories })).await?;
    let [from, to @ ..] = named.as_slice() else { unreachable!("somebody tells it") };
    let each = to.iter().zip(told(&done)).map(|(agent, told)| match told {
        0 => format!("`{agent}` nothing new"),
        told => format!("`{agent}` {}", counted((*told).into(), "message")),
    });
    let each: Vec<String> = each.collect();
    let said = format!("told of what `{from}` knows: {}", each.join(", "));
    let is_new = told(&done).iter().any(|told| *told > 0);
    Ok(finish(done, (home, tree), &said, if is_new { Next::Resume } else { Next::Nothing }))
}

/// How many messages each agent was told that was to be told something.
fn told(answer: &control::Answer) -> &[u32] {
    match answer {
        control::Answer::Done { messages, .. } => messages,
        control::Answer::Refused { .. }
        | control::Answer::Failed { .. }
        | control::Answer::Running { .. } => &[],
    }
}

pub(super) async fn pause(home: &Path, args: args::Whom) -> Result<Exit> {
    let (tree, agent) = whom(home, &args.id, args.agent)?;
    let said = format!("paused `{agent}`: what runs may end, nothing new starts");
    let named = [agent.clone()];
    let done = ask((home, tree), &named, Request::Pause(Pause { agent })).await?;
    Ok(finish(done, (home, tree), &said, Next::Resume))
}

pub(super) async fn unpause(home: &Path, args: args::Whom) -> Result<Exit> {
    let (tree, agent) = whom(home, &args.id, args.agent)?;
    let said = format!("unpaused `{agent}`");
    let named = [agent.clone()];
    let done = ask((home, tree), &named, Request::Unpause(Unpause { agent })).await?;
    Ok(finish(done, (home, tree), &said, Next::Resume))
}

pub(super) async fn budget(home: &Path, args: args::Budget) -> Result<Exit> {
    let (tree, agent) = whom(home, &args.id, args.agent)?;
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
    let said = format!("`{agent}` may {}", crate::wording::more(&add, add_ms));
    let named = [agent.clone()];
    let done = ask((home, tree), &named, Request::Raise(Raise { agent, add, add_ms })).await?;
    Ok(finish(done, (home, tree), &said, Next::Resume))
}

/// What is left to do if nobody runs the tree.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Nothing,
    Resume,
}

/// Has it done. If it is refused and one of the agents that it names is not there, that is why, with those that are.
pub(super) async fn ask(
    place: (&Path, TreeId),
    named: &[AgentId],
    request: Request,
) -> Result<control::Answer> {
    ask_with(place, named, (request, Vec::new())).await
}

/// The same with the bytes of the request's parts.
async fn ask_with(
    (home, tree): (&Path, TreeId),
    named: &[AgentId],
    (request, bytes): (Request, Vec<Vec<u8>>),
) -> Result<control::Answer> {
    let answer = control::ask_with(home, tree, request, bytes).await?;
    if named.is_empty() || !matches!(answer, control::Answer::Refused { .. }) {
        return Ok(answer);
    }
    let journal = place::look(home)?;
    if journal.head(tree)?.is_none_or(|head| head.is_over()) {
        return Ok(answer);
    }
    let known = agents::known(&journal, tree)?;
    let stranger = named.iter().find(|agent| !known.contains(agent));
    let refused = |agent| control::Answer::Refused { message: agents::unknown(agent, &known) };
    Ok(stranger.map_or(answer, refused))
}

pub(super) fn finish(answer: control::Answer, (home, tree): (&Path, TreeId), said: &str, next: Next) -> Exit {
    match answer {
        control::Answer::Done { goes_on, .. } => {
            let then = command(home, &format!("resume {}", short(tree)));
            out::note(&match (goes_on, next) {
                (GoesOn::WhenResumed, Next::Resume) => format!("{said}; go on with: {then}"),
                (GoesOn::WhenSpawned, _) => {
                    format!("{said}; the message waits until one is spawned")
                }
                (GoesOn::Now | GoesOn::WhenResumed, _) => said.to_owned(),
            });
            Exit::Completed
        }
        control::Answer::Refused { message } => {
            out::complain(&message);
            Exit::Usage
        }
        control::Answer::Failed { message } => {
            out::complain(&message);
            Exit::Failed
        }
        control::Answer::Running { .. } => {
            out::complain("the process that has this home open answered something else");
            Exit::Failed
        }
    }
}

/// The tree that is meant, and the agent: its root if none is named.
fn whom(home: &Path, id: &str, agent: Option<AgentId>) -> Result<(TreeId, AgentId)> {
    let journal = place::look(home)?;
    let tree = find(home, &journal, id)?.tree;
    match agent {
        Some(agent) => Ok((tree, agent)),
        None => Ok((tree, root(&journal, tree)?)),
    }
}

/// A tree's root: its first batch spawns it.
fn root(journal: &dyn Journal, tree: TreeId) -> Result<AgentId> {
    let first = journal.read(tree, Seq(0), 1)?;
    let mut events = first.into_iter().flat_map(|entry| entry.batch.events);
    let root =
        events.find_map(|event| if let Event::AgentSpawned(born) = event { Some(born.agent) } else { None });
    root.ok_or_else(|| anyhow!("tree {tree} has no root: its journal is empty"))
}
