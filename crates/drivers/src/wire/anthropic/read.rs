//! Anthropic's messages, read. An answer is a list of blocks; thinking is signed, and goes back in its place.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::usage::{MessageUsage, usage};
use crate::wire::ServedFrom;
use crate::wire::answer::WireStop;
use crate::wire::bounds::{BLOCKS_MAX, RAW_BYTES_MAX};
use crate::wire::continuation::Piece;
use crate::wire::fault::{WireFault, WireFaultKind};
use crate::wire::json::{Kind, read};
use crate::wire::reading::Reading;
use crate::wire::usage_report::UsageReport;

#[derive(Debug)]
pub(in crate::wire) struct AnthropicReader {
    served_from: ServedFrom,
    /// Blocks whose end has not come, by their number.
    open: BTreeMap<u64, Block>,
    blocks: usize,
    /// Uses of tools that the provider runs: those in the answer, and those that its usage reports.
    server_tools_seen: u64,
    server_tools_counted: u64,
    has_begun: bool,
}

#[derive(Debug)]
enum Block {
    Text {
        bytes: usize,
    },
    Thinking(Thinking),
    /// Thinking that only Anthropic can read.
    Redacted(Box<RawValue>),
    Call {
        call: usize,
        /// Whether its beginning had all of its arguments.
        is_given: bool,
    },
    /// A kind that we do not know.
    Unknown,
}

#[derive(Deserialize)]
struct Redacted {
    #[serde(default)]
    data: String,
}

/// A thinking block as it goes back.
#[derive(Debug, Serialize)]
struct Thinking {
    #[serde(rename = "type")]
    kind: &'static str,
    thinking: String,
    signature: String,
}

#[derive(Deserialize)]
struct Event {
    message: Option<Message>,
    #[serde(default)]
    index: u64,
    content_block: Option<Box<RawValue>>,
    delta: Option<Delta>,
    usage: Option<Box<RawValue>>,
}

/// The beginning of a streamed answer, or a whole one.
#[derive(Deserialize)]
struct Message {
    id: Option<String>,
    model: Option<String>,
    content: Option<Vec<Box<RawValue>>>,
    stop_reason: Option<String>,
    usage: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    thinking: String,
    #[serde(default)]
    signature: String,
    #[serde(default)]
    partial_json: String,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Started {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    thinking: String,
    #[serde(default)]
    signature: String,
    input: Option<Box<RawValue>>,
}

impl AnthropicReader {
    pub(in crate::wire) const fn new(served_from: ServedFrom) -> Self {
        Self {
            served_from,
            open: BTreeMap::new(),
            blocks: 0,
            server_tools_seen: 0,
            server_tools_counted: 0,
            has_begun: false,
        }
    }

    pub(in crate::wire) fn event(&mut self, data: &str, mut reading: Reading<'_>) -> Result<(), WireFault> {
        let kind = read::<Kind>("an event", data)?.kind;
        match kind.as_str() {
            "message_start"
            | "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "message_delta"
            | "message_stop" => {}
            "error" => {
                if !self.has_begun && is_busy(data) {
                    reading.draft.refused();
                }
                return Err(reading.error(data));
            }
            _ => return Ok(()),
        }
        self.has_begun = true;
        let event: Event = read(&format!("a `{kind}` event"), data)?;
        match kind.as_str() {
            "message_start" => {
                let Some(message) = event.message else { return Ok(()) };
                reading.draft.named(message.id, message.model);
                // This counts the output up to the first token only.
                let report = self.report(message.usage.as_deref())?;
                reading.draft.early_usage(report);
                Ok(())
            }
            "content_block_start" => match event.content_block {
                Some(block) => self.start(event.index, block, &mut reading),
                None => Ok(()),
            },
            "content_block_delta" => match event.delta {
                Some(delta) => self.delta(event.index, &delta, &mut reading),
                None => Ok(()),
            },
            "content_block_stop" => self.stop(event.index, &mut reading),
            "message_delta" => {
                let report = self.report(event.usage.as_deref())?;
                reading.draft.usage(report);
                let reason = event.delta.and_then(|delta| delta.stop_reason);
                reading.draft.answer.stop =
                    reason.map(|reason| stop(&reason)).or(reading.draft.answer.stop.take());
                Ok(())
            }
            _ => {
                self.end(&mut reading);
                Ok(())
            }
        }
    }

    /// A whole message.
    pub(in crate::wire) fn whole(&mut self, body: &str, mut reading: Reading<'_>) -> Result<(), WireFault> {
        if read::<Kind>("an answer", body)?.kind == "error" {
            return Err(reading.error(body));
        }
        let message: Message = read("an answer", body)?;
        reading.draft.named(message.id, message.model);
        for (index, block) in (0..).zip(message.content.into_iter().flatten()) {
            self.start(index, block, &mut reading)?;
            self.stop(index, &mut reading)?;
        }
        let report = self.report(message.usage.as_deref())?;
        reading.draft.usage(report);
        reading.draft.answer.stop = message.stop_reason.map(|reason| stop(&reason));
        self.end(&mut reading);
        Ok(())
    }

    fn report(&mut self, said: Option<&RawValue>) -> Result<UsageReport, WireFault> {
        let Some(said) = said else { return Ok(UsageReport::default()) };
        let MessageUsage { report, server_tools } = usage(said, self.served_from)?;
        self.server_tools_counted = self.server_tools_counted.max(server_tools);
        Ok(report)
    }

