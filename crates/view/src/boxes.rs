//! Which commands of a tree run in a box that is not whole: every view that shows a tree says so.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use spinney_kernel::definition::{BoxWalls, Definition};
use spinney_kernel::primitives::RoleName;

/// A role whose commands run in a weaker box, or in none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WeakBox {
    /// The role.
    #[schemars(with = "String")]
    pub role: RoleName,
    /// What is left of the box.
    #[schemars(with = "String")]
    pub walls: BoxWalls,
}

impl WeakBox {
    /// Those of a tree, by the roles that run commands.
    #[must_use]
    pub fn all(definition: &Definition) -> Vec<Self> {
        let weak =
            definition.roles_with_commands().filter(|(_, role)| role.sandbox().walls != BoxWalls::Whole);
        weak.map(|(name, role)| Self { role: name.clone(), walls: role.sandbox().walls }).collect()
    }
}

impl fmt::Display for WeakBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { role, walls } = self;
        match walls {
            BoxWalls::Whole => write!(f, "commands of {role} run in a box"),
            BoxWalls::OpenToSignals => write!(f, "commands of {role} may signal your other processes"),
            BoxWalls::None => write!(f, "commands of {role} run without a box"),
        }
    }
}
