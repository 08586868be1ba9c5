//! `spinney checkpoint`: named positions in the journals of a home.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use serde_json::json;
use spinney::clock::{Clock, SystemClock};
use spinney::tree::{BranchError, BranchOff};
use spinney::{Drivers, Home};
use spinney_host::control::Asked;
use spinney_host::home;
use spinney_host::home::ids::{TreeInHome, find};
use spinney_host::home::old_copies;
use spinney_host::trust::tree_marks;
use spinney_journal::{
    Blocking, CheckpointFacts, Cleaned, Journal, ListedCheckpoint, checkpoints, started_sources,
};
use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::definition::Refusal;
use spinney_kernel::rules::request::{Rollback, RollbackReply};
use spinney_kernel::words::{Actor, AgentId};
use spinney_view::agents;
use spinney_view::wording::{ago, counted, short_id};

use super::steer::{Next, ask, finish};
use crate::args;
use crate::exit::Exit;
use crate::hint::{about, command};
use crate::terminal::paint::Row;
use crate::terminal::table::{Column, Table};
use crate::terminal::{Terminal, out};

pub(super) async fn checkpoint(home: &Path, args: args::Checkpoint, terminal: Terminal) -> Result<Exit> {
    match args {
        args::Checkpoint::Make(args) => make(home, args).await,
        args::Checkpoint::Ls(args) => ls(home, &args, terminal),
        args::Checkpoint::Branch(args) => branch(home, &args).await,
        args::Checkpoint::Rollback(args) => rollback(home, args).await,
        args::Checkpoint::Clean => clean(home).await,
    }
}

/// Works whether a process runs the tree or not.
async fn make(home: &Path, args: args::CheckpointMake) -> Result<Exit> {
    let journal = home::look(home)?;
    let tree = find(home, &journal, args.tree.text())?.tree;
    let agent = agents::at(&journal, tree, args.agent).await??;
    let said = format!("checkpoint of `{agent}` in tree {}", short_id(tree));
    let named = [agent.clone()];
    let request = spinney_kernel::rules::request::Checkpoint::manual(agent, args.name);
    let answer = ask(TreeInHome { home, tree }, &named, request).await?;
    if let Asked::Done { reply, .. } = &answer {
        out::line(reply.name.as_str())?;
    }
    finish(answer, TreeInHome { home, tree }, &said, Next::Nothing).await
}

/// Makes a branch. It does not run until it is resumed.
async fn branch(path: &Path, args: &args::CheckpointBranch) -> Result<Exit> {
    let ListedCheckpoint { name, tree: from, known } = named(path, &args.name)?;
    let given = [
        (Resource::Cost, args.budget_usd.map(|usd| usd.nanos())),
        (Resource::Tokens, args.budget_tokens),
        (Resource::Steps, args.budget_steps),
    ];
    let limit = |limit: Ceilings, (resource, most): (Resource, Option<u64>)| {
        most.map_or(limit, |most| limit.with(resource, most))
    };
    let budget = given.into_iter().fold(Ceilings::NONE, limit);
    let home = Home::open(Arc::new(home::write(path)?), Drivers::new()).with_actor(Actor::PERSON);
    let tree = home.draw_id();
    if started_sources(home.journal().as_ref(), from).await?.is_empty() {
        // An older release started it, and kept its files in a folder.
        old_copies::copy(path, from, tree)?;
    }
    let off = BranchOff { from, at: known.seq, agent: known.agent, budget };
    let branched = home.branch(tree, off).await;
    home::settle(path, home.journal().as_ref());
    if let Err(error) = branched {
        return Err(match error {
            BranchError::Journal(fault) => fault.into(),
            BranchError::Refused(refusal) => refusal.into(),
        });
    }
    tree_marks::branched(path, home.journal().as_ref(), from, tree);
    out::line(&tree.to_string())?;
    let (origin, at, resume) = (short_id(from), known.seq.0, about(path, "resume", tree, &[]));
    out::note(&format!("branched off tree {origin} at `{name}`, event {at}; continue with: {resume}"));
    Ok(Exit::Completed)
}

/// Works whether a process runs the tree or not.
async fn rollback(home: &Path, args: args::CheckpointRollback) -> Result<Exit> {
    let ListedCheckpoint { name, tree, known } = named(home, &args.name)?;
    let into = match args.into {
        Some(path) => Some(agents::at(&home::look(home)?, tree, path).await??),
        None => None,
    };
    let asked: Vec<AgentId> = into.iter().cloned().collect();
    let request = Rollback::to(known.agent.clone(), known.seq, into);
    let place = TreeInHome { home, tree };
    let answer = ask(place, &asked, request).await?;
    let mut said = String::new();
    if let Asked::Done { reply: RollbackReply { agent, messages, cancelled, prior }, .. } = &answer {
        out::line(prior.as_str())?;
        let whose = if *agent == known.agent { String::new() } else { format!(" of `{}`", known.agent) };
        let messages = counted(*messages, "message");
        said = format!("restored `{agent}` from checkpoint `{name}`{whose}: {messages}");
        if !cancelled.is_empty() {
            let children: Vec<String> = cancelled.iter().map(|child| format!("`{child}`")).collect();
            said += &format!("; cancelled {}", children.join(", "));
        }
        said += &format!("; the context before that is checkpoint `{prior}`");
    }
    if let Asked::Refused { message, refusal: Some(refusal) } = &answer
        && matches!(**refusal, Refusal::RollbackOver { .. } | Refusal::RollbackTurns { .. })
    {
        let branch = command(home, &["checkpoint", "branch", name.as_str(), "--budget-usd", "1"]);
        out::complain(&format!("{message}, such as: {branch}"));
        return Ok(Exit::Usage);
    }
    finish(answer, place, &said, Next::Resume).await
}

