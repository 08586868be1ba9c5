//! `spinney events`: shows every event of a tree, also while another process runs it. With `--follow` it continues
//! until the tree has ended, even if the processes that run it die.

use std::path::Path;

use anyhow::{Result, bail};
use spinney::bus::Tail;
use spinney_kernel::words::Seq;

use crate::exit::Exit;
use crate::ids::find;
use crate::screen::{Screen, Style, Wanted};
use crate::{agents, args, open_home};

pub(super) async fn events(home: &Path, args: args::Events) -> Result<Exit> {
    let journal = open_home::look(home)?;
    let head = find(home, &journal, &args.id)?;
    let style = if args.json { Style::Json } else { Style::Log };
    let wanted = Wanted { agent: args.agent.clone(), topic: args.topic };
    let mut screen = Screen::new(head.tree, style).only(wanted).from(Seq(args.from));
    let mut tail = Tail::new(&journal, head.tree);
    while let Some(traced) = if args.follow { tail.wait_for_next().await? } else { tail.next().await? } {
        screen.show(&traced)?;
    }
    match args.agent {
        Some(agent) if !screen.has_met() => {
            bail!(agents::unknown(&agent, &agents::known(&journal, head.tree)?))
        }
        Some(_) | None => Ok(Exit::Completed),
    }
}
