//! A summary that an agent's own model writes of what leaves its window: what it covers, how it ended, and whether it
//! may replace a cut.

pub(super) use crate::record::{NoSummary, Summary, SummaryRange};

use super::Window;
use super::trim::units;
use crate::primitives::{Seq, TokenCount};
use crate::record::{Cut, Header, Outcome, Span, Tie};

/// A summary that was requested and is not used yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Draft {
    /// Empty once the window no longer holds what it covered.
    spans: Vec<Span>,
    /// `None` while the call is open.
    end: Option<Summary>,
}

impl Draft {
    pub(super) const fn from_spans(spans: Vec<Span>) -> Self {
        Self { spans, end: None }
    }

    pub(super) const fn ended(&mut self, end: Summary) {
        self.end = Some(end);
    }

    /// Messages were removed, so the covered positions are no longer valid.
    pub(super) fn spoil(&mut self) {
        self.spans.clear();
    }

    /// What replaces a cut: this summary only if everything it covers is dropped.
    pub(super) fn tells(&self, cut: &Cut) -> Summary {
        let goes = |place: usize| u32::try_from(place).is_ok_and(|place| cut.drops(place));
        match self.end {
            Some(Summary::By(_)) if self.spans.is_empty() || !Span::places(&self.spans).all(goes) => {
                Summary::Not(NoSummary::Changed)
            }
            Some(end) => end,
            None => Summary::Not(NoSummary::Cancelled),
        }
    }
}

/// The result of a summary call; `seq` is the event of its end.
pub(crate) fn came_to(outcome: &Outcome, seq: Seq) -> Summary {
    match outcome {
        Outcome::Done { asks, .. } if !asks.is_empty() => Summary::Not(NoSummary::Tools),
        Outcome::Done { body, .. } if body.text.trim().is_empty() => Summary::Not(NoSummary::Empty),
        Outcome::Done { .. } => Summary::By(seq),
        Outcome::Refused { .. } => Summary::Not(NoSummary::Refused),
        Outcome::Lost => Summary::Not(NoSummary::Lost),
        Outcome::Cancelled => Summary::Not(NoSummary::Cancelled),
        Outcome::Failed { .. }
        | Outcome::Answered { .. }
        | Outcome::Approved
        | Outcome::Children { .. }
        | Outcome::Message { .. }
        | Outcome::NobodyLeft
        | Outcome::Expired { .. } => Summary::Not(NoSummary::Failed),
    }
}

/// The part of a cut that one packet of this size can show for a summary, and the tokens of that packet: the first
/// message, the existing digest, the oldest dropped messages, and `asking` tokens for the request. A message that
/// asks for tools keeps its results, and unread messages are not covered. `None` if nothing fits.
#[must_use]
pub fn covers(
    window: &Window,
    cut: &Cut,
    size: u64,
    asking: TokenCount,
) -> Option<(SummaryRange, TokenCount)> {
    let headers = window.headers();
    let is_kept = |place: usize| place == 0 || place == 1 && headers[1].tie == Tie::Folded;
    let always = headers.iter().enumerate().filter(|(place, _)| is_kept(*place));
    let mut tokens = always.map(|(_, header)| header.counted()).fold(window.count(asking), TokenCount::plus);
    let read = headers.len() - window.unread();
    let mut spans = Vec::new();
    for places in units(headers).skip(1) {
        let goes = places.clone().all(|place| u32::try_from(place).is_ok_and(|place| cut.drops(place)));
        let with = headers[places.clone()].iter().map(Header::counted).fold(tokens, TokenCount::plus);
        if goes && places.end <= read && with.estimate() <= size {
            tokens = with;
            Span::join(&mut spans, places.start as u32, places.end as u32);
        }
    }
    (!spans.is_empty() && tokens.estimate() <= size)
        .then_some((SummaryRange { spans, folded: cut.folded }, tokens))
}
