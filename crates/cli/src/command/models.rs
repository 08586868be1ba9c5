//! `spinney models`: lists the models of the built-in price table.

use anyhow::Result;
use spinney::clock::{Clock, SystemClock};
use spinney_drivers::prices::PriceTable;
use spinney_host::price_list::{self, ListedPrice, PriceListEntry};
use spinney_kernel::budget::usd;
use spinney_kernel::primitives::Time;
use spinney_terminal::paint::Row;
use spinney_terminal::table::{Column, Table};
use spinney_terminal::{Terminal, out};
use spinney_view::wording::counted;

use crate::args;
use crate::exit::Exit;

const UNKNOWN: &str = "–";

/// Lists the models whose names contain every word of the filter, the current ones first. Programs get all of them, in the
/// order of the table.
pub(super) fn models(args: &args::Models, terminal: Terminal) -> Result<Exit> {
    let table = PriceTable::embedded()?;
    let now = Time(SystemClock::new().now_ms());
    let found = price_list::find(&table, &args.filter, now);
    if args.json {
        for entry in &found {
            out::json(&serde_json::to_string(entry)?)?;
        }
        return Ok(Exit::Completed);
    }
    let (current, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|entry| entry.current);
    let (more, left_out) = if args.all { (others.as_slice(), 0) } else { (&[][..], others.len()) };
    if current.is_empty() && more.is_empty() {
        out::note(&nothing_found(&args.filter, left_out));
        return Ok(Exit::Completed);
    }
    let mut shown = Table::new(vec![
        // A name is there to be copied.
        Column::left("MODEL"),
        Column::right("CONTEXT").expendable(2),
        Column::right("INPUT"),
        Column::right("OUTPUT"),
        Column::right("CACHED").expendable(1),
        Column::right("DATE").expendable(3),
    ]);
    for entry in current.iter().chain(more) {
        let cells = row(entry);
        shown.add(cells.iter().map(|cell| Row::plain(cell)).collect());
    }
    shown.write(terminal)?;
    out::note(&format!(
        "prices in dollars per million tokens, from {}; ↑: more for long inputs or at other times; {UNKNOWN}: unknown, \
         see --json",
        table.source
    ));
    if left_out > 0 {
        out::note(&format!(
            "{} without a price, deprecated or replaced: see --all",
            counted(left_out as u64, "other model")
        ));
    }
    Ok(Exit::Completed)
}

fn nothing_found(filter: &[String], left_out: usize) -> String {
    let filter = filter.join(" ");
    match left_out {
        0 => format!("no model has a name with: {filter}"),
        _ => {
            let others = counted(left_out as u64, "model");
            format!(
                "no current model has a name with: {filter}; --all shows {others} without a price, deprecated or replaced"
            )
        }
    }
}

fn row(entry: &PriceListEntry<'_>) -> [String; 6] {
    let unknown = || UNKNOWN.to_owned();
    let context = entry.context.map_or_else(unknown, |tokens| tokens.to_string());
    let [input, output, cached] = match &entry.price {
        ListedPrice::Known { rates, is_dearer_somewhere, .. } => {
            let varies = if *is_dearer_somewhere { "↑" } else { "" };
            let shown = |rate| format!("{}{varies}", usd(rate));
            let cached = rates.cached_input_per_mtok.map_or_else(unknown, shown);
            [shown(rates.input_per_mtok), shown(rates.output_per_mtok), cached]
        }
        ListedPrice::Unknown { .. } => [unknown(), unknown(), unknown()],
    };
    [entry.model.clone(), context, input, output, cached, entry.date.clone()]
}
