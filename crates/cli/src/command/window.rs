//! `spinney window`: shows what an agent's next packet holds, by category, and what was left out.

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use spinney_kernel::definition::{Preset, Shares};
use spinney_kernel::record::{LeftOut, Tie};
use spinney_kernel::words::{AgentId, Category, TreeId, grouped};

use crate::exec::homes;
use crate::exit::Exit;
use crate::history::recall::{Recalled, Shared, recall};
use crate::home::ids::{find, short};
use crate::terminal::Terminal;
use crate::terminal::out::{self, Unwritten};
use crate::terminal::paint::{Ink, Row};
use crate::terminal::table::{Column, Table};
use crate::terminal::wording::{LINE_CHARS_MAX, counted, one_line};
use crate::{args, hint, home};

const BAR_WIDTH_MAX: usize = 72;
const LABEL_WIDTH: usize = 12;

/// The sign and colour of a category in the bar.
const fn sign(category: Category) -> (&'static str, Ink) {
    match category {
        Category::System => ("█", Ink::Name),
        Category::Context => ("▓", Ink::Good),
        Category::Dialog => ("▒", Ink::Warn),
        Category::Output => ("░", Ink::Strong),
        Category::Error => ("!", Ink::Bad),
        Category::Internal | Category::Unknown => ("+", Ink::Dim),
    }
}

/// What fills the window, one category after the other, and what is free.
fn stacked(rows: &[CategoryRow], whole: u64, width: usize) -> Row {
    let mut bar = Row::new();
    let mut used = 0_u64;
    for row in rows.iter().filter(|row| row.used > 0) {
        used = used.saturating_add(row.used);
        let end = u128::from(used.min(whole)) * width as u128 / u128::from(whole.max(1));
        // Whatever is there is seen, however little it is.
        let columns = usize::try_from(end).unwrap_or(width).saturating_sub(bar.width()).max(1);
        let (sign, ink) = sign(row.category);
        bar.push(ink, &sign.repeat(columns));
    }
    let free = width.saturating_sub(bar.width());
    bar.with(Ink::Dim, &"·".repeat(free))
}

struct CategoryRow {
    category: Category,
    share: Option<u64>,
    used: u64,
    left_out: LeftOut,
}

pub(super) fn window(home: &Path, args: &args::WhoseContext, terminal: Terminal) -> Result<Exit> {
    let journal = home::look(home)?;
    let tree = find(home, &journal, args.tree())?.tree;
    if homes::is_of_exec(home) {
        let show = hint::about(home, "show", tree, &[args.agent.as_str()]);
        bail!("`{}` is part of a program outside, which has its own windows; its calls: {show}", args.agent);
    }
    let recalled = recall(&journal, tree, &args.agent)?;
    let (rows, left_out) = (rows(&recalled), left_out(&recalled));
    if args.json {
        out::json(&line(&recalled, &rows, tree, &args.agent))?;
        return Ok(Exit::Completed);
    }
    let Recalled { state, seq, .. } = &recalled;
    let head = format!("{} of tree {}: {state}, as of event {}", args.agent, short(tree), seq.0);
    out::text(Ink::Strong, &head, 2, terminal)?;
    about(&recalled, left_out, terminal)?;
    out::line("")?;
    let used = recalled.window.used();
    let whole = recalled.window.size().unwrap_or(used).max(used);
    let width = terminal.width.unwrap_or(BAR_WIDTH_MAX + 2).saturating_sub(2).min(BAR_WIDTH_MAX);
    out::row(&Row::plain("  ").joined(stacked(&rows, whole, width)), terminal)?;
    out::line("")?;
    table(&rows, recalled.window.size().is_some(), terminal)?;
    Ok(Exit::Completed)
}

fn rows(recalled: &Recalled) -> Vec<CategoryRow> {
    let window = &recalled.window;
    let shares = window.size().map(|size| Shares::of(recalled.preset, size));
    let row = |category| {
        let mut gone = window.left_out();
        let left_out = gone.find(|(gone, _)| *gone == category).map(|(_, left_out)| left_out);
        CategoryRow {
            category,
            share: shares.map(|shares| shares.get(category)),
            used: window.used_by(category),
            left_out: left_out.unwrap_or_default(),
        }
    };
    let has_something =
        |row: &CategoryRow| row.share.unwrap_or(0) > 0 || row.used > 0 || row.left_out.messages > 0;
    Category::ALL.into_iter().map(row).filter(has_something).collect()
}

fn left_out(recalled: &Recalled) -> LeftOut {
    recalled.window.left_out().fold(LeftOut::default(), |all, (_, left)| LeftOut {
        messages: all.messages.saturating_add(left.messages),
        tokens: all.tokens.saturating_add(left.tokens),
    })
}

fn percent(used: u64, size: u64) -> u64 {
    used.saturating_mul(100) / size.max(1)
}

