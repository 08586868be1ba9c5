//! Coverage counters: a simulator that never halts a tree or loses a call proves nothing about either.

use spinney_kernel::primitives::Running;
use spinney_kernel::record::{
    ClockKind, Event, Exit, HeldBy, NodeEnd, Outcome, Skip, StartOf, Summary, WaitReason,
};

/// What must happen at least once for a run to count.
pub const TELLING: [&str; 62] = [
    "another owner claimed the tree",
    "a child was spawned",
    "a detached child was spawned",
    "an agent was paused",
    "an agent was redirected",
    "an agent was redirected and stopped",
    "an agent was exhausted",
    "an agent failed",
    "an agent was cancelled",
    "a call waited for budget",
    "a call waited for a slot",
    "a call backed off",
    "a call was held back by a breaker",
    "a call was held back by a rate",
    "a call was resumed",
    "a call was switched",
    "an attempt failed",
    "an attempt was presumed spent",
    "a large output was kept",
    "a call was lost",
    "a call failed",
    "a question was answered",
    "a tool asked a person",
    "a tool asked the model",
    "a wait brought children",
    "a wait expired",
    "no message could come",
    "a message ended a wait",
    "a tool was refused",
    "a message was sent",
    "the tree halted",
    "an agent had its last call",
    "an agent's time was nearly up",
    "a window was cut",
    "an agent was rolled back",
    "a summary told what was cut",
    "a summary came to nothing",
    "a child was told what its parent knows",
    "a child read its parent's thread",
    "an answer did not fit its schema",
    "an answer was repaired in vain",
    "a child had a schema of its own",
    "a timeout stood still",
    "a timeout went on",
    "active time was up",
    "a default answer counted",
    "a late answer was refused",
    "an answer that is not a choice was refused",
    "a shared value was read",
    "a shared value was written",
    "a shared value was written over",
    "the shared values were cleared",
    "an agent ran a pipeline",
    "a step succeeded",
    "a step failed",
    "a step was skipped",
    "a step lacked an input",
    "a step was cancelled",
    "a step was tried again",
    "a race or vote was won",
    "a person changed a pipeline",
    "a step was undone",
];

/// What an event shows, if it is one of these.
pub(super) fn shown(event: &Event) -> Option<&'static str> {
    Some(match event {
        Event::AgentSpawned(spawned) => match spawned.attachment {
            spinney_kernel::record::Attachment::Root | spinney_kernel::record::Attachment::Disowned => {
                return None;
            }
            spinney_kernel::record::Attachment::Call { .. } if spawned.output_schema.is_some() => {
                "a child had a schema of its own"
            }
            spinney_kernel::record::Attachment::Call { .. } => "a child was spawned",
            spinney_kernel::record::Attachment::Detached => "a detached child was spawned",
            spinney_kernel::record::Attachment::Step { .. } => return None,
        },
        Event::AgentPaused { .. } => "an agent was paused",
        Event::ContextCut { summary: Some(Summary::By(_)), .. } => "a summary told what was cut",
        Event::ContextCut { summary: Some(Summary::Not(_)), .. } => "a summary came to nothing",
        Event::ContextCut { shortened: Some(_), .. } => "a packet was too long for its model",
        Event::ContextCut { summary: None, shortened: None, .. } => "a window was cut",
        Event::ThreadJoined { .. } => "a child read its parent's thread",
        Event::ThreadLeft { .. } => return None,
        Event::ContextRestored(_) => "an agent was rolled back",
        Event::ContextShared { .. } => "a child was told what its parent knows",
        Event::AgentRedirected { running: Running::Finishes, .. } => "an agent was redirected",
        Event::AgentRedirected { running: Running::Stops, .. } => "an agent was redirected and stopped",
        Event::AgentEnded { exit, .. } => match exit {
            Exit::Completed => return None,
            Exit::Exhausted { .. } => "an agent was exhausted",
            Exit::Failed { error } if error.code == "output_mismatch" => "an answer was repaired in vain",
            Exit::Failed { error } if error.code == "loop_detected" => "an agent was stopped in a loop",
            Exit::Failed { error } if error.message.contains("active time") => "active time was up",
            Exit::Failed { .. } => "an agent failed",
            Exit::Cancelled { .. } => "an agent was cancelled",
        },
        Event::ClockSet { clock: ClockKind::Timeout, alarm: None, .. } => "a timeout stood still",
        Event::ClockSet { clock: ClockKind::Timeout, alarm: Some(_), .. } => "a timeout went on",
        Event::CallWaiting { why, .. } => return waiting(*why),
        Event::CallResumed { .. } => "a call was resumed",
        Event::CallSwitched { .. } => "a call was switched",
        Event::AttemptFailed { fault: Some(_), .. } => "an attempt failed",
        Event::AttemptFailed { fault: None, .. } => "an attempt was presumed spent",
        Event::CallHeldBack { by: HeldBy::Breaker, .. } => "a call was held back by a breaker",
        Event::CallHeldBack { .. } => "a call was held back by a rate",
        Event::CallEnded { outcome, .. } => return ended(outcome),
        Event::QuestionAsked { question, .. } if question.call.is_some() => "a tool asked a person",
        Event::CallAsked { work, .. } if work.of_tool().is_some() => "a tool asked the model",
        Event::ToolAnswered { is_error: true, .. } => "a tool was refused",
        Event::ToolAnswered { value: Some(_), .. } => "a shared value was read",
        Event::ValueWritten { version: 1, .. } => "a shared value was written",
        Event::ValueWritten { .. } => "a shared value was written over",
        Event::ValuesCleared { .. } => "the shared values were cleared",
        Event::MessageSent { .. } => "a message was sent",
        Event::MessagePublished { .. } => "a message was published",
        Event::TreeHalted { .. } => "the tree halted",
        Event::GraphReplanned { .. } => "a person changed a pipeline",
        Event::GraphStarted { graph: Some(_), .. } => "an agent ran a pipeline",
        Event::NodeStarted(start) if start.of == StartOf::Undo => "a step was undone",
        Event::NodeEnded { end, .. } => return Some(node_ended(end)),
        Event::WrapUpStarted { .. } => "an agent's time was nearly up",
        Event::ApprovalRemembered { .. } => return None,
        Event::RepeatsNoticed { .. } => "an agent was told that it repeats itself",
        Event::CallAsked { work, .. } if work.wrap_up().is_some() => "an agent had its last call",
        _ => return None,
    })
}

