//! What providers report of packets makes later counts better: reports correct the estimates that a window is cut by,
//! and lower the bounds that holds need. Only where counts are estimates; an exact count needs neither.

use crate::primitives::{ModelName, TokenCount};

/// A report below this part of the estimate is not believed: an estimate is not that far off, and a server that
/// reports nothing useful must not make windows and holds meaningless.
const REPORT_PART_MIN: u64 = 4;

/// The packets of one agent, as they were counted and as the provider reported them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Calibration {
    /// The packet of the latest turn.
    asked: Option<CountedPacket>,
    reported: Option<ReportedPacket>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CountedPacket {
    tokens: TokenCount,
    /// Whether everything in it is still in the window: what follows extends it.
    is_whole: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ReportedPacket {
    model: ModelName,
    /// Its input tokens.
    input: u64,
    counted: CountedPacket,
}

impl Calibration {
    /// A turn was requested with a packet that shows the whole window, or, if `None`, with less or other messages.
    pub(super) const fn asked(&mut self, packet: Option<TokenCount>) {
        self.asked = match packet {
            Some(tokens) => Some(CountedPacket { tokens, is_whole: true }),
            None => None,
        };
    }

    /// The provider reported the input tokens of the latest turn.
    pub(super) fn reported(&mut self, model: &ModelName, input: u64) {
        let is_plausible = |counted: &CountedPacket| input > counted.tokens.estimate() / REPORT_PART_MIN;
        if let Some(counted) = self.asked.take().filter(is_plausible) {
            self.reported = Some(ReportedPacket { model: model.clone(), input, counted });
        }
    }

    /// Something that packets showed is no longer in the window.
    pub(super) fn shrunk(&mut self) {
        let reported = self.reported.as_mut().map(|reported| &mut reported.counted);
        self.asked.iter_mut().chain(reported).for_each(|packet| packet.is_whole = false);
    }

    /// The bound of a packet for a model: what the provider reported of the one that it extends, and the bound of what
    /// came since. Otherwise what was counted.
    pub(super) fn bound(&self, model: &ModelName, counted: u64) -> u64 {
        let extends = |reported: &&ReportedPacket| reported.model == *model && reported.counted.is_whole;
        let bound = |reported: &ReportedPacket| {
            let since = counted.checked_sub(reported.counted.tokens.bound())?;
            Some(reported.input.saturating_add(since))
        };
        self.reported.as_ref().filter(extends).and_then(bound).map_or(counted, |bound| bound.min(counted))
    }

    /// An estimate as the reports correct it.
    pub(super) fn corrected(&self, estimate: u64) -> u64 {
        self.scaled(estimate, |reported| (reported.input, reported.counted.tokens.estimate()))
    }

    /// The estimate that is `tokens` when it is corrected.
    pub(super) fn uncorrected(&self, tokens: u64) -> u64 {
        self.scaled(tokens, |reported| (reported.counted.tokens.estimate(), reported.input))
    }

    /// Times a fraction that a report gives.
    fn scaled(&self, tokens: u64, by: impl Fn(&ReportedPacket) -> (u64, u64)) -> u64 {
        let Some((times, part)) = self.reported.as_ref().map(by) else { return tokens };
        let scaled = u128::from(tokens) * u128::from(times) / u128::from(part.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}
