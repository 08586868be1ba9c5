//! Reports: what happened outside. One kind, one file. They are never refused; a report about something that is over
//! changes nothing.

pub use crate::budget::Used;
mod breaker;
mod connections;
mod continued;
mod done;
mod failed;
mod first_token;
mod followup_started;
mod held_back;
mod journal_away;
mod lost;
mod rate;
mod resumed;
mod session;
mod suspended;
mod timer;

use serde::{Deserialize, Serialize};

pub use breaker::Breaker;
pub use connections::Connections;
pub use continued::Continued;
pub use done::Done;
pub use failed::Failed;
pub use first_token::FirstToken;
pub use followup_started::FollowupStarted;
pub use held_back::HeldBack;
pub use journal_away::JournalAway;
pub use lost::Lost;
pub use rate::{Rate, RateKind};
pub use resumed::Resumed;
pub use session::Session;
pub use suspended::Suspended;
pub use timer::Timer;

use crate::primitives::CallId;
use crate::rules::{Draft, Receipt};
use crate::world::{Call, World};

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
    // Journals name it so.
    #[serde(rename = "stood_still")]
    JournalAway(JournalAway),
    Suspended(Suspended),
    Continued(Continued),
    FirstToken(FirstToken),
    HeldBack(HeldBack),
    Connections(Connections),
    Session(Session),
    FollowupStarted(FollowupStarted),
}

impl Report {
    pub(crate) fn decide(&self, draft: &mut Draft<'_>) -> Receipt {
        // What happens to a sealed tree happens where it continues.
        if draft.check_running().is_err() || draft.sealed().is_some() {
            return Receipt::Stale;
        }
        match self {
            Self::Done(report) => report.decide(draft),
            Self::Failed(report) => report.decide(draft),
            Self::Lost(report) => report.decide(draft),
            Self::Timer(report) => report.decide(draft),
            Self::Breaker(report) => report.decide(draft),
            Self::Rate(report) => report.decide(draft),
            Self::Resumed(report) => report.decide(draft),
            Self::JournalAway(report) => report.decide(draft),
            Self::Suspended(report) => report.decide(draft),
            Self::Continued(report) => report.decide(draft),
            Self::FirstToken(report) => report.decide(draft),
            Self::HeldBack(report) => report.decide(draft),
            Self::Connections(report) => report.decide(draft),
            Self::Session(report) => report.decide(draft),
            Self::FollowupStarted(report) => report.decide(draft),
        }
    }
}

/// The running call of a report, if call and attempt still match.
fn running(world: &World, id: CallId, attempt: u32) -> Option<&Call> {
    world.call(id).filter(|call| call.is_running() && call.attempt == attempt)
}
