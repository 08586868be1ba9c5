//! A budget as people give it, for a tree, a role or a child.

use serde::{Deserialize, Serialize};

use crate::budget::Ceilings;
use crate::definition::{Refusal, Repeats};
use crate::primitives::{ModelName, limit};

/// Ceilings as people give them. Absent ones come from the role, then from the parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetSpec {
    pub limit: Ceilings,
    /// How long the agent and everything below it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether the timeout runs even while the tree waits for a person.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub timeout_wall: bool,
    /// Whether every ancestor holds its ceilings from the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lend: Option<Lend>,
    /// Share of cost and tokens that descendants must leave, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_reserve: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_low: Option<OnLow>,
    /// Whether the agent gets a last call before it runs out of budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrap_up: Option<WrapUp>,
    /// How often the agent may repeat a tool call that brings nothing new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
}

impl Default for BudgetSpec {
    fn default() -> Self {
        Self {
            limit: Ceilings::NONE,
            timeout_ms: None,
            timeout_wall: false,
            lend: None,
            answer_reserve: None,
            on_low: None,
            wrap_up: None,
            repeats: None,
        }
    }
}

impl BudgetSpec {
    #[must_use]
    pub fn with_limit(limit: Ceilings) -> Self {
        Self { limit, ..Self::default() }
    }

    /// What happens at a ceiling, without ceilings and times.
    pub(crate) fn without_ceilings(&self) -> Self {
        let (on_low, wrap_up) = (self.on_low.clone(), self.wrap_up);
        Self { on_low, wrap_up, answer_reserve: self.answer_reserve, ..Self::default() }
    }

    /// Fills absent fields from `other`.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let given = self.limit.bounded();
        let limit =
            other.limit.bounded().iter().filter(|r| !given.has(*r)).fold(self.limit, |limit, r| {
                other.limit.get(r).map_or(limit, |amount| limit.with(r, amount))
            });
        Self {
            limit,
            timeout_ms: self.timeout_ms.or(other.timeout_ms),
            timeout_wall: if self.timeout_ms.is_some() { self.timeout_wall } else { other.timeout_wall },
            lend: self.lend.or(other.lend),
            answer_reserve: self.answer_reserve.or(other.answer_reserve),
            on_low: self.on_low.clone().or_else(|| other.on_low.clone()),
            wrap_up: self.wrap_up.or(other.wrap_up),
            repeats: self.repeats.or(other.repeats),
        }
    }

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        self.limit.checked()?;
        if self.timeout_ms.is_some_and(|ms| ms == 0 || ms > limit::TIMEOUT_MS_MAX) {
            let ms = self.timeout_ms.unwrap_or_default();
            return Err(Refusal::BadTimeout { ms, ms_max: limit::TIMEOUT_MS_MAX });
        }
        self.repeats.as_ref().map_or(Ok(()), Repeats::check)?;
        match self.answer_reserve {
            Some(percent) if percent > limit::ANSWER_RESERVE_PERCENT_MAX => {
                Err(Refusal::BadReserve { percent, percent_max: limit::ANSWER_RESERVE_PERCENT_MAX })
            }
            _ => Ok(()),
        }
    }
}

/// Whether a child's ceilings are reserved for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lend {
    /// It shares what its ancestors have.
    #[default]
    No,
    /// Every ancestor holds them until it ends.
    Yes,
}

/// Whether an agent gets a last call before it runs out of budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WrapUp {
    #[default]
    On,
    Off,
}

impl WrapUp {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
    pub(crate) const fn is_on(&self) -> bool {
        matches!(self, Self::On)
    }
}

/// What to do when a model call does not fit the budget.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLow {
    /// Stop: the agent ends with what it has, or the tree halts.
    #[default]
    Halt,
    /// Lower the output cap to what fits.
    Shrink,
    Downgrade(ModelName),
}
