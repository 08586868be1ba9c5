//! `spinney window`: shows what an agent's next packet holds, by category, and what was left out.

use std::path::Path;

use anyhow::{Result, bail};
use spinney_host::home::ids::{NamedTree, RedactedTree};
use spinney_host::home::side_journals;
use spinney_kernel::definition::Preset;
use spinney_kernel::primitives::{Category, grouped};
use spinney_kernel::record::LeftOut;
use spinney_terminal::Terminal;
use spinney_terminal::out::{self, Unwritten};
use spinney_terminal::paint::{Ink, Row};
use spinney_terminal::table::{Column, Table};
use spinney_view::agents;
use spinney_view::packet_prefix::{Divergence, PacketPrefix};
use spinney_view::recall::SharedThread;
use spinney_view::window::{CategoryUse, WindowView};
use spinney_view::wording::{LINE_CHARS_MAX, counted, one_line, short_id};

use super::show::{line, recalled};
use crate::exit::Exit;
use crate::{args, hint};

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
fn stacked(rows: &[CategoryUse], whole: u64, width: usize) -> Row {
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

pub(super) async fn window(home: &Path, args: &args::WhoseContext, terminal: Terminal) -> Result<Exit> {
    let RedactedTree { journal, tree, .. } = NamedTree::in_home(home, args.tree()).await?.redacted().await?;
    let agent = &agents::at(&journal, tree, args.agent.clone()).await??;
    if side_journals::is_of_exec(home).await {
        let show = hint::about(home, "show", tree, &[agent.as_str()]);
        bail!("`{agent}` is part of an outside program, which has its own windows; its calls: {show}");
    }
    let recalled = recalled(home, &journal, tree, agent).await?;
    let window = WindowView::new(tree, agent, &recalled);
    if args.json {
        out::json(&line(&window))?;
        return Ok(Exit::Completed);
    }
    let head = format!("{agent} of tree {}: {}, as of event {}", short_id(tree), window.state, window.seq.0);
    out::text(Ink::Strong, &head, 2, terminal)?;
    about(&window, terminal)?;
    out::line("")?;
    let whole = window.size.unwrap_or(window.used).max(window.used);
    let width = terminal.width.unwrap_or(BAR_WIDTH_MAX + 2).saturating_sub(2).min(BAR_WIDTH_MAX);
    out::row(&Row::plain("  ").joined(stacked(&window.categories, whole, width)), terminal)?;
    out::line("")?;
    table(&window.categories, window.size.is_some(), terminal)?;
    Ok(Exit::Completed)
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

fn about(window: &WindowView, terminal: Terminal) -> Result<(), Unwritten> {
    let line = |text: &str| out::text(Ink::Plain, text, LABEL_WIDTH, terminal);
    let mut messages = counted(window.messages as u64, "message");
    if window.unread > 0 {
        messages += &format!(" ({} not read yet)", window.unread);
    }
    if window.images > 0 {
        messages += &format!(" with {}", counted(window.images as u64, "image"));
    }
    let used = format!("{} of {messages}", counted(window.used, "token"));
    match (window.size, &window.because, window.preset) {
        (Some(size), Some(because), Some(preset)) => {
            line(&format!("  size      {}: {because}", counted(size, "token")))?;
            line(&format!("  preset    {}", word(preset)))?;
            line(&format!("  used      {used}, {} %", window.percent.unwrap_or_default()))?;
        }
        (Some(_) | None, ..) => {
            line("  size      no bound: role, model and spawner set none, so each call sends everything")?;
            line(&format!("  used      {used}"))?;
        }
    }
    match window.last_cut {
        Some(cut) => {
            let images = match window.images_left_out {
                0 => String::new(),
                images => format!(", and {}", counted(images, "image")),
            };
            line(&format!("  left out  {}{images}; last cut by event {}", gone(window.left_out), cut.0))?;
        }
        None => line("  left out  nothing")?,
    }
    match window.in_short {
        0 => {}
        tokens => {
            line(&format!(
                "  in short  {} of context summarise what was left out",
                counted(tokens, "token")
            ))?;
            if let Some(summary) = &window.summary {
                line(&format!("  summary   {}", one_line(summary, LINE_CHARS_MAX)))?;
            }
        }
    }
    if window.prefix.packets > 1 {
        line(&format!("  prefix    {}", prefix(&window.prefix)))?;
    }
    match &window.thread {
        Some(thread) => line(&format!("  thread    {}", shared(thread))),
        None => Ok(()),
    }
}

/// Which packets a provider's cache has the beginning of.
fn prefix(PacketPrefix { packets, diverged, last }: &PacketPrefix) -> String {
    let Some(Divergence { seq, section, same_messages }) = last else {
        return format!("all {packets} packets extend the one before");
    };
    let (after, section) = (packets - 1, section.as_str());
    let same = counted(*same_messages as u64, "message");
    format!(
        "{} of the {after} after the first extend the one before; the last that does not (event {}) differs from the {section} on, after {same}",
        after - diverged,
        seq.0
    )
}

fn shared(SharedThread { of, readers, bound }: &SharedThread) -> String {
    let readers = counted(*readers as u64, "other");
    let bound =
        bound.map_or_else(String::new, |tokens| format!("; at most {} of it", counted(tokens, "token")));
    format!("what {of} learns, read by {readers}{bound}")
}

fn table(rows: &[CategoryUse], is_bound: bool, terminal: Terminal) -> Result<(), Unwritten> {
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
            vec![Row::inked(ink, sign), Row::plain(row.category.as_str()), Row::plain(&grouped(row.used))];
        if is_bound {
            cells.push(Row::inked(Ink::Dim, &row.share.map(grouped).unwrap_or_default()));
        }
        cells.push(Row::inked(Ink::Warn, &left_out));
        table.add(cells);
    }
    table.write(terminal)
}
