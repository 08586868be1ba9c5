//! Answers as Gemini's `generateContent`.

use serde_json::{Value, json};
use spinney_kernel::budget::Usage;

use super::answer::Answer;
use super::question::Question;

pub(super) fn whole(question: &Question, answer: &Answer) -> Value {
    let mut parts = vec![json!({ "text": answer.text })];
    parts.extend(answer.calls.iter().enumerate().map(|(place, (tool, arguments))| {
        let id = Answer::call_id(question.turns, place);
        json!({ "functionCall": { "id": id, "name": tool, "args": arguments }, "thoughtSignature": "c2lnbmVk" })
    }));
    chunk(question, &parts, Some("STOP"), &answer.usage)
}

/// The counts grow with each chunk, and the last one has all of it.
pub(super) fn stream(question: &Question, answer: &Answer) -> String {
    let first = Usage { output: 1, reasoning: 0, ..answer.usage };
    let (begin, _) = answer.text.split_at(answer.text.len().min(1));
    let mut last = whole(question, answer);
    last["candidates"][0]["content"]["parts"][0]["text"] = json!(answer.text[begin.len()..]);
    let chunks = [chunk(question, &[json!({ "text": begin })], None, &first), last];
    chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect()
}

fn chunk(question: &Question, parts: &[Value], end: Option<&str>, usage: &Usage) -> Value {
    let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": parts } });
    if let Some(end) = end {
        candidate["finishReason"] = json!(end);
    }
    let Usage { output, reasoning, cached_input, .. } = *usage;
    let input = usage.input_tokens();
    json!({
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": input, "cachedContentTokenCount": cached_input,
            "candidatesTokenCount": output, "thoughtsTokenCount": reasoning,
            "totalTokenCount": input + output + reasoning, "serviceTier": "standard",
            "promptTokensDetails": [{ "modality": "TEXT", "tokenCount": input }],
        },
        "modelVersion": question.model, "responseId": format!("gemini-{:04}", question.turns),
    })
}
