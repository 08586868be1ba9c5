//! What the person who started a run should know at once.

use std::sync::Arc;

use spinney_drivers::wire::RequestName;
use spinney_kernel::budget::Shortfall;
use spinney_kernel::primitives::{AgentId, ModelName, Time};
use spinney_kernel::record::AccountShortfall;
use spinney_kernel::world::Halt;

use super::wire::GatewayError;

/// Something that a person can act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A call does not fit: everything waits until the ceiling of `account` is raised.
    Halted {
        agent: AgentId,
        account: AgentId,
        short: Shortfall,
        /// What else the call lacks.
        also: Vec<AccountShortfall>,
        /// The output cap of the call, if it would fit with a smaller one: `on_low: shrink` lowers it.
        large_cap: Option<u64>,
    },
    /// A call starts after everything waited: the run continues.
    Continued,
    /// A call got a smaller output cap than it asked for, to fit the budget. Sent once per run.
    Capped { agent: AgentId, asked: u64, granted: u64 },
    /// The provider counted less input than it billed. Its counter is not used again for this model.
    CountedTooLow { model: String, counted: u64, used: u64 },
    /// A model has no price, so it cannot be called. Sent once per model.
    Unpriced { error: GatewayError },
    /// A request has another key than the run's. Sent once per run.
    OtherKey { error: GatewayError },
    /// A usage window of the account is used up: calls of this model wait until it ends.
    UsageWindow { model: ModelName, until: Time },
    /// The server sent something that is not an API response. The call cost nothing. Sent once per run.
    OtherAnswer { message: String },
    /// A name whose cost has no bound passes because the user allowed it. Sent once per name.
    OutsideBound { name: RequestName },
    /// A call was given up because the ceiling was not raised in time, or because the run stops at its limits.
    GivenUp {
        agent: AgentId,
        /// What it lacked, if that is known.
        halt: Option<Halt>,
    },
}

/// Receives notices.
pub type OnNotice = Arc<dyn Fn(Notice) + Send + Sync>;
