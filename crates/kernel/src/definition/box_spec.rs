//! What surrounds the commands of an agent, as its tree file says: limits, variables, and what the author gives up. What
//! weakens a box, and every variable, needs the user's word outside the file.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Definition, ProgramSpec, Recursion, Refusal, Role, bounded, check_text};
use crate::primitives::{RoleName, ToolName, limit};

/// The tool that runs commands, in trees that have it.
pub const RUN_COMMAND: &str = "run_command";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BoxSpec {
    /// The most processes of one command; has a default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// The most memory of one command; has a default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// By how much one command may grow its folders; has a default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// Variables of the user's environment that commands get, by name.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub env: BTreeSet<String>,
    #[serde(skip_serializing_if = "BoxWalls::is_whole")]
    pub walls: BoxWalls,
}

/// What keeps a command inside, from the strongest to nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoxWalls {
    #[default]
    Whole,
    /// Commands may signal processes of the user outside, where the machine cannot prevent it.
    OpenToSignals,
    /// There is no box.
    None,
}

impl BoxWalls {
    const fn is_whole(&self) -> bool {
        matches!(self, Self::Whole)
    }

    /// As people write it; nothing for a whole box.
    #[must_use]
    pub const fn as_written(self) -> Option<&'static str> {
        match self {
            Self::Whole => None,
            Self::OpenToSignals => Some("allow: [signals]"),
            Self::None => Some("none"),
        }
    }
}

impl BoxSpec {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn check(&self) -> Result<(), Refusal> {
        bounded("box.env", self.env.len())?;
        self.env.iter().try_for_each(|name| check_text("name of a variable", name, limit::NAME_BYTES_MAX))
    }

    /// Whether a command in it may do something that one in `other` may not.
    #[must_use]
    pub fn is_weaker_than(&self, other: &Self) -> bool {
        self.walls > other.walls || !self.env.is_subset(&other.env)
    }
}

/// A role whose agents could start agents with a weaker box than their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeakerBoxBelow {
    pub above: RoleName,
    pub below: RoleName,
}

impl fmt::Display for WeakerBoxBelow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { above, below } = self;
        write!(f, "the box of `{below}` is weaker than that of `{above}`, which may start it")
    }
}

impl Definition {
    /// The roles that may run commands, their own or those of the tree file, and those whose agents are programs.
    pub fn roles_with_commands(&self) -> impl Iterator<Item = (&RoleName, &Role)> {
        let runs = |role: &Role| self.command_tools().any(|tool| role.caps.tools.has(tool));
        self.roles.iter().filter(move |(_, role)| role.program.is_some() || runs(role))
    }

    /// The roles whose agents are programs.
    pub fn programs(&self) -> impl Iterator<Item = (&RoleName, &Role, &ProgramSpec)> {
        self.roles.iter().filter_map(|(name, role)| Some((name, role, role.program.as_deref()?)))
    }

    /// The tools that run commands. A tree that started has those that it was started with.
    fn command_tools(&self) -> impl Iterator<Item = &str> {
        let all = self.command_tools.iter().map(ToolName::as_str).chain([RUN_COMMAND]);
        all.filter(|tool| self.tools.is_empty() || self.tools.contains_key(*tool))
    }

    /// Roles that may run commands and could start agents that run them in a weaker box. Boxes only get stronger downwards.
    #[must_use]
    pub fn weaker_boxes_below(&self) -> Vec<WeakerBoxBelow> {
        let mut found = Vec::new();
        for (above, parent) in self.roles_with_commands() {
            let started = self.roles_with_commands().filter(|(below, child)| {
                // The root is never started again, unless it says so.
                let is_root = **below == self.entry && child.recursive == Recursion::Refused;
                *below != above && !is_root && parent.caps.spawn.has(*below)
            });
            let weaker = started.filter(|(_, child)| child.sandbox().is_weaker_than(&parent.sandbox()));
            found.extend(
                weaker.map(|(below, _)| WeakerBoxBelow { above: above.clone(), below: below.clone() }),
            );
        }
        found
    }
}
