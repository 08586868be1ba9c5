//! The options of a new account besides its limits, and their validation.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use spinney_kernel::budget as kernel;
use spinney_kernel::budget::{AmountError, Amounts};
use spinney_kernel::primitives::limit::TIMEOUT_MS_MAX;
use spinney_kernel::primitives::{AgentId, IdError};

use super::{BudgetRefusal, Hooks, Limits};

/// Most tags of one account.
pub const TAGS_MAX: usize = 64;
/// Longest key or value of a tag, in bytes.
pub const TAG_BYTES_MAX: usize = 1_024;
/// The options of a new account besides its limits.
#[derive(Clone, Default)]
pub struct Options {
    name: Option<String>,
    pub(super) lend: bool,
    pub(super) reserve: Amounts,
    pub(super) hooks: HooksFrom,
    pub(super) breaker: bool,
    pub(super) tags: BTreeMap<String, String>,
}

/// Where an account's hooks come from.
#[derive(Clone, Default)]
pub(super) enum HooksFrom {
    #[default]
    Nowhere,
    Parent,
    Caller(Arc<dyn Hooks>),
}

impl Options {
    /// No options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A readable id, instead of `a1`, `a2` and so on. Same syntax as an agent's id: 1 to 64 characters of a-z, 0-9,
    /// `_` and `-`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Holds this child's given ceilings at every ancestor from now on: they are guaranteed to it, and the unused
    /// part returns when it is closed. Inherited ceilings are not lent. Has no effect on a root.
    #[must_use]
    pub const fn lend(mut self) -> Self {
        self.lend = true;
        self
    }

    /// What accounts below must leave, so this one can still work when they have used the rest.
    #[must_use]
    pub const fn reserve(mut self, reserve: Amounts) -> Self {
        self.reserve = reserve;
        self
    }

    /// Hooks for the calls made at this account.
    #[must_use]
    pub fn hooks(mut self, hooks: impl Hooks + 'static) -> Self {
        self.hooks = HooksFrom::Caller(Arc::new(hooks));
        self
    }

    /// Also uses the parent's hooks for the calls made at this account.
    #[must_use]
    pub fn inherit_hooks(mut self) -> Self {
        self.hooks = HooksFrom::Parent;
        self
    }

    /// A circuit breaker: after five errors in a row [`Budget::run`](super::Budget::run) is refused for a minute,
    /// then one call probes.
    #[must_use]
    pub const fn breaker(mut self) -> Self {
        self.breaker = true;
        self
    }

    /// A tag, shown in every snapshot.
    #[must_use]
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.insert(key.into(), value.into());
        self
    }

    pub(super) fn account_name(&self) -> Result<Option<AgentId>, IdError> {
        self.name.as_deref().map(str::parse).transpose()
    }

    /// Checks everything except the name, and returns the kernel's ceilings.
    pub(super) fn checked(&self, limits: &Limits) -> Result<kernel::Ceilings, OpenError> {
        let longest = self.tags.iter().flat_map(|(key, value)| [key.len(), value.len()]).max().unwrap_or(0);
        if self.tags.len() > TAGS_MAX || longest > TAG_BYTES_MAX {
            return Err(OpenError::Tags { tags: self.tags.len(), longest_bytes: longest });
        }
        if let Some(ms) = limits.timeout_given().map(millis).filter(|ms| !(1..=TIMEOUT_MS_MAX).contains(ms)) {
            return Err(OpenError::Timeout { ms });
        }
        if self.lend && limits.given().is_empty() {
            return Err(OpenError::LendWithoutCeiling);
        }
        self.reserve.checked()?;
        Ok(limits.ceilings_checked()?)
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("name", &self.name).field("tags", &self.tags).finish_non_exhaustive()
    }
}

/// Why an account was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A ceiling or the reserve is not a valid amount.
    #[error(transparent)]
    Amount(#[from] AmountError),
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] IdError),
    /// Too many tags, or too long ones.
    #[error(
        "{tags} tags, the longest text {longest_bytes} bytes: at most {TAGS_MAX} tags of {TAG_BYTES_MAX} bytes each"
    )]
    Tags {
        /// Number of tags.
        tags: usize,
        /// The longest key or value.
        longest_bytes: usize,
    },
    /// The timeout is out of range.
    #[error(
        "a timeout of {ms} ms is not between 1 and {TIMEOUT_MS_MAX}: give one in that range or leave it out"
    )]
    Timeout {
        /// The given timeout.
        ms: u64,
    },
    /// There was nothing to lend.
    #[error("nothing to lend: give the child at least one ceiling, or leave `lend` out")]
    LendWithoutCeiling,
    /// The parent refused.
    #[error(transparent)]
    Refused(#[from] BudgetRefusal),
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
