//! What the person who started a run should know at once.

use std::sync::Arc;

use spinney_kernel::budget::Shortfall;
use spinney_kernel::words::AgentId;

/// Something that a person can act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A call does not fit: everything waits until the ceiling of `account` is raised.
    Halted {
        agent: AgentId,
        account: AgentId,
        short: Shortfall,
        /// The output cap of the call, if it would fit with a smaller one: `on_low: shrink` lowers it.
        large_cap: Option<u64>,
    },
    /// It goes on.
    Continued,
    /// A call was given up because nobody raised the ceiling in time, or because the run stops at its limits.
    GivenUp { agent: AgentId },
}

/// Who is told.
pub type OnNotice = Arc<dyn Fn(Notice) + Send + Sync>;
