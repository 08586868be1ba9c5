//! Calls to models over HTTP: one request, one streamed answer, and a bound on every wait and every size. What the bytes
//! mean is for `wire`; whether to try again is for the kernel.

mod announcement;
mod answer_body;
mod ask;
mod body;
mod client;
mod host_name;
mod limits;
mod other_answer;
mod packet;
mod post;

pub use announcement::LastAnnouncement;
pub use answer_body::{AnswerBody, AnswerHead, BodyEnd, BodyKind};
pub use ask::{ModelKey, Reached, SendDelta, WireAttemptError, WireCall};
pub use body::HttpBody;
pub use client::{HttpClient, HttpSetupError, Proxies};
pub use host_name::HostName;
pub use limits::HttpLimits;
pub use packet::wire_request;
pub use post::{HttpHeader, HttpPost};
pub(crate) use post::{is_loopback, origin};