/// Tokens of the digest of left-out messages.
fn in_short(recalled: &Recalled) -> u64 {
    let headers = recalled.window.headers().iter();
    headers
        .filter(|header| header.tie == Tie::Folded)
        .map(|header| recalled.window.corrected(header.estimate.into()))
        .sum()
}

const fn word(preset: Preset) -> &'static str {
    match preset {
        Preset::Dialog => "dialog",
        Preset::Tools => "tools",
    }
}

fn gone(left_out: LeftOut) -> String {
    let messages = counted(left_out.messages.into(), "message");
    format!("{messages} of {}", counted(left_out.tokens, "token"))
}

fn about(recalled: &Recalled, left_out: LeftOut, terminal: Terminal) -> Result<(), Unwritten> {
    let line = |text: &str| out::text(Ink::Plain, text, LABEL_WIDTH, terminal);
    let window = &recalled.window;
    let mut messages = counted(window.headers().len() as u64, "message");
    if window.unread() > 0 {
        messages += &format!(" ({} not read yet)", window.unread());
    }
    if window.images() > 0 {
        messages += &format!(" with {}", counted(window.images() as u64, "image"));
    }
    let used = format!("{} of {messages}", counted(window.used(), "token"));
    match (window.size(), &recalled.because) {
        (Some(size), Some(because)) => {
            line(&format!("  size      {}: {because}", counted(size, "token")))?;
            line(&format!("  preset    {}", word(recalled.preset)))?;
            line(&format!("  used      {used}, {} %", percent(window.used(), size)))?;
        }
        (Some(_) | None, _) => {
            line("  size      no bound: role, model and spawner say nothing, so a packet holds everything")?;
            line(&format!("  used      {used}"))?;
        }
    }
    match recalled.last_cut {
        Some(cut) => {
            let images = match recalled.images_left_out() {
                0 => String::new(),
                images => format!(", and {}", counted(images, "image")),
            };
            line(&format!("  left out  {}{images}; last cut by event {}", gone(left_out), cut.0))?;
        }
        None => line("  left out  nothing")?,
    }
    match in_short(recalled) {
        0 => {}
        tokens => {
            line(&format!("  in short  {} of context tell what was left out", counted(tokens, "token")))?;
            if let Some(summary) = &recalled.summary {
                line(&format!("  summary   {}", one_line(summary, LINE_CHARS_MAX)))?;
            }
        }
    }
    match &recalled.thread {
        Some(thread) => line(&format!("  thread    {}", shared(thread))),
        None => Ok(()),
    }
}

fn shared(Shared { of, readers, bound }: &Shared) -> String {
    let readers = counted(*readers as u64, "other");
    let bound =
        bound.map_or_else(String::new, |tokens| format!("; at most {} of it", counted(tokens, "token")));
    format!("what {of} learns, read by {readers}{bound}")
}

fn table(rows: &[CategoryRow], is_bound: bool, terminal: Terminal) -> Result<(), Unwritten> {
    let mut columns = vec![Column::left(""), Column::left("CATEGORY"), Column::right("USED")];
    if is_bound {
        columns.push(Column::right("SHARE"));
    }
    columns.push(Column::left("LEFT OUT"));
    let mut table = Table::new(columns);
    for row in rows {
        let (sign, ink) = sign(row.category);
        let left_out = if row.left_out.messages == 0 { String::new() } else { gone(row.left_out) };
        let mut cells =
            vec![Row::of(ink, sign), Row::plain(row.category.word()), Row::plain(&grouped(row.used))];
        if is_bound {
            cells.push(Row::of(Ink::Dim, &row.share.map(grouped).unwrap_or_default()));
        }
        cells.push(Row::of(Ink::Warn, &left_out));
        table.add(cells);
    }
    table.write(terminal)
}

fn line(recalled: &Recalled, rows: &[CategoryRow], tree: TreeId, agent: &AgentId) -> String {
    let window = &recalled.window;
    let categories: Vec<Value> = rows
        .iter()
        .map(|CategoryRow { category, share, used, left_out }| {
            json!({ "category": category, "share": share, "used": used, "left_out": left_out })
        })
        .collect();
    let line = json!({
        "tree": tree,
        "agent": agent,
        "state": recalled.state.to_string(),
        "seq": recalled.seq,
        "size": window.size(),
        "because": recalled.because,
        "preset": window.size().map(|_| recalled.preset),
        "used": window.used(),
        "messages": window.headers().len(),
        "unread": window.unread(),
        "images": window.images(),
        "percent": window.size().map(|size| percent(window.used(), size)),
        "left_out": left_out(recalled),
        "images_left_out": recalled.images_left_out(),
        "last_cut": recalled.last_cut,
        "in_short": in_short(recalled),
        "summary": recalled.summary,
        "thread": recalled.thread.as_ref().map(|Shared { of, readers, bound }| {
            json!({ "of": of, "readers": readers, "bound": bound })
        }),
        "categories": categories,
    });
    line.to_string()
}
