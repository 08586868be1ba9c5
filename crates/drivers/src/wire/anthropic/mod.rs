//! Anthropic's messages.

mod read;
mod usage;
mod write;

pub(super) use read::AnthropicReader;
pub(super) use write::write;
