//! Contexts: an agent's messages, as a list that only grows, and the packet of them that one call sees. The world
//! keeps counts; the texts are in events, and this fold reads them. The list itself is `window/list.rs`.

mod agent_context;
mod attachments;
mod brief;
mod builtin_args;
mod count;
mod facts;
mod findings;
mod fold;
mod folded;
mod frame;
mod message;
pub mod offload;
mod open_calls;
mod program_past;
mod shared;
mod summary;
mod text;
mod trace;

pub use attachments::{Attachments, Shown};
pub(crate) use brief::{Goal, around_tokens, briefing_tokens, first_tokens, tool_tokens};
pub use brief::{System, ToolDescription};
pub(crate) use builtin_args::{
    AskArgs, CancelArgs, DelegateArgs, FollowupArgs, HandBackArgs, ListArgs, ListContextArgs, PipelineArgs,
    ReadContextArgs, SendArgs, SpawnArgs, TimeoutPolicy, WaitArgs, WaitMessageArgs, WriteContextArgs, read,
};
pub use facts::Facts;
pub(crate) use facts::facts_tokens;
pub use findings::{Finding, Findings, Source, TimedOut};
pub use fold::{ContextSnapshot, Contexts, End, Places};
pub use folded::Folded;
pub use frame::Frame;
pub use message::{Message, Offloaded, Origin, Packet, SharedAs};
pub use open_calls::{CallPurpose, OpenCall, OpenCalls};
pub use program_past::ProgramPast;
pub use shared::{SharedText, SharedValue, SharedValues};
pub(crate) use summary::summary_tokens;
pub(crate) use text::{
    ROLLED_BACK, child_tokens, clamp_text, heard_tokens, outcome_tokens, repeats_text, shown_tokens,
    wait_tokens,
};
pub use trace::{EventContext, Life, Switch, Trace};
