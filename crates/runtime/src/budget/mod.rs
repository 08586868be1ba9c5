//! Budgets for plain use: parent-linked accounts, without a journal and without a runtime.
//!
//! Before a call starts, its estimate is held at its account and at every account above, in one step; when it ends,
//! the hold is settled at what it really used and the rest returns. So whatever runs in parallel, spent + held never
//! passes a ceiling, and a call that does not fit is refused before it starts. If only other holds are in the way, it
//! waits its turn.
//!
//! An orchestrator with $1.00, a sub-agent with up to $0.60 of it, and one below that with up to $0.30:
//!
//! ```
//! use spinney::budget::{Budget, Limits, BudgetRefusal, RunError, spend};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let orchestrator = Budget::root(Limits::usd("1.00")?.steps(100).retries(20))?;
//! let agent_a = orchestrator.child(Limits::usd("0.60")?)?;
//! let agent_b = agent_a.child(Limits::usd("0.30")?)?;
//!
//! // At most $0.25; it turns out to cost $0.20.
//! let answer = agent_b.run_blocking(spend::usd("0.25")?, |call| {
//!     call.used(spend::usd("0.20")?)?;
//!     Ok::<_, Box<dyn std::error::Error>>("42")
//! });
//! assert_eq!(answer.ok(), Some("42"));
//!
//! // Every account up the chain shows it, once.
//! for budget in [&agent_b, &agent_a, &orchestrator] {
//!     assert_eq!(budget.snapshot().spent, spend::usd("0.20")?);
//!     assert!(budget.snapshot().held.is_zero());
//! }
//!
//! // What no longer fits is refused before it runs, with the account and the numbers.
//! let refused = agent_b.run_blocking(spend::usd("0.25")?, |_| Ok::<_, ()>("never called"));
//! let Err(RunError::Refused(refusal @ BudgetRefusal::Ceiling { .. })) = refused else { panic!("{refused:?}") };
//! assert_eq!(
//!     refusal.to_string(),
//!     "cost ceiling of `a3`: limit $0.30, spent $0.20, held $0.00, asked $0.25: \
//!      ask for less, or raise the ceiling"
//! );
//! # Ok(())
//! # }
//! ```
//!
//! Asynchronous calls go through [`Budget::run`] and [`Budget::hold`], on any executor.

mod account_node;
mod handle;
mod hold;
mod hooks;
mod id;
mod limits;
mod meter;
mod opening;
mod options;
mod refusal;
mod run;
mod snapshot;
pub mod spend;
mod tree;
mod waiting;

pub use handle::Budget;
pub use hold::{BudgetHold, Settled, Unsettled};
pub use hooks::Hooks;
pub use id::AccountId;
pub use limits::Limits;
pub use meter::{Meter, MeterError};
pub use options::{OpenError, Options, TAG_BYTES_MAX, TAGS_MAX};
pub use refusal::BudgetRefusal;
pub use run::RunError;
pub use snapshot::{AccountState, Snapshot};
pub use spinney_kernel::budget::{
    AMOUNT_MAX, Amount, AmountError, Amounts, Ceilings, Resource, ResourceSet, Shortfall, usd,
};
pub use spinney_kernel::primitives::IdError;
pub use tree::WAITING_MAX;

use account_node::AccountNode;
