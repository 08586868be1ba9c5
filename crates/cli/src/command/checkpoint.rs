//! `spinney checkpoint`: named positions in the journals of a home.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use serde_json::json;
use spinney::clock::{Clock, SystemClock};
use spinney::tree::BranchOff;
use spinney::{Drivers, Home};
use spinney_host::control::{Asked, ControlAnswer, ControlAsk, ReachedHome, reach};
use spinney_host::home;
use spinney_host::home::ids::{TreeInHome, find};
use spinney_host::home::side_journals;
use spinney_host::{BranchTreeError, OpenHome};
use spinney_journal::{Blocking, CheckpointFacts, Cleaned, Head, Journal, ListedCheckpoint, checkpoints};
use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::definition::Refusal;
use spinney_kernel::rules::request::{Rollback, RollbackReply};
use spinney_kernel::words::{Actor, AgentId};
use spinney_store::SqliteJournal;
use spinney_view::agents;
use spinney_view::wording::{ago, counted, short_id};

use super::steer::{Next, ask, finish};
use crate::args;
use crate::exit::Exit;
use crate::hint::{about, command, command_in};
use crate::terminal::paint::Row;
use crate::terminal::table::{Column, Table};
use crate::terminal::{Terminal, out};

/// Most checkpoints of one name that are listed.
const LISTED_MAX: usize = 8;

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

/// Makes a branch, in the journal of its origin. It does not run until it is resumed.
async fn branch(given: &Path, args: &args::CheckpointBranch) -> Result<Exit> {
    let NamedCheckpoint { home, listed } = named(given, &args.name)?;
    let (path, ListedCheckpoint { name, tree: from, known }) = (home.as_path(), listed);
    let given = [
        (Resource::Cost, args.budget_usd.map(|usd| usd.nanos())),
        (Resource::Tokens, args.budget_tokens),
        (Resource::Steps, args.budget_steps),
    ];
    let limit = |limit: Ceilings, (resource, most): (Resource, Option<u64>)| {
        most.map_or(limit, |most| limit.with(resource, most))
    };
    let budget = given.into_iter().fold(Ceilings::NONE, limit);
    let (at, agent) = (known.seq, known.agent);
    let ask = ControlAsk::Branch { from, at, agent: agent.clone(), budget };
    let tree = match reach(path, Some(from), &ask).await? {
        ReachedHome::Free(journal) => {
            let open = OpenHome::new(path, Arc::new(*journal));
            open.branch(BranchOff { from, at, agent, budget }).await.map_err(|error| match error {
                BranchTreeError::Journal(fault) => anyhow::Error::new(fault),
                BranchTreeError::Refused(refusal) => refusal.into(),
                other => other.into(),
            })?
        }
        ReachedHome::Answered(ControlAnswer::Branched { tree }) => tree,
        ReachedHome::Answered(answer) => bail!(not_done(answer)),
    };
    out::line(&tree.to_string())?;
    let (origin, at, resume) = (short_id(from), at.0, about(path, "resume", tree, &[]));
    out::note(&format!("branched off tree {origin} at `{name}`, event {at}; continue with: {resume}"));
    Ok(Exit::Completed)
}

/// Why the process that has a journal open did not do it.
fn not_done(answer: ControlAnswer) -> String {
    match answer {
        ControlAnswer::Refused { message, .. } | ControlAnswer::Failed { message } => message,
        _ => "the process that has this home open answered another request".to_owned(),
    }
}

