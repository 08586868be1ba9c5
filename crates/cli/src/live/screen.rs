//! Draws the live view of a tree: not for every event, but a few times a second if something changed.

use std::path::Path;
use std::time::Duration;

use spinney::bus::{TracedEvent, WatchItem};
use spinney::clock::{Clock, SystemClock};
use spinney_host::control::StreamedText;
use spinney_kernel::primitives::{CallId, Seq, Time, TreeId};
use spinney_terminal::out::Unwritten;
use spinney_terminal::region;
use spinney_terminal::{Terminal, continued};
use spinney_view::live::LiveTree;
use tokio::signal::unix::Signal;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::view::{Commands, Size, view};

/// Pause between two frames: fast for people, cheap for the machine.
const FRAME: Duration = Duration::from_millis(100);
/// Without a change, only clocks move.
const STILL_MS: u64 = 1_000;

/// How wide a view on this terminal is. Clearing the rest of a line would also clear the last column.
pub(crate) fn view_width(terminal: Terminal) -> usize {
    terminal.stream.size().0.saturating_sub(1)
}

pub(crate) struct LiveScreen {
    tree: LiveTree,
    commands: Commands,
    /// The question that is being answered here, and what is typed so far.
    prompt: Option<(CallId, String)>,
    terminal: Terminal,
    clock: SystemClock,
    frames: Interval,
    /// A process that was stopped continues, after its shell has used the terminal. Absent if it cannot be known.
    continued: Option<Signal>,
    is_changed: bool,
    /// When it was drawn last, and how large the terminal was.
    drawn: (u64, (usize, usize)),
}

impl LiveScreen {
    pub(crate) fn new(tree: TreeId, home: &Path, terminal: Terminal) -> Self {
        let mut frames = interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Self {
            tree: LiveTree::new(tree),
            commands: Commands::new(home, tree),
            prompt: None,
            terminal,
            clock: SystemClock::new(),
            frames,
            continued: continued().ok(),
            is_changed: false,
            drawn: (0, (0, 0)),
        }
    }

    pub(crate) const fn tree(&self) -> &LiveTree {
        &self.tree
    }

    pub(crate) fn see(&mut self, seen: &WatchItem) {
        match seen {
            WatchItem::Event(traced) => self.event(traced),
            WatchItem::Delta(delta) => {
                self.tree.delta(delta);
                self.is_changed = true;
            }
            // The text continues with the next piece; only its end is shown.
            WatchItem::Missed(_) => {}
        }
    }

    /// Text that another process streams.
    pub(crate) fn streamed(&mut self, text: &StreamedText) {
        self.tree.streamed(text.call, text.attempt, text.kind(), &text.text);
        self.is_changed = true;
    }

    pub(crate) fn event(&mut self, traced: &TracedEvent) {
        self.tree.event(traced);
        self.is_changed = true;
    }

    /// What is being typed for a question, in the last line.
    pub(crate) fn prompt(&mut self, prompt: Option<(CallId, String)>) {
        self.is_changed |= self.prompt != prompt;
        self.prompt = prompt;
    }

    /// Waits until it is time for another frame.
    pub(crate) async fn tick(&mut self) {
        let Some(continued) = &mut self.continued else {
            self.frames.tick().await;
            return;
        };
        tokio::select! {
            _ = self.frames.tick() => {}
            Some(()) = continued.recv() => {
                region::abandon();
                self.is_changed = true;
            }
        }
    }

    /// Draws if something changed.
    pub(crate) fn draw(&mut self) -> Result<(), Unwritten> {
        let (now, size) = (self.clock.now_ms(), self.terminal.stream.size());
        let (drawn, drawn_size) = self.drawn;
        // Before its first event there is nothing to say about a tree.
        let is_unknown = self.tree.world().seq() == Seq(0);
        let is_still = !self.is_changed && size == drawn_size && now.saturating_sub(drawn) < STILL_MS;
        if is_unknown || is_still {
            return Ok(());
        }
        (self.is_changed, self.drawn) = (false, (now, size));
        // The cursor is below the last line, and some terminals keep what is cleared from their first line on.
        let size = Size { width: view_width(self.terminal), height: size.1.saturating_sub(2) };
        self.commands.update(self.tree.world());
        region::draw(&view(&self.tree, &self.commands, self.prompt.as_ref(), size, Time(now)), self.terminal)
    }

    /// Takes the view away, before other output or at the end.
    pub(crate) fn erase(&mut self) -> Result<(), Unwritten> {
        self.is_changed = true;
        region::erase(self.terminal)
    }
}
