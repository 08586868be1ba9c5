//! Tables for people that fit their terminal: wide columns shrink first, then the least important ones are left out.

use super::Terminal;
use super::out::{self, Unwritten};
use super::paint::{Ink, Row, width_of};

const GAP: usize = 2;
/// A column that shrinks stays at least this wide, unless nothing else can be left out.
const SHRUNK: usize = 24;
const SHRUNK_MIN: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Align {
    Left,
    Right,
}

pub struct Column {
    title: &'static str,
    align: Align,
    /// Whether its texts may be cut.
    shrinks: bool,
    /// Columns with higher numbers are left out first; 0 stays.
    expendable: u8,
    /// Whether it is left out if all its cells are empty.
    unless_empty: bool,
}

impl Column {
    pub const fn left(title: &'static str) -> Self {
        Self { title, align: Align::Left, shrinks: false, expendable: 0, unless_empty: false }
    }

    pub const fn right(title: &'static str) -> Self {
        Self { title, align: Align::Right, shrinks: false, expendable: 0, unless_empty: false }
    }

    pub const fn shrinking(mut self) -> Self {
        self.shrinks = true;
        self
    }

    pub const fn expendable(mut self, rank: u8) -> Self {
        self.expendable = rank;
        self
    }

    pub const fn unless_empty(mut self) -> Self {
        self.unless_empty = true;
        self
    }
}

pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Row>>,
}

impl Table {
    pub const fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a line; cells that are missing are empty.
    pub fn add(&mut self, cells: Vec<Row>) {
        self.rows.push(cells);
    }

    pub fn write(&self, terminal: Terminal) -> Result<(), Unwritten> {
        out::rows(self.each_line(terminal.width), terminal)
    }

    /// The whole table in lines of at most this width.
    pub fn lines(&self, width: Option<usize>) -> Vec<Row> {
        self.each_line(width).collect()
    }

    fn each_line(&self, width: Option<usize>) -> impl Iterator<Item = Row> {
        let widths = self.widths(width);
        let titles = self.columns.iter().map(|column| Row::inked(Ink::Dim, column.title)).collect::<Vec<_>>();
        let titles = self.line(&titles, &widths);
        std::iter::once(titles).chain(self.rows.iter().map(move |cells| self.line(cells, &widths)))
    }

    fn line(&self, cells: &[Row], widths: &[Option<usize>]) -> Row {
        let mut line = Row::new();
        let mut start = 0;
        let shown = self.columns.iter().zip(widths).enumerate();
        for (at, column, width) in shown.filter_map(|(at, (column, width))| Some((at, column, (*width)?))) {
            line = line.padded(start);
            if let Some(cell) = cells.get(at) {
                let cut = (cell.width() > width).then(|| cell.clone().cut(width));
                let cell = cut.as_ref().unwrap_or(cell);
                if column.align == Align::Right {
                    line = line.padded(start + width - cell.width());
                }
                line.append(cell);
            }
            start += width + GAP;
        }
        line
    }

    /// The width of each column; `None` if it is left out.
    fn widths(&self, most: Option<usize>) -> Vec<Option<usize>> {
        let natural = self.columns.iter().enumerate().map(|(at, column)| {
            let cells = self.rows.iter().map(|row| row.get(at).map_or(0, Row::width));
            let widest = cells.max().unwrap_or(0);
            (widest > 0 || !column.unless_empty).then(|| widest.max(width_of(column.title)))
        });
        let mut widths: Vec<Option<usize>> = natural.collect();
        let Some(most) = most else { return widths };
        self.shrink(&mut widths, most, SHRUNK);
        while sum(&widths) > most {
            let ranks = self.columns.iter().zip(&widths).enumerate();
            let ranks = ranks.filter(|(_, (column, width))| column.expendable > 0 && width.is_some());
            match ranks.max_by_key(|(_, (column, _))| column.expendable).map(|(at, _)| at) {
                Some(at) => widths[at] = None,
                None => break,
            }
        }
        // What cannot be smaller than this is for terminals that are narrower than any that we know.
        self.shrink(&mut widths, most, SHRUNK_MIN);
        widths
    }

    /// Makes the widest columns smaller until everything fits, or they are as small as they may be.
    fn shrink(&self, widths: &mut [Option<usize>], most: usize, least: usize) {
        loop {
            let too_wide = sum(widths).saturating_sub(most);
            let shrinkable = self.columns.iter().zip(&mut *widths).filter(|(column, _)| column.shrinks);
            let shrinkable = shrinkable.filter_map(|(_, width)| width.as_mut());
            match shrinkable.filter(|width| **width > least).max_by_key(|width| **width) {
                Some(width) if too_wide > 0 => *width = width.saturating_sub(too_wide).max(least),
                Some(_) | None => return,
            }
        }
    }
}

fn sum(widths: &[Option<usize>]) -> usize {
    let shown = widths.iter().flatten();
    shown.clone().sum::<usize>() + GAP * shown.count().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::Paint;

    fn lines(width: Option<usize>) -> String {
        let columns = vec![
            Column::left("NAME"),
            Column::left("GOAL").shrinking(),
            Column::right("SPENT"),
            Column::left("CHANGED").expendable(1),
        ];
        let mut table = Table::new(columns);
        let cells = ["lead", "Compare three libraries for a small team.", "$0.25", "just now"];
        table.add(cells.map(Row::plain).into());
        table.lines(width).iter().map(|line| line.painted(Paint::Plain) + "\n").collect()
    }

    #[test]
    fn a_table_fits_its_terminal() {
        insta::assert_snapshot!("unbound", lines(None));
        insta::assert_snapshot!("at_50", lines(Some(50)));
        insta::assert_snapshot!("at_32", lines(Some(32)));
    }
}
