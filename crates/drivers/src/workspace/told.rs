//! How the end of a call is told in a step: what came back, whether that was a success, and where the rest is.

use spinney_kernel::agent::Exit;
use spinney_kernel::body::Body;
use spinney_kernel::call::{ChildEnd, Outcome};
use spinney_kernel::fault::{Fault, FaultKind};
use spinney_kernel::id::Seq;

use super::short::{OBSERVATION_BYTES_MAX, cut, remark};

/// What came of something.
pub(super) struct Told {
    pub(super) observation: String,
    pub(super) outcome_ref: Option<String>,
    /// Why it was no success; none if it was.
    pub(super) error: Option<String>,
}

impl Told {
    /// It went well, and that is all of it.
    pub(super) fn well(observation: String) -> Self {
        Self { observation, outcome_ref: None, error: None }
    }

    /// It did not go well.
    fn badly(why: &str) -> Self {
        Self { observation: cut(why, OBSERVATION_BYTES_MAX).0, outcome_ref: None, error: Some(remark(why)) }
    }

    /// A text that stands in event `seq`, or begins there.
    pub(super) fn body(body: &Body, seq: Seq) -> Self {
        let (observation, is_cut) = cut(&body.text, OBSERVATION_BYTES_MAX);
        let outcome_ref = match &body.rest {
            Some(rest) => Some(format!("blob:{}", rest.hash)),
            None => is_cut.then(|| event(seq)),
        };
        Self { observation, outcome_ref, error: None }
    }

    /// The same, as something that could not be done if `is_error`.
    pub(super) fn answer(body: &Body, is_error: bool, seq: Seq) -> Self {
        Self { error: is_error.then(|| remark(&body.text)), ..Self::body(body, seq) }
    }

    /// The end of a call, in event `seq`.
    pub(super) fn outcome(outcome: &Outcome, seq: Seq) -> Self {
        match outcome {
            Outcome::Done { body, is_error, .. } => Self::answer(body, *is_error, seq),
            Outcome::Answered { answer } => Self::body(answer, seq),
            Outcome::Children { ended } => Self::well(cut(&names(ended), OBSERVATION_BYTES_MAX).0),
            Outcome::Message { seq } => {
                Self { outcome_ref: Some(event(*seq)), ..Self::well("a message came".to_owned()) }
            }
            Outcome::Expired { ended } if ended.is_empty() => Self::badly("time is up"),
            Outcome::Expired { ended } => Self::badly(&format!("time is up; ended by now: {}", names(ended))),
            Outcome::Failed { fault } => Self::badly(&failed(fault)),
            Outcome::Lost => {
                Self::badly("lost: the process died during this call and nobody knows whether it happened")
            }
            Outcome::Cancelled => Self::badly("cancelled"),
            Outcome::Refused { refusal } => Self::badly(&refusal.to_string()),
        }
    }

    /// What an agent had to show when it ended.
    pub(super) fn exit(result: &Body, exit: &Exit, seq: Seq) -> Self {
        let error = match exit {
            Exit::Completed => None,
            Exit::Exhausted { account, short } => Some(short.told(account)),
            Exit::Failed { error } => Some(format!("{}: {}", error.code, error.message)),
            Exit::Cancelled { reason } => Some(format!("cancelled: {reason}")),
        };
        Self { error: error.map(|error| remark(&error)), ..Self::body(result, seq) }
    }
}

/// Where a text stands that is too long for a step and too short for a blob.
fn event(seq: Seq) -> String {
    format!("event:{}", seq.0)
}

fn failed(fault: &Fault) -> String {
    match (fault.kind, fault.message.as_str()) {
        (FaultKind::Stopped, _) => "stopped".to_owned(),
        (kind, "") => kind.word().to_owned(),
        (kind, message) => format!("{}: {message}", kind.word()),
    }
}

/// What a child has to show stands in its own history; here is only how it ended.
fn names(ended: &[ChildEnd]) -> String {
    let names: Vec<String> = ended.iter().map(|end| format!("{} {}", end.agent, end.state)).collect();
    names.join(", ")
}
