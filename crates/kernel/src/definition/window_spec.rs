//! A role's window: how large it is, and what happens to messages that do not fit.

use super::shares::Preset;
use crate::definition::Refusal;
use crate::primitives::limit;
use serde::{Deserialize, Serialize};

/// The window settings of a role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WindowSpec {
    /// The most tokens of one packet; the model's context length decides if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// How categories share the tokens.
    pub preset: Preset,
    /// The most images of one packet; older ones become placeholders.
    pub images: u32,
    pub compact: Compact,
    /// Whether its agents are notified when a child's window is smaller than theirs.
    pub clamp_note: bool,
}

/// What replaces messages that are left out of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compact {
    /// One line per step, as far as there is room; failures first.
    #[default]
    Lines,
    /// Only their number.
    Count,
    /// A summary that the agent's own model writes and the agent pays for; falls back to lines.
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

/// Refuses a window too small for anything.
pub(crate) fn check_size(size: u64) -> Result<(), Refusal> {
    if size < limit::WINDOW_TOKENS_MIN {
        return Err(Refusal::WindowTooSmall { tokens: limit::WINDOW_TOKENS_MIN, size });
    }
    Ok(())
}
