//! The trees that `top` shows, as lines and as JSON.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use spinney_host::followed_list::{FollowedList, FollowedListing};
use spinney_host::tree_list::ListedTree;
use spinney_kernel::budget::Resource;
use spinney_kernel::primitives::{AgentId, Time, TreeId, grouped};
use spinney_terminal::money::MoneyColumn;
use spinney_terminal::paint::{Ink, Row};
use spinney_terminal::table::{Column, Table};
use spinney_view::live::TreeOverview;
use spinney_view::wording::{ago, counted, short_id};

use crate::hint::{YOUR_FILE, command};
use crate::live::{first_doing, overview_bar};
use crate::state_ink::state_ink;

/// Marks the chosen tree.
const CHOSEN: &str = "▸";

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
    overview: TreeOverview,
    /// Its most important agent, and what it does.
    doing: Option<(AgentId, Row)>,
}

impl TopListing {
    /// At most so many trees for people, or every one that has not ended for programs.
    pub(super) async fn look(list: &mut FollowedList, most: Option<usize>, now: u64) -> Result<Self> {
        let listing = list.look(most).await?;
        let (head, FollowedListing { trees, hidden, unreadable, .. }) = (head(&listing), listing);
        let shown = trees.into_iter().filter_map(|listed| {
            let tree = list.tree(listed.head.tree)?;
            let overview = tree.overview();
            let doing = first_doing(tree, &overview, Time(now));
            Some(TopTree { listed, overview, doing })
        });
        Ok(Self { head, trees: shown.collect(), hidden, unreadable, now })
    }

    /// For people. The chosen tree is marked, if one can be chosen.
    pub(super) fn lines(&self, home: &Path, width: Option<usize>, chosen: Option<TreeId>) -> Vec<Row> {
        let mut lines = vec![Row::inked(Ink::Strong, &self.head), Row::new()];
        if self.trees.is_empty() {
            let run = command(home, &["run", YOUR_FILE]);
            lines.push(Row::plain(&format!("no trees yet: `{run}` starts one")));
        } else {
            lines.extend(self.table(chosen).lines(width));
        }
        if self.hidden > 0 {
            lines.push(Row::inked(Ink::Dim, &format!("… {} more", self.hidden)));
        }
        if self.unreadable > 0 {
            let runs = counted(self.unreadable as u64, "run");
            let why = format!("{runs} of exec cannot be read: `{}` says why", command(home, &["ps"]));
            lines.push(Row::inked(Ink::Warn, &why));
        }
        lines
    }

    fn table(&self, chosen: Option<TreeId>) -> Table {
        let largest = self.trees.iter().map(|tree| tree.overview.spent.get(Resource::Cost)).max();
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
        let Self { listed: ListedTree { head, name, state, is_run, .. }, overview, doing } = self;
        json!({
            "tree": head.tree,
            "state": state.as_str(),
            "name": name,
            "is_running": is_run,
            "agents": overview.agents,
            "living": overview.living,
            "spent": overview.spent,
            "held_nanos": overview.cost_nanos_held,
            "limit_nanos": overview.cost_nanos_max,
            "started": head.started,
            "changed": head.changed,
            "now": doing.as_ref().map(|(agent, doing)| json!({ "agent": agent, "doing": doing.text() })),
        })
    }
}

fn cells(tree: &TopTree, mark: &str, money: MoneyColumn, now: u64) -> Vec<Row> {
    let TopTree { listed: ListedTree { head, name, state, .. }, overview, doing } = tree;
    let presumed = match overview.spent.presumed_first() {
        Some((Resource::Cost, nanos)) => money.show(nanos),
        Some((resource, amount)) => format!("{:#}", resource.amount(amount)),
        None => String::new(),
    };
    let doing = doing
        .as_ref()
        .map(|(agent, doing)| Row::inked(Ink::Name, agent.as_str()).with(Ink::Plain, " ").joined(doing));
    vec![
        Row::inked(Ink::Strong, mark),
        Row::inked(Ink::Name, &short_id(head.tree)),
        Row::inked(state_ink(*state), state.as_str()),
        Row::plain(name),
        Row::plain(&format!("{}/{}", overview.living, overview.agents)),
        Row::plain(&money.show(overview.spent.get(Resource::Cost))),
        Row::inked(Ink::Warn, &presumed),
        overview_bar(overview),
        Row::plain(&grouped(overview.spent.get(Resource::Tokens))),
        Row::inked(Ink::Dim, &ago(now.saturating_sub(head.changed.0))),
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
fn head(FollowedListing { open, over, running, may_be_more, .. }: &FollowedListing) -> String {
    let runs = match (may_be_more, running) {
        (false, 0) => "none running".to_owned(),
        (false, run) => format!("{run} running"),
        (true, 0) => "unknown which are running".to_owned(),
        (true, run) => format!("at least {run} running"),
    };
    let have = if *open == 1 { "has" } else { "have" };
    format!("{} that {have} not ended, {runs}; {over} ended", counted(*open as u64, "tree"))
}
