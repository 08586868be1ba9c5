//! How a call ended, as the journal records it.

use serde::{Deserialize, Serialize};

use crate::definition::{Mismatch, Refusal};
use crate::record::{ExitKind, ToolAsk};
use crate::words::{AgentId, Body, Fault, FaultKind, Seq};

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum Outcome {
    /// The effect did what it was asked to.
    Done {
        body: Body,
        /// The tools that a model wants called.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        asks: Vec<ToolAsk>,
        /// Whether a tool says that it could not do what it was asked.
        #[serde(default, skip_serializing_if = "crate::words::is_false")]
        is_error: bool,
        /// How the answer of an agent with an `output_schema` does not fit that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mismatch: Option<Box<Mismatch>>,
        /// Why a model stopped there.
        #[serde(default, skip_serializing_if = "StopReason::is_end")]
        stop: StopReason,
    },
    Failed {
        fault: Fault,
    },
    /// The process died while it ran; nobody knows whether it happened.
    Lost,
    /// It was dropped before it started, or its wait is no longer wanted.
    Cancelled,
    /// It may not run.
    Refused {
        refusal: Refusal,
    },
    /// A person said yes: what it was about is called under another call.
    Approved,
    /// A question has its answer.
    Answered {
        answer: Body,
        /// Whether nobody answered in time and this is the default that the question named. A person gave it
        /// otherwise. Rules 2 never set it.
        #[serde(default, skip_serializing_if = "crate::words::is_false")]
        is_default: bool,
    },
    /// The children it waited for have ended.
    Children {
        /// Those that have, in the order they were named.
        ended: Vec<ChildEnd>,
    },
    Message {
        /// The event that brought it.
        seq: Seq,
    },
    /// Its time was up.
    Expired {
        /// The children that had ended by then.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ended: Vec<ChildEnd>,
    },
}

/// Why a model stopped where it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// It had said everything, or wants tools called and its provider does not say so.
    #[default]
    End,
    /// It wants tools called.
    ToolCalls,
    /// Its output cap was reached: what it said is not all of it.
    OutputCap,
    /// Its provider held the rest back.
    ContentFilter,
    /// It declined to answer.
    Refusal,
    /// Its provider gave a reason that we do not know.
    Other,
}

impl StopReason {
    /// The fault that this is, if there is no answer.
    pub(crate) const fn fault_kind(self) -> Option<FaultKind> {
        match self {
            Self::ContentFilter => Some(FaultKind::ContentFilter),
            Self::Refusal => Some(FaultKind::Declined),
            Self::End | Self::ToolCalls | Self::OutputCap | Self::Other => None,
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
    pub(crate) const fn is_end(&self) -> bool {
        matches!(self, Self::End)
    }
}

/// A child's end, by reference: its result stands in the event named here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildEnd {
    pub agent: AgentId,
    pub state: ExitKind,
    /// The `agent_ended` event.
    pub seq: Seq,
}

impl Outcome {
    /// The body that the call ended with, if it has one.
    #[must_use]
    pub const fn body(&self) -> Option<&Body> {
        match self {
            Self::Done { body, .. } => Some(body),
            Self::Answered { answer, .. } => Some(answer),
            _ => None,
        }
    }

    /// What a model said with its turn. One that is asked for the last time and has no words says nothing: what it said
    /// before counts.
    pub(crate) fn said(&self, turn: TurnKind) -> Option<Said<'_>> {
        match self {
            Self::Done { body, .. } if turn == TurnKind::Last && body.text.trim().is_empty() => None,
            Self::Done { body, asks, mismatch, .. } => {
                Some(Said { body, asks, mismatch: mismatch.as_deref() })
            }
            _ => None,
        }
    }
}

/// Which turn of its agent a model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnKind {
    Ordinary,
    Last,
}

/// What a model said.
pub(crate) struct Said<'o> {
    pub(crate) body: &'o Body,
    pub(crate) asks: &'o [ToolAsk],
    /// How it does not fit its agent's schema.
    pub(crate) mismatch: Option<&'o Mismatch>,
}
