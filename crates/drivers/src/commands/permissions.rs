//! What the user allows beside what a tree file says. A file alone never weakens a box.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;

use spinney_kernel::definition::{BoxSpec, BoxWalls};

/// What the user allows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct BoxPermissions {
    /// The weakest box.
    pub walls: BoxWalls,
    /// Variables that commands may get, with their values; none for one that is not set.
    pub environment: BTreeMap<String, Option<OsString>>,
}

impl fmt::Debug for BoxPermissions {
    /// Without the values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.environment.keys().collect();
        f.debug_struct("BoxPermissions").field("walls", &self.walls).field("environment", &names).finish()
    }
}

impl BoxPermissions {
    /// What a file asks for and the user has not allowed, in words.
    pub(super) fn lacks(&self, spec: &BoxSpec) -> Option<String> {
        if spec.walls > self.walls {
            return spec.walls.as_written().map(|walls| format!("`box: {walls}`"));
        }
        let name = spec.env.iter().find(|name| !self.environment.contains_key(*name))?;
        Some(format!("the variable {name} in its box"))
    }
}
