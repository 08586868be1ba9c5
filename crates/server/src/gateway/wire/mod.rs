//! The pure half of the gateway: what a request asks for, what it can cost at most, which bytes go up and down, and what
//! a response used. Nothing here opens a connection, reads a clock or knows a tree.
//!
//! A request takes this way:
//!
//! 1. [`GatewayRoute::new`] says what is asked for, by method, path and headers; [`Caller::from_headers`] says who asks.
//! 2. [`CallRequest::read`] reads the body of a call. Its [`input_tokens_max`](CallRequest::input_tokens_max) and
//!    [`output_cap`](CallRequest::output_cap) are what is held.
//! 3. [`CallRequest::body`] gives the bytes that go up with the cap that was granted, [`headers_up`] the headers.
//! 4. [`ResponseReader`] takes the response as it arrives and gives the bytes that go down; at its end it says what was
//!    used.
//! 5. Whatever we answer ourselves is a [`GatewayError`], in the words of the format that the program speaks.
//!
//! What is changed on the way is listed in `docs/gateway.md`; everything else passes byte for byte (decision 0037).

mod added_line;
mod allow_list;
pub mod bounds;
mod call_request;
mod call_shape;
mod caller;
mod conversation;
mod count_request;
mod error;
mod gemini;
mod headers;
mod input;
mod input_blocks;
mod json_tape;
#[cfg(test)]
mod json_tape_tests;
mod opaque_texts;
mod output_caps;
mod request_check;
mod response;
mod route;
mod splice;
mod usage_chunk;
mod usage_window;

pub use added_line::{TOLD_LINE_BYTES_MAX, TOLD_LINE_TOKENS_MAX};
pub use allow_list::AllowList;
pub use call_request::{CallHead, CallRequest, CallUpstream, CapTooSmall};
pub use caller::{AgentProgram, Caller, WireId};
pub use conversation::{
    Conversation, ConversationAsk, ConversationMessage, ConversationPart, Speaker, UnreadRequest,
};
pub use error::{
    ErrorReply, GatewayError, GatewayErrorKind, MissingPrice, NeededPrice, RefusedName, ping, stream_error,
};
pub(in crate::gateway) use gemini::path::query_keys;
pub use headers::{headers_down, headers_up};
pub use input::{CountedInput, UnboundedInput};
pub use opaque_texts::OpaqueTexts;
pub use response::{CallEnd, Forward, ResponseReader};
pub use route::{CallFormat, GatewayRoute, ProviderApi};
pub use usage_window::{REFUSAL_BYTES_MAX, usage_window};
