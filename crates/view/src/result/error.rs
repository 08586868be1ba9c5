//! Why a tree did not complete, with the numbers of a ceiling and what helps.

use spinney::tree::TreeSnapshot;
use spinney_kernel::budget::{Resource, Shortfall, usd};
use spinney_kernel::primitives::{AgentId, grouped};
use spinney_kernel::record::Exit;

use crate::remedy::Remedy;

/// Why a tree did not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultError {
    /// The kind of error, for programs.
    pub code: String,
    /// What happened, for people.
    pub message: String,
    /// What helps.
    pub remedy: Remedy,
    /// The account that has no room, and its numbers.
    pub numbers: Option<(AgentId, Shortfall)>,
}

impl ResultError {
    /// That of a tree, if it failed or is halted.
    #[must_use]
    pub fn from_snapshot(snapshot: &TreeSnapshot) -> Option<Self> {
        if let Some(end) = &snapshot.end {
            return match &end.exit {
                Exit::Completed | Exit::Cancelled { .. } => None,
                Exit::Failed { error } => Some(Self {
                    code: error.code.to_string(),
                    message: error.message.clone(),
                    remedy: Remedy::of_failure(&error.code),
                    numbers: None,
                }),
                Exit::Exhausted { account, short } => Some(Self {
                    code: "exhausted".to_owned(),
                    message: short.describe(account),
                    remedy: Remedy::LargerBudget,
                    numbers: Some((account.clone(), *short)),
                }),
            };
        }
        let halt = snapshot.halted.as_ref()?;
        Some(Self {
            code: "ceiling".to_owned(),
            message: halt.short.describe(&halt.account),
            remedy: Remedy::of_halt(halt, snapshot),
            numbers: Some((halt.account.clone(), halt.short)),
        })
    }

    /// The reason for people, in which the numbers are a sentence. Programs have them beside the message.
    #[must_use]
    pub fn why(&self) -> String {
        let Some((account, short)) = &self.numbers else { return self.message.clone() };
        let show = |shown| format!("{:#}", short.resource.amount(shown));
        let spent = if short.resource == Resource::Cost { usd(short.spent) } else { grouped(short.spent) };
        let mut why = format!("`{account}` has spent {spent} of its {}", show(short.limit));
        for (amount, words) in [
            (short.held, "are held for calls that run"),
            (short.lent, "are lent to its agents"),
            (short.reserve, "are kept for its own answer"),
        ] {
            if amount > 0 {
                why += &format!(", {} {words}", show(amount));
            }
        }
        if short.asked > 0 {
            why += &format!(", and its next call may need {}", show(short.asked));
        }
        why
    }
}
