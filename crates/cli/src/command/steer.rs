//! Steering: what a person asks of a tree, whether a process runs it or nobody does.

use std::path::Path;

use anyhow::{Result, anyhow};
use spinney_kernel::body::Body;
use spinney_kernel::budget::{Amounts, Resource};
use spinney_kernel::id::{AgentId, CallId, Seq, TreeId};
use spinney_kernel::port::journal::Journal;
use spinney_kernel::request::{Answer, Cancel, Pause, Raise, Send, Unpause};
use spinney_kernel::{Event, Request};

use crate::control::{self, GoesOn};
use crate::exit::Exit;
use crate::hint::command;
use crate::ids::{find, short};
use crate::{args, out, place};

pub(super) async fn cancel(home: &Path, args: args::Cancel) -> Result<Exit> {
    let (tree, agent) = whom(home, &args.id, args.agent)?;
    let said = format!("cancelled `{agent}`");
    let done = ask(home, tree, Request::Cancel(Cancel { agent, reason: args.reason })).await?;
    Ok(finish(done, (home, tree), &said, Next::Nothing))
}

pub(super) async fn answer(home: &Path, args: args::Answer) -> Result<Exit> {
    let (tree, _) = whom(home, &args.id, None)?;
    let (question, answer) = (CallId(args.question), Body::text(args.text));
    let done = ask(home, tree, Request::Answer(Answer { question, answer })).await?;
    Ok(finish(done, (home, tree), &format!("answered question {}", args.question), Next::Resume))
}

pub(super) async fn send(home: &Path, args: args::Send) -> Result<Exit> {
    let (tree, to) = whom(home, &args.id, Some(args.agent))?;
    let said = format!("sent to `{to}`");
    let done = ask(home, tree, Request::Send(Send::plain(to, Body::text(args.text)))).await?;
    Ok(finish(done, (home, tree), &said, Next::Resume))
}

pub(super) async fn pause(home: &Path, args: args::Whom) -> Result<Exit> {
    let (tree, agent) = whom(home, &args.id, args.agent)?;
    let said = format!("paused `{agent}`: what runs may end, nothing new starts");
    let done = ask(home, tree, Request::Pause(Pause { agent })).await?;
    Ok(finish(done, (home, tree), &said, Next::Resume))
}

pub(super) async fn unpause(home: &Path, args: args::Whom) -> Result<Exit> {
    let (tree, agent) = whom(home, &args.id, args.agent)?;
    let said = format!("unpaused `{agent}`");
    let done = ask(home, tree, Request::Unpause(Unpause { agent })).await?;
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
    let said = format!("`{agent}` may use {} more", crate::wording::spent_briefly(&add));
    let done = ask(home, tree, Request::Raise(Raise { agent, add })).await?;
    Ok(finish(done, (home, tree), &said, Next::Resume))
}

/// What is left to do if nobody runs the tree.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Nothing,
    Resume,
}

async fn ask(home: &Path, tree: TreeId, request: Request) -> Result<control::Answer> {
    control::ask(home, tree, request).await
}

pub(super) fn finish(answer: control::Answer, (home, tree): (&Path, TreeId), said: &str, next: Next) -> Exit {
    match answer {
        control::Answer::Done { goes_on, .. } => {
            let then = command(home, &format!("resume {}", short(tree)));
            out::note(&match (goes_on, next) {
                (GoesOn::WhenResumed, Next::Resume) => format!("{said}; go on with: {then}"),
                (GoesOn::WhenSpawned, _) => {
                    format!("{said}: no agent is called so yet; the message waits until one is spawned")
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
