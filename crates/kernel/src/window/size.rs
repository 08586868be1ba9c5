//! How large a window is. This is the one place that computes it.

use serde::{Deserialize, Serialize};

use super::Preset;
use crate::agent::Charter;
use crate::definition::{Definition, OnLow};
use crate::id::ModelName;
use crate::limit;
use crate::refusal::Refusal;

/// What a role says about the windows of its agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WindowSpec {
    /// The most tokens of one packet; as many as the model takes if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// How they are shared.
    pub preset: Preset,
    /// The most images of one packet; older ones become placeholders.
    pub images: u32,
    /// What becomes of what is left out.
    pub compact: Compact,
    /// Whether its agents are told when a child's window is smaller than theirs.
    pub clamp_note: bool,
}

/// What becomes of what is left out of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compact {
    /// A line for each step, as far as there is room; failures first.
    #[default]
    Lines,
    /// Only how many there were.
    Count,
    /// A summary that the agent's own model writes and the agent pays for; lines where there is none.
    Summary,
}

impl Default for WindowSpec {
    fn default() -> Self {
        let (size, preset, compact) = (None, Preset::default(), Compact::default());
        Self { size, preset, images: limit::IMAGES_MAX, compact, clamp_note: true }
    }
}

impl WindowSpec {
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        match self.size {
            Some(size) => check_size(size),
            None => Ok(()),
        }
    }
}

/// Refuses a window in which nothing has room.
pub(crate) fn check_size(size: u64) -> Result<(), Refusal> {
    if size < limit::WINDOW_TOKENS_MIN {
        return Err(Refusal::WindowTooSmall { tokens: limit::WINDOW_TOKENS_MIN, size });
    }
    Ok(())
}

/// The size of the window of an agent with this model: the least of what its role says, what its spawner says, and a
/// share of what each model takes that its calls may go to. None if nobody says anything.
pub(crate) fn effective(
    definition: &Definition,
    model: &ModelName,
    on_low: &OnLow,
    given: [Option<u64>; 2],
) -> Option<u64> {
    let shares = shares(definition, model, on_low).map(|(_, share)| share);
    given.into_iter().flatten().chain(shares).min()
}

/// Why a window is as large as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because<'a> {
    /// The role says so.
    Role,
    /// It is the share of what this model takes.
    Model(&'a ModelName),
    /// Whoever spawned the agent said so.
    Spawner,
}

impl<'a> Because<'a> {
    /// Why the window of an agent has this size. Where several say the same, the role is named first.
    #[must_use]
    pub fn of(definition: &'a Definition, charter: &'a Charter, size: u64) -> Self {
        let turns = definition.roles.get(&charter.role).and_then(|role| role.turns.as_ref());
        if turns.and_then(|turns| turns.window.as_ref()?.size) == Some(size) {
            return Self::Role;
        }
        let mut shares = shares(definition, &charter.model, &charter.on_low);
        shares.find(|(_, share)| *share == size).map_or(Self::Spawner, |(model, _)| Self::Model(model))
    }
}

/// The models that the calls of an agent may go to, as far as it is known what they take, and the share of it that a
/// window may have.
fn shares<'a>(
    definition: &'a Definition,
    model: &'a ModelName,
    on_low: &'a OnLow,
) -> impl Iterator<Item = (&'a ModelName, u64)> {
    let low = if let OnLow::Downgrade(low) = on_low { Some(low) } else { None };
    let first = definition.models.get(model);
    let others = first.map_or(&[][..], |model| &model.fallback);
    let models = std::iter::once(model).chain(low).chain(others);
    let share =
        |tokens: u64| tokens / 100 * limit::WINDOW_PERCENT + tokens % 100 * limit::WINDOW_PERCENT / 100;
    models.filter_map(move |name| Some((name, share(definition.models.get(name)?.context?))))
}

/// Whether a child's window is smaller than its parent's.
pub(crate) const fn is_below(child: Option<u64>, parent: Option<u64>) -> bool {
    match (child, parent) {
        (Some(child), Some(parent)) => child < parent,
        (Some(_) | None, _) => false,
    }
}
