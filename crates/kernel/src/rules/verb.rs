//! What all requests have in common: a reply type, and properties that callers need without knowing the verb.

use std::convert::Infallible;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::primitives::{Body, SourceFile, TokenCount};
use crate::rules::request::{
    AskReply, BroadcastReply, CheckpointReply, HoldReply, RefreshReply, Request, RollbackReply, SendReply,
    SpawnReply, StartReply, WaitReply, WriteValueReply,
};

/// A request and the type of its reply. [`Request`] is a verb too, for callers that pass on any of them.
pub trait Verb: Into<Request> {
    type Reply: Serialize + DeserializeOwned + TryFrom<Reply, Error: Into<OtherReply>>;

    /// Counts every text in it that a model will read. The kernel has no tokenizer: the caller supplies the counts.
    /// Without a count, bytes are the bound.
    fn count(&mut self, _tokens: &dyn Fn(&str) -> TokenCount) {}

    /// The bodies that may have images and files. Any other body with them is refused.
    fn bodies_with_parts(&mut self) -> Vec<&mut Body> {
        Vec::new()
    }

    /// The files in it that the tree is resumed from. The caller supplies their bytes.
    fn sources(&self) -> &[SourceFile] {
        &[]
    }

    /// Whether a person may request it from another process.
    fn outside(&self) -> Outside {
        Outside::Closed
    }
}

/// Whether a person may send a request from another process. A verb is closed unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    Open,
    /// Only agents and the runtime use it.
    Closed,
    /// It refers to something in the home, possibly of another tree, that it does not contain.
    RefersElsewhere,
}

impl Outside {
    /// Open for a body that contains all of its text and refers to no blob.
    pub(super) fn if_whole(body: &Body) -> Self {
        if body.rest().is_none() && body.parts().is_empty() { Self::Open } else { Self::RefersElsewhere }
    }
}

/// The request was done, and there is nothing to report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    Accepted(Accepted),
    Ask(AskReply),
    Broadcast(BroadcastReply),
    Checkpoint(CheckpointReply),
    Hold(HoldReply),
    Refresh(RefreshReply),
    Rollback(RollbackReply),
    Send(SendReply),
    Spawn(SpawnReply),
    Start(StartReply),
    Wait(WaitReply),
    WriteValue(WriteValueReply),
}

/// The reply belongs to another request. Between processes this is an error of the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the reply belongs to another request")]
pub struct OtherReply;

impl From<Infallible> for OtherReply {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

macro_rules! replies {
    ($($variant:ident($reply:ty))*) => {$(
        impl From<$reply> for Reply {
            fn from(reply: $reply) -> Self {
                Self::$variant(reply)
            }
        }

        impl TryFrom<Reply> for $reply {
            type Error = OtherReply;

            fn try_from(reply: Reply) -> Result<Self, OtherReply> {
                if let Reply::$variant(reply) = reply { Ok(reply) } else { Err(OtherReply) }
            }
        }
    )*};
}

replies! {
    Accepted(Accepted) Ask(AskReply) Broadcast(BroadcastReply) Checkpoint(CheckpointReply) Hold(HoldReply)
    Refresh(RefreshReply) Rollback(RollbackReply) Send(SendReply) Spawn(SpawnReply) Start(StartReply) Wait(WaitReply)
    WriteValue(WriteValueReply)
}
