//! Usage as OpenAI counts it, in both of its formats: input includes what was cached, output what was thought.

use serde::Deserialize;

use super::json::count;
use super::usage_report::UsageReport;

#[derive(Default, Deserialize)]
pub(super) struct InputDetails {
    #[serde(default, deserialize_with = "count")]
    cached_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cache_write_tokens: Option<u64>,
    /// The same, as servers write it that hand a chat on to Anthropic.
    #[serde(default, deserialize_with = "count")]
    cache_creation_tokens: Option<u64>,
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
    pub(super) fn report(self) -> UsageReport {
        let details = self.input_details.unwrap_or_default();
        UsageReport {
            whole_input: self.input,
            cache_read: details.cached_tokens,
            cache_written: details.cache_write_tokens.max(details.cache_creation_tokens),
            output: self.output,
            reasoning: self.output_details.unwrap_or_default().reasoning_tokens,
            ..UsageReport::default()
        }
    }
}