/// Works whether a process runs the tree or not.
async fn rollback(given: &Path, args: args::CheckpointRollback) -> Result<Exit> {
    let NamedCheckpoint { home, listed } = named(given, &args.name)?;
    let (home, ListedCheckpoint { name, tree, known }) = (home.as_path(), listed);
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

/// Prints the number of removed checkpoints in all journals, even if some could not be removed. In a journal that another
/// process has open, that process removes them.
async fn clean(path: &Path) -> Result<Exit> {
    let journals = side_journals::journals(path);
    if journals.is_empty() {
        drop(home::look(path)?);
    }
    let (mut removed, mut left, mut first) = (0, 0, None);
    for journal in journals {
        match clean_one(&journal).await {
            Ok(cleaned) => {
                removed += cleaned.removed;
                left += cleaned.left;
                first = first.or(cleaned.failed);
            }
            // Those of a program's own process are removed once it has ended.
            Err(error) => {
                let what = format!("nothing was removed in {}", journal.display());
                first = first.or_else(|| Some(error.context(what)));
            }
        }
    }
    side_journals::clean_up(path);
    if removed > 0 {
        let removed = counted(removed as u64, "automatic checkpoint");
        out::line(&format!("removed {removed}, {left} left"))?;
    } else if first.is_none() {
        out::line("nothing to remove")?;
    }
    first.map_or(Ok(Exit::Completed), Err)
}

/// What was removed in one journal.
struct CleanedJournal {
    removed: usize,
    left: usize,
    failed: Option<anyhow::Error>,
}

async fn clean_one(path: &Path) -> Result<CleanedJournal> {
    let of_tree = |tree| format!("nothing was removed from tree {}", short_id(tree));
    match reach(path, None, &ControlAsk::Clean).await? {
        ReachedHome::Free(journal) => {
            let home = Home::open(Arc::new(*journal), Drivers::new()).with_actor(Actor::PERSON);
            let Cleaned { removed, left, failed } = home.clean_checkpoints().await?;
            let failed = failed.into_iter().next();
            let failed = failed.map(|(tree, fault)| anyhow::Error::new(fault).context(of_tree(tree)));
            Ok(CleanedJournal { removed, left, failed })
        }
        ReachedHome::Answered(ControlAnswer::Cleaned { removed, left, failed }) => {
            let failed = failed.into_iter().next();
            let failed = failed.map(|failed| anyhow!(failed.message).context(of_tree(failed.tree)));
            Ok(CleanedJournal { removed, left, failed })
        }
        ReachedHome::Answered(answer) => bail!(not_done(answer)),
    }
}

/// A checkpoint, and the home or side journal that has it.
struct NamedCheckpoint {
    home: PathBuf,
    listed: ListedCheckpoint,
}

/// Every checkpoint in the journals of a home. A journal that is removed meanwhile has none.
fn all(home: &Path, agent: Option<&AgentId>) -> Result<Vec<NamedCheckpoint>> {
    let mut journals = side_journals::journals(home);
    if journals.is_empty() {
        journals.push(home.to_owned());
    }
    let mut all = Vec::new();
    for path in journals {
        let journal = match home::look(&path) {
            Err(_) if path != home && !side_journals::has_journal(&path) => continue,
            journal => journal?,
        };
        let listed = checkpoints(&journal, agent).wait()?.into_iter();
        all.extend(listed.map(|listed| NamedCheckpoint { home: path.clone(), listed }));
    }
    Ok(all)
}

/// Finds a checkpoint by a unique prefix of its name.
fn named(home: &Path, text: &str) -> Result<NamedCheckpoint> {
    let all = all(home, None)?;
    let is_exact = |named: &NamedCheckpoint| named.listed.name.as_str() == text;
    let exact = all.iter().any(is_exact);
    let fits = |named: &NamedCheckpoint| {
        if exact { is_exact(named) } else { named.listed.name.as_str().starts_with(text) }
    };
    let mut found: Vec<NamedCheckpoint> = all.into_iter().filter(fits).collect();
    let ls = command(home, &["checkpoint", "ls"]);
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => bail!("no checkpoint starts with `{text}`: `{ls}` lists all of them"),
        many if exact => {
            let line = |named: &NamedCheckpoint| {
                let NamedCheckpoint { home, listed } = named;
                let in_journal = command_in(home, &["checkpoint"]);
                format!("\n  `{text}` of tree {}: {in_journal} …", short_id(listed.tree))
            };
            let lines: String = found.iter().take(LISTED_MAX).map(line).collect();
            let more = if many > LISTED_MAX { "\n  …" } else { "" };
            bail!(
                "{many} journals of this home have a checkpoint `{text}`: name the one that you mean{lines}{more}"
            )
        }
        many => bail!("{many} checkpoints start with `{text}`: use more characters; `{ls}` lists them"),
    }
}

/// The command that makes a checkpoint of this agent, or of the newest tree's root. `None` if no tree has it.
fn makes_one(home: &Path, agent: Option<&AgentId>) -> Result<Option<String>> {
    let mut newest: Option<(SqliteJournal, Head)> = None;
    for path in side_journals::journals(home) {
        let journal = home::look(&path)?;
        let heads = journal.heads(&[]).wait()?;
        let is_newer = |head: &Head| newest.as_ref().is_none_or(|(_, newest)| newest.tree < head.tree);
        if let Some(head) = heads.into_iter().rfind(|head| !head.state.is_over()).filter(is_newer) {
            newest = Some((journal, head));
        }
    }
    let Some((journal, newest)) = newest else { return Ok(None) };
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
    let all = all(home, args.agent.as_ref())?.into_iter();
    let mut listed: Vec<ListedCheckpoint> = all.map(|named| named.listed).collect();
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
