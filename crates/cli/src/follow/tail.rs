//! A tree that another process runs, as this one shows it: its events from the journal, and the text that its process streams.

use anyhow::Result;
use spinney::bus::Tail;
use spinney_host::control::StreamedTexts;
use spinney_host::home::ids::TreeInHome;
use spinney_host::redaction::RedactedJournal;
use spinney_kernel::primitives::Seq;

use crate::display::{Display, Shown};
use crate::events::screen::Style;

pub(crate) struct TailView<'t> {
    place: TreeInHome<'t>,
    tail: Tail<&'t RedactedJournal<'static>>,
    texts: StreamedTexts,
    uses_text: bool,
    pub(crate) shown: Shown,
    /// The last event that was shown.
    pub(crate) seen: Seq,
}

impl<'t> TailView<'t> {
    /// Lines begin after `past`.
    pub(crate) async fn begin(
        place: TreeInHome<'t>,
        journal: &'t RedactedJournal<'static>,
        style: Style,
        past: Seq,
        display: Display,
    ) -> Self {
        let shown = Shown::new(place, style, past, display, journal.redactor().clone());
        let (tail, texts) = (Tail::new(journal, place.tree), StreamedTexts::default());
        let mut view = Self { place, tail, texts, uses_text: display.uses_text(), shown, seen: Seq(0) };
        // Before the first event is read, so no text is missed that belongs to what is shown.
        view.subscribe().await;
        view
    }

    /// Asks for the text that models stream, if it is shown and does not come yet.
    pub(crate) async fn subscribe(&mut self) {
        if self.uses_text {
            self.texts.subscribe(self.place.home, self.place.tree).await;
        }
    }

    /// Shows what comes next. Returns false once the tree has ended. What did not come yet is not lost if this is dropped.
    pub(crate) async fn step(&mut self) -> Result<bool> {
        tokio::select! {
            next = self.tail.wait_for_next() => {
                let Some(traced) = next? else { return Ok(false) };
                self.seen = traced.recorded.seq;
                self.shown.event(&traced)?;
                self.show_texts()?;
            }
            text = self.texts.next() => {
                self.texts.add(text);
                self.show_texts()?;
            }
            () = self.shown.tick() => self.shown.draw()?,
        }
        Ok(true)
    }

    /// Shows what was written last.
    pub(crate) async fn rest(&mut self) -> Result<()> {
        while let Some(traced) = self.tail.next().await? {
            self.shown.event(&traced)?;
        }
        Ok(())
    }

    /// Shows the pieces whose events are shown.
    fn show_texts(&mut self) -> Result<()> {
        while let Some(text) = self.texts.due(self.seen) {
            self.shown.streamed(&text)?;
        }
        Ok(())
    }
}
