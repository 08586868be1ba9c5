//! Chat completions, read. Servers differ in where they put usage, in how they number calls and in what they call
//! reasoning; all that is read here is what more than one of them sends.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::wire::answer::{StreamEnd, WireStop};
use crate::wire::fault::WireFault;
use crate::wire::json::{count, read};
use crate::wire::open_ai_usage::{InputDetails, OpenAiUsage, OutputDetails};
use crate::wire::reading::Reading;
use crate::wire::reported_cost::reported_cost;
use crate::wire::stream::DONE;
use crate::wire::usage_report::{UsageReport, counts_something, is_dearer_tier};

#[derive(Debug, Default)]
pub(in crate::wire) struct ChatReader {
    /// The newest call of each number.
    calls: BTreeMap<u64, KnownCall>,
    has_refused: bool,
}

#[derive(Debug)]
struct KnownCall {
    call: usize,
    /// As the provider names it; empty if it does not.
    id: String,
}

#[derive(Deserialize)]
struct Chunk {
    id: Option<String>,
    model: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<Box<RawValue>>,
    x_groq: Option<Elsewhere>,
    service_tier: Option<Value>,
    error: Option<Value>,
}

/// Where one server puts what it used.
#[derive(Deserialize)]
struct Elsewhere {
    usage: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Choice {
    index: Option<u64>,
    delta: Option<Said>,
    /// What an answer has that is not streamed.
    message: Option<Said>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Said {
    content: Option<Value>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<Value>,
    tool_calls: Option<Vec<ToolCall>>,
}

#[derive(Deserialize)]
struct ToolCall {
    index: Option<u64>,
    id: Option<String>,
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default, deserialize_with = "count")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<InputDetails>,
    completion_tokens_details: Option<OutputDetails>,
    /// What a server writes that hands a chat on to Anthropic. It is in the input.
    #[serde(default, deserialize_with = "count")]
    cache_creation_input_tokens: Option<u64>,
    server_tool_use: Option<Value>,
}

impl ChatReader {
    pub(in crate::wire) fn event(&mut self, data: &str, mut reading: Reading<'_>) -> Result<(), WireFault> {
        if data.trim() == DONE {
            if reading.draft.answer.end == StreamEnd::Cut {
                reading.draft.stopped(WireStop::Other("no reason".to_owned()));
            }
            reading.draft.over();
            return Ok(());
        }
        let chunk: Chunk = read("a chunk", data)?;
        reading.draft.named(chunk.id, chunk.model);
        let usage = [chunk.usage, chunk.x_groq.and_then(|elsewhere| elsewhere.usage)];
        let reports: Vec<UsageReport> =
            usage.iter().flatten().map(|usage| report(usage)).collect::<Result<_, WireFault>>()?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            reports.into_iter().for_each(|report| reading.draft.usage(report));
            return Err(reading.faults.event(&error));
        }
        // Chunks rarely follow the usage, so only then do we search them for output that we do not read.
        if reading.draft.is_counted() && has_output(data)? {
            reading.draft.more_output();
        }
        // We ask for one answer; others that a server sends anyway are not ours.
        for choice in
            chunk.choices.into_iter().flatten().filter(|choice| matches!(choice.index, None | Some(0)))
        {
            if let Some(said) = choice.delta.or(choice.message) {
                self.said(said, &mut reading)?;
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                for known in std::mem::take(&mut self.calls).into_values() {
                    reading.finish_call(known.call);
                }
                reading.draft.stopped(self.stop(&reason));
            }
        }
        if is_dearer_tier(chunk.service_tier.as_ref()) {
            reading.draft.unknown_price();
        }
        // The usage of a chunk includes the output of the same chunk.
        reports.into_iter().for_each(|report| reading.draft.usage(report));
        Ok(())
    }

