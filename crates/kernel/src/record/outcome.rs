//! How a call ended, as the journal records it.

use serde::{Deserialize, Serialize};

use crate::definition::{Mismatch, Refusal};
use crate::primitives::{AgentId, Body, CommandExit, Fault, FaultKind, OutputPath, Seq, StoredFile};
use crate::record::{ExitKind, ToolAsk};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum Outcome {
    /// The effect completed.
    Done {
        body: Body,
        /// The tools that a model asks for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        asks: Vec<ToolAsk>,
        /// Whether a tool reported an error.
        #[serde(default, skip_serializing_if = "crate::primitives::is_false")]
        is_error: bool,
        /// How the answer fails to match its agent's `output_schema`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mismatch: Option<Box<Mismatch>>,
        #[serde(default, skip_serializing_if = "StopReason::is_end")]
        stop: StopReason,
        /// The files that a tool wrote for its agent. The journal has the bytes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<StoredFile>,
        /// The files of its agent that a tool removed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<OutputPath>,
        /// How the command of a tool ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<CommandExit>,
    },
    Failed {
        fault: Fault,
    },
    /// The process died while it ran; whether it completed is unknown.
    Lost,
    /// It was dropped before it started, or its wait is no longer needed.
    Cancelled,
    Refused {
        refusal: Refusal,
    },
    /// A person approved: the tool runs under another call.
    Approved,
    Answered {
        answer: Body,
        /// Whether this is the question's default because no answer came in time, rather than a person's answer.
        /// Rules 2 never set it.
        #[serde(default, skip_serializing_if = "crate::primitives::is_false")]
        is_default: bool,
    },
    Children {
        /// In the order they were named.
        ended: Vec<ChildEnd>,
    },
    Message {
        seq: Seq,
    },
    /// It waited for a message, and nobody was left who could send one.
    NobodyLeft,
    /// It timed out.
    Expired {
        /// The children that had ended.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ended: Vec<ChildEnd>,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The answer is complete, or asks for tools and the provider does not say so.
    #[default]
    End,
    /// It asks for tools.
    ToolCalls,
    /// It reached the output cap: the answer is incomplete.
    OutputCap,
    /// The provider withheld the rest.
    ContentFilter,
    /// It declined to answer.
    Refusal,
    /// The provider's reason is unknown to us.
    Other,
}

impl StopReason {
    /// The fault that it means, if there is no answer.
    pub(crate) const fn fault_kind(self) -> Option<FaultKind> {
        match self {
            Self::ContentFilter => Some(FaultKind::ContentFilter),
            Self::Refusal => Some(FaultKind::Declined),
            Self::End | Self::ToolCalls | Self::OutputCap | Self::Other => None,
        }
    }

    /// Whether a model reached its output cap before it said anything: it only thought.
    pub(crate) fn is_silent(self, body: &Body, asks: &[ToolAsk]) -> bool {
        self == Self::OutputCap && asks.is_empty() && body.text.trim().is_empty()
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
    pub(crate) const fn is_end(&self) -> bool {
        matches!(self, Self::End)
    }
}

/// A child's end, by reference: the named event holds its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildEnd {
    pub agent: AgentId,
    pub state: ExitKind,
    pub seq: Seq,
}

impl Outcome {
    #[must_use]
    pub const fn body(&self) -> Option<&Body> {
        match self {
            Self::Done { body, .. } => Some(body),
            Self::Answered { answer, .. } => Some(answer),
            _ => None,
        }
    }

    /// The files that a tool wrote for its agent.
    #[must_use]
    pub fn files(&self) -> &[StoredFile] {
        if let Self::Done { files, .. } = self { files } else { &[] }
    }

    /// The files of its agent that a tool removed.
    #[must_use]
    pub fn removed(&self) -> &[OutputPath] {
        if let Self::Done { removed, .. } = self { removed } else { &[] }
    }

    /// What a model said in its turn. An empty last call says nothing: the earlier text counts.
    pub(crate) fn said(&self, turn: TurnKind, rules: u32) -> Option<Said<'_>> {
        match self {
            Self::Done { body, .. } if turn == TurnKind::Last && body.text.trim().is_empty() => None,
            Self::Done { body, asks, stop, .. } if rules >= 5 && stop.is_silent(body, asks) => None,
            Self::Done { body, asks, mismatch, .. } => {
                Some(Said { body, asks, mismatch: mismatch.as_deref() })
            }
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnKind {
    Ordinary,
    Last,
}

pub(crate) struct Said<'o> {
    pub(crate) body: &'o Body,
    pub(crate) asks: &'o [ToolAsk],
    pub(crate) mismatch: Option<&'o Mismatch>,
}
