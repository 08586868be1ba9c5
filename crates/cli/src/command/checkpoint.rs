//! `spinney checkpoint`: named positions in the journals of a home.

use std::path::Path;

use anyhow::Result;
use spinney::clock::{Clock, SystemClock};
use spinney_host::checkpoints::{self, CleanedHome, NamedCheckpoint, UncleanedPlace};
use spinney_host::control::SteerReply;
use spinney_host::control::steering::{address, addresses};
use spinney_host::home::ids::TreeInHome;
use spinney_journal::{CheckpointFacts, ListedCheckpoint};
use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::definition::Refusal;
use spinney_kernel::rules::request::{Rollback, RollbackReply};
use spinney_terminal::paint::Row;
use spinney_terminal::table::{Column, Table};
use spinney_terminal::{Terminal, out};
use spinney_view::checkpoints::checkpoint_json;
use spinney_view::wording::{ago, counted, short_id};

use super::steer::{Next, ask, finish};
use crate::args;
use crate::error_text::{of_address, of_checkpoint, of_checkpoint_name};
use crate::exit::Exit;
use crate::hint::{about, command};

pub(super) async fn checkpoint(home: &Path, args: args::Checkpoint, terminal: Terminal) -> Result<Exit> {
    match args {
        args::Checkpoint::Make(args) => make(home, args).await,
        args::Checkpoint::Ls(args) => ls(home, &args, terminal).await,
        args::Checkpoint::Branch(args) => branch(home, &args).await,
        args::Checkpoint::Rollback(args) => rollback(home, args).await,
        args::Checkpoint::Clean => clean(home).await,
    }
}

/// Works whether a process runs the tree or not.
async fn make(home: &Path, args: args::CheckpointMake) -> Result<Exit> {
    let (place, agent) = address(home, args.tree.text(), Some(args.agent)).await.map_err(of_address)?;
    let tree = place.tree;
    let said = format!("checkpoint of `{agent}` in tree {}", short_id(tree));
    let named = [agent.clone()];
    let request = spinney_kernel::rules::request::Checkpoint::manual(agent, args.name);
    let answer = ask(place, &named, request).await?;
    if let SteerReply::Done { reply, .. } = &answer {
        out::line(reply.name.as_str())?;
    }
    finish(answer, place, &said, Next::Nothing).await
}

/// Makes a branch, in the journal of its origin. It does not run until it is resumed.
async fn branch(given: &Path, args: &args::CheckpointBranch) -> Result<Exit> {
    let found = named(given, &args.name).await?;
    let given = [
        (Resource::Cost, args.budget_usd.map(|usd| usd.nanos())),
        (Resource::Tokens, args.budget_tokens),
        (Resource::Steps, args.budget_steps),
    ];
    let limit = |limit: Ceilings, (resource, most): (Resource, Option<u64>)| {
        most.map_or(limit, |most| limit.with(resource, most))
    };
    let budget = given.into_iter().fold(Ceilings::NONE, limit);
    let tree = found.branch(budget).await.map_err(of_checkpoint)?;
    out::line(&tree.to_string())?;
    let ListedCheckpoint { name, tree: from, known } = &found.listed;
    let (origin, at, resume) = (short_id(*from), known.seq.0, about(&found.home, "resume", tree, &[]));
    out::note(&format!("branched off tree {origin} at `{name}`, event {at}; continue with: {resume}"));
    Ok(Exit::Completed)
}

/// Finds a checkpoint by a unique prefix of its name.
async fn named(home: &Path, text: &str) -> Result<NamedCheckpoint> {
    checkpoints::find(home, text).await.map_err(|error| of_checkpoint_name(home, error))
}

/// Works whether a process runs the tree or not.
async fn rollback(given: &Path, args: args::CheckpointRollback) -> Result<Exit> {
    let NamedCheckpoint { home, listed } = named(given, &args.name).await?;
    let (home, ListedCheckpoint { name, tree, known }) = (home.as_path(), listed);
    let place = TreeInHome { home, tree };
    let asked = addresses(place, args.into.into_iter().collect()).await.map_err(of_address)?;
    let request = Rollback::to(known.agent.clone(), known.seq, asked.first().cloned());
    let answer = ask(place, &asked, request).await?;
    let mut said = String::new();
    if let SteerReply::Done { reply: RollbackReply { agent, messages, cancelled, prior }, .. } = &answer {
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
    if let SteerReply::Refused { message, refusal: Some(refusal) } = &answer
        && matches!(**refusal, Refusal::RollbackOver { .. } | Refusal::RollbackTurns { .. })
    {
        let branch = command(home, &["checkpoint", "branch", name.as_str(), "--budget-usd", "1"]);
        out::complain(&format!("{message}, such as: {branch}"));
        return Ok(Exit::Usage);
    }
    finish(answer, place, &said, Next::Resume).await
}

/// Prints the number of removed checkpoints in all journals, even if some could not be removed.
async fn clean(path: &Path) -> Result<Exit> {
    let CleanedHome { removed, left, failed } = checkpoints::clean(path).await?;
    if removed > 0 {
        let removed = counted(removed as u64, "automatic checkpoint");
        out::line(&format!("removed {removed}, {left} left"))?;
    } else if failed.is_none() {
        out::line("nothing to remove")?;
    }
    let Some((place, why)) = failed else { return Ok(Exit::Completed) };
    Err(of_checkpoint(why).context(match place {
        UncleanedPlace::Journal(journal) => format!("nothing was removed in {}", journal.display()),
        UncleanedPlace::Tree(tree) => format!("nothing was removed from tree {}", short_id(tree)),
    }))
}

/// Oldest first.
async fn ls(home: &Path, args: &args::CheckpointLs, terminal: Terminal) -> Result<Exit> {
    let unnamed = |error| of_checkpoint_name(home, error);
    let all = checkpoints::all(home, args.agent.as_ref()).await.map_err(unnamed)?.into_iter();
    let mut listed: Vec<ListedCheckpoint> = all.map(|named| named.listed).collect();
    listed.sort_by_key(|listed| (listed.known.made, listed.tree, listed.known.seq));
    if args.json {
        for checkpoint in listed {
            out::json(&checkpoint_json(&checkpoint).to_string())?;
        }
        return Ok(Exit::Completed);
    }
    if listed.is_empty() {
        let whose = args.agent.as_ref().map(|agent| format!(" of `{agent}`")).unwrap_or_default();
        let candidate = checkpoints::candidate(home, args.agent.as_ref()).await.map_err(unnamed)?;
        let make = candidate.map(|(tree, agent)| {
            let make = command(home, &["checkpoint", "make", &short_id(tree), agent.as_str()]);
            format!(": `{make}` makes one")
        });
        out::line(&format!("no checkpoint{whose} yet{}", make.unwrap_or_default()))?;
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
        let cells =
            [name.as_str(), agent.as_str(), kind.as_str(), &short_id(*tree), &seq.0.to_string(), &made];
        table.add(cells.map(Row::plain).into());
    }
    table.write(terminal)?;
    Ok(Exit::Completed)
}
