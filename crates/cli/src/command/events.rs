//! `spinney events`: shows every event of a tree, also while another process runs it. With `--follow` it continues
//! until the tree has ended, even if the processes that run it die.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use spinney::bus::Tail;
use spinney_host::control::StreamedTexts;
use spinney_host::home::ids::{NamedTree, RedactedTree, TreeInHome};
use spinney_host::redaction::RedactedJournal;
use spinney_kernel::primitives::Seq;
use spinney_terminal::{Terminal, reader};
use spinney_view::events::{EventFilter, EventFilterError};
use spinney_view::visibility::WatchRight;
use tokio::time::interval;

use crate::args;
use crate::events::screen::{Screen, Style};
use crate::exit::Exit;

/// How often to ask whether another process runs the tree, for its text.
const STILL_RUNS: Duration = Duration::from_millis(500);

pub(super) async fn events(home: &Path, args: args::Events, terminal: Terminal) -> Result<Exit> {
    let named = NamedTree::in_home(home, args.tree.text()).await?;
    let RedactedTree { journal, tree, .. } = named.redacted().await?;
    let wanted = EventFilter::checked(&journal, tree, args.agent, args.topic).await;
    let wanted = wanted.map_err(|error| match error {
        EventFilterError::Journal(fault) => anyhow::Error::from(fault),
        EventFilterError::Path(error) => error.into(),
        EventFilterError::Topic(error) => error.into(),
        EventFilterError::Agent(_) => error.into(),
    })?;
    let style = if args.json { Style::Json } else { Style::Log };
    let mut screen = Screen::new(tree, style).on(terminal).only(wanted).from(Seq(args.from));
    screen = screen.seen_with(args.right.into());
    let mut tail = Tail::new(&journal, tree);
    if args.follow {
        let place = TreeInHome { home, tree };
        let follow = follow(place, &mut tail, &mut screen, args.text.then(|| args.right.into()));
        // The next event may be far away.
        return tokio::select! {
            exit = follow => exit,
            () = reader::gone() => Ok(Exit::Closed),
        };
    }
    while let Some(traced) = tail.next().await? {
        screen.show(&traced)?;
    }
    Ok(Exit::Completed)
}

/// Shows what comes, with the text that is streamed if that is wanted: from the process that runs the tree, whichever that is.
async fn follow(
    place: TreeInHome<'_>,
    tail: &mut Tail<&RedactedJournal<'static>>,
    screen: &mut Screen,
    text: Option<WatchRight>,
) -> Result<Exit> {
    let (mut texts, mut seen) = (StreamedTexts::default(), Seq(0));
    let mut still_runs = interval(STILL_RUNS);
    loop {
        tokio::select! {
            next = tail.wait_for_next() => {
                let Some(traced) = next? else { return Ok(Exit::Completed) };
                seen = traced.recorded.seq;
                screen.show(&traced)?;
            }
            text = texts.next() => texts.add(text),
            // Another process may run it by now.
            _ = still_runs.tick(), if text.is_some() => {
                texts.subscribe_as(place.home, place.tree, text.unwrap_or_default()).await;
            }
        }
        while let Some(text) = texts.due(seen) {
            screen.text(&text.as_piece())?;
        }
    }
}
