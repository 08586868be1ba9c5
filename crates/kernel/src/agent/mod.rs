//! Agents: who lives in a tree, how they hang together, and what is kept of those that ended.

mod arena;
mod clocks;
mod end;
mod exit;
mod finished;
mod inbox;
mod progress;
mod spawned;
mod standing;
mod state;

pub use arena::{Agent, AgentIx, Agents, Charter, Ended, Letter};
pub(crate) use arena::{Birth, digest};
pub(crate) use clocks::AgentClocks;
pub use clocks::{AgentClock, ClockKind};
pub(crate) use end::{drop_waiting, end, end_if_drained};
pub use exit::{Exit, Failure};
pub(crate) use finished::answer_digest;
pub use finished::{AnswerDigest, Finished};
pub use inbox::Inbox;
pub use progress::Progress;
pub use spawned::{Attachment, Due, Spawned};
pub use standing::Standing;
pub use state::{Farewell, Phase, State, Status};