    fn said(&mut self, said: Said, reading: &mut Reading<'_>) -> Result<(), WireFault> {
        let reasoning = said.reasoning_content.or_else(|| Some(said.reasoning?.as_str()?.to_owned()));
        reading.reasoning(&reasoning.unwrap_or_default())?;
        match said.content {
            Some(Value::String(text)) => reading.text(&text)?,
            Some(Value::Array(parts)) => {
                for text in parts.iter().filter_map(|part| part.get("text")?.as_str()) {
                    reading.text(text)?;
                }
            }
            _ => {}
        }
        if let Some(refusal) = said.refusal.filter(|refusal| !refusal.is_empty()) {
            self.has_refused = true;
            reading.text(&refusal)?;
        }
        for call in said.tool_calls.into_iter().flatten() {
            self.call(call, reading)?;
        }
        Ok(())
    }

    /// A call begins with an unknown number, with another id under a known number (some servers number all of them 0),
    /// or with a name and no number at all.
    fn call(&mut self, part: ToolCall, reading: &mut Reading<'_>) -> Result<(), WireFault> {
        let (name, arguments) =
            part.function.map_or((None, None), |function| (function.name, function.arguments));
        let (name, id) = (name.unwrap_or_default(), part.id.unwrap_or_default());
        let number = part.index.unwrap_or_default();
        let known = self.calls.get(&number).filter(|known| {
            let is_other = !id.is_empty() && !known.id.is_empty() && id != known.id;
            let is_unnumbered = part.index.is_none() && id.is_empty();
            name.is_empty() || !(is_other || is_unnumbered)
        });
        let call = match known {
            Some(known) => known.call,
            None => {
                let call = reading.start_call(Some(&id), &name)?;
                if let Some(replaced) = self.calls.insert(number, KnownCall { call, id }) {
                    reading.finish_call(replaced.call);
                }
                call
            }
        };
        match arguments {
            Some(Value::String(text)) => reading.arguments(call, &text),
            Some(whole @ Value::Object(_)) => reading.arguments(call, &whole.to_string()),
            _ => Ok(()),
        }
    }

    fn stop(&self, reason: &str) -> WireStop {
        match reason {
            "stop" | "end_turn" | "eos" if self.has_refused => WireStop::Refusal,
            "stop" | "end_turn" | "eos" => WireStop::End,
            "tool_calls" | "function_call" => WireStop::ToolCalls,
            "length" | "max_tokens" => WireStop::OutputCap,
            "content_filter" => WireStop::ContentFilter,
            "refusal" => WireStop::Refusal,
            other => WireStop::other(other),
        }
    }
}

/// Whether a chunk contains output, in any choice and under any name.
fn has_output(data: &str) -> Result<bool, WireFault> {
    let chunk: Value = read("a chunk", data)?;
    let choices = chunk.get("choices").and_then(Value::as_array).into_iter().flatten();
    let parts = choices.flat_map(|choice| [choice.get("delta"), choice.get("message")]).flatten();
    let fields = parts.filter_map(Value::as_object).flatten();
    Ok(fields.into_iter().any(|(name, part)| name != "role" && !is_nothing(part)))
}

fn is_nothing(part: &Value) -> bool {
    match part {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn report(usage: &RawValue) -> Result<UsageReport, WireFault> {
    let counts: Usage = read("usage", usage.get())?;
    let has_server_tools = counts.server_tool_use.as_ref().is_some_and(counts_something);
    let report = counts.report().with_cost(reported_cost(usage)?);
    // A reported cost includes everything.
    let is_unpriced = has_server_tools && report.reported_nanos.is_none();
    Ok(UsageReport { has_unknown_price: report.has_unknown_price || is_unpriced, ..report })
}

impl Usage {
    /// Some servers leave reasoning out of the output, and only the total has it.
    fn report(self) -> UsageReport {
        let beyond_input =
            self.total_tokens.zip(self.prompt_tokens).map(|(all, input)| all.saturating_sub(input));
        let usage = OpenAiUsage {
            input: self.prompt_tokens,
            output: self.completion_tokens.map(|output| output.max(beyond_input.unwrap_or_default())),
            input_details: self.prompt_tokens_details,
            output_details: self.completion_tokens_details,
        };
        let report = usage.report();
        UsageReport { cache_written: report.cache_written.max(self.cache_creation_input_tokens), ..report }
    }
}
