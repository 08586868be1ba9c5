//! `spinney attach`: follows a tree that another process runs, with the same view as `run`. It is read-only: leaving it
//! changes nothing.

use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use anyhow::Result;
use spinney::tree::{Stored, stored};
use spinney_host::control::steering::may_run;
use spinney_host::home::ids::{NamedTree, RedactedTree, TreeInHome};
use spinney_journal::{Head, Journal};
use spinney_kernel::primitives::Seq;
use spinney_terminal::{Terminal, out, reader};
use spinney_view::costs::Costs;
use spinney_view::wording::short_id;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::interval;

use crate::args;
use crate::display::{Display, Shown};
use crate::events::screen::Style;
use crate::exit::Exit;
use crate::follow::TailView;
use crate::hint::next_step;
use crate::live::write_summary;
use crate::result::Outcome;

/// How often to ask whether the tree is still run.
const STILL_RUNS: Duration = Duration::from_secs(1);

pub(super) async fn attach(home: &Path, args: &args::Attach, terminal: Terminal) -> Result<Exit> {
    let named = NamedTree::in_home(home, args.tree.text()).await?;
    let RedactedTree { journal, tree, .. } = named.redacted().await?;
    let place = TreeInHome { home, tree };
    let display = Display::for_terminal(terminal, Style::Lines, args.plain);
    let mut view = TailView::begin(place, &journal, Style::Lines, Seq(0), display).await;
    let mut still_runs = interval(STILL_RUNS);
    let mut reader_gone = pin!(reader::gone());
    // The view has changed the terminal's mode, which must be put back.
    let mut interrupt = display.is_live.then(|| signal(SignalKind::interrupt())).transpose()?;
    loop {
        tokio::select! {
            Some(()) = async { interrupt.as_mut()?.recv().await } => return Ok(Exit::Interrupted),
            () = &mut reader_gone => return Ok(Exit::Closed),
            continues = view.step() => if !continues? { break },
            _ = still_runs.tick() => {
                if !may_run(place).await {
                    view.rest().await?;
                    break;
                }
                // Another process may run it by now.
                view.subscribe().await;
            }
        }
    }
    left(place, &journal, view.shown, terminal).await
}

/// Prints how it ended, or that no process runs it any more.
async fn left(
    place: TreeInHome<'_>,
    journal: &dyn Journal,
    mut shown: Shown,
    terminal: Terminal,
) -> Result<Exit> {
    let TreeInHome { home, tree } = place;
    shown.erase();
    let Shown { screen, live, .. } = shown;
    let Stored { snapshot, hash } = stored(journal, tree).await?;
    let outcome = Outcome::read(&snapshot, Some(hash), journal, place).await.took(screen.elapsed_ms());
    match live {
        Some(live) => {
            write_summary(&outcome, live.tree(), Some(&Costs::read(journal, tree).await?), place, terminal)?;
        }
        None => {
            if screen.has_written() {
                out::line("")?;
            }
            outcome.write_plain()?;
        }
    }
    let head: Option<Head> = journal.head(tree).await?;
    if let Some(head) = head.filter(|head| !head.state.is_over()) {
        let next = next_step(home, tree, head.state).await;
        out::note(&format!("no process runs tree {} ({}); {next}", short_id(tree), head.state));
    }
    Ok(outcome.exit())
}
