//! `spinney events`: every event of a tree, read a page at a time, also while another process writes it. With `--follow`
//! it goes on until the tree has ended, whoever runs it and however often that process dies.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use spinney::tree::recorded_events;
use spinney_journal::{Blocking, Journal, JournalFault};
use spinney_kernel::words::{Seq, TreeId};

use crate::exit::Exit;
use crate::ids::find;
use crate::screen::{Screen, Style, Wanted};
use crate::{agents, args, place};

/// Batches read at once.
const PAGE: usize = 256;
/// How long it waits before it looks again: fast to the eye, next to nothing to the machine.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Shows what happened in a tree.
pub(super) async fn events(home: &Path, args: args::Events) -> Result<Exit> {
    let journal = place::look(home)?;
    let head = find(home, &journal, &args.id)?;
    let style = if args.json { Style::Json } else { Style::Log };
    let wanted = Wanted { agent: args.agent.clone(), topic: args.topic };
    let mut screen = Screen::new(head.tree, style).only(wanted);
    let from = Seq(args.from);
    let mut seen = show(&journal, head.tree, &mut screen, (Seq(0), from))?;
    while args.follow && !is_over(&journal, head.tree, seen)? {
        tokio::time::sleep(LOOK_AGAIN).await;
        seen = show(&journal, head.tree, &mut screen, (seen, from))?;
    }
    match args.agent {
        Some(agent) if !screen.has_met() => {
            bail!(agents::unknown(&agent, &agents::known(&journal, head.tree)?))
        }
        Some(_) | None => Ok(Exit::Completed),
    }
}

/// Whether everything was shown and nothing more can come.
fn is_over(journal: &dyn Journal, tree: TreeId, seen: Seq) -> Result<bool> {
    let head = journal.head(tree).wait()?.ok_or(JournalFault::UnknownTree { tree })?;
    Ok(head.is_over() && head.seq == seen)
}

/// Shows every event after `seen` and from `from` on; says which was the last. Those before are read too: they say who
/// is who.
pub(super) fn show(
    journal: &dyn Journal,
    tree: TreeId,
    screen: &mut Screen,
    (mut seen, from): (Seq, Seq),
) -> Result<Seq> {
    loop {
        let page = journal.read(tree, seen, PAGE).wait()?;
        if page.is_empty() {
            return Ok(seen);
        }
        // A batch whose first events were seen is read again.
        let before = seen;
        for event in page.into_iter().flat_map(recorded_events).filter(|event| event.seq > before) {
            seen = event.seq;
            if event.seq < from {
                screen.skip(&event);
            } else {
                screen.show(&event)?;
            }
        }
    }
}
