//! What a call is for: a model, a tool, a child, a wait or a question.

use serde::{Deserialize, Serialize};

use crate::budget::{CacheWrites, Ceilings};
use crate::definition::{AnswerForm, Definition, Network, OnLost, SubjectPattern};
use crate::primitives::{AgentId, Body, CallId, ModelName, ToolName};
use crate::record::{SummaryRange, ToolAsk, WaitNeed, WrapUpCall, WrapUpReason};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Work {
    Model(ModelCall),
    Tool(Box<ToolCall>),
    /// Waits for the end of the child that this call spawned.
    Child(ChildCall),
    /// Waits for children or a message.
    Wait(WaitFor),
    /// Waits for a person's answer.
    Question(Question),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCall {
    pub model: ModelName,
    /// Upper bound on the input tokens that will be billed.
    pub input_tokens: u64,
    /// The upper bound from the texts alone, where reports of this model's provider give a lower one. It counts if the
    /// call moves to another model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_tokens: Option<u64>,
    /// The input tokens that it probably has, if counts are estimates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<u64>,
    pub output_cap: u64,
    /// The messages to summarize, if it is not a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Box<SummaryRange>>,
    /// What the agent had left at that moment, if its packet shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Box<Ceilings>>,
    /// Whether it continues an answer that was cut at its output cap. The two texts form one answer.
    #[serde(default, skip_serializing_if = "crate::primitives::is_false")]
    pub continues: bool,
    /// Set if it is the agent's last call, which has no tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrap_up: Option<Box<WrapUpCall>>,
    /// Set if a program outside the tree makes the call, or a tool asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<Box<OutsideCall>>,
}

/// A call that is no part of its agent's context: a program outside the tree makes it, or a tool of the agent asks for it.
/// Who asks for it retries it: there is no second attempt here. The tree only holds and books what a program's call
/// costs, and one that does not fit halts the tree and waits; a tool's is refused then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutsideCall {
    /// What the program sent, as files; empty if only counts are kept.
    #[serde(default, skip_serializing_if = "Body::is_empty")]
    pub request: Body,
    /// The most expensive cache write that the request can cause.
    #[serde(default, skip_serializing_if = "CacheWrites::is_hour")]
    pub writes: CacheWrites,
    /// The smallest output cap that the provider accepts with this request.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub output_cap_min: u64,
    /// The running tool call that it is made for. Its request is then the message that the model reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_tool: Option<CallId>,
}

impl ModelCall {
    /// A plain turn.
    #[must_use]
    pub const fn new(model: ModelName, input_tokens: u64, output_cap: u64) -> Self {
        Self {
            model,
            input_tokens,
            counted_tokens: None,
            estimate: None,
            output_cap,
            summary: None,
            left: None,
            continues: false,
            wrap_up: None,
            outside: None,
        }
    }

    /// Whether it is an agent's turn and not a summary.
    #[must_use]
    pub const fn is_turn(&self) -> bool {
        self.summary.is_none()
    }

    /// The most expensive cache write that the request can cause.
    #[must_use]
    pub fn writes(&self) -> CacheWrites {
        self.outside.as_ref().map_or(CacheWrites::Hour, |outside| outside.writes)
    }

    /// Upper bound on its input tokens, whatever any provider reported.
    #[must_use]
    pub fn counted(&self) -> u64 {
        self.counted_tokens.unwrap_or(self.input_tokens)
    }
}

impl Work {
    /// Whether it is an agent's turn and not a summary.
    #[must_use]
    pub const fn is_turn(&self) -> bool {
        match self {
            Self::Model(model) => model.is_turn(),
            Self::Tool(_) | Self::Child(_) | Self::Wait(_) | Self::Question(_) => false,
        }
    }

    /// Why it is the agent's last call, if it is.
    #[must_use]
    pub fn wrap_up(&self) -> Option<&WrapUpReason> {
        match self {
            Self::Model(model) => model.wrap_up.as_ref().map(|wrap_up| &wrap_up.reason),
            Self::Tool(_) | Self::Child(_) | Self::Wait(_) | Self::Question(_) => None,
        }
    }

    /// The running tool call that a model call is made for.
    #[must_use]
    pub fn of_tool(&self) -> Option<CallId> {
        self.outside().and_then(|outside| outside.of_tool)
    }

    /// What a program outside the tree sent, or a tool, if one of them wants the call.
    #[must_use]
    pub fn outside(&self) -> Option<&OutsideCall> {
        match self {
            Self::Model(model) => model.outside.as_deref(),
            Self::Tool(_) | Self::Child(_) | Self::Wait(_) | Self::Question(_) => None,
        }
    }

