//! Gemini, read. An answer is a list of parts; a part that carries a signature goes back as it came, any other is
//! rewritten. There is no last event: the part with a reason to stop is the last, and its usage counts everything.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::wire::answer::{OpaqueHash, WireStop};
use crate::wire::continuation::Piece;
use crate::wire::fault::WireFault;
use crate::wire::json::{count, read};
use crate::wire::reading::Reading;
use crate::wire::usage_report::{UsageReport, is_dearer_tier, says_other_than};

#[derive(Debug, Default)]
pub(in crate::wire) struct GeminiReader {
    /// The most that any chunk counted: a count of 0 is left out, and so may one be that was there before.
    said: Option<u64>,
    thought: Option<u64>,
    /// Whether a chunk counted cached input.
    has_cached: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    candidates: Option<Vec<Candidate>>,
    prompt_feedback: Option<Feedback>,
    usage_metadata: Option<Usage>,
    model_version: Option<String>,
    response_id: Option<String>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    index: Option<u64>,
    content: Option<Content>,
    finish_reason: Option<String>,
    grounding_metadata: Option<Value>,
    url_context_metadata: Option<Value>,
}

#[derive(Deserialize)]
struct Content {
    parts: Option<Vec<Box<RawValue>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    text: Option<String>,
    thought: Option<bool>,
    #[serde(alias = "thought_signature")]
    thought_signature: Option<String>,
    function_call: Option<FunctionCall>,
    executable_code: Option<Value>,
    code_execution_result: Option<Value>,
}

#[derive(Deserialize)]
struct FunctionCall {
    id: Option<String>,
    #[serde(default)]
    name: String,
    args: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    #[serde(default, deserialize_with = "count")]
    prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cached_content_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    tool_use_prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    candidates_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    thoughts_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    total_token_count: Option<u64>,
    prompt_tokens_details: Option<Value>,
    cache_tokens_details: Option<Value>,
    tool_use_prompt_tokens_details: Option<Value>,
    candidates_tokens_details: Option<Value>,
    traffic_type: Option<Value>,
    service_tier: Option<Value>,
}

/// Kinds of traffic that cost no more than the price says.
const TRAFFIC: [&str; 5] = [
    "ON_DEMAND",
    "ON_DEMAND_FLEX",
    "ON_DEMAND_OFFPEAK",
    "PROVISIONED_THROUGHPUT",
    "TRAFFIC_TYPE_UNSPECIFIED",
];
/// Kinds of input tokens with the price of text.
const INPUT_KINDS: [&str; 5] = ["DOCUMENT", "IMAGE", "MODALITY_UNSPECIFIED", "TEXT", "VIDEO"];
/// Kinds of output tokens with the price of text.
const OUTPUT_KINDS: [&str; 2] = ["MODALITY_UNSPECIFIED", "TEXT"];

