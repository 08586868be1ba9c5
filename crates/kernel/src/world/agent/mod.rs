//! Agents: which ones live in a tree, how they are linked, and what is kept of ended ones.

mod arena;
mod clocks;
mod progress;
mod repeats;
mod standing;
mod state;

pub(crate) use arena::Birth;
pub use arena::{Agent, AgentIx, Agents, Charter, Ended, Finished, Letter};
pub use clocks::AgentClock;
pub(crate) use clocks::AgentClocks;
pub use progress::Progress;
pub use state::{AgentState, AgentStatus, Farewell, Phase};
