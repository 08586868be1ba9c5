//! What a journal records: events and their parts. Data only; the layers above decide what follows from an event.

mod adjusted;
mod agent_snapshot;
mod clock_kind;
mod cut;
mod effect;
mod event;
mod exit;
mod failure_code;
mod graph;
mod header;
mod held_back;
mod outcome;
mod spawned;
mod summary;
mod tool_ask;
mod value;
mod wait_need;
mod waiting;
mod window_snapshot;
mod work;
mod wrap_up;

pub use adjusted::Adjusted;
pub use agent_snapshot::AgentSnapshot;
pub use clock_kind::ClockKind;
pub use cut::{Blank, Cut, LeftOut, Shortened, Span};
pub use effect::Effect;
pub(crate) use event::is_zero_ms;
pub use event::{
    AccountShortfall, Alarm, Branched, BreakerState, Clamped, Event, RULES, Restored, ValueRead, are_decided,
};
pub use exit::{Exit, ExitKind, Failure};
pub use failure_code::FailureCode;
pub use graph::{FrameIx, NodeEnd, NodeStart, Skip, StartOf};
pub use header::{Header, Tie};
pub use held_back::HeldBy;
pub use outcome::{ChildEnd, Outcome, StopReason};
pub(crate) use outcome::{Said, TurnKind};
pub use spawned::{Attachment, Due, Spawned};
pub use summary::{Covers, Summary, Unsummed};
pub use tool_ask::ToolAsk;
pub use value::{NamedValue, ValueForm};
pub use wait_need::{Ballot, WaitNeed};
pub use waiting::WaitReason;
pub use window_snapshot::{ContextSharer, WindowSnapshot};
pub use work::{ChildCall, ModelCall, OnTimeout, OutsideCall, Question, Sources, ToolCall, WaitFor, Work};
pub use wrap_up::{WrapUpCall, WrapUpReason};
