//! Commands that change a tree, whether a process runs it or not.

mod answer;
mod send;

use std::path::Path;

use anyhow::{Result, anyhow};
use spinney_host::control::{self, Asked, GoesOn, RunningTrees, running};
use spinney_host::home;
use spinney_host::home::ids::{LAST, NamedTree, TreeInHome, find};
use spinney_journal::{Blocking, Journal};
use spinney_kernel::budget::{Amounts, Resource};
use spinney_kernel::definition::Refusal;
use spinney_kernel::record::Event;
use spinney_kernel::rules::request::{Broadcast, Cancel, Pause, Raise, Refresh, Unpause, Verb, WriteValue};
use spinney_kernel::words::{AgentId, Seq, TreeId, ValueName};
use spinney_kernel::world::TreeState;
use spinney_view::agents::{self, AgentPath};
use spinney_view::wording::{counted, short_id};

use crate::args;
use crate::exit::Exit;
use crate::hint::{about, go_on};
use crate::terminal::out;

pub(super) use answer::answer;
pub(super) use send::send;

pub(super) async fn cancel(home: &Path, args: args::Cancel) -> Result<Exit> {
    let (place, agent) = whom_of(home, &args.tree, args.agent)?;
    let said = format!("cancelled `{agent}`");
    let named = [agent.clone()];
    let done = ask(place, &named, Cancel { agent, reason: args.reason }).await?;
    finish(done, place, &said, Next::Nothing).await
}

