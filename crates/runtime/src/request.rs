//! The verbs of a tree and their replies: [`Tree::request`](crate::Tree::request) asks a tree that runs,
//! [`Home::apply`](crate::Home::apply) one that does not.

pub use spinney_kernel::context::Frame;
pub use spinney_kernel::definition::{GivenMessage, Refusal};
pub use spinney_kernel::primitives::{
    Actor, ActorName, Body, CheckpointKind, Enclosure, Envelope, Outsider, OutsiderKind, SourceFile,
    SourceFiles, TraceParent,
};
pub use spinney_kernel::record::{AgentSnapshot, PlanChange, Question, WaitFor};
pub use spinney_kernel::rules::request::{
    Accepted, AddModel, Adjust, Answer, Ask, AskReply, Broadcast, BroadcastReply, Cancel, Charge, Checkpoint,
    CheckpointReply, Collect, Conclude, Fail, Finish, Followup, Hold, HoldFor, HoldReply, OtherReply, Pause,
    Publish, Raise, Redirect, Refresh, RefreshReply, Replan, Reply, Request, Rollback, RollbackReply, Send,
    SendReply, Spawn, SpawnReply, Unpause, Verb, Wait, WaitReply, Withdraw, WriteValue, WriteValueReply,
};
