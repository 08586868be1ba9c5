//! Requests to trees that are not running, and what is answered.

use spinney::Home;
use spinney::tree::ApplyError;
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::TreeId;
use spinney_kernel::rules::request::Request;

use super::{Continues, ControlReply};

/// Applies a person's request to a tree that is not running.
pub async fn apply(home: &Home, tree: TreeId, request: Request, bytes: Vec<Vec<u8>>) -> ControlReply {
    match home.apply_with(tree, request, bytes).await {
        Ok(reply) => ControlReply::Done { continues: Continues::WhenResumed, reply },
        Err(ApplyError::Refused(refusal)) => refused_by_the_tree(refusal),
        Err(error @ (ApplyError::Journal(_) | ApplyError::Reply(_))) => {
            ControlReply::Failed { message: error.to_string() }
        }
        Err(error @ ApplyError::Running { .. }) => refused(error.to_string()),
    }
}

/// It was refused, for this reason.
#[must_use]
pub const fn refused(message: String) -> ControlReply {
    ControlReply::Refused { message, refusal: None }
}

/// The tree refused it.
#[must_use]
pub fn refused_by_the_tree(refusal: Refusal) -> ControlReply {
    ControlReply::Refused { message: refusal.to_string(), refusal: Some(Box::new(refusal)) }
}
