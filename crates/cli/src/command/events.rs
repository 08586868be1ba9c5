//! `spinney events`: every event of a tree, read a page at a time, also while another process writes it.

use std::path::Path;

use anyhow::{Result, bail};
use spinney_kernel::id::{Seq, TreeId};
use spinney_kernel::port::journal::Journal;

use crate::args;
use crate::exit::Exit;
use crate::hint::command;
use crate::ids::find;
use crate::place;
use crate::screen::{Screen, Style, told};

/// Batches read at once.
const PAGE: usize = 256;

/// Shows what happened in a tree.
pub(super) fn events(home: &Path, args: args::Events) -> Result<Exit> {
    let journal = place::look(home)?;
    let head = find(home, &journal, &args.id)?;
    let style = if args.json { Style::Json } else { Style::Log };
    let mut screen = Screen::new(head.tree, style).only(args.agent.clone());
    show(&journal, head.tree, &mut screen, Seq(args.from))?;
    match args.agent {
        Some(agent) if !screen.has_met() => {
            let events = command(home, &format!("events {}", args.id));
            bail!("no agent `{agent}` in this tree: `{events}` shows who there is")
        }
        Some(_) | None => Ok(Exit::Completed),
    }
}

/// Shows every event from `from` on. Those before are read too: they say who is who.
pub(super) fn show(journal: &dyn Journal, tree: TreeId, screen: &mut Screen, from: Seq) -> Result<()> {
    let mut seen = Seq(0);
    loop {
        let page = journal.read(tree, seen, PAGE)?;
        if page.is_empty() {
            return Ok(());
        }
        for event in page.into_iter().flat_map(told) {
            seen = event.seq;
            if event.seq < from {
                screen.skip(&event);
            } else {
                screen.show(&event)?;
            }
        }
    }
}
