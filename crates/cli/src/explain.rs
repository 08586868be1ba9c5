//! `--explain`: prints every option of a run, its value and where that comes from.

use anyhow::Result;
use spinney_host::explain::Explanation;
use spinney_terminal::paint::Row;
use spinney_terminal::table::{Column, Table};
use spinney_terminal::{Terminal, out};

/// What is shown for a value that is not set.
pub(crate) const NOTHING: &str = "–";

pub(crate) fn write(explanation: &Explanation, is_json: bool, terminal: Terminal) -> Result<()> {
    if is_json {
        return Ok(out::json(&serde_json::to_string(explanation)?)?);
    }
    let mut table = Table::new(vec![Column::left("OPTION"), Column::left("VALUE"), Column::left("FROM")]);
    for option in &explanation.options {
        let value = option.shown();
        let cells = [&option.name, value.as_deref().unwrap_or(NOTHING), &option.source.to_string()];
        table.add(cells.map(Row::plain).to_vec());
    }
    Ok(table.write(terminal)?)
}
