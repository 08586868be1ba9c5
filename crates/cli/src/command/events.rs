//! `spinney events`: shows every event of a tree, also while another process runs it. With `--follow` it continues
//! until the tree has ended, even if the processes that run it die.

use std::path::Path;

use anyhow::{Result, bail};
use spinney::bus::Tail;
use spinney_host::home;
use spinney_host::home::ids::find;
use spinney_kernel::words::Seq;
use spinney_view::agents;
use spinney_view::topics::{self, TopicError};

use crate::args;
use crate::events::screen::{Screen, Style, Wanted};
use crate::exit::Exit;
use crate::terminal::{Terminal, reader};

pub(super) async fn events(home: &Path, args: args::Events, terminal: Terminal) -> Result<Exit> {
    let journal = home::look(home)?;
    let head = find(home, &journal, args.tree.text())?;
    // A filter that nothing can match would wait for ever, or look like a tree in which nothing happened.
    let agent = match args.agent {
        Some(path) => {
            let agent = agents::at(&journal, head.tree, path).await??;
            let known = agents::known(&journal, head.tree).await?;
            if !known.contains(&agent) {
                bail!(agents::unknown(&agent, &known));
            }
            Some(agent)
        }
        None => None,
    };
    if let Some(topic) = &args.topic {
        topics::check(&journal, head.tree, topic).await.map_err(|error| match error {
            TopicError::Journal(fault) => anyhow::Error::from(fault),
            unknown @ TopicError::Unknown { .. } => unknown.into(),
        })?;
    }
    let style = if args.json { Style::Json } else { Style::Log };
    let wanted = Wanted { agent, topic: args.topic };
    let mut screen = Screen::new(head.tree, style).on(terminal).only(wanted).from(Seq(args.from));
    let mut tail = Tail::new(&journal, head.tree);
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
