//! The model port: a driver makes one attempt, streams its text, and returns how it ended. The kernel decides whether
//! to retry, and with which model.

use std::sync::Arc;

use crate::budget::{Ceilings, Used};
use crate::context::{Origin, Packet};
use crate::definition::OnLost;
use crate::port::blobs::BlobReader;
use crate::port::{AgentFolder, Pending, Rights};
use crate::primitives::{CallId, Fault, ModelName, Part, PartKind, limit};
pub use crate::record::StopReason;
use crate::record::ToolAsk;

pub trait Model: Send + Sync {
    /// Makes one attempt. It must end within [`limit::MODEL_CALL_MS_MAX`], because its hold covers no later rates. Text and reasoning go to `deltas` as they arrive; dropping the future stops the call.
    fn call(&self, attempt: Arc<ModelAttempt>, deltas: Deltas) -> Pending<Result<ModelAnswer, AttemptError>>;

    /// Upper bound on the tokens of a text, wherever it appears: at the start of a message or after a line break, up
    /// to the end of the message or a line break. Holds are sums of these counts, so a tokenizer whose tokens may
    /// span such a boundary must add for it. The default is the number of bytes, a bound for every byte-based
    /// tokenizer.
    fn tokens(&self, text: &str) -> u64 {
        text.len() as u64
    }

    /// What the tokens of a text probably are, if [`tokens`](Self::tokens) is only a bound; windows are cut by it. It
    /// should be high rather than low: what the provider reports of the first call corrects it. `None` if
    /// [`tokens`](Self::tokens) is exact.
    fn estimate(&self, text: &str) -> Option<u64> {
        let _ = text;
        None
    }

    /// Upper bound on the tokens of an image or a file where it is shown. By default an image has
    /// [`limit::IMAGE_TOKENS`], a text file the tokens of its text, and any other file its bytes.
    fn part_tokens(&self, part: &Part, bytes: &[u8]) -> u64 {
        match (part.kind(), std::str::from_utf8(bytes)) {
            (PartKind::Image, _) => limit::IMAGE_TOKENS,
            (PartKind::File, Ok(text)) if part.media().as_str().starts_with("text/") => self.tokens(text),
            (PartKind::File, Ok(_) | Err(_)) => bytes.len() as u64,
        }
    }

    /// The name of its tokenizer. Of models with the same name, one counts for all; a model without a name counts
    /// itself.
    fn tokenizer(&self) -> Option<&str> {
        None
    }

    /// The service that answers, such as the origin of its URL. Models of one service share a circuit breaker. Without
    /// a name there is none.
    fn service(&self) -> Option<&str> {
        None
    }

    /// Models with the same quota share the provider's rate limits: the same service, model and key. It identifies a
    /// key, so it is never printed or stored.
    fn quota(&self) -> Option<&str> {
        None
    }

    /// What the provider last announced about its rate limits, as of the moment when that response began.
    fn announced(&self) -> Announced {
        Announced::default()
    }

    /// How to treat a call whose end was never recorded.
    fn lost(&self) -> OnLost {
        OnLost::Presumed
    }

    /// The usage of an attempt that we stopped after it had streamed `said`. A provider may bill the rest anyway.
    fn used_when_stopped(&self, attempt: &ModelAttempt, said: &str) -> Used {
        let _ = (attempt, said);
        Used::Unknown
    }
}

/// The rate limits that a provider announced with a response. It may announce some, all or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Announced {
    pub requests: Option<Allowance>,
    /// Input and output together.
    pub tokens: Option<Allowance>,
    pub input_tokens: Option<Allowance>,
    pub output_tokens: Option<Allowance>,
}

/// What is left of a rate limit. `remaining` is at most `limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    pub limit: u64,
    pub remaining: u64,
    /// Until it is whole again.
    pub reset_ms: u64,
}

/// Receives text as it arrives.
pub type Deltas = Arc<dyn Fn(DeltaKind, &str) + Send + Sync>;

