//! How large a window is, and what becomes of what does not fit, as a role says it.

use super::shares::Preset;
use crate::definition::Refusal;
use crate::words::limit;
use serde::{Deserialize, Serialize};

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
