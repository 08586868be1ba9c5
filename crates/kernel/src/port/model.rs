//! The model port: a driver makes one attempt, streams what comes, and says how it ended. Whether to try again, and
//! where, is decided in the kernel.

use std::sync::Arc;

use crate::budget::{Ceilings, Used};
use crate::context::{Origin, Packet};
use crate::definition::OnLost;
use crate::port::Pending;
use crate::port::blobs::BlobReader;
pub use crate::record::StopReason;
use crate::record::ToolAsk;
use crate::words::{Fault, ModelName, Part, PartKind, limit};

/// A model that can be called.
pub trait Model: Send + Sync {
    /// Makes one attempt. Text goes to `deltas` as it comes; dropping the future stops the call.
    fn call(&self, attempt: Arc<ModelAttempt>, deltas: Deltas) -> Pending<Result<ModelAnswer, Missed>>;

    /// How many tokens a text has at most, wherever it stands: at the beginning of a message or after a line break,
    /// and up to the end of the message or a line break. Counts are added up and holds are made of the sums, so a
    /// tokenizer whose tokens may cross such a place must count for it. The bytes are a bound for every tokenizer
    /// that is made of bytes, because no token is shorter; most can do better.
    fn tokens(&self, text: &str) -> u64 {
        text.len() as u64
    }

    /// How many tokens an image or a file has at most where it is shown. An image has [`limit::IMAGE_TOKENS`] unless a
    /// driver knows better, a file that is text what its text has, and any other as many as bytes.
    fn part_tokens(&self, part: &Part, bytes: &[u8]) -> u64 {
        match (part.kind(), std::str::from_utf8(bytes)) {
            (PartKind::Image, _) => limit::IMAGE_TOKENS,
            (PartKind::File, Ok(text)) if part.media().as_str().starts_with("text/") => self.tokens(text),
            (PartKind::File, Ok(_) | Err(_)) => bytes.len() as u64,
        }
    }

    /// What counts its tokens, by name. Of models that give the same name one is asked for all; one without a name
    /// is always asked itself.
    fn tokenizer(&self) -> Option<&str> {
        None
    }

    /// What becomes of a call whose end was never recorded.
    fn lost(&self) -> OnLost {
        OnLost::Presumed
    }

    /// What an attempt used that we stopped after it had said `said`. A provider may bill the rest all the same.
    fn used_when_stopped(&self, attempt: &ModelAttempt, said: &str) -> Used {
        let _ = (attempt, said);
        Used::Unknown
    }
}

/// Takes text as it comes.
pub type Deltas = Arc<dyn Fn(&str) + Send + Sync>;

/// One attempt at a model call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelAttempt {
    pub origin: Arc<Origin>,
    /// Which model, by its name in the tree.
    pub model: ModelName,
    /// The agent's turn, or the one that a summary comes before; the first is 1.
    pub turn: u32,
    /// What the answer is for.
    pub purpose: Purpose,
    /// Which attempt at this turn; the first is 1.
    pub attempt: u32,
    /// The same for every start of the same attempt.
    pub key: String,
    /// The most output tokens to ask for.
    pub output_cap: u64,
    /// What the model sees.
    pub packet: Packet,
    /// Where the bytes are that the packet refers to; [`bytes`](Self::bytes) and [`continuation`](Self::continuation) read
    /// them.
    pub blobs: BlobReader,
    /// What the agent could use at this moment.
    pub remaining: Ceilings,
}

/// What the answer of a model is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// It is a turn of the agent.
    #[default]
    Turn,
    /// It is a turn that goes on with an answer that was cut at its output cap, once. The two texts are joined by whoever
    /// made the attempt.
    Continue,
    /// It is the last turn of the agent: no tool can be called, and what it says is the partial result.
    WrapUp,
    /// It is a summary of what leaves the agent's window.
    Summary,
}

impl Purpose {
    /// Whether what is said is an answer of the agent, if it asks for no tools.
    #[must_use]
    pub const fn is_answer(self) -> bool {
        matches!(self, Self::Turn | Self::Continue)
    }
}

/// What a model answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelAnswer {
    pub text: String,
    /// What it thought before, as text. People can read it; other agents never do.
    pub reasoning: String,
    /// What the provider wants back unchanged with the next turn of this agent on this model.
    pub continuation: Option<Vec<u8>>,
    /// The tools it wants called.
    pub asks: Vec<ToolAsk>,
    /// What the attempt used.
    pub used: Used,
    /// Why it stopped there.
    pub stop: StopReason,
}

impl ModelAnswer {
    /// A whole answer without tool calls. What it used is unknown, so the full hold is spent: set
    /// [`used`](Self::used) where the provider says.
    #[must_use]
    pub fn said(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            reasoning: String::new(),
            continuation: None,
            asks: Vec::new(),
            used: Used::Unknown,
            stop: StopReason::End,
        }
    }
}

/// An attempt that came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missed {
    pub fault: Fault,
    /// What it used all the same.
    pub used: Used,
}