/// What a piece of streamed text belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeltaKind {
    /// The answer.
    Text,
    /// What the model thinks before it answers. People may see it; no agent does.
    Reasoning,
    /// What a tool prints while it runs.
    Output,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelAttempt {
    pub origin: Arc<Origin>,
    /// The call that this is an attempt at.
    pub call: CallId,
    /// Its name in the tree.
    pub model: ModelName,
    /// The agent's turn, or the turn that follows a summary; the first is 1.
    pub turn: u32,
    pub purpose: Purpose,
    /// The first is 1.
    pub attempt: u32,
    /// Idempotency key: the same for every start of the same attempt.
    pub key: String,
    /// The most output tokens to request.
    pub output_cap: u64,
    /// The JSON Schema that the answer must match, if any. The runtime checks every answer itself; a provider that can
    /// enforce a schema may also be given it.
    pub output_schema: Option<Arc<str>>,
    pub packet: Packet,
    /// Reads the bytes that the packet refers to, through [`bytes`](Self::bytes) and
    /// [`continuation`](Self::continuation).
    pub blobs: BlobReader,
    /// What the agent has left at this moment.
    pub remaining: Ceilings,
    pub rights: Rights,
    /// The agent's folder, if its tree has workspaces.
    pub workspace: Option<AgentFolder>,
}

impl ModelAttempt {
    /// The first attempt at a call of an agent's first turn, without rights, folder, schema and ceilings. The fields are
    /// public: set those that differ.
    #[must_use]
    pub fn new(origin: Arc<Origin>, call: CallId, key: String, model: ModelName, packet: Packet) -> Self {
        Self {
            origin,
            call,
            model,
            turn: 1,
            purpose: Purpose::Turn,
            attempt: 1,
            key,
            output_cap: limit::OUTPUT_TOKENS,
            output_schema: None,
            packet,
            blobs: BlobReader::default(),
            remaining: Ceilings::NONE,
            rights: Rights::none(),
            workspace: None,
        }
    }
}

/// What the answer of a model is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    #[default]
    Turn,
    /// A turn that continues an answer that was cut at its output cap, once. The caller joins the two texts.
    Continue,
    /// The agent's last turn: no tools, and its text is the partial result.
    WrapUp,
    /// A summary of what leaves the agent's window.
    Summary,
    /// A running tool of the agent asks for it. The packet is its one message.
    OfTool,
}

impl Purpose {
    /// Whether its text is the agent's answer if it asks for no tools.
    #[must_use]
    pub const fn is_answer(self) -> bool {
        matches!(self, Self::Turn | Self::Continue)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelAnswer {
    pub text: String,
    /// Its reasoning as text. People can read it; other agents never do.
    pub reasoning: String,
    /// Opaque state that the provider wants back unchanged with this agent's next turn on this model.
    pub continuation: Option<Vec<u8>>,
    /// The tools it asks for.
    pub asks: Vec<ToolAsk>,
    pub used: Used,
    pub stop: StopReason,
}

impl ModelAnswer {
    /// A complete answer without tool calls. Its usage is unknown, so the full hold is spent; say what it used
    /// ([`with_used`](Self::with_used)) if the provider reports it.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            reasoning: String::new(),
            continuation: None,
            asks: Vec::new(),
            used: Used::Unknown,
            stop: StopReason::End,
        }
    }

    /// Asks for tools.
    #[must_use]
    pub fn with_asks(mut self, asks: Vec<ToolAsk>) -> Self {
        self.asks = asks;
        self
    }

    #[must_use]
    pub fn with_used(mut self, used: Used) -> Self {
        self.used = used;
        self
    }

    #[must_use]
    pub fn with_stop(mut self, stop: StopReason) -> Self {
        self.stop = stop;
        self
    }

    #[must_use]
    pub fn with_reasoning(mut self, reasoning: String) -> Self {
        self.reasoning = reasoning;
        self
    }

    #[must_use]
    pub fn with_continuation(mut self, continuation: Option<Vec<u8>>) -> Self {
        self.continuation = continuation;
        self
    }
}

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptError {
    pub fault: Fault,
    /// What it used anyway.
    pub used: Used,
}
