//! Steering a home that another process has open: a Unix socket in the home, one request per connection, one line of
//! JSON each way, with the requests and replies of the kernel and their version. What is no text comes as bytes behind the line that names it. `docs/decisions/0013-steering-a-running-home.md` says why.

mod address;
mod client;
mod line;
mod server;

use serde::{Deserialize, Serialize};
use spinney_kernel::definition::Refusal;
use spinney_kernel::rules::request::{Reply, Request, Verb};
use spinney_kernel::words::TreeId;

pub(crate) use client::{NoAnswer, Running, ask, ask_with, running};
pub(crate) use server::Listening;

/// Longest line: the longest text that a request may hold, however it is escaped, and room to spare.
const LINE_BYTES_MAX: usize = 256 * 1024;
/// Longest time that one connection may take.
const EXCHANGE_MS_MAX: u64 = 10_000;

/// What may be asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Ask {
    /// Which trees run there?
    Running,
    /// Do something that a person asks of a tree. Behind the line come the bytes of the request's parts, in order.
    Do {
        /// Which tree.
        tree: TreeId,
        /// What.
        request: Box<Request>,
    },
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Answer {
    /// These trees run.
    Running { trees: Vec<TreeId> },
    /// It is done, and durable.
    Done { goes_on: GoesOn, reply: Reply },
    /// It may not be done.
    Refused {
        message: String,
        /// The same for programs, if it is the tree that says no.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refusal: Option<Box<Refusal>>,
    },
    /// It could not be done.
    Failed { message: String },
}

/// What came of a request, with the reply to its verb.
#[derive(Debug)]
pub(crate) enum Asked<R> {
    /// It is done, and durable.
    Done { goes_on: GoesOn, reply: R },
    /// It may not be done.
    Refused {
        message: String,
        /// The same for programs, if it is the tree that says no.
        refusal: Option<Box<Refusal>>,
    },
    /// It could not be done.
    Failed { message: String },
}

/// Whether a tree goes on by itself after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GoesOn {
    /// A process runs it.
    Now,
    /// It stands still until somebody resumes it.
    WhenResumed,
}

impl Answer {
    /// The answer to a verb; none if it is an answer to something else.
    fn to<V: Verb>(self) -> Option<Asked<V::Reply>> {
        Some(match self {
            Self::Done { goes_on, reply } => Asked::Done { goes_on, reply: reply.try_into().ok()? },
            Self::Refused { message, refusal } => Asked::Refused { message, refusal },
            Self::Failed { message } => Asked::Failed { message },
            Self::Running { .. } => return None,
        })
    }
}
