//! `spinney top`: all trees of a home that have not ended, live, and those that ended last.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use spinney::bus::Tail;
use spinney::clock::{Clock, SystemClock};
use spinney_journal::{Head, Journal};
use spinney_kernel::words::{Time, TreeId};
use spinney_store::SqliteJournal;
use tokio::time::sleep;

use super::ps::{names, state};
use crate::control::{Running, running};
use crate::exit::Exit;
use crate::hint::{YOUR_FILE, command};
use crate::ids::short;
use crate::live::{self, LiveTree, tree_row};
use crate::paint::{Ink, Row};
use crate::table::{Column, Table};
use crate::terminal::Terminal;
use crate::wording::{ago, counted};
use crate::{args, open_home, out};

/// Pause between two looks at the home.
const REFRESH: Duration = Duration::from_millis(500);
/// Trees whose journals are read. Others are only counted.
const TREES_MAX: usize = 64;
/// Ended trees that are listed below those that have not ended.
const ENDED_MAX: usize = 8;

pub(super) async fn top(home: &Path, args: &args::Top, terminal: Terminal) -> Result<Exit> {
    let journal = open_home::look(home)?;
    let mut known = BTreeMap::new();
    if args.once || !terminal.can_draw() {
        let lines = look(home, &journal, &mut known, terminal.width, usize::MAX).await?;
        lines.iter().try_for_each(|line| out::row(line, terminal))?;
        return Ok(Exit::Completed);
    }
    loop {
        let (columns, height) = terminal.stream.size();
        let width = columns.saturating_sub(1);
        let lines = look(home, &journal, &mut known, Some(width), height.saturating_sub(2)).await?;
        live::draw(&lines, terminal)?;
        sleep(REFRESH).await;
    }
}

/// A tree that is read as it grows.
struct Followed<'j> {
    tail: Tail<'j>,
    tree: LiveTree,
}

async fn look<'j>(
    home: &Path,
    journal: &'j SqliteJournal,
    known: &mut BTreeMap<TreeId, Followed<'j>>,
    width: Option<usize>,
    height: usize,
) -> Result<Vec<Row>> {
    let (heads, running) = (journal.heads(&[]).await?, running(home).await);
    let names = names(journal)?;
    let now = SystemClock::new().now_ms();
    let (ended, mut open): (Vec<Head>, Vec<Head>) = heads.into_iter().partition(|head| head.state.is_over());
    let (all_open, all_ended) = (open.len(), ended.len());
    let room = height.saturating_sub(4).max(1);
    open.reverse();
    open.truncate(room.min(TREES_MAX));
    let ended: Vec<Head> = ended.into_iter().rev().take(ENDED_MAX.min(room - open.len().min(room))).collect();
    let mut table = Table::new(vec![
        Column::left("TREE"),
        Column::left("STATE"),
        Column::left("NAME").shrinking(),
        Column::right("AGENTS").expendable(3),
        Column::right("COST"),
        Column::left("OF").expendable(2),
        Column::right("TOKENS").expendable(4),
        Column::left("CHANGED").expendable(5),
        Column::left("NOW").shrinking().expendable(1),
    ]);
    let shown = open.len() + ended.len();
    for head in open.iter().chain(&ended) {
        let followed = known.entry(head.tree).or_insert_with(|| Followed {
            tail: Tail::new(journal, head.tree),
            tree: LiveTree::new(head.tree),
        });
        while let Some(traced) = followed.tail.next().await? {
            followed.tree.event(&traced);
        }
        let state = state(head, &running);
        let name = names.get(&head.tree).map(String::as_str).unwrap_or_default();
        let row = tree_row(&followed.tree, Time(now));
        let mut cells = vec![
            Row::of(Ink::Name, &short(head.tree)),
            Row::of(state.ink(), state.word()),
            Row::plain(name),
            Row::plain(&row.agents),
            Row::plain(&row.cost),
            row.bar,
            Row::plain(&row.tokens),
            Row::of(Ink::Dim, &ago(now.saturating_sub(head.changed.0))),
        ];
        cells.push(if head.state.is_over() { Row::new() } else { row.doing });
        table.add(cells);
    }
    known.retain(|tree, _| open.iter().chain(&ended).any(|head| head.tree == *tree));
    let runs = match &running {
        Running::Trees(trees) => format!("{} running", trees.len()),
        Running::Nobody => "none running".to_owned(),
        Running::Silent(_) | Running::Unknown => "unknown which are running".to_owned(),
    };
    let head = format!(
        "{} that {} not ended, {runs}; {all_ended} ended",
        counted(all_open as u64, "tree"),
        if all_open == 1 { "has" } else { "have" }
    );
    let mut lines = vec![Row::of(Ink::Strong, &head), Row::new()];
    if shown == 0 {
        lines.push(Row::plain(&format!("no trees yet: `{}` starts one", command(home, &["run", YOUR_FILE]))));
    } else {
        lines.extend(table.lines(width));
    }
    if all_open + all_ended > shown {
        lines.push(Row::of(Ink::Dim, &format!("… {} more", all_open + all_ended - shown)));
    }
    Ok(lines)
}
