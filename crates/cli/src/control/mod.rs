//! Controls a home that another process has open: a Unix socket in the home, one request per connection, one line of
//! JSON each way, with the kernel's requests and replies and their version. Binary parts follow the line that names
//! them. On a connection that asks for streamed text, that follows, a line for each piece. `docs/decisions/0013-steering-a-running-home.md` says why.

mod address;
mod client;
mod line;
mod server;
mod text;

use serde::{Deserialize, Serialize};
use spinney_kernel::definition::Refusal;
use spinney_kernel::rules::request::{Reply, Request, Verb};
use spinney_kernel::words::TreeId;

pub(crate) use client::{NoAnswer, Running, ask_with, running};
pub(crate) use server::Listening;
pub(crate) use text::{StreamedText, TextSubscription};

/// Longest line: the longest text of a request, however it is escaped, with room to spare.
const LINE_BYTES_MAX: usize = 256 * 1024;
const EXCHANGE_MS_MAX: u64 = 10_000;

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Ask {
    Running,
    /// Apply a person's request to a tree. The bytes of its parts follow the line, in order.
    Do {
        tree: TreeId,
        request: Box<Request>,
    },
    /// Send the text that the models of a tree stream from now on, until one side goes.
    Text {
        tree: TreeId,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Answer {
    Running {
        trees: Vec<TreeId>,
    },
    /// It is done and durable.
    Done {
        goes_on: GoesOn,
        reply: Reply,
    },
    /// Each further line is a [`StreamedText`].
    TextFollows,
    Refused {
        message: String,
        /// For programs, if the tree refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        refusal: Option<Box<Refusal>>,
    },
    Failed {
        message: String,
    },
}

/// The result of a request, with the reply to its verb.
#[derive(Debug)]
pub(crate) enum Asked<R> {
    /// It is done and durable.
    Done {
        goes_on: GoesOn,
        reply: R,
    },
    Refused {
        message: String,
        /// For programs, if the tree refused.
        refusal: Option<Box<Refusal>>,
    },
    Failed {
        message: String,
    },
}

/// Whether a tree continues after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GoesOn {
    Now,
    /// It does not continue until it is resumed.
    WhenResumed,
}

impl Answer {
    /// The answer to a verb; `None` if it belongs to another.
    fn to<V: Verb>(self) -> Option<Asked<V::Reply>> {
        Some(match self {
            Self::Done { goes_on, reply } => Asked::Done { goes_on, reply: reply.try_into().ok()? },
            Self::Refused { message, refusal } => Asked::Refused { message, refusal },
            Self::Failed { message } => Asked::Failed { message },
            Self::Running { .. } | Self::TextFollows => return None,
        })
    }
}
