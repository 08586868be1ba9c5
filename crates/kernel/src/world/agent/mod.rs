//! Agents: which ones live in a tree, how they are linked, and what is kept of ended ones.

mod arena;
mod clocks;
mod progress;
mod repeats;
mod snapshot;
mod state;

pub(crate) use arena::NewAgent;
pub use arena::{Agent, AgentIx, AgentTerms, Agents, Ended, Finished, QueuedMessage};
pub use clocks::AgentClock;
pub(crate) use clocks::AgentClocks;
pub use progress::Progress;
pub use state::{AgentState, AgentStatus, EndNote, Phase};
