//! Gemini, read. An answer is a list of parts; a part that carries a signature goes back as it came, any other is
//! rewritten. There is no last event: the part with a reason to stop is the last.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::wire::answer::WireStop;
use crate::wire::continuation::Piece;
use crate::wire::fault::WireFault;
use crate::wire::json::{count, read};
use crate::wire::reading::Reading;
use crate::wire::usage_report::UsageReport;

#[derive(Debug)]
pub(in crate::wire) struct GeminiReader;

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
}

impl GeminiReader {
    pub(in crate::wire) fn event(&self, data: &str, mut reading: Reading<'_>) -> Result<(), WireFault> {
        let chunk: Chunk = read("a chunk", data)?;
        reading.draft.named(chunk.response_id, chunk.model_version);
        let report = chunk.usage_metadata.map(Usage::report).unwrap_or_default();
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            reading.draft.usage(report);
            return Err(reading.faults.event(&error));
        }
        let blocked = chunk.prompt_feedback.and_then(|feedback| feedback.block_reason);
        if blocked.is_some_and(|reason| reason != "BLOCK_REASON_UNSPECIFIED") {
            reading.draft.stopped(WireStop::ContentFilter);
        }
        for candidate in chunk
            .candidates
            .into_iter()
            .flatten()
            .filter(|candidate| matches!(candidate.index, None | Some(0)))
        {
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

    fn part(raw: Box<RawValue>, reading: &mut Reading<'_>) -> Result<(), WireFault> {
        let part: Part = read("a part", raw.get())?;
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
        if part.thought_signature.is_some_and(|signature| !signature.is_empty()) {
            piece.raw = Some(raw);
            return reading.draft.opaque_piece(piece);
        }
        reading.draft.piece(piece)
    }
}

impl Usage {
    /// Input counts include what was cached; thoughts are counted beside the output and billed like it. A count of 0 is
    /// left out, so the total says whether there was any output.
    fn report(self) -> UsageReport {
        let tools = self.tool_use_prompt_token_count.unwrap_or_default();
        let input = self.prompt_token_count.map(|input| input.saturating_add(tools));
        let beyond_input = self.total_token_count.zip(input).map(|(all, input)| all.saturating_sub(input));
        let said = match (self.candidates_token_count, self.thoughts_token_count) {
            (None, None) => None,
            (said, thought) => Some(said.unwrap_or_default().saturating_add(thought.unwrap_or_default())),
        };
        UsageReport {
            whole_input: input,
            cache_read: self.cached_content_token_count,
            output: said.max(beyond_input),
            reasoning: self.thoughts_token_count,
            ..UsageReport::default()
        }
    }
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
