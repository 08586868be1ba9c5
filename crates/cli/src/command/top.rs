//! `spinney top`: all trees of a home that have not ended, live, and those that ended last.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use spinney::bus::Tail;
use spinney::clock::{Clock, SystemClock};
use spinney_journal::JournalFault;
use spinney_kernel::words::{Time, TreeId};
use spinney_store::SqliteJournal;
use tokio::time::sleep;

use crate::args;
use crate::exec::homes;
use crate::exit::Exit;
use crate::hint::{YOUR_FILE, command};
use crate::home::ids::short;
use crate::home::tree_list::{ListedTree, Listing, TreeList};
use crate::live::{self, LiveTree, tree_row};
use crate::terminal::paint::{Ink, Row};
use crate::terminal::table::{Column, Table};
use crate::terminal::wording::{ago, counted};
use crate::terminal::{Terminal, out};

/// Pause between two looks at the home.
const REFRESH: Duration = Duration::from_millis(500);
/// Trees whose journals are read. Others are only counted.
const TREES_MAX: usize = 64;
/// Ended trees that are listed below those that have not ended.
const ENDED_MAX: usize = 8;

pub(super) async fn top(home: &Path, args: &args::Top, terminal: Terminal) -> Result<Exit> {
    let mut top = Top { list: TreeList::new(home), followed: BTreeMap::new() };
    if args.once || !terminal.can_draw() {
        out::rows(top.look(home, terminal.width, usize::MAX).await?, terminal)?;
        return Ok(Exit::Completed);
    }
    loop {
        let (columns, height) = terminal.stream.size();
        let lines = top.look(home, Some(columns.saturating_sub(1)), height.saturating_sub(2)).await?;
        live::draw(&lines, terminal)?;
        sleep(REFRESH).await;
    }
}

struct Top {
    list: TreeList,
    /// The trees that are shown.
    followed: BTreeMap<TreeId, Followed>,
}

/// A tree that is read as it grows.
struct Followed {
    tail: Tail<Arc<SqliteJournal>>,
    tree: LiveTree,
}

impl Top {
    async fn look(&mut self, home: &Path, width: Option<usize>, height: usize) -> Result<Vec<Row>> {
        let listing = self.list.look().await?;
        let now = SystemClock::new().now_ms();
        let head = head(&listing);
        let (all, unreadable) = (listing.trees.len(), listing.unreadable.len());
        let (ended, open): (Vec<ListedTree>, Vec<ListedTree>) =
            listing.trees.into_iter().partition(|listed| listed.head.state.is_over());
        let room = height.saturating_sub(5).max(1);
        let open: Vec<ListedTree> = open.into_iter().rev().take(room.min(TREES_MAX)).collect();
        let ended: Vec<ListedTree> = ended.into_iter().rev().take(ENDED_MAX.min(room - open.len())).collect();
        let shown: Vec<ListedTree> = open.into_iter().chain(ended).collect();
        self.followed.retain(|tree, _| shown.iter().any(|listed| listed.head.tree == *tree));
        let mut table = Table::new(columns());
        let mut rows = 0;
        for listed in &shown {
            if let Some(cells) = self.cells(listed, now).await? {
                table.add(cells);
                rows += 1;
            }
        }
        let mut lines = vec![Row::of(Ink::Strong, &head), Row::new()];
        if rows == 0 {
            lines.push(Row::plain(&format!(
                "no trees yet: `{}` starts one",
                command(home, &["run", YOUR_FILE])
            )));
        } else {
            lines.extend(table.lines(width));
        }
        if all > shown.len() {
            lines.push(Row::of(Ink::Dim, &format!("… {} more", all - shown.len())));
        }
        if unreadable > 0 {
            let runs = counted(unreadable as u64, "run");
            let why = format!("{runs} of exec cannot be read: `{}` says why", command(home, &["ps"]));
            lines.push(Row::of(Ink::Warn, &why));
        }
        Ok(lines)
    }

    /// The line of a tree; `None` if it has been removed since.
    async fn cells(&mut self, listed: &ListedTree, now: u64) -> Result<Option<Vec<Row>>> {
        let ListedTree { head, name, state, .. } = listed;
        if let Err(error) = self.follow(listed).await {
            self.followed.remove(&head.tree);
            let fault = error.downcast_ref::<JournalFault>();
            let is_gone = matches!(fault, Some(JournalFault::UnknownTree { .. }));
            return if is_gone || !homes::has_journal(&listed.home) { Ok(None) } else { Err(error) };
        }
        let Some(followed) = self.followed.get(&head.tree) else { return Ok(None) };
        let row = tree_row(&followed.tree, Time(now));
        Ok(Some(vec![
            Row::of(Ink::Name, &short(head.tree)),
            Row::of(state.ink(), state.word()),
            Row::plain(name),
            Row::plain(&row.agents),
            Row::plain(&row.cost),
            row.bar,
            Row::plain(&row.tokens),
            Row::of(Ink::Dim, &ago(now.saturating_sub(head.changed.0))),
            if head.state.is_over() { Row::new() } else { row.doing },
        ]))
    }

    /// Reads what a tree did since the last look.
    async fn follow(&mut self, listed: &ListedTree) -> Result<()> {
        let id = listed.head.tree;
        if !self.followed.contains_key(&id) {
            let tail = Tail::new(self.list.journal(listed)?, id);
            self.followed.insert(id, Followed { tail, tree: LiveTree::new(id) });
        }
        if let Some(Followed { tail, tree }) = self.followed.get_mut(&id) {
            while let Some(traced) = tail.next().await? {
                tree.event(&traced);
            }
        }
        Ok(())
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::left("TREE"),
        Column::left("STATE"),
        Column::left("NAME").shrinking(),
        Column::right("AGENTS").expendable(3),
        Column::right("COST"),
        Column::left("OF").expendable(2),
        Column::right("TOKENS").expendable(4),
        Column::left("CHANGED").expendable(5),
        Column::left("NOW").shrinking().expendable(1),
    ]
}

/// How many trees there are.
fn head(Listing { trees, unknown, .. }: &Listing) -> String {
    let (over, run) = (
        trees.iter().filter(|listed| listed.head.state.is_over()).count(),
        trees.iter().filter(|listed| listed.is_run).count(),
    );
    let runs = match (unknown.is_empty(), run) {
        (true, 0) => "none running".to_owned(),
        (true, run) => format!("{run} running"),
        (false, 0) => "unknown which are running".to_owned(),
        (false, run) => format!("at least {run} running"),
    };
    let open = trees.len() - over;
    let have = if open == 1 { "has" } else { "have" };
    format!("{} that {have} not ended, {runs}; {over} ended", counted(open as u64, "tree"))
}
