//! What helps, as data: each face says it in its own words.

use serde::Serialize;
use spinney::tree::TreeSnapshot;
use spinney_kernel::budget::{Resource, Shortfall};
use spinney_kernel::primitives::{AgentId, FaultKind};
use spinney_kernel::record::FailureCode;
use spinney_kernel::world::Halt;

/// What helps a tree that did not complete. Texts in it name keys of the tree file only: how ceilings are raised and trees
/// are resumed is for each face to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Raise ceilings by at least this, and resume the tree.
    Raise {
        /// Each ceiling that has no room.
        raises: Vec<SuggestedRaise>,
        /// The root of the tree.
        root: Option<AgentId>,
        /// Whether calls would fit if they were allowed to write less.
        can_shrink: bool,
    },
    /// Give the tree a larger budget and run it again.
    LargerBudget,
    /// Give it more time, in the file or while it runs.
    MoreTime,
    /// Do this, and run the tree again.
    RunAgain(&'static str),
    /// Try again later, or give the model a `fallback`.
    TryLater,
    /// The same, and find out whether the model's server answers.
    TryServer,
    /// Check how the model is called; the events say what led to it.
    CheckModel,
    /// The events say what led to it.
    SeeEvents,
    /// Restore the home from a copy.
    RestoreHome {
        /// Whether it can continue with what is left instead.
        or_accept_loss: bool,
    },
    /// Stop the process that has the home open, or use another home.
    FreeHome,
    /// Fix what the message names, and try again.
    FixCause,
    /// It is a bug: report it, and try again.
    ReportBug,
}

impl Remedy {
    /// What helps at a ceiling: shorter answers, or raising it by what is missing.
    #[must_use]
    pub fn of_halt(halt: &Halt, snapshot: &TreeSnapshot) -> Self {
        let root = snapshot.agents.iter().find(|agent| agent.parent.is_none()).map(|root| root.agent.clone());
        let Shortfall { limit, spent, held, lent, reserve, .. } = halt.short;
        let used = [spent, held, lent, reserve].into_iter().fold(0, u64::saturating_add);
        // A tree whose file says so already halts only where nothing fits.
        let can_shrink = match halt.short.resource {
            Resource::Cost | Resource::Tokens => used < limit,
            Resource::Steps | Resource::ToolCalls | Resource::Retries => false,
        };
        Self::Raise { raises: SuggestedRaise::all(halt.shortfalls()), root, can_shrink }
    }

    /// What helps after a failure.
    #[must_use]
    pub const fn of_failure(code: &FailureCode) -> Self {
        Self::RunAgain(match code {
            FailureCode::Timeout => return Self::MoreTime,
            FailureCode::OutputMismatch => {
                "describe the expected answer in the prompt or the goal, or ask for less in `output_schema`"
            }
            FailureCode::BadOutputSchema => "write a valid `output_schema`",
            FailureCode::OutputTruncated => {
                "raise `limits.max_tokens_per_step` of the agent, or ask for a shorter answer"
            }
            FailureCode::LoopDetected => {
                "say in the agent's prompt what to do instead of calling the tool again, or raise `budget.repeats` (0 turns it off)"
            }
            FailureCode::MaxSteps => "raise `limits.max_steps` of the agent",
            FailureCode::ModelLost => {
                "the process that ran the tree died during one model call more often than `attempts_lost_max` of its model allows (8 by default): find out what kills it, or raise the limit"
            }
            FailureCode::Model(FaultKind::Auth) => "give the model a valid key",
            FailureCode::Model(FaultKind::OutOfCredit) => {
                "add credit to the provider's account, or give the model a `fallback`"
            }
            FailureCode::Model(FaultKind::Invalid) => return Self::CheckModel,
            FailureCode::Model(FaultKind::ContextTooLong) => {
                "set the model's `context` to what it takes, or give the agent a smaller `window.size`"
            }
            FailureCode::Model(FaultKind::ContentFilter | FaultKind::Declined) => {
                "change the prompt or the goal, or give the model a `fallback`"
            }
            FailureCode::Model(FaultKind::RateLimit | FaultKind::Overloaded | FaultKind::Cut) => {
                return Self::TryLater;
            }
            FailureCode::Model(FaultKind::Server | FaultKind::Timeout) => return Self::TryServer,
            FailureCode::Model(FaultKind::Stopped)
            | FailureCode::BadCondition
            | FailureCode::BadTemplate
            | FailureCode::BadUndo
            | FailureCode::Cancelled
            | FailureCode::ChargeRefused
            | FailureCode::Exhausted
            | FailureCode::MaxRounds
            | FailureCode::MissingInput
            | FailureCode::NoAnswer
            | FailureCode::NoMajority
            | FailureCode::NoVotes
            | FailureCode::NobodyWon
            | FailureCode::NotAList
            | FailureCode::NotStarted
            | FailureCode::ProgramFailed
            | FailureCode::ProgramLost
            | FailureCode::QuestionExpired
            | FailureCode::Tie
            | FailureCode::TooManyItems
            | FailureCode::ValueTooLarge
            | FailureCode::WindowTooSmall
            | FailureCode::Refused(_)
            | FailureCode::Own(_) => return Self::SeeEvents,
        })
    }
}

/// A larger ceiling, so a call fits which did not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SuggestedRaise {
    /// The agent whose ceiling it is.
    pub account: AgentId,
    /// Of what.
    pub resource: Resource,
    /// By how much: nano-dollars for cost.
    pub amount: u64,
}

impl SuggestedRaise {
    /// What a call lacks at an account. Money and tokens are rounded up to two digits, which people can read and type; the
    /// same halt gets the same amount wherever it is shown.
    #[must_use]
    pub fn new(account: &AgentId, short: &Shortfall) -> Self {
        let missing = short.missing();
        let amount = match short.resource {
            Resource::Cost | Resource::Tokens => two_digits_up(missing),
            Resource::Steps | Resource::ToolCalls | Resource::Retries => missing,
        };
        Self { account: account.clone(), resource: short.resource, amount }
    }

    /// Those of all accounts that have no room, in their order.
    pub fn all<'h>(lacks: impl IntoIterator<Item = (&'h AgentId, &'h Shortfall)>) -> Vec<Self> {
        lacks.into_iter().map(|(account, short)| Self::new(account, short)).collect()
    }
}

fn two_digits_up(amount: u64) -> u64 {
    let digits = amount.checked_ilog10().unwrap_or(0);
    let unit = 10_u64.pow(digits.saturating_sub(1));
    amount.checked_next_multiple_of(unit).unwrap_or(amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_rounded_up_to_two_digits() {
        let rounded = [0, 1, 9, 10, 99, 100, 101, 999, 16_045, 20_011_250, 1_000_000_000, u64::MAX];
        assert_eq!(
            rounded.map(two_digits_up),
            [0, 1, 9, 10, 99, 100, 110, 1_000, 17_000, 21_000_000, 1_000_000_000, u64::MAX]
        );
    }
}
