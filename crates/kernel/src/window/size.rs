//! The size of a window. The only place that computes it.

use crate::definition::{Definition, OnLow};
use crate::primitives::{ModelName, RoleName, limit};

/// The minimum of the role's size, the spawner's size and the share of each model that its calls may use. `None` if
/// none of them is known.
pub(crate) fn effective(
    definition: &Definition,
    model: &ModelName,
    on_low: &OnLow,
    given: [Option<u64>; 2],
) -> Option<u64> {
    let shares = shares(definition, model, on_low).map(|(_, share)| share);
    given.into_iter().flatten().chain(shares).min()
}

/// What determines the size of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeSource<'a> {
    Role,
    /// The share of this model's context length.
    Model(&'a ModelName),
    Spawner,
}

impl<'a> SizeSource<'a> {
    /// On a tie, the role is named first.
    #[must_use]
    pub fn new(
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

/// The models that an agent's calls may use and whose context length is known, with the share that a window may have.
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

pub(crate) const fn is_below(child: Option<u64>, parent: Option<u64>) -> bool {
    match (child, parent) {
        (Some(child), Some(parent)) => child < parent,
        (Some(_) | None, _) => false,
    }
}
