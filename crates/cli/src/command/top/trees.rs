//! The trees that `top` shows: those that have not ended, and those that ended last, each read as it grows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};
use spinney_host::home::side_journals;
use spinney_host::tree_list::{ListedTree, Listing, TreeList};
use spinney_journal::JournalFault;
use spinney_kernel::budget::Resource;
use spinney_kernel::words::{Time, TreeId, grouped};
use spinney_store::SqliteJournal;
use spinney_view::live::FollowedTree;
use spinney_view::wording::{ago, counted, short_id};

use crate::exit::fault_in;
use crate::hint::{YOUR_FILE, command};
use crate::live::{TreeRow, tree_row};
use crate::terminal::money::MoneyColumn;
use crate::terminal::paint::{Ink, Row};
use crate::terminal::state_ink::state_ink;
use crate::terminal::table::{Column, Table};

/// Trees that a person is shown. Others are only counted.
const TREES_MAX: usize = 64;
/// Ended trees that are listed below those that have not ended.
const ENDED_MAX: usize = 8;
/// Marks the chosen tree.
const CHOSEN: &str = "▸";

pub(super) struct TopTrees {
    list: TreeList,
    /// The trees that are shown.
    followed: BTreeMap<TreeId, FollowedTree<Arc<SqliteJournal>>>,
}

/// All trees at one moment, and what is shown of them.
pub(super) struct TopListing {
    head: String,
    pub(super) trees: Vec<TopTree>,
    /// How many more there are.
    hidden: usize,
    unreadable: usize,
    now: u64,
}

pub(super) struct TopTree {
    pub(super) listed: ListedTree,
    row: TreeRow,
}

impl TopTrees {
    pub(super) fn new(home: &Path) -> Self {
        Self { list: TreeList::new(home), followed: BTreeMap::new() }
    }

    /// At most so many trees for people, or every one that has not ended for programs.
    pub(super) async fn look(&mut self, most: Option<usize>, now: u64) -> Result<TopListing> {
        let listing = self.list.look().await?;
        let head = head(&listing);
        let (all, unreadable) = (listing.trees.len(), listing.unreadable.len());
        let (ended, open): (Vec<ListedTree>, Vec<ListedTree>) =
            listing.trees.into_iter().partition(|listed| listed.head.state.is_over());
        let open_max = most.map_or(usize::MAX, |most| most.clamp(1, TREES_MAX));
        let open: Vec<ListedTree> = open.into_iter().take(open_max).collect();
        let ended_max = most.map_or(ENDED_MAX, |most| most.saturating_sub(open.len()).min(ENDED_MAX));
        let shown: Vec<ListedTree> = open.into_iter().chain(ended.into_iter().take(ended_max)).collect();
        let hidden = all - shown.len();
        self.followed.retain(|tree, _| shown.iter().any(|listed| listed.head.tree == *tree));
        let mut trees = Vec::new();
        for listed in shown {
            trees.extend(self.row(&listed, now).await?.map(|row| TopTree { listed, row }));
        }
        Ok(TopListing { head, trees, hidden, unreadable, now })
    }

    /// What a tree shows; `None` if it has been removed since.
    async fn row(&mut self, listed: &ListedTree, now: u64) -> Result<Option<TreeRow>> {
        let tree = listed.head.tree;
        if let Err(error) = self.follow(listed).await {
            self.followed.remove(&tree);
            let fault = fault_in(&error);
            let is_gone = matches!(fault, Some(JournalFault::UnknownTree { .. }));
            return if is_gone || !side_journals::has_journal(&listed.home) { Ok(None) } else { Err(error) };
        }
        Ok(self.followed.get(&tree).map(|followed| tree_row(followed.tree(), Time(now))))
    }

    /// Reads what a tree did since the last look.
    async fn follow(&mut self, listed: &ListedTree) -> Result<()> {
        let id = listed.head.tree;
        if !self.followed.contains_key(&id) {
            self.followed.insert(id, FollowedTree::new(self.list.journal(listed)?, id));
        }
        if let Some(followed) = self.followed.get_mut(&id) {
            followed.catch_up().await?;
        }
        Ok(())
    }
}

impl TopListing {
    /// For people. The chosen tree is marked, if one can be chosen.
    pub(super) fn lines(&self, home: &Path, width: Option<usize>, chosen: Option<TreeId>) -> Vec<Row> {
        let mut lines = vec![Row::of(Ink::Strong, &self.head), Row::new()];
        if self.trees.is_empty() {
            let run = command(home, &["run", YOUR_FILE]);
            lines.push(Row::plain(&format!("no trees yet: `{run}` starts one")));
        } else {
            lines.extend(self.table(chosen).lines(width));
        }
        if self.hidden > 0 {
            lines.push(Row::of(Ink::Dim, &format!("… {} more", self.hidden)));
        }
        if self.unreadable > 0 {
            let runs = counted(self.unreadable as u64, "run");
            let why = format!("{runs} of exec cannot be read: `{}` says why", command(home, &["ps"]));
            lines.push(Row::of(Ink::Warn, &why));
        }
        lines
    }

    fn table(&self, chosen: Option<TreeId>) -> Table {
        let largest = self.trees.iter().map(|tree| tree.row.spent.of(Resource::Cost)).max();
        let money = MoneyColumn::rounded(largest.unwrap_or_default());
        let mut table = Table::new(columns());
        for tree in &self.trees {
            let mark = if chosen == Some(tree.listed.head.tree) { CHOSEN } else { "" };
            table.add(cells(tree, mark, money, self.now));
        }
        table
    }
}

impl TopTree {
    pub(super) fn tree(&self) -> TreeId {
        self.listed.head.tree
    }

    pub(super) fn json(&self) -> Value {
        let Self { listed: ListedTree { head, name, state, is_run, .. }, row } = self;
        json!({
            "tree": head.tree,
            "state": state.word(),
            "name": name,
            "is_running": is_run,
            "agents": row.agents,
            "living": row.living,
            "spent": row.spent,
            "held_nanos": row.cost_nanos_held,
            "limit_nanos": row.cost_nanos_max,
            "started": head.started,
            "changed": head.changed,
            "now": row.doing.as_ref().map(|(agent, doing)| json!({ "agent": agent, "doing": doing.text() })),
        })
    }
}

fn cells(TopTree { listed, row }: &TopTree, mark: &str, money: MoneyColumn, now: u64) -> Vec<Row> {
    let ListedTree { head, name, state, .. } = listed;
    let doing = row
        .doing
        .as_ref()
        .map(|(agent, doing)| Row::of(Ink::Name, agent.as_str()).with(Ink::Plain, " ").joined(doing));
    vec![
        Row::of(Ink::Strong, mark),
        Row::of(Ink::Name, &short_id(head.tree)),
        Row::of(state_ink(*state), state.word()),
        Row::plain(name),
        Row::plain(&format!("{}/{}", row.living, row.agents)),
        Row::plain(&money.show(row.spent.of(Resource::Cost))),
        Row::of(Ink::Warn, &row.presumed(money)),
        row.bar(),
        Row::plain(&grouped(row.spent.of(Resource::Tokens))),
        Row::of(Ink::Dim, &ago(now.saturating_sub(head.changed.0))),
        if head.state.is_over() { Row::new() } else { doing.unwrap_or_default() },
    ]
}

fn columns() -> Vec<Column> {
    vec![
        Column::left("").unless_empty(),
        Column::left("TREE"),
        Column::left("STATE"),
        Column::left("NAME").shrinking(),
        Column::right("AGENTS").expendable(3),
        Column::right("COST"),
        Column::right("PRESUMED").unless_empty(),
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
