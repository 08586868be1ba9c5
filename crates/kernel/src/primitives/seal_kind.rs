//! Why a tree is sealed: it can be read and branched, and does nothing else.

use serde::{Deserialize, Serialize};

use crate::primitives::PartName;

/// Why a tree is sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "as", rename_all = "snake_case", deny_unknown_fields)]
pub enum SealKind {
    /// It was exported, and continues where that file is imported.
    Moved {
        /// The name of the file.
        to: PartName,
    },
    /// It is a copy of a tree that continues elsewhere.
    Copy,
}
