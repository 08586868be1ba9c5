//! `spinney costs`: who spent what, from the journal; also while another process runs the tree.

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use spinney_kernel::budget::{Amounts, Resource, usd};
use spinney_kernel::words::grouped;

use crate::args::{self, CostsBy};
use crate::exit::Exit;
use crate::history::costs::{Breakdown, Costs, Sums};
use crate::home;
use crate::home::ids::{find, short};
use crate::terminal::paint::{Ink, Row, wrapped};
use crate::terminal::table::{Column, Table};
use crate::terminal::wording::counted;
use crate::terminal::{Terminal, out};

pub(super) fn costs(home: &Path, args: &args::Costs, terminal: Terminal) -> Result<Exit> {
    let journal = home::look(home)?;
    let tree = find(home, &journal, args.tree.text())?.tree;
    let costs = Costs::read(&journal, tree)?;
    if costs.total.spent != costs.ledger() {
        bail!(
            "the bookings of tree {tree} sum up to {:#}, but its ledger has {:#}: please report it",
            costs.total.spent,
            costs.ledger()
        );
    }
    if args.json {
        out::json(&json(&costs).to_string())?;
        return Ok(Exit::Completed);
    }
    for line in lines(&costs, args.by, terminal.width) {
        out::row(&line, terminal)?;
    }
    Ok(Exit::Completed)
}

/// Everything that is printed.
pub(crate) fn lines(costs: &Costs, by: Option<CostsBy>, width: Option<usize>) -> Vec<Row> {
    let mut lines = head(costs, width);
    for by in by.map_or_else(|| vec![CostsBy::Agent, CostsBy::Model], |by| vec![by]) {
        lines.push(Row::new());
        lines.extend(table(costs, by).lines(width));
    }
    lines
}

/// The sum, what was held for it, and what caches saved.
fn head(costs: &Costs, width: Option<usize>) -> Vec<Row> {
    let total = &costs.total;
    let root = costs.world.agents().root().map(|root| costs.world.view(root));
    let ceiling = root.as_ref().and_then(|root| root.limit?.of(Resource::Cost));
    let of = ceiling.map(|ceiling| format!(" of {}", usd(ceiling))).unwrap_or_default();
    let (id, state) = (short(costs.world.tree()), costs.world.state());
    let counts = [Resource::Tokens, Resource::Steps, Resource::ToolCalls, Resource::Retries];
    let counts = counts.map(|resource| format!("{:#}", resource.amount(total.spent.of(resource))));
    let cost = usd(total.spent.of(Resource::Cost));
    let mut said = vec![format!("tree {id} · {state} · spent {cost}{of} · {}", counts.join(" · "))];
    let (held, spent) = (total.held.of(Resource::Cost), total.spent.of(Resource::Cost));
    if held > 0 {
        let permille = u128::from(spent) * 1_000 / u128::from(held);
        let overrun = match total.overrun.of(Resource::Cost) {
            0 => "nothing was used beyond its hold".to_owned(),
            beyond => format!("{} were used beyond their hold", usd(beyond)),
        };
        said.push(format!(
            "held for it: {}, of which {}.{} % was used; {overrun}",
            usd(held),
            permille / 10,
            permille % 10
        ));
    }
    if total.cached_tokens > 0 {
        let (cached, all) = (grouped(total.cached_tokens), counted(total.input_tokens, "input token"));
        said.push(format!("cached: {cached} of {all}, which {}", saving(total.saved_nanos)));
    }
    for (tree, sums) in &costs.before {
        said.push(format!("before it branched off, tree {} had spent {:#}", short(*tree), sums.spent));
    }
    let fitted =
        said.iter().flat_map(|line| width.map_or_else(|| vec![line.clone()], |width| wrapped(line, width)));
    fitted.map(|line| Row::plain(&line)).collect()
}

fn saving(nanos: i64) -> String {
    let amount = usd(nanos.unsigned_abs());
    if nanos < 0 { format!("cost {amount} more than plain input") } else { format!("saved {amount}") }
}

