//! What a call is for: a model, a tool, a child, a wait or a question.

use serde::{Deserialize, Serialize};

use crate::budget::Ceilings;
use crate::definition::OnLost;
use crate::record::{Covers, ToolAsk, WaitNeed, WrapUpCall, WrapUpReason};
use crate::words::{AgentId, Body, ModelName, ToolName};

/// What a call is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Work {
    /// A model is to answer.
    Model(ModelCall),
    /// A tool is to act.
    Tool(Box<ToolCall>),
    /// The child that this call spawned is to end.
    Child(ChildCall),
    /// Children are to end, or a message is to come.
    Wait(WaitFor),
    /// A person is to answer.
    Question(Question),
}

/// A model is to answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCall {
    pub model: ModelName,
    /// What goes in, counted outside, at least as much as it will be billed.
    pub input_tokens: u64,
    /// The most that may come out.
    pub output_cap: u64,
    /// Of what it is to write a summary; none for a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Box<Covers>>,
    /// What the agent could use at that moment, if it is told with what came since its last turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Box<Ceilings>>,
    /// Whether it goes on with an answer that was cut at its output cap: the two texts are one answer.
    #[serde(default, skip_serializing_if = "crate::words::is_false")]
    pub continues: bool,
    /// That it is the last call of its agent, without tools, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrap_up: Option<Box<WrapUpCall>>,
}

impl Work {
    /// Whether it is a turn of an agent: a model that answers, and writes no summary.
    #[must_use]
    pub const fn is_turn(&self) -> bool {
        match self {
            Self::Model(model) => model.summary.is_none(),
            Self::Tool(_) | Self::Child(_) | Self::Wait(_) | Self::Question(_) => false,
        }
    }

    /// Why it is the last call of its agent, if it is.
    #[must_use]
    pub fn wrap_up(&self) -> Option<&WrapUpReason> {
        match self {
            Self::Model(model) => model.wrap_up.as_ref().map(|wrap_up| &wrap_up.reason),
            Self::Tool(_) | Self::Child(_) | Self::Wait(_) | Self::Question(_) => None,
        }
    }

    /// The most output tokens of a model call.
    pub(crate) const fn output_cap(&self) -> Option<u64> {
        match self {
            Self::Model(model) => Some(model.output_cap),
            Self::Tool(_) | Self::Child(_) | Self::Wait(_) | Self::Question(_) => None,
        }
    }
}

/// A tool is to act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub tool: ToolName,
    /// Which of the tools that its agent's last answer asked for, counted from 0; none for a call from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<u32>,
    /// The arguments of a call from outside; those of a turn stand in the answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub args: String,
    /// The most it can cost by itself.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cost_nanos_max: u64,
    /// What becomes of it if the process dies.
    #[serde(default)]
    pub lost: OnLost,
}

/// The child that a call spawned is to end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildCall {
    pub agent: AgentId,
}

/// What an agent waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case", deny_unknown_fields)]
pub enum WaitFor {
    Children {
        agents: Vec<AgentId>,
        /// How many of them.
        need: WaitNeed,
        /// Whether what they name as sources is listed, too.
        #[serde(default, skip_serializing_if = "Sources::is_left_out")]
        sources: Sources,
    },
    Message,
}

/// Whether the sources that children name are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sources {
    /// They stand where the children name them.
    #[default]
    LeftOut,
    /// Each once, with everybody who names it.
    Listed,
}

impl Sources {
    pub(crate) const fn is_left_out(&self) -> bool {
        matches!(self, Self::LeftOut)
    }
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    pub text: String,
    /// What happens if nobody answers in time.
    #[serde(default)]
    pub on_timeout: OnTimeout,
    /// The tool that a yes lets the agent call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approves: Option<Box<ToolAsk>>,
}

impl Question {
    /// A question whose answer the agent reads.
    #[must_use]
    pub fn new(text: impl Into<String>, on_timeout: OnTimeout) -> Self {
        Self { text: text.into(), on_timeout, approves: None }
    }
}

/// What happens if nobody answers in time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// The question fails and the agent decides.
    #[default]
    Fail,
    /// This counts as the answer.
    Default(Box<Body>),
    /// The agent is cancelled.
    Cancel,
}

impl OnTimeout {
    /// This text counts as the answer.
    #[must_use]
    pub fn answer(text: impl Into<String>) -> Self {
        Self::Default(Box::new(Body::text(text)))
    }
}

const fn is_zero(amount: &u64) -> bool {
    *amount == 0
}
