//! What happened in a tree, and its state at one moment: the parts of events and of [`TreeSnapshot`](crate::tree::TreeSnapshot).

pub use spinney_kernel::context::{End, EventContext, Message, Origin, SharedValue, SharedValues};
pub use spinney_kernel::record::{
    AccountShortfall, Adjusted, Attachment, Branched, ChildCall, ChildEnd, ClockKind, Due, Event, Exit,
    ExitKind, Failure, FailureCode, FollowupStart, HeldBy, ModelCall, NoSession, NodeEnd, NodeStart, Outcome,
    OutsideCall, Question, Restored, Spawned, StopReason, ToolAsk, ToolCall, ValueForm, WaitFor, WaitReason,
    Work, WrapUpReason,
};
pub use spinney_kernel::world::{AgentView, Halt, TreeState};
