//! The screen: writes events to standard output, as lines of text or of JSON. `run`, `resume`, `events` and `replay`
//! all use it. It must get every event from the first on: earlier ones name the calls of later ones.

use spinney::bus::TracedEvent;
use spinney_journal::Journal;
use spinney_kernel::primitives::{Seq, Time, TreeId};
use spinney_terminal::Terminal;
use spinney_terminal::out::{self, Unwritten};
use spinney_terminal::paint::{Ink, Row, width_of, wrapped};
use spinney_view::each_event;
use spinney_view::events::{EventFilter, EventLine, EventNames, TextPiece};
use spinney_view::visibility::{VisibleEvents, WatchRight};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Only important events, indented by depth.
    Lines,
    /// Every event with its number and path.
    Log,
    /// Every event as a line of JSON.
    Json,
}

/// How far further lines of an event are indented.
const HANGING: usize = 2;
/// Takes the place of a name while its line is wrapped.
const NO_BREAK: &str = "\u{a0}";
/// Lines are not wrapped to less than this.
const WRAPPED_MIN: usize = 24;

pub(crate) struct Screen {
    tree: TreeId,
    style: Style,
    only: EventFilter,
    visible: VisibleEvents,
    /// The first event to write.
    from: Seq,
    names: EventNames,
    started: Option<Time>,
    last: Option<Time>,
    lines: u64,
    /// Where lines are wrapped and get colours; `None` leaves them as they are.
    terminal: Option<Terminal>,
}

impl Screen {
    pub(crate) fn new(tree: TreeId, style: Style) -> Self {
        Self {
            tree,
            style,
            only: EventFilter::default(),
            visible: VisibleEvents::default(),
            from: Seq(0),
            names: EventNames::default(),
            started: None,
            last: None,
            lines: 0,
            terminal: None,
        }
    }

    /// Fits lines to where they are written.
    pub(crate) const fn on(mut self, terminal: Terminal) -> Self {
        self.terminal = Some(terminal);
        self
    }

    pub(crate) fn only(mut self, wanted: EventFilter) -> Self {
        self.only = wanted;
        self
    }

    /// Writes JSON as a watcher with this right is shown it.
    pub(crate) fn seen_with(mut self, right: WatchRight) -> Self {
        self.visible = VisibleEvents::new(right);
        self
    }

    pub(crate) const fn from(mut self, from: Seq) -> Self {
        self.from = from;
        self
    }

    pub(crate) const fn style(&self) -> Style {
        self.style
    }

    pub(crate) const fn has_written(&self) -> bool {
        self.lines > 0
    }

    /// From the first event to the last one so far.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        self.last.unwrap_or_default().0.saturating_sub(self.started.unwrap_or_default().0)
    }

    /// Takes an event in, and writes it if it is wanted.
    pub(crate) fn show(&mut self, traced: &TracedEvent) -> Result<(), Unwritten> {
        let TracedEvent { recorded, context, .. } = traced;
        self.started.get_or_insert(recorded.at);
        self.last = Some(recorded.at);
        self.names.enter(&recorded.event);
        let is_wanted = recorded.seq >= self.from && self.only.has(context);
        let line = if is_wanted { self.line(traced) } else { None };
        self.names.leave(&recorded.event);
        if self.style == Style::Json {
            let needs_it = is_wanted || !self.visible.right().sees_everything();
            let event = if needs_it { self.visible.event(self.tree, traced) } else { None };
            let Some(event) = event.filter(|_| is_wanted) else { return Ok(()) };
            self.lines += 1;
            return out::json(&event.to_string());
        }
        self.lines += u64::from(line.is_some());
        line.map_or(Ok(()), |line| self.write(&line))
    }

    /// Takes an event in that is shown elsewhere.
    pub(crate) fn pass(&mut self, traced: &TracedEvent) -> Result<(), Unwritten> {
        let from = std::mem::replace(&mut self.from, Seq(u64::MAX));
        let passed = self.show(traced);
        self.from = from;
        passed
    }

    /// Whether an event has a line here.
    pub(crate) fn would_show(&mut self, traced: &TracedEvent) -> bool {
        let TracedEvent { recorded, context, .. } = traced;
        let is_wanted = recorded.seq >= self.from && self.only.has(context);
        self.names.enter(&recorded.event);
        is_wanted && self.line(traced).is_some()
    }

    /// Writes a piece of text that is streamed now, if it is of an agent that is wanted.
    pub(crate) fn text(&mut self, piece: &TextPiece<'_>) -> Result<(), Unwritten> {
        let is_wanted = self.only.has_text_of(piece.path) && self.visible.shows_text(piece.call);
        if piece.after.0 + 1 < self.from.0 || !is_wanted {
            return Ok(());
        }
        self.lines += 1;
        out::json(&piece.json(self.tree).to_string())
    }

    fn write(&self, line: &EventLine) -> Result<(), Unwritten> {
        let EventLine { time, indent, who, text } = line;
        let Some(terminal) = self.terminal else {
            return out::line(&format!("{time}{indent}{who}{text}"));
        };
        let start = width_of(time) + width_of(indent);
        let mut head = Row::inked(Ink::Dim, time).with(Ink::Plain, indent).with(Ink::Name, who);
        let Some(width) = terminal.width else { return out::row(&head.with(Ink::Plain, text), terminal) };
        // Further lines begin a little below the name, and the first one has less room.
        let room = width.saturating_sub(start + HANGING).max(WRAPPED_MIN);
        let text = format!("{}{text}", NO_BREAK.repeat(head.width() - start));
        for (at, part) in wrapped(&out::inert(&text), room).iter().enumerate() {
            let before =
                if at == 0 { std::mem::take(&mut head) } else { Row::plain(&" ".repeat(start + HANGING)) };
            out::row(&before.with(Ink::Plain, part.trim_start_matches(NO_BREAK)), terminal)?;
        }
        Ok(())
    }

    /// Shows every stored event of its tree.
    pub(crate) async fn show_stored(&mut self, journal: &dyn Journal) -> anyhow::Result<()> {
        each_event(journal, self.tree, |traced| Ok(self.show(traced)?)).await
    }

    /// The text of an event, if it is shown.
    fn line(&self, traced: &TracedEvent) -> Option<EventLine> {
        let started = self.started.unwrap_or_default();
        match self.style {
            Style::Lines => EventLine::if_important(&self.names, traced, started),
            Style::Log => Some(EventLine::of_log(&self.names, traced, started)),
            Style::Json => None,
        }
    }
}
