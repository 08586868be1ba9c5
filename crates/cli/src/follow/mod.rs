//! Follows a tree that runs in this process, until it ends, or until it needs a person and none is present.

mod tail;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use spinney::Tree;
use spinney::bus::{Watch, WatchFault, WatchItem, Watcher};
use spinney::tree::{RequestError, Stopped, Stored, TreeSnapshot, stored};
use spinney_journal::Journal;
use spinney_kernel::primitives::Seq;
use spinney_kernel::world::TreeState;

use crate::display::{Display, Shown};
use crate::events::screen::{Screen, Style};
use crate::exit::Exit;
use crate::hint::{self, about, next_step};
use crate::interrupt::Interrupts;
use crate::live::{LiveScreen, write_summary};
use crate::prompts::{Asking, Typed};
use crate::result::{Failure, Outcome, answerable, failed, question_texts};
use spinney_host::OpenHome;
use spinney_host::following::{at_rest, can_be_left, paused};
use spinney_host::home::ids::TreeInHome;
use spinney_host::home::workspaces::WorkspaceWriter;
use spinney_host::notify::Notifier;
use spinney_host::redaction::{RedactedJournal, redactor_of};
use spinney_host::trust::tree_marks;
use spinney_server::control::Listening;
use spinney_terminal::out;
use spinney_view::costs::Costs;
use spinney_view::remedy::Remedy;

pub(crate) use tail::TailView;

pub(crate) struct Follow {
    pub(crate) open: Arc<OpenHome>,
    /// The home's folder, as the user named it, or that of a side journal.
    pub(crate) path: PathBuf,
    pub(crate) tree: Tree,
    pub(crate) style: Style,
    /// The last event that an earlier process recorded.
    pub(crate) past: Seq,
    pub(crate) listening: Listening,
    pub(crate) interrupts: Interrupts,
    pub(crate) display: Display,
    /// What the user wants to be told of it.
    pub(crate) notifier: Notifier,
    /// Whether it stays while the tree needs a person: others steer it from elsewhere.
    pub(crate) stays: bool,
}

/// Follows a tree and returns the exit code. When it returns, nothing of the tree runs and the home is closed.
pub(crate) async fn follow(mut follow: Follow) -> Result<Exit> {
    let notifier = std::mem::take(&mut follow.notifier);
    let exit = to_the_end(follow).await;
    notifier.end().await;
    exit
}

async fn to_the_end(follow: Follow) -> Result<Exit> {
    let Follow { open, path, tree, style, past, listening, interrupts, display, notifier: _, stays } = follow;
    let home = Arc::clone(open.home());
    let redactor = match redactor_of(home.journal().as_ref(), tree.id()).await {
        Ok(redactor) => redactor,
        Err(error) => {
            open.close().await;
            return Err(error.into());
        }
    };
    let server = listening.serve(Arc::clone(&open), tree.clone());
    let workspaces = WorkspaceWriter::begin(&path, Arc::clone(home.journal()), &tree, past);
    let place = TreeInHome { home: &path, tree: tree.id() };
    let mut shown = Shown::new(place, style, past, display, redactor.clone());
    let mut events = tree.watch(Watch { deltas: display.uses_text(), ..Watch::default() });
    let watched =
        watch(&tree, &path, &mut events, &mut shown, Rest { stays, leaves_pause: display.is_silent }).await;
    server.close().await;
    open.close().await;
    workspaces.end().await;
    tree_marks::update(&path, home.journal().as_ref(), tree.id()).await;
    let watched = match watched {
        Ok(()) => rest(&mut events, &mut shown).await,
        Err(error) => Err(error),
    };
    shown.erase();
    let Shown { screen, live, .. } = shown;
    let interrupted = interrupts.came();
    interrupts.close().await;
    let journal = &RedactedJournal::over(home.journal().as_ref(), redactor.clone());
    let snapshot = match watched {
        Ok(()) => match last_look(&tree).await {
            Ok(snapshot) => Ok(redactor.redact_typed(&snapshot)?.into_owned()),
            Err(error) => Err(error),
        },
        Err(error) => {
            if !matches!(tree.status().state, TreeState::Ended(_)) {
                // If the journal cannot be read, that error is reported below.
                let head = journal.head(tree.id()).await.ok().flatten();
                let state = head.map_or(TreeState::New, |head| head.state);
                let next = next_step(&path, tree.id(), state).await;
                out::note(&format!("the tree is stopped; {next}"));
            }
            Err(error)
        }
    };
    let snapshot = match snapshot {
        Ok(snapshot) => snapshot,
        Err(error) => {
            let outcome = async |failure: &Failure<'_>| failed_at(failure, journal, &screen, place).await;
            return Err(failed(screen.style(), outcome, error).await);
        }
    };
    let outcome = Outcome::read(&snapshot, tree.status().hash, journal, place).await;
    let outcome = outcome.took(screen.elapsed_ms());
    let outcome = if interrupted { outcome.interrupted() } else { outcome };
    let end = FollowedEnd { outcome: &outcome, snapshot: &snapshot, screen: &screen, live, place };
    end.write(journal, display).await?;
    Ok(outcome.exit())
}

