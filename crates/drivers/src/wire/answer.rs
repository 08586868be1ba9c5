//! A provider's answer in one form for all providers, and the pieces in which it arrives.

use super::continuation::Continuation;

/// An answer, as far as it arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireAnswer {
    /// The provider's id for it.
    pub id: Option<String>,
    /// Which model answered, as the provider says.
    pub model: Option<String>,
    pub text: String,
    /// The model's reasoning, as far as the provider shows it. It is not part of the answer.
    pub reasoning: String,
    pub calls: Vec<WireToolCall>,
    /// Why the model stopped there, if the provider said.
    pub stop: Option<WireStop>,
    pub usage: WireUsage,
    /// What the provider needs back unchanged.
    pub continuation: Option<Continuation>,
    pub end: StreamEnd,
    /// Parts of it that only the provider can read.
    pub opaque: Vec<OpaqueHash>,
}

/// Identifies a text that only its provider can read: encrypted reasoning, or a signature that contains thinking. Programs
/// send it back, and its size does not tell how many tokens it is then billed as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpaqueHash([u8; 16]);

impl OpaqueHash {
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut hash = [0; 16];
        blake3::Hasher::new().update(text.as_bytes()).finalize_xof().fill(&mut hash);
        Self(hash)
    }

    /// Bytes in base64. Programs decode them and write them again in the other alphabet, or without padding.
    #[must_use]
    pub fn of_base64(text: &str) -> Self {
        let plain = text.trim_end_matches('=').chars().map(|letter| match letter {
            '-' => '+',
            '_' => '/',
            letter => letter,
        });
        Self::new(&plain.collect::<String>())
    }

    /// An argument of a call, which a program may pass to another agent. It never equals the hash of reasoning.
    #[must_use]
    pub fn of_argument(text: &str) -> Self {
        Self::new(&format!("argument {text}"))
    }
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamEnd {
    /// It had its last event.
    Whole,
    /// It broke off or failed: something is missing, including the final usage.
    #[default]
    Cut,
    /// The provider sent an error instead of an answer: no output came before it.
    Refused,
}

/// A tool that the model wants called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireToolCall {
    pub id: String,
    pub name: String,
    /// The arguments as the model wrote them: a JSON object, unless `is_whole` is false.
    pub arguments: String,
    /// Whether the arguments are a complete JSON object. An output cap can cut them.
    pub is_whole: bool,
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireStop {
    /// It was finished, or reached a stop sequence.
    End,
    ToolCalls,
    /// It reached its output cap or filled its context: the answer is incomplete.
    OutputCap,
    /// The provider's filter held back the rest.
    ContentFilter,
    /// The model declined. Its text says so, if there is any.
    Refusal,
    /// An unknown reason, in the provider's word.
    Other(String),
}

/// What a call used; counts that the provider did not report are `None`. `input`, `cache_read` and the two writes do not
/// overlap, however the provider counts. `reasoning` is a part of `output`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireUsage {
    /// Input that was not in a cache.
    pub input: Option<u64>,
    /// Everything that the model wrote, reasoning included.
    pub output: Option<u64>,
    pub cache_read: Option<u64>,
    /// Written to a cache that lasts five minutes, or a time that the provider does not state.
    pub cache_written_5m: Option<u64>,
    /// Written to a cache that lasts an hour.
    pub cache_written_1h: Option<u64>,
    pub reasoning: Option<u64>,
    /// The cost of the whole call as the provider reported it, in nano-USD.
    pub reported_nanos: Option<u64>,
    /// What the provider bills in addition to the tokens, in nano-USD.
    pub apart_nanos: u64,
    /// Whether the call used something of unknown price, so the counts understate its cost.
    pub has_unknown_price: bool,
}

/// A piece of an answer, as it arrives. A call is identified by its index among the calls of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireDelta<'d> {
    Text(&'d str),
    Reasoning(&'d str),
    CallStarted {
        call: usize,
        id: &'d str,
        name: &'d str,
    },
    CallArguments {
        call: usize,
        text: &'d str,
    },
    /// All of its arguments have arrived.
    CallFinished {
        call: usize,
    },
}

/// Receives pieces of an answer.
pub type OnDelta<'f> = dyn FnMut(WireDelta<'_>) + 'f;

impl WireStop {
    /// A reason in the provider's word, cut to a bound.
    pub(super) fn other(word: &str) -> Self {
        let letters = word.chars().filter(|letter| !letter.is_control());
        Self::Other(letters.take(STOP_CHARS_MAX).collect())
    }
}

/// Longest reason that is kept, in characters.
const STOP_CHARS_MAX: usize = 64;
