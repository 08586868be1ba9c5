//! The trace that a tree belongs to: the `traceparent` of W3C Trace Context, as its caller sent it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::primitives::IdError;

/// A caller's trace and the span in it that started the tree: `00-<trace id>-<parent id>-<flags>`, in lowercase hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TraceParent {
    /// Not zero.
    trace_id: u128,
    /// Not zero.
    parent_id: u64,
    flags: u8,
}

impl TraceParent {
    #[must_use]
    pub const fn trace_id(&self) -> u128 {
        self.trace_id
    }

    /// The caller's span.
    #[must_use]
    pub const fn parent_id(&self) -> u64 {
        self.parent_id
    }

    #[must_use]
    pub const fn flags(&self) -> u8 {
        self.flags
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace_id, parent_id, flags } = self;
        write!(f, "00-{trace_id:032x}-{parent_id:016x}-{flags:02x}")
    }
}

impl FromStr for TraceParent {
    type Err = IdError;

    /// Only version 00, which is written back as it came.
    fn from_str(text: &str) -> Result<Self, IdError> {
        parse(text).ok_or_else(|| {
            let rule = "`00-`, 32 hex digits, `-`, 16 hex digits, `-` and 2 hex digits, in lowercase, and neither id all zeros";
            IdError::new("traceparent", text, rule)
        })
    }
}

fn parse(text: &str) -> Option<TraceParent> {
    let mut parts = text.split('-');
    let mut digits = |count: usize| {
        let is_hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        let part = parts.next().filter(|part| part.len() == count && part.bytes().all(is_hex))?;
        u128::from_str_radix(part, 16).ok()
    };
    let version = digits(2)?;
    let trace_id = digits(32).filter(|id| *id != 0)?;
    let parent_id = digits(16).filter(|id| *id != 0)?;
    let flags = digits(2)?;
    let (parent_id, flags) = (u64::try_from(parent_id).ok()?, u8::try_from(flags).ok()?);
    (version == 0 && parts.next().is_none()).then_some(TraceParent { trace_id, parent_id, flags })
}

impl TryFrom<String> for TraceParent {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<TraceParent> for String {
    fn from(trace: TraceParent) -> Self {
        trace.to_string()
    }
}
