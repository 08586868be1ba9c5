//! Shares: how much of a window each category may use before it is the first to be cut.

use serde::{Deserialize, Serialize};

use crate::primitives::Category;

/// Shares for a kind of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    Dialog,
    #[default]
    Tools,
}

impl Preset {
    /// Percent of the window for system, context, dialog and output. Errors, internal notes and unknown categories
    /// have no share of their own: they borrow unused space.
    #[must_use]
    pub const fn percent(self) -> [u64; Category::COUNT] {
        match self {
            Self::Dialog => [10, 35, 50, 5, 0, 0, 0],
            Self::Tools => [10, 30, 40, 20, 0, 0, 0],
        }
    }
}

/// The tokens that each category may use. Derived from preset and size and never stored, so what one request borrows
/// does not outlive it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares([u64; Category::COUNT]);

impl Shares {
    #[must_use]
    pub fn new(preset: Preset, size: u64) -> Self {
        Self(preset.percent().map(|percent| size / 100 * percent + size % 100 * percent / 100))
    }

    #[must_use]
    pub const fn get(&self, category: Category) -> u64 {
        self.0[category.place()]
    }
}