/// Prints the number of removed checkpoints, even if some could not be removed.
async fn clean(path: &Path) -> Result<Exit> {
    drop(home::look(path)?);
    let home = Home::open(Arc::new(home::write(path)?), Drivers::new()).with_actor(Actor::PERSON);
    let Cleaned { removed, left, failed } = home.clean_checkpoints().await?;
    if removed > 0 {
        let removed = counted(removed as u64, "automatic checkpoint");
        out::line(&format!("removed {removed}, {left} left"))?;
    } else if failed.is_empty() {
        out::line("nothing to remove")?;
    }
    match failed.into_iter().next() {
        Some((tree, fault)) => {
            Err(anyhow::Error::new(fault)
                .context(format!("nothing was removed from tree {}", short_id(tree))))
        }
        None => Ok(Exit::Completed),
    }
}

/// Finds a checkpoint by a unique prefix of its name.
fn named(home: &Path, text: &str) -> Result<ListedCheckpoint> {
    let all = checkpoints(&home::look(home)?, None).wait()?;
    let is_exact = |listed: &ListedCheckpoint| listed.name.as_str() == text;
    let exact = all.iter().any(is_exact);
    let fits = |listed: &ListedCheckpoint| {
        if exact { is_exact(listed) } else { listed.name.as_str().starts_with(text) }
    };
    let mut found: Vec<ListedCheckpoint> = all.into_iter().filter(fits).collect();
    let ls = command(home, &["checkpoint", "ls"]);
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => bail!("no checkpoint starts with `{text}`: `{ls}` lists all of them"),
        many => bail!("{many} checkpoints start with `{text}`: use more characters; `{ls}` lists them"),
    }
}

/// The command that makes a checkpoint of this agent, or of the newest tree's root. `None` if no tree has it.
fn makes_one(home: &Path, agent: Option<&AgentId>) -> Result<Option<String>> {
    let journal = home::look(home)?;
    let Some(newest) = journal.heads(&[]).wait()?.into_iter().rfind(|head| !head.state.is_over()) else {
        return Ok(None);
    };
    let known = agents::known(&journal, newest.tree).wait()?;
    let found = match agent {
        Some(agent) => known.into_iter().find(|known| known == agent),
        None => known.into_iter().next(),
    };
    let tree = short_id(newest.tree);
    Ok(found.map(|agent| command(home, &["checkpoint", "make", &tree, agent.as_str()])))
}

/// Oldest first.
fn ls(home: &Path, args: &args::CheckpointLs, terminal: Terminal) -> Result<Exit> {
    let mut listed = checkpoints(&home::look(home)?, args.agent.as_ref()).wait()?;
    listed.sort_by_key(|listed| (listed.known.made, listed.tree, listed.known.seq));
    if args.json {
        for checkpoint in listed {
            out::json(&line(&checkpoint))?;
        }
        return Ok(Exit::Completed);
    }
    if listed.is_empty() {
        let whose = args.agent.as_ref().map(|agent| format!(" of `{agent}`")).unwrap_or_default();
        let make = makes_one(home, args.agent.as_ref())?;
        let make = make.map(|make| format!(": `{make}` makes one")).unwrap_or_default();
        out::line(&format!("no checkpoint{whose} yet{make}"))?;
        return Ok(Exit::Completed);
    }
    let now = SystemClock::new().now_ms();
    let mut table = Table::new(vec![
        // A name is there to be copied.
        Column::left("NAME"),
        Column::left("AGENT").shrinking(),
        Column::left("KIND").expendable(2),
        Column::left("TREE"),
        Column::right("EVENT").expendable(3),
        Column::left("MADE").expendable(1),
    ]);
    for ListedCheckpoint { name, tree, known } in &listed {
        let CheckpointFacts { agent, kind, seq, made, .. } = known;
        let made = ago(now.saturating_sub(made.0));
        let cells = [name.as_str(), agent.as_str(), kind.word(), &short_id(*tree), &seq.0.to_string(), &made];
        table.add(cells.map(Row::plain).into());
    }
    table.write(terminal)?;
    Ok(Exit::Completed)
}

fn line(ListedCheckpoint { name, tree, known }: &ListedCheckpoint) -> String {
    let line = json!({
        "checkpoint": name,
        "agent": known.agent,
        "kind": known.kind,
        "tree": tree,
        "seq": known.seq,
        "made": known.made,
    });
    line.to_string()
}
