//! `spinney checkpoint`: named places in the journals of a home.

use std::path::Path;

use anyhow::Result;
use serde_json::json;
use spinney::clock::{Clock, SystemClock};
use spinney_kernel::Request;
use spinney_kernel::checkpoint::{Known, Listed, checkpoints};

use super::steer::{Next, finish};
use crate::args;
use crate::control::{self, Answer};
use crate::exit::Exit;
use crate::hint::command;
use crate::ids::{find, short};
use crate::wording::ago;
use crate::{out, place};

/// Does what is to be done with checkpoints.
pub(super) async fn checkpoint(home: &Path, args: args::Checkpoint) -> Result<Exit> {
    match args {
        args::Checkpoint::Make(args) => make(home, args).await,
        args::Checkpoint::Ls(args) => ls(home, &args),
    }
}

/// Gives an agent's context a name, whether a process runs its tree or nobody does.
async fn make(home: &Path, args: args::CheckpointMake) -> Result<Exit> {
    let tree = find(home, &place::look(home)?, &args.tree)?.tree;
    let said = format!("checkpoint of `{}` in tree {}", args.agent, short(tree));
    let request = spinney_kernel::request::Checkpoint::manual(args.agent, args.name);
    let answer = control::ask(home, tree, Request::Checkpoint(request)).await?;
    if let Answer::Done { checkpoint: Some(name), .. } = &answer {
        out::line(name.as_str())?;
    }
    Ok(finish(answer, (home, tree), &said, Next::Nothing))
}

/// Lists every checkpoint, the oldest first.
fn ls(home: &Path, args: &args::CheckpointLs) -> Result<Exit> {
    let mut listed = checkpoints(&place::look(home)?, args.agent.as_ref())?;
    listed.sort_by_key(|listed| (listed.known.made, listed.tree, listed.known.seq));
    if args.json {
        for checkpoint in listed {
            out::line(&line(&checkpoint))?;
        }
        return Ok(Exit::Completed);
    }
    if listed.is_empty() {
        let whose = args.agent.as_ref().map(|agent| format!(" of `{agent}`")).unwrap_or_default();
        let make = command(home, "checkpoint make AGENT");
        out::line(&format!("no checkpoint{whose} yet: `{make}` makes one"))?;
        return Ok(Exit::Completed);
    }
    let now = SystemClock::new().now_ms();
    let titles = ["NAME", "AGENT", "KIND", "TREE", "EVENT", "MADE"].map(str::to_owned);
    let row_of = |Listed { name, tree, known }: &Listed| {
        let made = ago(now.saturating_sub(known.made.0));
        let Known { agent, kind, seq, .. } = known;
        [name.to_string(), agent.to_string(), kind.word().to_owned(), short(*tree), seq.0.to_string(), made]
    };
    let rows: Vec<[String; 6]> = std::iter::once(titles).chain(listed.iter().map(row_of)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..6).map(width).collect();
    for [name, agent, kind, tree, event, made] in &rows {
        let (of_name, of_agent, of_kind, of_tree, of_event) =
            (widths[0], widths[1], widths[2], widths[3], widths[4]);
        out::line(&format!(
            "{name:<of_name$}  {agent:<of_agent$}  {kind:<of_kind$}  {tree:<of_tree$}  {event:>of_event$}  {made}"
        ))?;
    }
    Ok(Exit::Completed)
}

fn line(Listed { name, tree, known }: &Listed) -> String {
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