impl GeminiReader {
    pub(in crate::wire) fn event(&mut self, data: &str, mut reading: Reading<'_>) -> Result<(), WireFault> {
        let chunk: Chunk = read("a chunk", data)?;
        reading.draft.named(chunk.response_id, chunk.model_version);
        if chunk.usage_metadata.as_ref().is_some_and(Usage::has_unknown_price) {
            reading.draft.unknown_price();
        }
        let report = chunk.usage_metadata.map(|usage| self.report(&usage)).unwrap_or_default();
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            reading.draft.usage(report);
            return Err(reading.faults.event(&error));
        }
        let blocked = chunk.prompt_feedback.and_then(|feedback| feedback.block_reason);
        if blocked.is_some_and(|reason| reason != "BLOCK_REASON_UNSPECIFIED") {
            reading.draft.stopped(WireStop::ContentFilter);
        }
        for candidate in chunk.candidates.into_iter().flatten() {
            // Whatever it is and whichever answer it belongs to, only usage that comes with it or later counts it.
            reading.draft.more_output();
            if candidate.used_tools() {
                reading.draft.unknown_price();
            }
            if !matches!(candidate.index, None | Some(0)) {
                continue;
            }
            for raw in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
                Self::part(raw, &mut reading)?;
            }
            if let Some(reason) = candidate.finish_reason {
                reading.draft.stopped(stop(&reason));
            }
        }
        // The usage of a chunk includes the output of the same chunk.
        reading.draft.usage(report);
        Ok(())
    }

    /// Input counts include what was cached; thoughts are counted beside the output and billed like it. A count of 0 is
    /// left out, so the total says whether there was any output.
    fn report(&mut self, usage: &Usage) -> UsageReport {
        let tools = usage.tool_use_prompt_token_count.unwrap_or_default();
        let input = usage.prompt_token_count.map(|input| input.saturating_add(tools));
        let beyond_input = usage.total_token_count.zip(input).map(|(all, input)| all.saturating_sub(input));
        self.said = self.said.max(usage.candidates_token_count);
        self.thought = self.thought.max(usage.thoughts_token_count);
        self.has_cached |= usage.cached_content_token_count.is_some();
        let said = match (self.said, self.thought) {
            (None, None) => None,
            (said, thought) => Some(said.unwrap_or_default().saturating_add(thought.unwrap_or_default())),
        };
        UsageReport {
            whole_input: input,
            cache_read: usage.cached_content_token_count.or(input.filter(|_| self.has_cached).map(|_| 0)),
            output: said.max(beyond_input),
            reasoning: self.thought,
            ..UsageReport::default()
        }
    }

    fn part(raw: Box<RawValue>, reading: &mut Reading<'_>) -> Result<(), WireFault> {
        let part: Part = read("a part", raw.get())?;
        if part.executable_code.is_some() || part.code_execution_result.is_some() {
            reading.draft.unknown_price();
        }
        let text = part.text.unwrap_or_default();
        let mut piece = Piece::default();
        if part.thought == Some(true) {
            reading.reasoning(&text)?;
        } else {
            piece.text = text.len();
            reading.text(&text)?;
        }
        if let Some(function) = part.function_call {
            let call = reading.start_call(function.id.as_deref(), &function.name)?;
            let arguments = function.args.as_ref().map_or("{}", |args| args.get());
            reading.arguments(call, arguments)?;
            piece = reading.end_call(call, piece);
        }
        if let Some(signature) = part.thought_signature.filter(|signature| !signature.is_empty()) {
            reading.draft.opaque(OpaqueHash::of_base64(&signature));
            piece.raw = Some(raw);
            return reading.draft.opaque_piece(piece);
        }
        reading.draft.piece(piece)
    }
}

impl Candidate {
    /// Whether it names tools that the provider ran.
    fn used_tools(&self) -> bool {
        let is_any = |value: &Option<Value>| match value {
            Some(Value::Object(fields)) => !fields.is_empty(),
            Some(Value::Null) | None => false,
            Some(_) => true,
        };
        is_any(&self.grounding_metadata) || is_any(&self.url_context_metadata)
    }
}

impl Usage {
    /// Whether it counts something that the price does not cover: another tier, audio, images that the model made.
    fn has_unknown_price(&self) -> bool {
        let tier = self.service_tier.as_ref().map(|tier| match tier {
            Value::String(word) => Value::from(word.to_ascii_lowercase()),
            other => other.clone(),
        });
        says_other_than(self.traffic_type.as_ref(), &TRAFFIC)
            || is_dearer_tier(tier.as_ref().filter(|tier| *tier != "unspecified"))
            || [&self.prompt_tokens_details, &self.cache_tokens_details, &self.tool_use_prompt_tokens_details]
                .into_iter()
                .any(|details| counts_other_than(details.as_ref(), &INPUT_KINDS))
            || counts_other_than(self.candidates_tokens_details.as_ref(), &OUTPUT_KINDS)
    }
}

/// Whether a list of counts by kind has one of another kind.
fn counts_other_than(details: Option<&Value>, kinds: &[&str]) -> bool {
    let details = match details {
        Some(Value::Array(details)) => details.as_slice(),
        Some(Value::Null) | None => &[],
        Some(one) => std::slice::from_ref(one),
    };
    let mut counted = details.iter().filter(|detail| detail["tokenCount"].as_u64() != Some(0));
    counted.any(|detail| says_other_than(detail.get("modality"), kinds))
}

fn stop(reason: &str) -> WireStop {
    match reason {
        "STOP" => WireStop::End,
        "MAX_TOKENS" => WireStop::OutputCap,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => WireStop::ContentFilter,
        other => WireStop::other(other),
    }
}