    /// Whether it is the program that an agent is.
    #[must_use]
    pub const fn is_program(&self) -> bool {
        match self {
            Self::Tool(tool) => tool.is_program,
            Self::Model(_) | Self::Child(_) | Self::Wait(_) | Self::Question(_) => false,
        }
    }

    pub(crate) const fn output_cap(&self) -> Option<u64> {
        match self {
            Self::Model(model) => Some(model.output_cap),
            Self::Tool(_) | Self::Child(_) | Self::Wait(_) | Self::Question(_) => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub tool: ToolName,
    /// The index of the tool call in the agent's last answer, from 0; `None` for a call from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<u32>,
    /// The arguments of a call from outside. Those of a turn are in the answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub args: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cost_nanos_max: u64,
    /// How to treat it if the process dies.
    #[serde(default)]
    pub lost: OnLost,
    /// The hosts that a person allowed it beside those of its agent.
    #[serde(default, skip_serializing_if = "Network::is_denied")]
    pub network: Network,
    /// Whether it is the program that its agent is. It holds nothing and takes no slot: what it uses is held by the model
    /// calls that it makes.
    #[serde(default, skip_serializing_if = "crate::primitives::is_false")]
    pub is_program: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildCall {
    pub agent: AgentId,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case", deny_unknown_fields)]
pub enum WaitFor {
    Children {
        agents: Vec<AgentId>,
        need: WaitNeed,
        /// Whether the children's sources are also listed.
        #[serde(default, skip_serializing_if = "Sources::is_left_out")]
        sources: Sources,
    },
    Message,
}

/// Whether the sources that children name are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sources {
    /// They appear only in the children's own texts.
    #[default]
    LeftOut,
    /// Each once, with everyone who names it.
    Listed,
}

impl Sources {
    pub(crate) const fn is_left_out(&self) -> bool {
        matches!(self, Self::LeftOut)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    pub text: String,
    /// What happens if no answer comes in time.
    #[serde(default)]
    pub on_timeout: OnTimeout,
    /// The tool call that a yes permits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approves: Option<Box<ToolAsk>>,
    /// The hosts that a yes lets that call connect to, beside those of the agent.
    #[serde(default, skip_serializing_if = "Network::is_denied")]
    pub network: Network,
    /// What may be answered.
    #[serde(default, skip_serializing_if = "AnswerForm::is_text")]
    pub form: AnswerForm,
    /// The running tool call that asks; the question ends with it at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// Whether the agent waits after its answer, because it is kept. What a person writes is its next message.
    #[serde(default, skip_serializing_if = "crate::primitives::is_false")]
    pub is_after_answer: bool,
}

impl Question {
    /// A question whose answer the agent reads.
    #[must_use]
    pub fn new(text: impl Into<String>, on_timeout: OnTimeout) -> Self {
        Self {
            text: text.into(),
            on_timeout,
            approves: None,
            network: Network::Denied,
            form: AnswerForm::Text,
            call: None,
            is_after_answer: false,
        }
    }

    /// The same, answered in this form.
    #[must_use]
    pub fn in_form(self, form: AnswerForm) -> Self {
        Self { form, ..self }
    }

    /// A question of a running tool call, whose answer the tool reads.
    #[must_use]
    pub fn of_call(call: CallId, text: impl Into<String>) -> Self {
        Self { call: Some(call), ..Self::new(text, OnTimeout::Fail) }
    }

    /// The widest pattern that a yes can be remembered with: the hosts that it names, otherwise calls like the one that it
    /// is about. `None` if that can only be approved once.
    #[must_use]
    pub fn offered(&self, definition: &Definition) -> Option<SubjectPattern> {
        let ask = self.approves.as_ref()?;
        if self.network.is_denied() {
            return definition.offered(&ask.tool, &ask.args);
        }
        Some(SubjectPattern::Hosts(self.network.rules().cloned().collect()))
    }
}

/// What happens if no answer comes in time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// The question fails and the agent decides what to do.
    #[default]
    Fail,
    /// This counts as the answer.
    Default(Box<Body>),
    /// The agent is cancelled.
    Cancel,
}

impl OnTimeout {
    #[must_use]
    pub fn answer(text: impl Into<String>) -> Self {
        Self::Default(Box::new(Body::text(text)))
    }
}

const fn is_zero(amount: &u64) -> bool {
    *amount == 0
}
