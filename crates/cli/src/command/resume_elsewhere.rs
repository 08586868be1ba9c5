//! A resume of a tree whose journal another process has open: that process runs the tree, and this one follows it as if it
//! ran here. When this one stops, the tree does; when the other one ends, the tree continues here.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use spinney::bus::Tail;
use spinney::tree::{Stopped, Stored, stored};
use spinney_host::control::{ResumeAnswer, ResumeLease, SteerError, TextSubscription, ask_with};
use spinney_host::home;
use spinney_host::home::ids::{TreeInHome, name};
use spinney_host::home::tree_copies;
use spinney_host::tree_file::providers::Scripted;
use spinney_journal::Journal;
use spinney_kernel::rules::request::Unpause;
use spinney_kernel::words::{Seq, TreeId};
use spinney_kernel::world::{AgentStatus, TreeState};
use spinney_store::SqliteJournal;
use spinney_view::wording::{one_line, short_id};
use tokio::time::interval;

use super::attach::Texts;
use super::run::head;
use crate::args;
use crate::events::screen::Style;
use crate::exit::Exit;
use crate::follow::{FollowedEnd, rests};
use crate::hint::about;
use crate::interrupt::Interrupts;
use crate::result::Outcome;
use crate::shown::{self, Display};
use crate::terminal::out;

/// How often to look whether the tree needs a person.
const LOOK: Duration = Duration::from_millis(100);

/// How a tree is shown.
#[derive(Clone, Copy)]
pub(super) struct Shown {
    pub(super) style: Style,
    pub(super) display: Display,
}

/// A tree that another process runs for this one.
pub(super) struct Elsewhere {
    path: PathBuf,
    tree: TreeId,
    shown: Shown,
    /// None if nothing runs: the process that had the journal open is gone, or the tree has ended.
    lease: Option<ResumeLease>,
    interrupts: Interrupts,
}

/// How following it ended.
pub(super) enum Followed {
    Exit(Exit),
    /// The tree is not over, and no process runs it.
    OwnerGone(Interrupts),
}

impl Elsewhere {
    /// Asks the process that has the journal open to run the tree.
    pub(super) async fn ask(
        place: TreeInHome<'_>,
        args: &args::Resume,
        shown: Shown,
        left: Option<Interrupts>,
    ) -> Result<Self> {
        let TreeInHome { home, tree } = place;
        let was_followed = left.is_some();
        let interrupts = left.map_or_else(|| Interrupts::of_tree(home, tree), Ok)?;
        if interrupts.came() {
            return Err(Stopped::Shutdown.into());
        }
        let lease = match ResumeLease::ask(home, tree, &args.allowed.allow_host).await {
            Ok(ResumeAnswer::Runs(lease)) => Some(lease),
            Ok(ResumeAnswer::HasEnded | ResumeAnswer::Free) => None,
            Ok(ResumeAnswer::Refused(message)) => bail!(
                "tree {} was not resumed by the process that has its journal open: {message}",
                short_id(tree)
            ),
            // It serves no more requests, and its last calls may take long.
            Err(SteerError::Busy { .. }) if was_followed => None,
            Err(error) => return Err(error.into()),
        };
        if args.unpause && lease.is_some() {
            unpause(place).await?;
        }
        Ok(Self { path: home.to_owned(), tree, shown, lease, interrupts })
    }

    /// Shows the tree until it ends, needs a person, or is not run any more.
    pub(super) async fn follow(self) -> Result<Followed> {
        let Self { path, tree, shown: Shown { style, display }, lease, mut interrupts } = self;
        let Some(mut lease) = lease else { return Ok(Followed::OwnerGone(interrupts)) };
        let (place, journal) = (TreeInHome { home: &path, tree }, home::look(&path)?);
        let _ = say_head(place, &journal, &lease, Shown { style, display });
        let mut shown = shown::Shown::new(tree, &path, style, lease.past, display);
        let mut texts = Texts::default();
        if display.is_live {
            texts.subscription = TextSubscription::begin(&path, tree).await;
        }
        let mut tail = Tail::new(&journal, tree);
        let (mut seen, mut looks) = (Seq(0), interval(LOOK));
        let (mut is_stopping, mut is_settled, mut told_pause) = (interrupts.came(), false, false);
        if is_stopping {
            lease.stop();
        }
        loop {
            tokio::select! {
                () = interrupts.first(), if !is_stopping => {
                    is_stopping = true;
                    lease.stop();
                }
                () = lease.ended() => break,
                next = tail.wait_for_next() => match next? {
                    Some(traced) => {
                        seen = traced.recorded.seq;
                        shown.event(&traced)?;
                        texts.show(&mut shown);
                    }
                    None => break,
                },
                text = texts.next() => {
                    texts.add(text);
                    texts.show(&mut shown);
                }
                () = shown.tick() => shown.draw()?,
                _ = looks.tick(), if !is_settled => {
                    let head = journal.head(tree).await?.filter(|head| head.seq == seen);
                    let state = head.map_or(TreeState::New, |head| head.state);
                    if state == TreeState::Paused && !told_pause {
                        let unpause = about(&path, "unpause", tree, &[]);
                        out::note(&format!("paused, nothing runs: continue with `{unpause}`"));
                    }
                    told_pause = state == TreeState::Paused;
                    if rests(state) {
                        is_settled = true;
                        lease.stop();
                    }
                }
            }
        }
        while let Some(traced) = tail.next().await? {
            shown.event(&traced)?;
        }
        shown.erase();
        let Stored { look, hash } = stored(&journal, tree).await?;
        if look.end.is_none() && !is_settled && !is_stopping {
            out::note("the process that ran the tree has ended; it continues here");
            return Ok(Followed::OwnerGone(interrupts));
        }
        let is_interrupted = interrupts.came();
        interrupts.close().await;
        let shown::Shown { screen, live, .. } = shown;
        let outcome = Outcome::of(&look, Some(hash), &journal, place).took(screen.elapsed_ms());
        let outcome = if is_interrupted { outcome.interrupted() } else { outcome };
        let end = FollowedEnd { outcome: &outcome, look: &look, screen: &screen, live, place };
        end.write(&journal, display).await?;
        Ok(Followed::Exit(outcome.exit()))
    }
}

/// Says what runs, and where.
fn say_head(
    place: TreeInHome<'_>,
    journal: &SqliteJournal,
    lease: &ResumeLease,
    Shown { style, display }: Shown,
) -> Result<()> {
    let TreeInHome { home, tree } = place;
    let by = lease.pid.map(|pid| format!(" in process {pid}")).unwrap_or_default();
    let name = one_line(&name(journal, tree)?, 60);
    let what = format!("{name} · tree {} · resumed at event {}{by}", short_id(tree), lease.past.0);
    let scripted =
        tree_copies::scripted(home, journal, tree).unwrap_or_else(|| Scripted::new(Vec::new(), &[]));
    head(style, display, &what, &scripted)
}

/// Ends every pause. A refusal means that an agent was not paused.
async fn unpause(TreeInHome { home, tree }: TreeInHome<'_>) -> Result<()> {
    let look = stored(&home::look(home)?, tree).await?.look;
    for agent in look.agents {
        if !matches!(agent.status, AgentStatus::Ended(_)) {
            ask_with(home, tree, Unpause::now(agent.agent), Vec::new()).await?;
        }
    }
    Ok(())
}