fn table(costs: &Costs, by: CostsBy) -> Table {
    let mut table = Table::new(vec![
        Column::left(match by {
            CostsBy::Agent => "AGENT",
            CostsBy::Role => "ROLE",
            CostsBy::Model => "MODEL",
            CostsBy::Step => "STEP",
            CostsBy::Branch => "BRANCH",
            CostsBy::Attempt => "ATTEMPT",
        })
        .shrinking(),
        Column::left(if by == CostsBy::Agent { "ROLE" } else { "" }).shrinking().expendable(4),
        Column::right("COST"),
        Column::right("SHARE").expendable(3),
        Column::right("TOKENS"),
        Column::right("CALLS").expendable(2),
        Column::right("STEPS").expendable(6),
        Column::right("TOOLS").expendable(7),
        Column::right("RETRIES").expendable(8),
        Column::right("HELD").expendable(5),
        Column::right("SAVED").expendable(9),
    ]);
    let breakdown = costs.by(by);
    for (name, sums) in breakdown.rows() {
        let role = if by == CostsBy::Agent { costs.role(name) } else { "" };
        table.add(cells(Row::of(Ink::Name, name), role, sums, &costs.total));
    }
    table.add(cells(Row::of(Ink::Strong, "total"), "", &costs.total, &costs.total));
    if by == CostsBy::Branch {
        for (tree, sums) in &costs.before {
            table.add(cells(Row::of(Ink::Dim, &format!("before, in {}", short(*tree))), "", sums, sums));
        }
    }
    table
}

fn cells(name: Row, role: &str, sums: &Sums, total: &Sums) -> Vec<Row> {
    let of = |resource| sums.spent.of(resource);
    let by = if total.spent.of(Resource::Cost) > 0 { Resource::Cost } else { Resource::Tokens };
    let share = u128::from(of(by)) * 100 / u128::from(total.spent.of(by)).max(1);
    let saved = match sums.saved_nanos {
        0 => String::new(),
        nanos if nanos < 0 => format!("-{}", usd(nanos.unsigned_abs())),
        nanos => usd(nanos.unsigned_abs()),
    };
    vec![
        name,
        Row::of(Ink::Dim, role),
        Row::plain(&usd(of(Resource::Cost))),
        Row::of(Ink::Dim, &format!("{share} %")),
        Row::plain(&grouped(of(Resource::Tokens))),
        Row::plain(&grouped(sums.count)),
        Row::plain(&grouped(of(Resource::Steps))),
        Row::plain(&grouped(of(Resource::ToolCalls))),
        Row::plain(&grouped(of(Resource::Retries))),
        Row::of(Ink::Dim, &usd(sums.held.of(Resource::Cost))),
        Row::of(Ink::Good, &saved),
    ]
}

/// Every table, for programs.
pub(crate) fn json(costs: &Costs) -> Value {
    let by = |by: CostsBy| {
        let breakdown: Breakdown = costs.by(by);
        let rows = breakdown.rows().into_iter().map(|(name, sums)| {
            let mut row = sums_json(sums);
            if let Some(fields) = row.as_object_mut() {
                fields.insert("name".to_owned(), name.as_str().into());
                if by == CostsBy::Agent {
                    fields.insert("role".to_owned(), costs.role(name).into());
                }
            }
            row
        });
        rows.collect::<Vec<_>>()
    };
    let before = costs.before.iter().map(|(tree, sums)| {
        let mut row = sums_json(sums);
        if let Some(fields) = row.as_object_mut() {
            fields.insert("tree".to_owned(), tree.to_string().into());
        }
        row
    });
    json!({
        "type": "costs",
        "tree": costs.world.tree(),
        "state": costs.world.state().word(),
        "seq": costs.world.seq(),
        "total": sums_json(&costs.total),
        "agents": by(CostsBy::Agent),
        "roles": by(CostsBy::Role),
        "models": by(CostsBy::Model),
        "steps": by(CostsBy::Step),
        "attempts": by(CostsBy::Attempt),
        "before": before.collect::<Vec<_>>(),
    })
}

/// Integers only: dollars in nano-dollars.
pub(super) fn amounts_json(amounts: &Amounts) -> Value {
    json!({
        "cost_nanos": amounts.of(Resource::Cost),
        "tokens": amounts.of(Resource::Tokens),
        "steps": amounts.of(Resource::Steps),
        "tool_calls": amounts.of(Resource::ToolCalls),
        "retries": amounts.of(Resource::Retries),
    })
}

fn sums_json(sums: &Sums) -> Value {
    json!({
        "calls": sums.count,
        "spent": amounts_json(&sums.spent),
        "held": amounts_json(&sums.held),
        "overrun": amounts_json(&sums.overrun),
        "input_tokens": sums.input_tokens,
        "cached_tokens": sums.cached_tokens,
        "saved_nanos": sums.saved_nanos,
    })
}
