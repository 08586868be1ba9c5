//! OpenAI's responses, read. An answer is a list of items; each comes in pieces and then again as a whole, and the whole
//! is what goes back.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::wire::answer::{OpaqueHash, WireStop};
use crate::wire::bounds::BLOCKS_MAX;
use crate::wire::continuation::Piece;
use crate::wire::fault::{WireFault, WireFaultKind};
use crate::wire::json::{Kind, count, read};
use crate::wire::open_ai_usage::{InputDetails, OpenAiUsage, OutputDetails};
use crate::wire::reading::Reading;
use crate::wire::reported_cost::reported_cost;
use crate::wire::usage_report::{UsageReport, counts_something, is_dearer_tier};

#[derive(Debug, Default)]
pub(in crate::wire) struct ResponsesReader {
    /// Items whose end has not come, by their number.
    open: BTreeMap<u64, OpenItem>,
    items_done: usize,
    has_reasoned: bool,
    has_refused: bool,
}

#[derive(Debug, Default)]
struct OpenItem {
    call: Option<usize>,
    /// How much of its text or of its arguments came in pieces.
    bytes: usize,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    output_index: u64,
    item: Option<Box<RawValue>>,
    delta: Option<String>,
    response: Option<Response>,
}

#[derive(Deserialize)]
struct Response {
    id: Option<String>,
    model: Option<String>,
    status: Option<String>,
    error: Option<Value>,
    incomplete_details: Option<Incomplete>,
    output: Option<Vec<Box<RawValue>>>,
    usage: Option<Box<RawValue>>,
    service_tier: Option<Value>,
    /// The usage of tools that the provider runs.
    tool_usage: Option<Value>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    content: Option<Vec<Content>>,
    encrypted_content: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    text: Option<String>,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

impl ResponsesReader {
    pub(in crate::wire) fn event(&mut self, data: &str, mut reading: Reading<'_>) -> Result<(), WireFault> {
        let kind = read::<Kind>("an event", data)?.kind;
        match kind.as_str() {
            "response.created"
            | "response.queued"
            | "response.in_progress"
            | "response.output_item.added"
            | "response.output_item.done"
            | "response.output_text.delta"
            | "response.refusal.delta"
            | "response.reasoning_summary_part.added"
            | "response.reasoning_summary_text.delta"
            | "response.reasoning_text.delta"
            | "response.function_call_arguments.delta"
            | "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {}
            "error" => return Err(reading.error(data)),
            other => {
                let item = other.trim_start_matches("response.").split('.').next().unwrap_or_default();
                if is_run_by_provider(item) {
                    reading.draft.unknown_price();
                }
                return Ok(());
            }
        }
        let event: Event = read(&format!("a `{kind}` event"), data)?;
        let delta = event.delta.unwrap_or_default();
        match kind.as_str() {
            "response.output_item.added" => match event.item {
                Some(item) => self.start(event.output_index, &item, &mut reading),
                None => Ok(()),
            },
            "response.output_item.done" => match event.item {
                Some(item) => self.done(event.output_index, item, &mut reading),
                None => Ok(()),
            },
            "response.output_text.delta" | "response.refusal.delta" => {
                self.has_refused |= kind == "response.refusal.delta";
                self.open(event.output_index)?.bytes += delta.len();
                reading.text(&delta)
            }
            "response.reasoning_summary_part.added" => {
                let between = if self.has_reasoned { "\n\n" } else { "" };
                reading.reasoning(between)
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.has_reasoned = true;
                reading.reasoning(&delta)
            }
            "response.function_call_arguments.delta" => {
                let open = self.open(event.output_index)?;
                let Some(call) = open.call else { return Ok(()) };
                open.bytes += delta.len();
                reading.arguments(call, &delta)
            }
            "response.created" | "response.queued" | "response.in_progress" => {
                let Some(response) = event.response else { return Ok(()) };
                let report = response.report(&mut reading)?;
                reading.draft.early_usage(report);
                reading.draft.named(response.id, response.model);
                Ok(())
            }
            _ => match event.response {
                Some(response) => self.end(response, kind.trim_start_matches("response."), &mut reading),
                None => Ok(()),
            },
        }
    }

    /// A whole response.
    pub(in crate::wire) fn whole(&mut self, body: &str, mut reading: Reading<'_>) -> Result<(), WireFault> {
        let response: Response = read("an answer", body)?;
        let status = response.status.clone().unwrap_or_default();
        self.end(response, &status, &mut reading)
    }

    fn open(&mut self, index: u64) -> Result<&mut OpenItem, WireFault> {
        if self.open.len() + self.items_done >= BLOCKS_MAX && !self.open.contains_key(&index) {
            let message = format!("the answer has more than {BLOCKS_MAX} items");
            return Err(WireFault::new(WireFaultKind::TooLarge, message));
        }
        Ok(self.open.entry(index).or_default())
    }

    fn start(&mut self, index: u64, raw: &RawValue, reading: &mut Reading<'_>) -> Result<(), WireFault> {
        self.open(index)?;
        let kind = read::<Kind>("an item", raw.get())?.kind;
        if is_run_by_provider(&kind) {
            reading.draft.unknown_price();
        }
        if kind != "function_call" {
            return Ok(());
        }
        let item: Item = read("an item", raw.get())?;
        let name = item.name.unwrap_or_default();
        let call = reading.start_call(item.call_id.as_deref(), &name)?;
        self.open(index)?.call = Some(call);
        Ok(())
    }

