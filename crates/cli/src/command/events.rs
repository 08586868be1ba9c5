//! `spinney events`: shows every event of a tree, also while another process runs it. With `--follow` it continues
//! until the tree has ended, even if the processes that run it die.

use std::path::Path;

use anyhow::Result;
use spinney::bus::Tail;
use spinney_host::home::ids::NamedTree;
use spinney_kernel::primitives::Seq;
use spinney_view::events::{EventFilter, EventFilterError};

use crate::args;
use crate::events::screen::{Screen, Style};
use crate::exit::Exit;
use crate::terminal::{Terminal, reader};

pub(super) async fn events(home: &Path, args: args::Events, terminal: Terminal) -> Result<Exit> {
    let NamedTree { journal, tree, .. } = NamedTree::in_home(home, args.tree.text()).await?;
    let wanted = EventFilter::checked(&journal, tree, args.agent, args.topic).await;
    let wanted = wanted.map_err(|error| match error {
        EventFilterError::Journal(fault) => anyhow::Error::from(fault),
        EventFilterError::Path(error) => error.into(),
        EventFilterError::Topic(error) => error.into(),
        EventFilterError::Agent(_) => error.into(),
    })?;
    let style = if args.json { Style::Json } else { Style::Log };
    let mut screen = Screen::new(tree, style).on(terminal).only(wanted).from(Seq(args.from));
    let mut tail = Tail::new(&journal, tree);
    if args.follow {
        let follow = async {
            while let Some(traced) = tail.wait_for_next().await? {
                screen.show(&traced)?;
            }
            Ok(Exit::Completed)
        };
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
