//! `spinney costs`: who spent what, from the journal, in a tree or in all trees of a home; also while other processes run them.

use std::path::Path;

use anyhow::{Result, bail};
use spinney_host::home::ids::{NamedTree, RedactedTree};
use spinney_host::home_costs::{HomeSpending, home_costs};
use spinney_kernel::budget::{Resource, usd};
use spinney_kernel::primitives::grouped;
use spinney_terminal::money::MoneyColumn;
use spinney_terminal::paint::{Ink, Row, wrapped};
use spinney_terminal::table::{Column, Table};
use spinney_terminal::{Terminal, out};
use spinney_view::costs::home::{HomeCosts, HomeCostsBy};
use spinney_view::costs::{Costs, CostsBy, Sums};
use spinney_view::wording::{counted, short_id};

use crate::args;
use crate::args::CostsOf;
use crate::error_text::in_words_of;
use crate::exit::Exit;

pub(super) async fn costs(home: &Path, args: &args::Costs, terminal: Terminal) -> Result<Exit> {
    let by = match args.by.map(CostsOf::from) {
        Some(CostsOf::Home(by)) => return of_home(home, args, by, terminal).await,
        Some(CostsOf::Tree(_)) if args.json => bail!("--json writes every table of a tree: leave out --by"),
        Some(CostsOf::Tree(by)) => Some(by),
        None => None,
    };
    let named = NamedTree::in_home(home, args.tree.text()).await?;
    let RedactedTree { journal, tree, .. } = named.redacted().await?;
    let costs = Costs::read(&journal, tree).await?;
    if costs.total.booked() != costs.ledger() {
        bail!(
            "the bookings of tree {tree} add up to {}, but its ledger has {}: please report it",
            costs.total.booked(),
            costs.ledger()
        );
    }
    if args.json {
        out::json(&serde_json::to_string(&costs)?)?;
        return Ok(Exit::Completed);
    }
    for line in lines(&costs, by, terminal.width) {
        out::row(&line, terminal)?;
    }
    Ok(Exit::Completed)
}

/// What all trees of the home spent.
async fn of_home(home: &Path, args: &args::Costs, by: HomeCostsBy, terminal: Terminal) -> Result<Exit> {
    if let Some(tree) = args.tree.given() {
        bail!("--by {} is about all trees of the home: leave out `{tree}`", by.as_str());
    }
    let HomeSpending { costs, unreadable } = home_costs(home, by).await?;
    unreadable.iter().for_each(|why| out::complain(&in_words_of(why.as_ref())));
    if args.json {
        out::json(&serde_json::to_string(&costs)?)?;
        return Ok(Exit::Completed);
    }
    for line in home_lines(&costs, terminal.width) {
        out::row(&line, terminal)?;
    }
    Ok(Exit::Completed)
}

fn home_lines(costs: &HomeCosts, width: Option<usize>) -> Vec<Row> {
    let booked = costs.total.booked();
    let counts = [Resource::Tokens, Resource::Steps].map(|resource| booked.amount(resource));
    let cost = booked.amount(Resource::Cost);
    let head = format!("{} · spent {cost} · {}", counted(costs.trees, "tree"), counts.join(" · "));
    let mut table = Table::new(vec![
        Column::left(match costs.by() {
            HomeCostsBy::Tag => "TAG",
            HomeCostsBy::Program => "PROGRAM",
            HomeCostsBy::Day => "DAY",
        })
        .shrinking(),
        Column::right("COST"),
        Column::right("PRESUMED").unless_empty(),
        Column::right("SHARE").expendable(3),
        Column::right("TOKENS"),
        Column::right("CALLS").expendable(2),
    ]);
    let (rows, total) = (costs.rows(), &costs.total);
    let shown: Vec<&Sums> = rows.iter().map(|(_, sums)| sums).chain([total]).collect();
    let money = MoneyColumns::new(&shown);
    let cells = |name: Row, sums: &Sums, share: u64| {
        let presumed = match sums.presumed.get(Resource::Cost) {
            0 => Row::new(),
            nanos => Row::inked(Ink::Warn, &money.presumed.show(nanos)),
        };
        vec![
            name,
            Row::plain(&money.cost.show(sums.spent.get(Resource::Cost))),
            presumed,
            Row::inked(Ink::Dim, &format!("{share} %")),
            Row::plain(&grouped(sums.spent.get(Resource::Tokens))),
            Row::plain(&grouped(sums.count)),
        ]
    };
    // A tree may be in several rows of tags, so their shares are of the total and need not add up to all of it.
    let share = |sums: &Sums| {
        let (of, all) = (sums.spent.get(Resource::Cost), total.spent.get(Resource::Cost));
        u64::try_from(u128::from(of) * 100 / u128::from(all.max(1))).unwrap_or(100)
    };
    for (name, sums) in &rows {
        table.add(cells(Row::inked(Ink::Name, name), sums, share(sums)));
    }
    table.add(cells(Row::inked(Ink::Strong, "total"), total, share(total)));
    let mut lines = vec![Row::plain(&head), Row::new()];
    lines.extend(table.lines(width));
    lines
}

