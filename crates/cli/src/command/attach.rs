//! `spinney attach`: follows a tree that another process runs, with the same view as `run`. It only looks: leaving it
//! changes nothing.

use std::collections::VecDeque;
use std::future::pending;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use anyhow::Result;
use spinney::bus::Tail;
use spinney::tree::{Stored, stored};
use spinney_host::control::{RunningTrees, StreamedText, TextSubscription, running};
use spinney_host::home;
use spinney_host::home::ids::{TreeInHome, find};
use spinney_journal::{Head, Journal};
use spinney_kernel::words::{Seq, TreeId};
use spinney_view::costs::Costs;
use spinney_view::wording::short_id;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::interval;

use crate::args;
use crate::events::screen::Style;
use crate::exit::Exit;
use crate::hint::go_on;
use crate::live::write_summary;
use crate::result::Outcome;
use crate::shown::{Display, Shown};
use crate::terminal::{Terminal, out, reader};

/// Pieces of text that wait for the events before them. Those come from the journal, a little later.
const TEXTS_MAX: usize = 1_024;
/// How often to ask whether the tree is still run.
const STILL_RUNS: Duration = Duration::from_secs(1);

pub(super) async fn attach(home: &Path, args: &args::Attach, terminal: Terminal) -> Result<Exit> {
    let journal = home::look(home)?;
    let tree = find(home, &journal, args.tree.text())?.tree;
    let display = Display::of(terminal, Style::Lines, args.plain);
    let mut shown = Shown::new(tree, home, Style::Lines, Seq(0), display);
    // Before the first event is read, so that no text is missed that belongs to what is shown.
    let mut texts = Texts::default();
    if display.is_live {
        texts.subscription = TextSubscription::begin(home, tree).await;
    }
    let mut tail = Tail::new(&journal, tree);
    let mut still_runs = interval(STILL_RUNS);
    let mut reader_gone = pin!(reader::gone());
    // The view has changed the terminal's mode, which must be put back.
    let mut interrupt = display.is_live.then(|| signal(SignalKind::interrupt())).transpose()?;
    loop {
        tokio::select! {
            Some(()) = async { interrupt.as_mut()?.recv().await } => return Ok(Exit::Interrupted),
            () = &mut reader_gone => return Ok(Exit::Closed),
            next = tail.wait_for_next() => match next? {
                Some(traced) => {
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
            _ = still_runs.tick() => {
                if !is_run(home, tree).await {
                    // What it wrote last.
                    while let Some(traced) = tail.next().await? {
                        shown.event(&traced)?;
                    }
                    break;
                }
                // Another process may run it by now.
                if display.is_live && texts.subscription.is_none() {
                    texts.subscription = TextSubscription::begin(home, tree).await;
                }
            }
        }
    }
    left(TreeInHome { home, tree }, &journal, shown, terminal).await
}

/// Text that the process which runs the tree streams, until it is shown.
#[derive(Default)]
pub(super) struct Texts {
    pub(super) subscription: Option<TextSubscription>,
    waiting: VecDeque<StreamedText>,
}

impl Texts {
    /// The next piece. Never comes without a process that sends text.
    pub(super) async fn next(&mut self) -> StreamedText {
        if let Some(subscription) = &mut self.subscription {
            if let Some(text) = subscription.next().await {
                return text;
            }
            self.subscription = None;
        }
        pending().await
    }

    pub(super) fn add(&mut self, text: StreamedText) {
        if self.waiting.len() == TEXTS_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(text);
    }

    /// Shows the pieces whose events are shown.
    pub(super) fn show(&mut self, shown: &mut Shown) {
        let Some(live) = &mut shown.live else { return };
        while let Some(text) = self.waiting.pop_front_if(|text| text.after <= live.tree().world().seq()) {
            live.streamed(&text);
        }
    }
}

/// Whether a process runs it, as far as is known.
async fn is_run(home: &Path, tree: TreeId) -> bool {
    match running(home).await {
        RunningTrees::Trees(trees) => trees.contains(&tree),
        RunningTrees::Silent(_) | RunningTrees::Unknown => true,
        RunningTrees::Nobody => false,
    }
}

/// Prints how it ended, or that nobody runs it any more.
async fn left(
    place: TreeInHome<'_>,
    journal: &dyn Journal,
    mut shown: Shown,
    terminal: Terminal,
) -> Result<Exit> {
    let TreeInHome { home, tree } = place;
    shown.erase();
    let Shown { screen, live, .. } = shown;
    let Stored { look, hash } = stored(journal, tree).await?;
    let outcome = Outcome::of(&look, Some(hash), journal, place).took(screen.elapsed_ms());
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
        let resume = go_on(home, tree, head.state);
        out::note(&format!(
            "no process runs tree {} ({}). Continue with: {resume}",
            short_id(tree),
            head.state
        ));
    }
    Ok(outcome.exit())
}
