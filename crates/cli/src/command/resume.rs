//! `spinney resume`: takes a stored tree up where it stopped and follows it.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use spinney::tree::tell;
use spinney::{Home, ResumeError};
use spinney_kernel::Event;
use spinney_kernel::id::{Seq, TreeId};
use spinney_kernel::port::journal::Journal;

use super::run::{head, listen};
use crate::args;
use crate::exit::Exit;
use crate::follow::{Follow, follow};
use crate::ids::{find, short};
use crate::screen::{Screen, Style};
use crate::wording::{counted, one_line};
use crate::{kept, place, scribing};

/// Batches read at once.
const PAGE: usize = 256;

/// Takes a tree up where it stopped.
pub(super) async fn resume(path: &Path, args: &args::Resume) -> Result<Exit> {
    let known = find(path, &place::look(path)?, &args.id)?;
    let journal = Arc::new(place::write(path)?);
    let listening = listen(path)?;
    let style = if args.json { Style::Json } else { Style::Story };
    let mut screen = Screen::new(known.tree, style);
    let (name, seen) = past(journal.as_ref(), known.tree, &mut screen)?;
    let drivers = match journal.head(known.tree)? {
        // The home says better than a missing file that there is nothing to resume.
        Some(head) if head.is_over() => {
            scribing::mend(path, journal.as_ref(), known.tree);
            spinney::Drivers::new()
        }
        Some(_) | None => kept::drivers(path, known.tree)?,
    };
    let home = Arc::new(Home::open(journal, drivers));
    let tree = match home.resume(known.tree).await {
        Ok(tree) => tree,
        Err(ResumeError::Journal(fault)) => return Err(fault.into()),
        Err(error) => return Err(error.into()),
    };
    let so_far = counted(seen.0, "event");
    head(style, &format!("{} · tree {} · taken up after {so_far}", one_line(&name, 60), short(known.tree)))?;
    follow(Follow { home, path: path.to_owned(), tree, screen, seen, listening }).await
}

/// Lets the screen know what happened so far: the tree's name and its last event.
fn past(journal: &dyn Journal, tree: TreeId, screen: &mut Screen) -> Result<(String, Seq)> {
    let (mut name, mut seen) = (String::new(), Seq(0));
    loop {
        let page = journal.read(tree, seen, PAGE)?;
        if page.is_empty() {
            return Ok((name, seen));
        }
        for event in page.into_iter().flat_map(tell) {
            if let Event::TreeStarted { definition, .. } = &event.event {
                name.clone_from(&definition.name);
            }
            seen = event.seq;
            screen.skip(&event);
        }
    }
}