    fn done(&mut self, index: u64, raw: Box<RawValue>, reading: &mut Reading<'_>) -> Result<(), WireFault> {
        let kind = read::<Kind>("an item", raw.get())?.kind;
        if is_run_by_provider(&kind) {
            reading.draft.unknown_price();
        }
        if !self.open.contains_key(&index) {
            self.start(index, &raw, reading)?;
        }
        let open = self.open.remove(&index).unwrap_or_default();
        self.items_done += 1;
        if !matches!(kind.as_str(), "message" | "function_call" | "reasoning" | "compaction") {
            return Ok(());
        }
        let item: Item = read("an item", raw.get())?;
        reading.draft.opaque_text(item.encrypted_content.as_deref().unwrap_or_default());
        // Codex passes an encrypted argument on to another agent.
        for argument in argument_texts(item.arguments.as_deref().unwrap_or_default()) {
            reading.draft.opaque(OpaqueHash::of_argument(&argument));
        }
        match (kind.as_str(), open.call) {
            ("message", _) => {
                let text = self.message_text(item.content.unwrap_or_default());
                let missed = if open.bytes == 0 { text.as_str() } else { "" };
                reading.text(missed)?;
                reading.draft.piece(Piece { raw: Some(raw), text: open.bytes + missed.len(), call: None })
            }
            ("function_call", Some(call)) => {
                let whole = item.arguments.filter(|_| open.bytes == 0).unwrap_or_default();
                reading.arguments(call, &whole)?;
                let piece = reading.end_call(call, Piece { raw: Some(raw), ..Piece::default() });
                reading.draft.piece(piece)
            }
            // We ask that nothing is stored, so reasoning without its content would name an item that does not exist.
            ("reasoning", _) if item.encrypted_content.is_some_and(|content| !content.is_empty()) => {
                reading.draft.opaque_piece(Piece { raw: Some(raw), ..Piece::default() })
            }
            _ => Ok(()),
        }
    }

    fn message_text(&mut self, content: Vec<Content>) -> String {
        let mut text = String::new();
        for part in content {
            self.has_refused |= part.refusal.is_some();
            text.extend(part.text);
            text.extend(part.refusal);
        }
        text
    }

    fn end(
        &mut self,
        mut response: Response,
        status: &str,
        reading: &mut Reading<'_>,
    ) -> Result<(), WireFault> {
        reading.draft.named(response.id.take(), response.model.take());
        let is_news = self.items_done == 0;
        for (index, item) in (0..).zip(response.output.take().unwrap_or_default()) {
            if is_news {
                self.done(index, item, reading)?;
            } else if is_run_by_provider(&read::<Kind>("an item", item.get())?.kind) {
                reading.draft.unknown_price();
            }
        }
        let report = response.report(reading)?;
        reading.draft.usage(report);
        let reason = response.incomplete_details.and_then(|details| details.reason).unwrap_or_default();
        let stop = match (status, reason.as_str()) {
            ("completed", _) if self.has_refused => WireStop::Refusal,
            ("completed", _) if reading.draft.has_calls() => WireStop::ToolCalls,
            ("completed", _) => WireStop::End,
            ("incomplete", "max_output_tokens" | "max_tokens") => WireStop::OutputCap,
            ("incomplete", "content_filter") => WireStop::ContentFilter,
            ("incomplete", other) => WireStop::other(other),
            ("cancelled", _) => {
                return Err(WireFault::new(WireFaultKind::Cut, "the provider cancelled the answer"));
            }
            _ => return Err(reading.faults.event(&response.error.unwrap_or_default())),
        };
        reading.draft.stopped(stop);
        reading.draft.over();
        Ok(())
    }
}

impl Response {
    fn report(&self, reading: &mut Reading<'_>) -> Result<UsageReport, WireFault> {
        let has_tools = self.tool_usage.as_ref().is_some_and(counts_something);
        if has_tools || is_dearer_tier(self.service_tier.as_ref()) {
            reading.draft.unknown_price();
        }
        let Some(usage) = &self.usage else { return Ok(UsageReport::default()) };
        let counts: Usage = read("usage", usage.get())?;
        Ok(counts.report().with_cost(reported_cost(usage)?))
    }
}

/// Whether an item belongs to a tool that the provider runs and bills separately. Tools that the program runs cost only
/// tokens.
fn is_run_by_provider(kind: &str) -> bool {
    const RUN_BY_PROGRAM: [&str; 7] = [
        "apply_patch_call",
        "computer_call",
        "custom_tool_call",
        "function_call",
        "local_shell_call",
        "shell_call",
        "tool_search_call",
    ];
    (kind.ends_with("_call") && !RUN_BY_PROGRAM.contains(&kind)) || kind.starts_with("mcp_")
}

impl Usage {
    fn report(self) -> UsageReport {
        let usage = OpenAiUsage {
            input: self.input_tokens,
            output: self.output_tokens,
            input_details: self.input_tokens_details,
            output_details: self.output_tokens_details,
        };
        usage.report()
    }
}

/// The string arguments of a tool call.
fn argument_texts(arguments: &str) -> Vec<String> {
    let arguments = serde_json::from_str::<Map<String, Value>>(arguments).unwrap_or_default();
    let texts = arguments.into_iter().filter_map(|(_, value)| match value {
        Value::String(text) => Some(text),
        _ => None,
    });
    texts.collect()
}
