//! `spinney models`: lists the models of the built-in price table.

use anyhow::Result;
use serde_json::{Value, json};
use spinney::clock::{Clock, SystemClock};
use spinney_drivers::prices::{PriceTable, TableModel};
use spinney_kernel::budget::{Price, usd};
use spinney_kernel::words::Time;

use crate::args;
use crate::exit::Exit;
use crate::terminal::paint::Row;
use crate::terminal::table::{Column, Table};
use crate::terminal::{Terminal, out};

const UNKNOWN: &str = "–";
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Lists the models whose names contain every word of the filter.
pub(super) fn models(args: &args::Models, terminal: Terminal) -> Result<Exit> {
    let table = PriceTable::embedded()?;
    let now = Time(SystemClock::new().now_ms());
    let words: Vec<String> = args.filter.iter().map(|word| word.to_lowercase()).collect();
    let listed = table.models().map(|(provider, model)| (format!("{provider}/{}", model.name), model));
    let found: Vec<(String, &TableModel)> = listed
        .filter(|(name, _)| {
            let name = name.to_lowercase();
            words.iter().all(|word| name.contains(word))
        })
        .collect();
    if args.json {
        for (name, model) in &found {
            out::json(&line(&table, name, model, now).to_string())?;
        }
        return Ok(Exit::Completed);
    }
    if found.is_empty() {
        out::note(&format!("no model has a name with: {}", args.filter.join(" ")));
        return Ok(Exit::Completed);
    }
    let mut listed = Table::new(vec![
        // A name is there to be copied.
        Column::left("MODEL"),
        Column::right("CONTEXT").expendable(2),
        Column::right("MAX OUTPUT").expendable(4),
        Column::right("INPUT"),
        Column::right("OUTPUT"),
        Column::right("CACHED").expendable(1),
        Column::right("DATE").expendable(3),
    ]);
    for (name, model) in &found {
        listed.add(row(&table, name, model, now).iter().map(|cell| Row::plain(cell)).collect());
    }
    listed.write(terminal)?;
    out::note(&format!(
        "prices in dollars per million tokens, from {}; ↑: dearer for long inputs or at other times; {UNKNOWN}: unknown, \
         see --json",
        table.source
    ));
    Ok(Exit::Completed)
}

fn row(table: &PriceTable, name: &str, model: &TableModel, now: Time) -> [String; 7] {
    let unknown = || UNKNOWN.to_owned();
    let context = model.context.map_or_else(unknown, |tokens| tokens.to_string());
    let [input, output, cached] = match model.price() {
        Ok(price) => {
            let rates = price.rates_at(now, 0);
            let varies = if is_dearer_somewhere(price, now) { "↑" } else { "" };
            let shown = |rate| format!("{}{varies}", usd(rate));
            let cached = rates.cached_input_per_mtok.map_or_else(unknown, shown);
            [shown(rates.input_per_mtok), shown(rates.output_per_mtok), cached]
        }
        Err(_) => [unknown(), unknown(), unknown()],
    };
    [name.to_owned(), context, unknown(), input, output, cached, since(table, model, now)]
}

/// Whether a call now can cost more than the rates shown.
fn is_dearer_somewhere(price: &Price, now: Time) -> bool {
    let rates = price.rates_at(now, 0);
    Price::from(rates).worst_case(u64::from(u32::MAX), 1, now) < price.worst_case(u64::from(u32::MAX), 1, now)
}

/// The day since which a price is valid: its own if it has one, otherwise the table's.
fn since(table: &PriceTable, model: &TableModel, now: Time) -> String {
    let own = model.price().ok().and_then(|price| price.since(now));
    own.map_or_else(|| table.date.clone(), day)
}

fn line(table: &PriceTable, name: &str, model: &TableModel, now: Time) -> Value {
    let mut line = json!({
        "model": name,
        "context": model.context,
        "max_output": null,
        "date": since(table, model, now),
        "source": table.source,
    });
    let fields = match model.price() {
        Ok(price) => vec![("rates", json!(price.rates_at(now, 0))), ("price", json!(price))],
        Err(reason) => vec![("unpriced", json!(reason))],
    };
    if let Some(object) = line.as_object_mut() {
        object.extend(fields.into_iter().map(|(key, value)| (key.to_owned(), value)));
    }
    line
}

/// The day in UTC: `2026-10-30`.
fn day(at: Time) -> String {
    // Counted from March, so that a leap day is the last day of the year.
    let days = at.0 / DAY_MS + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + u64::from(month <= 2))
}

#[cfg(test)]
mod tests {
    use spinney_kernel::words::Time;

    use super::{DAY_MS, day};

    #[test]
    fn a_moment_is_shown_as_its_day() {
        assert_eq!(day(Time(0)), "1970-01-01");
        assert_eq!(day(Time(1_709_164_800_000)), "2024-02-29");
        assert_eq!(day(Time(1_709_164_800_000 + DAY_MS)), "2024-03-01");
        assert_eq!(day(Time(1_767_225_600_000 - 1)), "2025-12-31");
        assert_eq!(day(Time(1_767_225_600_000)), "2026-01-01");
    }
}