/// Everything that is printed of a tree.
fn lines(costs: &Costs, by: Option<CostsBy>, width: Option<usize>) -> Vec<Row> {
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
    let ceiling = root.as_ref().and_then(|root| root.limit?.get(Resource::Cost));
    let of = ceiling.map(|ceiling| format!(" of {}", usd(ceiling))).unwrap_or_default();
    let (id, state) = (short_id(costs.world.tree()), costs.world.state());
    let counts = [Resource::Tokens, Resource::Steps, Resource::ToolCalls, Resource::Retries];
    let booked = total.booked();
    let (cost, counts) = (booked.amount(Resource::Cost), counts.map(|resource| booked.amount(resource)));
    let mut said = vec![format!("tree {id} · {state} · spent {cost}{of} · {}", counts.join(" · "))];
    let (held, spent) = (total.held.get(Resource::Cost), total.spent.get(Resource::Cost));
    if held > 0 {
        let permille = u128::from(spent) * 1_000 / u128::from(held);
        let overrun = match total.overrun.get(Resource::Cost) {
            0 => "nothing was used beyond its hold".to_owned(),
            beyond => format!("{} were used beyond their hold", usd(beyond)),
        };
        said.push(format!(
            "{} was held for its calls; {}.{} % of that was spent; {overrun}",
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
        said.push(format!("before it branched off, tree {} had spent {}", short_id(*tree), sums.booked()));
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
    // They stay if no cost says how much is presumed.
    let presumed_tokens = if costs.total.presumed.get(Resource::Cost) > 0 { 6 } else { 0 };
    let mut table = Table::new(vec![
        Column::left(match by {
            CostsBy::Agent => "AGENT",
            CostsBy::Role => "ROLE",
            CostsBy::Model => "MODEL",
            CostsBy::Step => "STEP",
            CostsBy::Branch => "BRANCH",
            CostsBy::Attempt => "ATTEMPT",
            CostsBy::Day => "DAY",
        })
        .shrinking(),
        Column::left(if by == CostsBy::Agent { "ROLE" } else { "" }).shrinking().expendable(4),
        Column::right("COST"),
        Column::right("PRESUMED").unless_empty(),
        Column::right("SHARE").expendable(3),
        Column::right("TOKENS"),
        Column::right("PRESUMED TOKENS").unless_empty().expendable(presumed_tokens),
        Column::right("CALLS").expendable(2),
        Column::right("STEPS").expendable(6),
        Column::right("TOOLS").expendable(7),
        Column::right("RETRIES").expendable(8),
        Column::right("HELD").expendable(5),
        Column::right("SAVED").expendable(9),
    ]);
    let breakdown = costs.by(by);
    let (rows, total) = (breakdown.rows(), &costs.total);
    let shown: Vec<&Sums> = rows.iter().map(|(_, sums)| sums).chain([total]).collect();
    let money = MoneyColumns::new(&shown);
    let shares = total.shares(rows.iter().map(|(_, sums)| sums));
    for ((name, sums), share) in rows.iter().zip(shares) {
        let role = if by == CostsBy::Agent { costs.role(name) } else { "" };
        table.add(cells(Row::inked(Ink::Name, name), role, sums, share, money));
    }
    let whole = |sums: &Sums| sums.shares([sums]).into_iter().sum();
    table.add(cells(Row::inked(Ink::Strong, "total"), "", total, whole(total), money));
    if by == CostsBy::Branch {
        for (tree, sums) in &costs.before {
            let name = Row::inked(Ink::Dim, &format!("before, in {}", short_id(*tree)));
            table.add(cells(name, "", sums, whole(sums), MoneyColumns::new(&[sums])));
        }
    }
    table
}

/// The columns of money, each with the decimals that all its amounts need.
#[derive(Clone, Copy)]
struct MoneyColumns {
    cost: MoneyColumn,
    presumed: MoneyColumn,
    held: MoneyColumn,
    saved: MoneyColumn,
}

impl MoneyColumns {
    fn new(shown: &[&Sums]) -> Self {
        let column = |amount: fn(&Sums) -> u64| MoneyColumn::exact(shown.iter().map(|sums| amount(sums)));
        Self {
            cost: column(|sums| sums.spent.get(Resource::Cost)),
            presumed: column(|sums| sums.presumed.get(Resource::Cost)),
            held: column(|sums| sums.held.get(Resource::Cost)),
            saved: column(|sums| sums.saved_nanos.unsigned_abs()),
        }
    }
}

fn cells(name: Row, role: &str, sums: &Sums, share: u64, money: MoneyColumns) -> Vec<Row> {
    let of = |resource| sums.spent.get(resource);
    let presumed = |resource| match sums.presumed.get(resource) {
        0 => Row::new(),
        nanos if resource == Resource::Cost => Row::inked(Ink::Warn, &money.presumed.show(nanos)),
        count => Row::inked(Ink::Warn, &grouped(count)),
    };
    let saved = match sums.saved_nanos {
        0 => String::new(),
        nanos => {
            let sign = if nanos < 0 { "-" } else { "" };
            format!("{sign}{}", money.saved.show(nanos.unsigned_abs()))
        }
    };
    vec![
        name,
        Row::inked(Ink::Dim, role),
        Row::plain(&money.cost.show(of(Resource::Cost))),
        presumed(Resource::Cost),
        Row::inked(Ink::Dim, &format!("{share} %")),
        Row::plain(&grouped(of(Resource::Tokens))),
        presumed(Resource::Tokens),
        Row::plain(&grouped(sums.count)),
        Row::plain(&grouped(of(Resource::Steps))),
        Row::plain(&grouped(of(Resource::ToolCalls))),
        Row::plain(&grouped(of(Resource::Retries))),
        Row::inked(Ink::Dim, &money.held.show(sums.held.get(Resource::Cost))),
        Row::inked(Ink::Good, &saved),
    ]
}

#[cfg(test)]
mod tests {
    use spinney_kernel::primitives::TreeId;
    use spinney_testkit::sim;
    use spinney_view::TreeFold as _;
    use spinney_view::costs::CostsFold;

    use super::*;

    /// X11 (the printed total): in 300 random trees, what is printed is the ledger.
    #[test]
    fn what_is_printed_is_the_ledger() {
        for seed in 0..300 {
            let mut fold = CostsFold::new(TreeId::new([1; 16]));
            sim::batches(seed).unwrap().iter().for_each(|batch| assert!(fold.take(batch).is_continue()));
            let costs = fold.costs();
            let ledger = costs.ledger();
            let printed: Vec<String> = lines(&costs, None, None).iter().map(|line| line.text()).collect();
            let cost = usd(ledger.get(Resource::Cost));
            assert!(printed[0].contains(&ledger.amount(Resource::Cost)), "seed {seed}: {printed:?}");
            let presumed_part = match ledger.presumed.get(Resource::Cost) {
                0 => String::new(),
                nanos => usd(nanos),
            };
            let totals: Vec<&String> = printed.iter().filter(|line| line.starts_with("total")).collect();
            assert!(
                totals.len() == 2
                    && totals.iter().all(|line| line.contains(&cost) && line.contains(&presumed_part)),
                "{seed}: {printed:?}"
            );
        }
    }
}