    fn start(&mut self, index: u64, raw: Box<RawValue>, reading: &mut Reading<'_>) -> Result<(), WireFault> {
        self.blocks += 1;
        if self.blocks > BLOCKS_MAX {
            let message = format!("the answer has more than {BLOCKS_MAX} content blocks");
            return Err(WireFault::new(WireFaultKind::TooLarge, message));
        }
        reading.draft.more_output();
        let known = read::<Kind>("a content block", raw.get())?.kind;
        self.server_tools_seen += u64::from(known == "server_tool_use");
        let block = match known.as_str() {
            "redacted_thinking" => Block::Redacted(raw),
            "text" | "thinking" | "tool_use" => Self::known(&raw, reading)?,
            _ => Block::Unknown,
        };
        self.open.insert(index, block);
        Ok(())
    }

    /// A block of a kind that we read. Some servers put all of it into its beginning.
    fn known(raw: &RawValue, reading: &mut Reading<'_>) -> Result<Block, WireFault> {
        let started: Started = read("a content block", raw.get())?;
        Ok(match started.kind.as_str() {
            "text" => {
                reading.text(&started.text)?;
                Block::Text { bytes: started.text.len() }
            }
            "thinking" => {
                reading.reasoning(&started.thinking)?;
                let Started { thinking, signature, .. } = started;
                Block::Thinking(Thinking { kind: "thinking", thinking, signature })
            }
            _ => {
                let call = reading.start_call(Some(&started.id), &started.name)?;
                let whole =
                    started.input.as_ref().map(|input| input.get()).filter(|input| !is_empty_object(input));
                reading.arguments(call, whole.unwrap_or_default())?;
                Block::Call { call, is_given: whole.is_some() }
            }
        })
    }

    fn delta(&mut self, index: u64, delta: &Delta, reading: &mut Reading<'_>) -> Result<(), WireFault> {
        match (self.open.get_mut(&index), delta.kind.as_str()) {
            (Some(Block::Text { bytes }), "text_delta") => {
                *bytes += delta.text.len();
                reading.text(&delta.text)
            }
            (Some(Block::Thinking(block)), "thinking_delta") => {
                reading.reasoning(&delta.thinking)?;
                if reading.draft.keeps_everything() {
                    grow(&mut block.thinking, &delta.thinking)
                } else {
                    Ok(())
                }
            }
            (Some(Block::Thinking(block)), "signature_delta") => grow(&mut block.signature, &delta.signature),
            (Some(Block::Call { call, is_given: false }), "input_json_delta") => {
                reading.arguments(*call, &delta.partial_json)
            }
            _ => Ok(()),
        }
    }

    fn stop(&mut self, index: u64, reading: &mut Reading<'_>) -> Result<(), WireFault> {
        match self.open.remove(&index) {
            Some(Block::Text { bytes }) => reading.draft.piece(Piece { text: bytes, ..Piece::default() }),
            // Without a signature the server is not Anthropic's, and it is not sent back.
            Some(Block::Thinking(block)) if block.signature.is_empty() => Ok(()),
            Some(Block::Thinking(block)) => {
                reading.draft.opaque_text(&block.signature);
                let raw = to_raw_value(&block).map_err(|error| WireFault::malformed("thinking", &error))?;
                reading.draft.opaque_piece(Piece { raw: Some(raw), ..Piece::default() })
            }
            Some(Block::Redacted(raw)) => {
                reading.draft.opaque_text(&read::<Redacted>("redacted thinking", raw.get())?.data);
                reading.draft.opaque_piece(Piece { raw: Some(raw), ..Piece::default() })
            }
            Some(Block::Call { call, .. }) => {
                let piece = reading.end_call(call, Piece::default());
                reading.draft.piece(piece)
            }
            Some(Block::Unknown) | None => Ok(()),
        }
    }

    fn end(&mut self, reading: &mut Reading<'_>) {
        if self.server_tools_seen > self.server_tools_counted {
            reading.draft.unknown_price();
        }
        let stop = reading.draft.answer.stop.take();
        reading.draft.stopped(stop.unwrap_or_else(|| WireStop::other("no reason")));
        reading.draft.over();
    }
}

/// Whether an error says that the provider did not process the request.
fn is_busy(data: &str) -> bool {
    #[derive(Deserialize)]
    struct Failed {
        error: Kind,
    }
    let known = ["api_error", "overloaded_error"];
    read::<Failed>("an error", data).is_ok_and(|failed| known.contains(&failed.error.kind.as_str()))
}

fn grow(text: &mut String, more: &str) -> Result<(), WireFault> {
    if more.len() > RAW_BYTES_MAX.saturating_sub(text.len()) {
        let message = format!("a thinking block has more than {RAW_BYTES_MAX} bytes");
        return Err(WireFault::new(WireFaultKind::TooLarge, message));
    }
    text.push_str(more);
    Ok(())
}

fn is_empty_object(json: &str) -> bool {
    json.bytes().filter(|byte| !byte.is_ascii_whitespace()).eq(*b"{}")
}

fn stop(reason: &str) -> WireStop {
    match reason {
        "end_turn" | "stop_sequence" => WireStop::End,
        "tool_use" => WireStop::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => WireStop::OutputCap,
        "refusal" => WireStop::Refusal,
        other => WireStop::other(other),
    }
}