pub(super) async fn refresh(home: &Path, args: args::Refresh) -> Result<Exit> {
    let (place, agent) = whom(home, args.tree.text(), Some(args.agent))?;
    let (named, replace) = ([agent.clone()], args.replace);
    let done = ask(place, &named, Refresh { agent, replace }).await?;
    let [agent] = named;
    let recorded = if let Asked::Done { reply, .. } = &done { reply.messages } else { 0 };
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
    let (place, from) = whom(home, tree.text(), Some(from))?;
    let journal = home::look(home)?;
    let to = to.into_iter().map(|path| Ok(agents::at(&journal, place.tree, path).wait()??));
    let to = to.collect::<Result<Vec<AgentId>>>()?;
    let named: Vec<AgentId> = [&from].into_iter().chain(&to).cloned().collect();
    let categories = category.into_iter().map(args::Knowledge::category).collect();
    let done = ask(place, &named, Broadcast { from, to, categories }).await?;
    let [from, to @ ..] = named.as_slice() else { unreachable!("somebody tells it") };
    let recorded: &[u32] = if let Asked::Done { reply, .. } = &done { &reply.messages } else { &[] };
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
    let agent = root(&home::look(place.home)?, place.tree)?;
    let cancel = Cancel { agent, reason: args::Cancel::REASON.to_owned() };
    Ok(match ask(place, &[], cancel).await? {
        Asked::Done { .. } => format!("cancelled {}", short_id(place.tree)),
        Asked::Refused { message, .. } | Asked::Failed { message } => message,
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
    let (place, _) = whom(home, tree, None)?;
    let name: ValueName = key.parse()?;
    let is_json = serde_json::from_str::<serde_json::Value>(set).is_ok();
    let json = if is_json { set.to_owned() } else { serde_json::Value::from(set).to_string() };
    let done = ask(place, &[], WriteValue { name, json, expect_version, tokens: None }).await?;
    let version = if let Asked::Done { reply, .. } = &done { reply.version } else { 0 };
    finish(done, place, &format!("wrote `{key}`, version {version}"), Next::Resume).await
}

pub(super) async fn pause(home: &Path, args: args::Whom) -> Result<Exit> {
    let (place, agent) = whom_of(home, &args.tree, args.agent)?;
    let said = format!("paused `{agent}`: running calls finish, nothing new starts");
    let named = [agent.clone()];
    let done = ask(place, &named, Pause { agent }).await?;
    finish(done, place, &said, Next::ResumeUnpaused).await
}

pub(super) async fn unpause(home: &Path, args: args::Whom) -> Result<Exit> {
    let (place, agent) = whom_of(home, &args.tree, args.agent)?;
    let said = format!("unpaused `{agent}`");
    let named = [agent.clone()];
    let done = ask(place, &named, Unpause::now(agent)).await?;
    finish(done, place, &said, Next::Resume).await
}

pub(super) async fn budget(home: &Path, args: args::Budget) -> Result<Exit> {
    let (place, agent) = whom_of(home, &args.tree, args.agent)?;
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
) -> Result<Asked<V::Reply>> {
    ask_with(place, named, verb, Vec::new()).await
}

/// The same with the bytes of the request's parts.
async fn ask_with<V: Verb>(
    TreeInHome { home, tree }: TreeInHome<'_>,
    named: &[AgentId],
    verb: V,
    bytes: Vec<Vec<u8>>,
) -> Result<Asked<V::Reply>> {
    let answer = control::ask_with(home, tree, verb, bytes).await?;
    if named.is_empty() || !matches!(answer, Asked::Refused { .. }) {
        return Ok(answer);
    }
    let journal = home::look(home)?;
    if journal.head(tree).wait()?.is_none_or(|head| head.state.is_over()) {
        return Ok(answer);
    }
    let known = agents::known(&journal, tree).await?;
    let stranger = named.iter().find(|agent| !known.contains(agent));
    let refused = |agent| Asked::Refused { message: agents::unknown(agent, &known), refusal: None };
    Ok(stranger.map_or(answer, refused))
}

/// Prints the result of a request and the command to run next.
pub(super) async fn finish<R>(
    answer: Asked<R>,
    place: TreeInHome<'_>,
    said: &str,
    next: Next,
) -> Result<Exit> {
    let TreeInHome { home, tree } = place;
    match answer {
        Asked::Done { goes_on, .. } => {
            out::note(&match (goes_on, next) {
                (GoesOn::WhenResumed, Next::Resume) => {
                    format!("{said}; continue with: {}", go_on(home, tree, state(home, tree)?))
                }
                (GoesOn::WhenResumed, Next::ResumeUnpaused) => {
                    format!("{said}; continue with: {}", go_on(home, tree, TreeState::Paused))
                }
                (_, Next::Spawn) => format!("{said}; it gets the message when it is spawned"),
                (GoesOn::Now | GoesOn::WhenResumed, _) => said.to_owned(),
            });
            Ok(Exit::Completed)
        }
        Asked::Refused { message, refusal } => {
            let way = match refusal {
                Some(refusal) => way_out(&refusal, place).await?,
                None => None,
            };
            out::complain(&way.map_or_else(|| message.clone(), |way| format!("{message}; {way}")));
            Ok(Exit::Usage)
        }
        Asked::Failed { message } => {
            out::complain(&message);
            Ok(Exit::Failed)
        }
    }
}

/// The state in the tree's journal.
fn state(home: &Path, tree: TreeId) -> Result<TreeState> {
    Ok(home::look(home)?.head(tree).wait()?.map_or(TreeState::New, |head| head.state))
}

/// A command that helps after a refusal, if there is one.
async fn way_out(refusal: &Refusal, TreeInHome { home, tree }: TreeInHome<'_>) -> Result<Option<String>> {
    let runs = async || match running(home).await {
        RunningTrees::Trees(trees) => trees.contains(&tree),
        RunningTrees::Silent(_) | RunningTrees::Unknown => true,
        RunningTrees::Nobody => false,
    };
    Ok(match refusal {
        Refusal::NotPaused { .. } if !runs().await => {
            Some(format!("continue with: {}", go_on(home, tree, state(home, tree)?)))
        }
        Refusal::AlreadyPaused { agent } => {
            Some(format!("end the pause with: {}", about(home, "unpause", tree, &[agent.as_str()])))
        }
        Refusal::UnknownQuestion { open, .. } if !open.is_empty() => {
            Some(format!("list open questions: {}", about(home, "questions", tree, &[])))
        }
        Refusal::TreeEnded => Some(format!("see how it ended: {}", about(home, "resume", tree, &[]))),
        _ => None,
    })
}

/// The tree and the agent; the root if none is named.
fn whom<'a>(home: &'a Path, id: &str, agent: Option<AgentPath>) -> Result<(TreeInHome<'a>, AgentId)> {
    let journal = home::look(home)?;
    let tree = find(home, &journal, id)?.tree;
    let agent = match agent {
        Some(path) => agents::at(&journal, tree, path).wait()??,
        None => root(&journal, tree)?,
    };
    Ok((TreeInHome { home, tree }, agent))
}

/// The same for a verb whose agent may be left out. An agent in place of the tree is an error that says how to name it.
fn whom_of<'a>(
    home: &'a Path,
    tree: &args::TreeArg,
    agent: Option<AgentPath>,
) -> Result<(TreeInHome<'a>, AgentId)> {
    let is_alone = agent.is_none();
    whom(home, tree.text(), agent).map_err(|error| {
        let of_last = || -> Result<bool> {
            let NamedTree { journal, tree: last, .. } = NamedTree::find(home, LAST)?;
            let known = agents::known(&journal, last).wait()?;
            Ok(known.iter().any(|id| id.as_str() == tree.text()))
        };
        let is_agent = is_alone && of_last().unwrap_or(false);
        if is_agent {
            let agent = tree.text();
            return anyhow!("`{agent}` is an agent: name its tree before it, as in `{LAST} {agent}`");
        }
        error
    })
}

/// A tree's root, which its first batch spawns.
fn root(journal: &dyn Journal, tree: TreeId) -> Result<AgentId> {
    let root = first(journal, tree)?
        .into_iter()
        .find_map(|event| if let Event::AgentSpawned(born) = event { Some(born.agent) } else { None });
    root.ok_or_else(|| anyhow!("tree {tree} has no root: its journal is empty"))
}

/// The events of a tree's first batch.
fn first(journal: &dyn Journal, tree: TreeId) -> Result<Vec<Event>> {
    let first = journal.read(tree, Seq(0), 1).wait()?;
    Ok(first.into_iter().flat_map(|entry| entry.batch.events).collect())
}
