//! `spinney ps`: lists every tree of a home, the newest first, and whether a process runs it.

use std::path::Path;

use anyhow::Result;
use spinney::clock::{Clock, SystemClock};
use spinney_host::home;
use spinney_host::tree_list::{ListedState, ListedTree, Listing, TreeList, UnknownRunner};
use spinney_terminal::paint::{Ink, Row};
use spinney_terminal::table::{Column, Table};
use spinney_terminal::{Terminal, out};
use spinney_view::TreeBeginning;
use spinney_view::boxes::WeakBox;
use spinney_view::wording::{ago, short_id};

use crate::args;
use crate::error_text::in_words_of;
use crate::exit::Exit;
use crate::hint::{YOUR_FILE, command, next_command};
use crate::state_ink::state_ink;

/// Most interrupted trees whose resume command is printed, newest first.
const RESUMES_MAX: usize = 8;
/// Most unfinished trees whose boxes are looked at, newest first.
const BOXES_MAX: usize = 64;

pub(super) async fn ps(home: &Path, args: &args::Ps, terminal: Terminal) -> Result<Exit> {
    let Listing { trees: listed, unknown, unreadable } = TreeList::new(home).look().await?;
    unreadable.iter().for_each(|why| out::complain(&in_words_of(why.as_ref())));
    for unknown in unknown {
        out::note(&match unknown {
            UnknownRunner::Silent(pid) => format!(
                "process {pid} has this home open and does not answer: trees shown as running may be interrupted"
            ),
            UnknownRunner::OtherUser => {
                "this is another user's home: trees shown as running may be interrupted".to_owned()
            }
        });
    }
    note_weak_boxes_of(&listed).await;
    if args.json {
        for listed in &listed {
            out::json(&listed.json().to_string())?;
        }
        return Ok(Exit::Completed);
    }
    if listed.is_empty() {
        out::line(&format!("no trees yet: `{}` starts one", command(home, &["run", YOUR_FILE])))?;
        return Ok(Exit::Completed);
    }
    let now = SystemClock::new().now_ms();
    let since = |then: u64| ago(now.saturating_sub(then));
    let mut table = Table::new(vec![
        Column::left("TREE"),
        Column::left("STATE"),
        Column::left("NAME").shrinking(),
        Column::right("EVENTS").expendable(3),
        Column::left("STARTED").expendable(1),
        Column::left("LAST CHANGE").expendable(4),
        Column::left("").expendable(2),
    ]);
    for ListedTree { head, name, state, .. } in &listed {
        let base = head.base.map(|base| format!("branch of {} at {}", short_id(base.tree), base.at.0));
        table.add(vec![
            Row::inked(Ink::Name, &short_id(head.tree)),
            Row::inked(state_ink(*state), state.as_str()),
            Row::plain(name),
            Row::plain(&head.seq.0.to_string()),
            Row::plain(&since(head.started.0)),
            Row::plain(&since(head.changed.0)),
            Row::inked(Ink::Dim, &base.unwrap_or_default()),
        ]);
    }
    table.write(terminal)?;
    let interrupted: Vec<&ListedTree> =
        listed.iter().filter(|listed| listed.state == ListedState::Interrupted).collect();
    for ListedTree { head, home, .. } in interrupted.iter().take(RESUMES_MAX) {
        let (id, resume) = (short_id(head.tree), next_command(home, head.tree, head.state).await);
        out::note(&format!("{id} was interrupted, its process is gone; continue with: {resume}"));
    }
    if interrupted.len() > RESUMES_MAX {
        out::note(&format!("{} more were interrupted", interrupted.len() - RESUMES_MAX));
    }
    Ok(Exit::Completed)
}

/// Says which unfinished trees run commands in a weaker box, or in none. A journal that cannot be read is reported elsewhere.
async fn note_weak_boxes_of(listed: &[ListedTree]) {
    for ListedTree { head, home, .. } in
        listed.iter().filter(|listed| !listed.head.state.is_over()).take(BOXES_MAX)
    {
        let Ok(journal) = home::open_unchanged(home) else { continue };
        let Ok(beginning) = TreeBeginning::read(&journal, head.tree).await else { continue };
        for weak in beginning.definition.as_deref().map(WeakBox::all).unwrap_or_default() {
            out::note(&format!("WEAK BOX: {weak} (tree {})", short_id(head.tree)));
        }
    }
}
