//! A tree while it runs: its state after each event, what each agent is doing, and which agents to show of a large tree.

mod account;
mod activity;
mod folding;
mod followed;
mod json;
mod state;
mod steps;

pub use account::{LiveAccount, TreeOverview};
pub use activity::{AgentDoing, AgentMark, CallDoing, DoingCall, waiting_words};
pub use folding::{TreeLine, lines_within};
pub use followed::FollowedTree;
pub use state::{LiveAgent, LiveCall, LiveNotice, LiveStream, LiveTree, NoticeUrgency};
pub use steps::{GraphSteps, StepProgress, StepState};