/// How a tree ended that was followed, or how far it is.
pub(crate) struct FollowedEnd<'a> {
    pub(crate) outcome: &'a Outcome,
    pub(crate) snapshot: &'a TreeSnapshot,
    pub(crate) screen: &'a Screen,
    pub(crate) live: Option<LiveScreen>,
    pub(crate) place: TreeInHome<'a>,
}

impl FollowedEnd<'_> {
    pub(crate) async fn write(self, journal: &dyn Journal, display: Display) -> Result<()> {
        let Self { outcome, snapshot, screen, live, place } = self;
        if display.is_silent {
            return Ok(());
        }
        let Some(watched) = live else { return write(outcome, snapshot, screen, place) };
        let costs = Costs::read(journal, place.tree).await;
        let costs = costs.inspect_err(|error| out::complain(&format!("costs are not shown: {error:#}")));
        write_summary(outcome, watched.tree(), costs.ok().as_ref(), place, display.terminal)?;
        write_open(outcome, snapshot, place)
    }
}

/// What is done with a tree that does nothing more on its own.
#[derive(Clone, Copy)]
struct Rest {
    /// It is run on, for what others do to it.
    stays: bool,
    /// One that is paused is left.
    leaves_pause: bool,
}

/// Shows events until the tree ends, is stopped, or cannot continue on its own.
async fn watch(
    tree: &Tree,
    path: &Path,
    events: &mut Watcher,
    shown: &mut Shown,
    Rest { stays, leaves_pause }: Rest,
) -> Result<()> {
    let mut asking = Asking::new(shown);
    let (mut told_pause, mut told_halt) = (false, None);
    loop {
        let seen = events.seen();
        let paused = tree.status().state == TreeState::Paused && tree.status().seq == seen;
        if paused && leaves_pause {
            return Ok(());
        }
        if paused && !told_pause {
            tell_pause(tree, path).await;
        }
        told_pause = paused;
        if !stays && let Some(snapshot) = at_rest(tree, seen).await {
            if !can_be_left(&snapshot) {
                if told_halt.replace(seen) != Some(seen) {
                    tell_halt(&snapshot, TreeInHome { home: path, tree: tree.id() });
                }
            } else if snapshot.state != TreeState::Waiting || !asking.is_attended() {
                return Ok(());
            } else {
                asking.ask_at_rest(&snapshot.questions, shown)?;
            }
        }
        asking.ask_in_lines(tree, shown).await?;
        asking.ask_in_view(tree, shown).await?;
        tokio::select! {
            next = events.next() => match next {
                None => return Ok(()),
                Some(seen) => {
                    let seen = seen.map_err(watch_error)?;
                    if let WatchItem::Event(traced) = &seen {
                        asking.see(&traced.recorded.event);
                        asking.leave_line();
                    }
                    shown.see(&seen)?;
                }
            },
            // A person must see what they type.
            () = shown.tick(), if !asking.is_on_line() => shown.draw()?,
            typed = asking.next() => match typed {
                Typed::Part => {
                    asking.show_typed(shown);
                    shown.draw()?;
                }
                Typed::Line(line) => {
                    shown.chat.iter_mut().for_each(|chat| chat.typed(&line));
                    asking.answer(tree, &line).await?;
                }
                Typed::Ended if asking.end() => {}
                Typed::Ended => {
                    // What follows does not stand beside the prompt.
                    out::note("");
                    return Ok(());
                }
            }
        }
    }
}

