//! How large a window is. This is the one place that computes it.

use crate::definition::{Definition, OnLow};
use crate::words::{ModelName, RoleName, limit};

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
    pub fn of(
        definition: &'a Definition,
        role: &RoleName,
        model: &'a ModelName,
        on_low: &'a OnLow,
        size: u64,
    ) -> Self {
        let turns = definition.roles.get(role).and_then(|role| role.turns.as_ref());
        if turns.and_then(|turns| turns.window.as_ref()?.size) == Some(size) {
            return Self::Role;
        }
        let mut shares = shares(definition, model, on_low);
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
