//! A call's end in a step: the result, whether it was a success, and where the rest is.

use std::borrow::Cow;

use spinney_kernel::context::offload;
use spinney_kernel::context::offload::{FOLDER, Whole};
use spinney_kernel::primitives::{Body, Fault, FaultKind, Seq};
use spinney_kernel::record::{ChildEnd, Exit, Outcome, StopReason};

use super::short::{OBSERVATION_BYTES_MAX, cut, remark};

/// What came of something.
pub(super) struct Observation {
    pub(super) observation: String,
    pub(super) outcome_ref: Option<String>,
    /// Why it did not succeed; none if it did.
    pub(super) error: Option<String>,
}

impl Observation {
    /// It went well, and that is all of it.
    pub(super) fn well(observation: String) -> Self {
        Self { observation, outcome_ref: None, error: None }
    }

    /// It did not go well.
    fn badly(why: &str) -> Self {
        Self { observation: cut(why, OBSERVATION_BYTES_MAX).0, outcome_ref: None, error: Some(remark(why)) }
    }

    /// A text in event `seq`, whole or in part. `whole` is where the rest is.
    pub(super) fn body(body: &Body, whole: &Whole, seq: Seq) -> Self {
        let text = match body.ends() {
            Some(_) => Cow::Owned(offload::shown(body.clone(), whole)),
            None => Cow::Borrowed(body.text.as_str()),
        };
        let (mut observation, is_cut) = cut(&text, OBSERVATION_BYTES_MAX);
        // Images and files by reference; there are few.
        for part in body.parts() {
            let gap = if observation.is_empty() { "" } else { "\n" };
            observation.push_str(&format!("{gap}{part}"));
        }
        let outcome_ref = match (body.rest(), whole) {
            (Some(_), Whole::File(name)) => Some(format!("{FOLDER}/{name}")),
            (Some(rest), Whole::NoRoom | Whole::Journal) => Some(format!("blob:{}", rest.hash)),
            (None, _) => is_cut.then(|| event(seq)),
        };
        Self { observation, outcome_ref, error: None }
    }

    /// The same, as something that could not be done if `is_error`.
    pub(super) fn answer(body: &Body, is_error: bool, whole: &Whole, seq: Seq) -> Self {
        let observed = Self::body(body, whole, seq);
        Self { error: is_error.then(|| remark(&observed.observation)), ..observed }
    }

    /// The end of a call, in event `seq`. `whole` is where the whole of a tool's output is.
    pub(super) fn outcome(outcome: &Outcome, whole: &Whole, seq: Seq) -> Self {
        match outcome {
            Outcome::Approved => Self::well("a person said yes".to_owned()),
            Outcome::Done { body, mismatch: Some(mismatch), .. } => {
                let error = Some(remark(&format!("output_mismatch: {}", mismatch.describe())));
                Self { error, ..Self::body(body, whole, seq) }
            }
            Outcome::Done { body, stop: StopReason::OutputCap, .. } => {
                let error = Some(remark("output_truncated: cut at its output cap"));
                Self { error, ..Self::body(body, whole, seq) }
            }
            Outcome::Done { body, is_error, mismatch: None, .. } => Self::answer(body, *is_error, whole, seq),
            Outcome::Answered { answer, is_default } => {
                let observed = Self::body(answer, &Whole::Journal, seq);
                let before = if *is_default { "no answer in time; the default: " } else { "" };
                Self { observation: format!("{before}{}", observed.observation), ..observed }
            }
            Outcome::Children { ended } => Self::well(cut(&names(ended), OBSERVATION_BYTES_MAX).0),
            Outcome::Message { seq } => {
                Self { outcome_ref: Some(event(*seq)), ..Self::well("a message came".to_owned()) }
            }
            Outcome::NobodyLeft => Self::badly("no message can come: every agent waits"),
            Outcome::Expired { ended } if ended.is_empty() => Self::badly("time is up"),
            Outcome::Expired { ended } => Self::badly(&format!("time is up; ended by now: {}", names(ended))),
            Outcome::Failed { fault } => Self::badly(&failed(fault)),
            Outcome::Lost => {
                Self::badly("lost: the process died during this call, and it is unknown whether it happened")
            }
            Outcome::Cancelled => Self::badly("cancelled"),
            Outcome::Refused { refusal } => Self::badly(&refusal.to_string()),
        }
    }

    /// What an agent had to show when it ended.
    pub(super) fn exit(result: &Body, exit: &Exit, seq: Seq) -> Self {
        let error = (!exit.is_success()).then(|| remark(&exit.to_string()));
        Self { error, ..Self::body(result, &Whole::Journal, seq) }
    }
}

/// Refers to a text that is too long for a step and too short for a blob.
fn event(seq: Seq) -> String {
    format!("event:{}", seq.0)
}

fn failed(fault: &Fault) -> String {
    match (fault.kind, fault.message.as_str()) {
        (FaultKind::Stopped, _) => "stopped".to_owned(),
        (kind, "") => kind.as_str().to_owned(),
        (kind, message) => format!("{}: {message}", kind.as_str()),
    }
}

/// A child's result is in its own history; this only names its exit.
fn names(ended: &[ChildEnd]) -> String {
    let names: Vec<String> = ended.iter().map(|end| format!("{} {}", end.agent, end.state)).collect();
    names.join(", ")
}
