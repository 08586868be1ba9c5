//! The providers' wire formats: bytes in, values out. Nothing here opens a connection, reads a clock or knows a tree.
//!
//! A [`StreamReader`] takes the bytes of one streamed answer as they arrive and gives deltas, and at the end the
//! answer: text, tool calls, reasoning, why it stopped, usage, and what the provider wants back unchanged. Unknown
//! events and fields are skipped. [`write()`] makes the body of a request. [`FaultReader`] says what an error means, and
//! [`announced()`] which rate limits the headers announce.
//! Everything that is read has a bound in [`bounds`].

mod announced;
mod answer;
mod anthropic;
pub mod bounds;
mod chat;
mod continuation;
mod draft;
mod endpoint;
mod escaped;
mod fault;
mod format;
mod gemini;
mod instant;
mod json;
mod open_ai_usage;
mod pause;
mod reading;
mod reported_cost;
mod request;
mod request_name;
mod responses;
mod secrets;
mod sse;
mod stream;
mod turns;
mod usage_report;

pub use announced::announced;
pub use answer::{OnDelta, OpaqueHash, StreamEnd, WireAnswer, WireDelta, WireStop, WireToolCall, WireUsage};
pub use continuation::{Continuation, ContinuationError};
pub use endpoint::{Endpoint, VersionHeader};
pub use fault::{ErrorResponse, FaultReader, WireFault, WireFaultKind, WireHeader};
pub use format::WireFormat;
pub use request::{
    BodyError, ServiceTier, StructuredOutput, WireMessage, WireParams, WirePart, WireRequest, WireTool, write,
};
pub use request_name::{NameKind, NotRequestName, Permitted, RequestName};
pub use secrets::{Secrets, key_shapes};
pub use spinney_kernel::definition::{CacheTime, Thinking};
pub use sse::{SseDecoder, SseEvent, SseFault};
pub use stream::{Keep, ReadAs, ServedFrom, StreamReader, read_whole};
pub use usage_report::UndividedWrites;
