//! Usage as OpenAI counts it, in both of its formats: input includes what was cached, output what was thought.

use serde::Deserialize;

use super::answer::WireUsage;
use super::json::count;

#[derive(Default, Deserialize)]
pub(super) struct InputDetails {
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_write_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
pub(super) struct OutputDetails {
    #[serde(default, deserialize_with = "count")]
    reasoning_tokens: Option<u64>,
}

/// The counts of one answer.
pub(super) struct OpenAiUsage {
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) input_details: Option<InputDetails>,
    pub(super) output_details: Option<OutputDetails>,
}

impl OpenAiUsage {
    pub(super) fn normal(self) -> WireUsage {
        let details = self.input_details.unwrap_or_default();
        let (cache_read, written) = (details.cached_tokens, details.cache_write_tokens);
        let cached = cache_read.unwrap_or_default().saturating_add(written.unwrap_or_default());
        WireUsage {
            input: self.input.map(|input| input.saturating_sub(cached)),
            output: self.output,
            cache_read,
            cache_written_5m: written,
            cache_written_1h: None,
            reasoning: self.output_details.unwrap_or_default().reasoning_tokens,
        }
    }
}
