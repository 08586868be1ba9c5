//! Limits as people write them: ceilings and a timeout. The kernel's ceilings are made from them.

use std::time::Duration;

use spinney_kernel::budget as kernel;
use spinney_kernel::budget::{AmountError, Amounts, Resource, ResourceSet, nanos_from_usd};
use spinney_kernel::definition::BudgetSpec;

use super::options::millis;

/// The ceilings of an account. Absent ones are unlimited at a root; a child inherits them from its parent.
///
/// Numbers are checked when the account is opened; money is parsed from decimal text, exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    ceilings: Amounts,
    given: ResourceSet,
    timeout: Option<Duration>,
}

impl TryFrom<Limits> for BudgetSpec {
    type Error = AmountError;

    /// For a tree or a role.
    fn try_from(limits: Limits) -> Result<Self, AmountError> {
        let timeout_ms = limits.timeout.map(millis);
        Ok(Self { timeout_ms, ..Self::with_limit(limits.ceilings_checked()?) })
    }
}

impl Limits {
    /// No limits.
    #[must_use]
    pub const fn none() -> Self {
        Self { ceilings: Amounts::ZERO, given: ResourceSet::EMPTY, timeout: None }
    }

    /// A ceiling in dollars, as people write them: `"0.25"`, `"10"`, `"$1.50"`.
    ///
    /// # Errors
    /// For anything except a plain positive number with at most nine decimals.
    pub fn usd(text: &str) -> Result<Self, AmountError> {
        nanos_from_usd(text).map(|nanos| Self::none().cost_nanos(nanos))
    }

    /// A ceiling on money, in nano-USD.
    #[must_use]
    pub const fn cost_nanos(self, nanos: u64) -> Self {
        self.with(Resource::Cost, nanos)
    }

    /// A ceiling on tokens.
    #[must_use]
    pub const fn tokens(self, tokens: u64) -> Self {
        self.with(Resource::Tokens, tokens)
    }

    /// A ceiling on model turns.
    #[must_use]
    pub const fn steps(self, steps: u64) -> Self {
        self.with(Resource::Steps, steps)
    }

    /// A ceiling on tool calls.
    #[must_use]
    pub const fn tool_calls(self, tool_calls: u64) -> Self {
        self.with(Resource::ToolCalls, tool_calls)
    }

    /// A ceiling on attempts after the first, of all calls together.
    #[must_use]
    pub const fn retries(self, retries: u64) -> Self {
        self.with(Resource::Retries, retries)
    }

    /// How long the account takes new calls, from the moment it is opened.
    #[must_use]
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// A ceiling on `resource`.
    #[must_use]
    pub const fn with(mut self, resource: Resource, amount: u64) -> Self {
        self.ceilings = self.ceilings.with(resource, amount);
        self.given = self.given.with(resource);
        self
    }

    /// The ceiling on `resource`, if there is one.
    #[must_use]
    pub fn get(&self, resource: Resource) -> Option<u64> {
        self.given.has(resource).then(|| self.ceilings.get(resource))
    }

    /// The timeout, if there is one.
    #[must_use]
    pub const fn timeout_given(&self) -> Option<Duration> {
        self.timeout
    }

    pub(super) const fn given(&self) -> ResourceSet {
        self.given
    }

    /// Zero for absent ones.
    pub(super) const fn amounts(&self) -> &Amounts {
        &self.ceilings
    }

    /// The kernel's ceilings. They use a number for "none", so the check comes before the conversion.
    pub(super) fn ceilings_checked(&self) -> Result<kernel::Ceilings, AmountError> {
        let ceilings = self.ceilings.checked()?;
        Ok(self.given.iter().fold(kernel::Ceilings::NONE, |all, r| all.with(r, ceilings.get(r))))
    }

    pub(super) fn from_kernel(limits: &kernel::Ceilings, timeout: Option<Duration>) -> Self {
        let none = Self { timeout, ..Self::none() };
        Resource::ALL.into_iter().fold(none, |all, r| match limits.get(r) {
            Some(amount) => all.with(r, amount),
            None => all,
        })
    }
}
