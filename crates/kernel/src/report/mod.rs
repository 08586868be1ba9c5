//! Reports: what happened outside. One kind, one file. They are never refused; one about something that is over
//! changes nothing.

mod breaker;
mod done;
mod failed;
mod lost;
mod rate;
mod resumed;
mod timer;

use serde::{Deserialize, Serialize};

pub use breaker::Breaker;
pub use done::Done;
pub use failed::Failed;
pub use lost::Lost;
pub use rate::Rate;
pub use resumed::Resumed;
pub use timer::Timer;

use crate::budget::{AMOUNT_MAX, AmountError, Usage};
use crate::call::Call;
use crate::decide::{Draft, Reply};
use crate::id::CallId;
use crate::world::World;

/// Everything that can be reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Report {
    Done(Done),
    Failed(Failed),
    Lost(Lost),
    Timer(Timer),
    Breaker(Breaker),
    Rate(Rate),
    Resumed(Resumed),
}

impl Report {
    pub(crate) fn decide(&self, draft: &mut Draft<'_>) -> Reply {
        if draft.check_running().is_err() {
            return Reply::Stale;
        }
        match self {
            Self::Done(report) => report.decide(draft),
            Self::Failed(report) => report.decide(draft),
            Self::Lost(report) => report.decide(draft),
            Self::Timer(report) => report.decide(draft),
            Self::Breaker(report) => report.decide(draft),
            Self::Rate(report) => report.decide(draft),
            Self::Resumed(report) => report.decide(draft),
        }
    }
}

/// What an attempt really used, as far as its driver knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", try_from = "Unchecked")]
pub enum Used {
    /// A model's tokens; what they cost follows from its price.
    Tokens(Usage),
    /// A tool's own cost.
    CostNanos(u64),
    /// Nobody knows: settle at the full hold, because it may be billed in full.
    Unknown,
}

impl Used {
    /// Nothing at all.
    pub const NOTHING: Self = Self::CostNanos(0);

    /// Refuses absurd numbers, before they reach a tree.
    ///
    /// # Errors
    /// Names the number and the largest one allowed.
    pub fn checked(self) -> Result<Self, AmountError> {
        match self {
            Self::Tokens(usage) => usage.checked().map(Self::Tokens),
            Self::CostNanos(amount) if amount > AMOUNT_MAX => {
                Err(AmountError::TooLarge { what: "cost".to_owned(), amount })
            }
            Self::CostNanos(_) | Self::Unknown => Ok(self),
        }
    }
}

/// What a journal or a driver may say before it is checked.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Unchecked {
    Tokens(Usage),
    CostNanos(u64),
    Unknown,
}

impl TryFrom<Unchecked> for Used {
    type Error = AmountError;
    fn try_from(unchecked: Unchecked) -> Result<Self, AmountError> {
        match unchecked {
            Unchecked::Tokens(usage) => Self::Tokens(usage),
            Unchecked::CostNanos(nanos) => Self::CostNanos(nanos),
            Unchecked::Unknown => Self::Unknown,
        }
        .checked()
    }
}

/// The running call that a report is about, if it still is about one: same call, same attempt.
fn running(world: &World, id: CallId, attempt: u32) -> Option<&Call> {
    world.call(id).filter(|call| call.is_running() && call.attempt == attempt)
}