const fn node_ended(end: &NodeEnd) -> &'static str {
    match end {
        NodeEnd::Succeeded { winner: Some(_), .. } => "a race or vote was won",
        NodeEnd::Succeeded { winner: None, .. } => "a step succeeded",
        NodeEnd::Failed { retried: true, .. } => "a step was tried again",
        NodeEnd::Failed { retried: false, .. } => "a step failed",
        NodeEnd::Skipped { why: Skip::Missing(_) } => "a step lacked an input",
        NodeEnd::Skipped { why: Skip::When | Skip::NoCase | Skip::Person } => "a step was skipped",
        NodeEnd::Cancelled => "a step was cancelled",
    }
}

fn waiting(why: WaitReason) -> Option<&'static str> {
    match why {
        WaitReason::Budget { .. } => Some("a call waited for budget"),
        WaitReason::Slot => Some("a call waited for a slot"),
        WaitReason::Backoff => Some("a call backed off"),
        WaitReason::Cache => Some("a call waited for a cached prompt"),
        WaitReason::Ceiling
        | WaitReason::Rate
        | WaitReason::Breaker
        | WaitReason::Paused
        | WaitReason::Suspended
        | WaitReason::Halted
        | WaitReason::Children
        | WaitReason::Message
        | WaitReason::Person => None,
    }
}

fn ended(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Done { mismatch: Some(_), .. } => Some("an answer did not fit its schema"),
        Outcome::Done { body, .. } => body.rest().map(|_| "a large output was kept"),
        Outcome::Failed { .. } => Some("a call failed"),
        Outcome::Lost => Some("a call was lost"),
        Outcome::Answered { is_default: false, .. } => Some("a question was answered"),
        Outcome::Answered { is_default: true, .. } => Some("a default answer counted"),
        Outcome::Approved => Some("a tool was approved"),
        Outcome::Children { .. } => Some("a wait brought children"),
        Outcome::Expired { .. } => Some("a wait expired"),
        Outcome::NobodyLeft => Some("no message could come"),
        Outcome::Message { .. } => Some("a message ended a wait"),
        Outcome::Cancelled | Outcome::Refused { .. } => None,
    }
}
