//! Which blobs an event refers to: what a replay must find whole.

use spinney_kernel::record::{Event, OnTimeout, Outcome};
use spinney_kernel::words::{BlobRef, Body, Part};

/// The blobs that an event refers to.
#[must_use]
pub fn blobs_of(event: &Event) -> Vec<&BlobRef> {
    let bodies: Vec<&Body> = match event {
        Event::AgentEnding { result, .. } | Event::AgentEnded { result, .. } => result.iter().collect(),
        Event::ToolAnswered { body, .. }
        | Event::MessageSent { body, .. }
        | Event::MessagePublished { body, .. } => vec![body],
        Event::CallEnded { outcome, .. } => of_outcome(outcome).into_iter().collect(),
        Event::QuestionAsked { question, .. } => match &question.on_timeout {
            OnTimeout::Default(answer) => vec![answer],
            OnTimeout::Fail | OnTimeout::Cancel => Vec::new(),
        },
        Event::TreeStarted { definition, .. } => definition
            .roles
            .values()
            .filter_map(|role| role.turns.as_ref())
            .map(|turns| &turns.prompt)
            .collect(),
        Event::AgentSpawned(_)
        | Event::WindowSet { .. }
        | Event::ContextShared { .. }
        | Event::ThreadJoined { .. }
        | Event::ThreadLeft { .. }
        | Event::ContextCut { .. }
        | Event::ContextRestored(_)
        | Event::AgentPaused { .. }
        | Event::AgentUnpaused { .. }
        | Event::AgentRedirected { .. }
        | Event::CallAsked { .. }
        | Event::CallWaiting { .. }
        | Event::CallStarted { .. }
        | Event::CallResumed { .. }
        | Event::CallSwitched { .. }
        | Event::AttemptFailed { .. }
        | Event::WaitStarted { .. }
        | Event::Charged { .. }
        | Event::TreeHalted { .. }
        | Event::TreeUnhalted
        | Event::WrapUpStarted { .. }
        | Event::LimitRaised { .. }
        | Event::ClockSet { .. }
        | Event::BreakerChanged { .. }
        | Event::CheckpointMade { .. }
        | Event::TreeBranched(_)
        | Event::RateLimited { .. } => Vec::new(),
    };
    bodies.into_iter().flat_map(of_body).collect()
}

/// The whole of a text, and the bytes of its parts.
fn of_body(body: &Body) -> impl Iterator<Item = &BlobRef> {
    body.rest().into_iter().chain(body.parts().iter().map(Part::blob))
}

const fn of_outcome(outcome: &Outcome) -> Option<&Body> {
    match outcome {
        Outcome::Done { body, .. } => Some(body),
        Outcome::Answered { answer, .. } => Some(answer),
        Outcome::Failed { .. }
        | Outcome::Lost
        | Outcome::Cancelled
        | Outcome::Refused { .. }
        | Outcome::Approved
        | Outcome::Children { .. }
        | Outcome::Message { .. }
        | Outcome::Expired { .. } => None,
    }
}