/// Prints that a tree is halted whose programs wait, and the command that lets them continue.
fn tell_halt(snapshot: &TreeSnapshot, place: TreeInHome<'_>) {
    let Some(halt) = &snapshot.halted else { return };
    let waiting: Vec<String> = snapshot.programs.iter().map(|agent| format!("`{agent}`")).collect();
    let wait = if waiting.len() == 1 { "waits" } else { "wait" };
    let raise = match Remedy::of_halt(halt, snapshot) {
        Remedy::Raise { raises, root, .. } => hint::raise(place, root.as_ref(), &raises),
        _ => return,
    };
    out::note(&format!(
        "halted at the {}\n{} {wait}: continue with `{raise}` in another terminal, before `halt_wait` is over",
        halt.short.describe(&halt.account),
        waiting.join(", "),
    ));
}

/// Prints that a tree is paused, and the command that ends the pause.
async fn tell_pause(tree: &Tree, path: &Path) {
    // A tree that is no longer run is reported by the caller.
    let Ok(snapshot) = tree.snapshot().await else { return };
    let unpause = paused(&snapshot).map(|agent| match agent.parent {
        Some(_) => about(path, "unpause", tree.id(), &[agent.agent.as_str()]),
        None => about(path, "unpause", tree.id(), &[]),
    });
    let unpause: Vec<String> = unpause.collect();
    if !unpause.is_empty() {
        out::note(&format!("paused, nothing runs: continue with `{}`", unpause.join(" && ")));
    }
}

/// Shows what was decided while the home was shut down.
async fn rest(events: &mut Watcher, shown: &mut Shown) -> Result<()> {
    while let Some(seen) = events.next().await {
        shown.see(&seen.map_err(watch_error)?)?;
    }
    Ok(())
}

async fn last_look(tree: &Tree) -> Result<TreeSnapshot> {
    if let Some(stopped @ (Stopped::Journal(_) | Stopped::Bug)) = tree.status().stopped {
        return Err(stop_error(stopped));
    }
    tree.snapshot().await.map_err(unwrap_stop)
}

/// The result of a tree whose journal failed, or that stopped at a bug: as far as it is stored.
async fn failed_at(
    failure: &Failure<'_>,
    journal: &dyn Journal,
    screen: &Screen,
    place: TreeInHome<'_>,
) -> Outcome {
    match stored(journal, place.tree).await {
        Ok(Stored { snapshot, hash }) => {
            let outcome = Outcome::read(&snapshot, Some(hash), journal, place).await;
            outcome.took(screen.elapsed_ms()).failed(failure)
        }
        // The message already names the journal's fault.
        Err(_) => Outcome::without_a_look(place.home, Some(place.tree), failure).await,
    }
}

/// The questions that are open, and how to answer them.
fn open_questions(outcome: &Outcome, snapshot: &TreeSnapshot, place: TreeInHome<'_>) -> Vec<String> {
    match outcome.exit() {
        Exit::Waiting | Exit::Interrupted if !answerable(snapshot).is_empty() => {
            question_texts(outcome, snapshot, place)
        }
        _ => Vec::new(),
    }
}

fn write_open(outcome: &Outcome, snapshot: &TreeSnapshot, place: TreeInHome<'_>) -> Result<()> {
    let questions = open_questions(outcome, snapshot, place);
    if !questions.is_empty() {
        out::line("")?;
    }
    for line in questions {
        out::line(&line)?;
    }
    Ok(())
}

fn write(outcome: &Outcome, snapshot: &TreeSnapshot, screen: &Screen, place: TreeInHome<'_>) -> Result<()> {
    if screen.style() == Style::Json {
        open_questions(outcome, snapshot, place).iter().for_each(|line| out::note(line));
        return Ok(outcome.write_json()?);
    }
    if screen.has_written() {
        out::line("")?;
    }
    outcome.write_plain()?;
    write_open(outcome, snapshot, place)
}

fn unwrap_stop(error: RequestError) -> anyhow::Error {
    match error {
        RequestError::Stopped(stopped) => stop_error(stopped),
        RequestError::Refused(refusal) => refusal.into(),
        RequestError::Reply(other) => other.into(),
    }
}

fn stop_error(stopped: Stopped) -> anyhow::Error {
    match stopped {
        Stopped::Journal(fault) => fault.into(),
        Stopped::Shutdown | Stopped::Bug => stopped.into(),
    }
}

fn watch_error(fault: WatchFault) -> anyhow::Error {
    match fault {
        WatchFault::Journal(fault) => fault.into(),
        WatchFault::TooSlow { .. } => fault.into(),
    }
}
