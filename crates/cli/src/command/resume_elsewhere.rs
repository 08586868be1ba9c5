//! A resume of a tree whose journal another process has open: that process runs the tree, and this one follows it as if it
//! ran here. When this one stops, the tree does; when the other one ends, the tree continues here.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use spinney::tree::{Stopped, Stored, stored};
use spinney_host::control::steering::unpause_all;
use spinney_host::control::{ResumeAnswer, ResumeLease, SteerError};
use spinney_host::following::rests;
use spinney_host::home;
use spinney_host::home::ids::{TreeInHome, name};
use spinney_host::home::tree_copies;
use spinney_host::redaction::RedactedJournal;
use spinney_host::tree_file::providers::Scripted;
use spinney_journal::Journal;
use spinney_kernel::primitives::TreeId;
use spinney_kernel::world::TreeState;
use spinney_terminal::out;
use spinney_view::wording::{one_line, short_id};
use tokio::time::interval;

use super::run::head;
use crate::args;
use crate::display::{Display, Shown};
use crate::events::screen::Style;
use crate::exit::Exit;
use crate::follow::{FollowedEnd, TailView};
use crate::hint::about;
use crate::interrupt::Interrupts;
use crate::result::Outcome;

/// How often to look whether the tree needs a person.
const LOOK: Duration = Duration::from_millis(100);

/// A tree that another process runs for this one.
pub(super) struct Elsewhere {
    path: PathBuf,
    tree: TreeId,
    style: Style,
    display: Display,
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
        style: Style,
        display: Display,
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
            unpause_all(place).await?;
        }
        Ok(Self { path: home.to_owned(), tree, style, display, lease, interrupts })
    }

    /// Shows the tree until it ends, needs a person, or is not run any more.
    pub(super) async fn follow(self) -> Result<Followed> {
        let Self { path, tree, style, display, lease, mut interrupts } = self;
        let Some(mut lease) = lease else { return Ok(Followed::OwnerGone(interrupts)) };
        let place = TreeInHome { home: &path, tree };
        let journal = RedactedJournal::of_tree(Arc::new(home::open_read_only(&path)?), tree).await?;
        let _ = say_head(place, &journal, &lease, style, display).await;
        let mut view = TailView::begin(place, &journal, style, lease.past, display).await;
        let mut looks = interval(LOOK);
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
                continues = view.step() => if !continues? { break },
                _ = looks.tick(), if !is_settled => {
                    let head = journal.head(tree).await?.filter(|head| head.seq == view.seen);
                    let state = head.map_or(TreeState::New, |head| head.state);
                    if state == TreeState::Paused && !told_pause {
                        let unpause = about(&path, "unpause", tree, &[]);
                        out::note(&format!("paused, nothing runs: continue with `{unpause}`"));
                    }
                    told_pause = state == TreeState::Paused;
                    if rests(state) || (told_pause && display.is_silent) {
                        is_settled = true;
                        lease.stop();
                    }
                }
            }
        }
        view.rest().await?;
        view.shown.erase();
        let Stored { snapshot, hash } = stored(&journal, tree).await?;
        if snapshot.end.is_none() && !is_settled && !is_stopping {
            out::note("the process that ran the tree has ended; it continues here");
            return Ok(Followed::OwnerGone(interrupts));
        }
        let is_interrupted = interrupts.came();
        interrupts.close().await;
        let Shown { screen, live, .. } = view.shown;
        let outcome = Outcome::read(&snapshot, Some(hash), &journal, place).await.took(screen.elapsed_ms());
        let outcome = if is_interrupted { outcome.interrupted() } else { outcome };
        let end = FollowedEnd { outcome: &outcome, snapshot: &snapshot, screen: &screen, live, place };
        end.write(&journal, display).await?;
        Ok(Followed::Exit(outcome.exit()))
    }
}

/// Says what runs, and where.
async fn say_head(
    TreeInHome { home, tree }: TreeInHome<'_>,
    journal: &RedactedJournal<'_>,
    lease: &ResumeLease,
    style: Style,
    display: Display,
) -> Result<()> {
    let by = lease.pid.map(|pid| format!(" in process {pid}")).unwrap_or_default();
    let name = one_line(&name(journal, tree).await?, 60);
    let what = format!("{name} · tree {} · resumed at event {}{by}", short_id(tree), lease.past.0);
    let scripted = tree_copies::scripted(home, journal, tree).await;
    head(style, display, &what, &scripted.unwrap_or_else(|| Scripted::new(Vec::new(), &[])))
}
