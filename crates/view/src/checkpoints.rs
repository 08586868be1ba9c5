//! Checkpoints for programs.

use serde_json::{Value, json};
use spinney_journal::ListedCheckpoint;

/// A checkpoint in a list.
#[must_use]
pub fn checkpoint_json(ListedCheckpoint { name, tree, known }: &ListedCheckpoint) -> Value {
    json!({
        "checkpoint": name,
        "agent": known.agent,
        "kind": known.kind,
        "tree": tree,
        "seq": known.seq,
        "made": known.made,
    })
}
