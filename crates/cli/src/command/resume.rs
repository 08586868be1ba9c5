//! `spinney resume`: resumes a stored tree where it stopped and follows it, or prints its result if it has ended.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use spinney::tree::{RequestError, Stored, stored};
use spinney::{Home, ResumeError, Tree};
use spinney_journal::{Blocking, Journal};
use spinney_kernel::words::{Seq, TreeId};
use spinney_kernel::world::{AgentStatus, AgentView};

use super::run::{head, listen};
use crate::control::{Running, running};
use crate::events::screen::{Screen, Style};
use crate::exec::homes;
use crate::exit::Exit;
use crate::follow::shown::Display;
use crate::follow::{Follow, follow};
use crate::hint::{about, go_on};
use crate::home::ids::{TreeInHome, find, name, short};
use crate::home::tree_copies::Kept;
use crate::home::{tree_copies, workspaces};
use crate::result::{Outcome, failed};
use crate::terminal::wording::{counted, one_line};
use crate::terminal::{Terminal, out};
use crate::{args, home};

/// A tree that has ended prints its result again.
pub(super) async fn resume(path: &Path, args: &args::Resume, terminal: Terminal) -> Result<Exit> {
    let style = if args.json { Style::Json } else { Style::Lines };
    let display = Display::of(terminal, style, args.plain);
    let mut tree = None;
    let resumed = match take_up(path, args, style, display, &mut tree).await {
        Ok(Resumed::Runs(runs)) => return follow(*runs).await,
        Ok(Resumed::HadEnded(exit)) => Ok(exit),
        Err(error) => Err(error),
    };
    resumed.map_err(|error| failed(style, |failure| Outcome::without_a_look(path, tree, failure), error))
}

enum Resumed {
    Runs(Box<Follow>),
    /// Its result was printed.
    HadEnded(Exit),
}

/// Finds a tree and runs it; `tree` is set as soon as it is known.
async fn take_up(
    path: &Path,
    args: &args::Resume,
    style: Style,
    display: Display,
    tree: &mut Option<TreeId>,
) -> Result<Resumed> {
    let journal = home::look(path)?;
    let known = find(path, &journal, args.tree.text())?;
    *tree = Some(known.tree);
    if known.state.is_over() {
        // Printing a result needs no write access; repairing its workspaces does.
        match home::write_if_free(path) {
            Ok(Some(_owned)) => workspaces::mend(path, &journal, known.tree),
            Ok(None) => {}
            Err(error) => out::complain(&format!("the step files could not be checked: {error:#}")),
        }
        return tell_end(path, &journal, known.tree, style).map(Resumed::HadEnded);
    }
    drop(journal);
    if homes::is_of_exec(path) {
        bail!("this tree was started by `exec`: continue it with `{}`", go_on(path, known.tree, known.state));
    }
    let journal = match home::write(path) {
        Ok(journal) => Arc::new(journal),
        Err(error) => return Err(unless_running(path, known.tree, error).await),
    };
    let listening = listen(path)?;
    let past = journal.head(known.tree).wait()?.map_or(Seq(0), |head| head.seq);
    let name = name(journal.as_ref(), known.tree)?;
    let Kept { drivers, scripted } = tree_copies::drivers(path, known.tree)?;
    let home = Home::open(Arc::clone(&journal) as Arc<dyn Journal>, drivers);
    let tree = match home.resume(known.tree).await {
        Ok(tree) => tree,
        // Another process finished it meanwhile.
        Err(ResumeError::Ended { .. }) => {
            return tell_end(path, journal.as_ref(), known.tree, style).map(Resumed::HadEnded);
        }
        Err(ResumeError::Journal(fault)) => return Err(fault.into()),
        Err(error) => return Err(error.into()),
    };
    if args.unpause {
        unpause(&tree).await;
    }
    let (name, id) = (one_line(&name, 60), short(known.tree));
    let what = format!("{name} · tree {id} · resumed at event {}", past.0);
    head(style, display, &what, &scripted)?;
    let (home, path) = (Arc::new(home), path.to_owned());
    Ok(Resumed::Runs(Box::new(Follow { home, path, tree, style, past, listening, display })))
}

/// Says how to follow a tree that another process runs.
async fn unless_running(path: &Path, tree: TreeId, error: anyhow::Error) -> anyhow::Error {
    match running(path).await {
        Running::Trees(trees) if trees.contains(&tree) => {
            let attach = about(path, "attach", tree, &[]);
            error.context(format!("tree {} is running; `{attach}` follows it", short(tree)))
        }
        Running::Trees(_) | Running::Silent(_) | Running::Nobody | Running::Unknown => error,
    }
}

/// Ends every pause in a tree. A refusal means that it was not paused; a tree that is no longer run is reported by
/// the caller.
async fn unpause(tree: &Tree) {
    let Ok(look) = tree.look().await else { return };
    let living = look.agents.into_iter().filter(|agent| !matches!(agent.status, AgentStatus::Ended(_)));
    for AgentView { agent, .. } in living {
        if let Err(RequestError::Stopped(_)) = tree.unpause(agent).await {
            return;
        }
    }
}

/// Prints the result of an ended tree, as the process that ended it did or would have.
fn tell_end(path: &Path, journal: &dyn Journal, tree: TreeId, style: Style) -> Result<Exit> {
    // No event is printed, but they give the duration.
    let mut screen = Screen::new(tree, style).from(Seq(u64::MAX));
    screen.show_stored(journal)?;
    let Stored { look, hash } = stored(journal, tree).wait()?;
    let outcome =
        Outcome::of(&look, Some(hash), journal, TreeInHome { home: path, tree }).took(screen.elapsed_ms());
    match style {
        Style::Json => outcome.write_json()?,
        Style::Lines | Style::Log => {
            let (name, events) = (one_line(&name(journal, tree)?, 60), counted(look.seq.0, "event"));
            out::line(&format!("{name} · tree {} · already ended after {events}\n", short(tree)))?;
            outcome.write_plain()?;
        }
    }
    Ok(outcome.exit())
}
