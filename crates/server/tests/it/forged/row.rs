//! A row: requests of one agent in their order, what a provider bills for each, and how it answers.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use spinney_server::gateway::wire::CallUpstream;

use super::bill::Billed;
use crate::provider::Format;

/// What a provider answers.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) media: &'static str,
    pub(super) body: String,
    pub(super) end: ReplyEnd,
}

/// How a reply ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyEnd {
    Whole,
    /// The connection breaks before the end of the body.
    Cut,
    /// Nothing comes at all.
    Silent,
}

impl Reply {
    pub(super) fn json(body: &Value) -> Self {
        Self { status: 200, media: "application/json", body: body.to_string(), end: ReplyEnd::Whole }
    }

    pub(super) fn stream(events: &[Value]) -> Self {
        let body = events.iter().map(|event| match event.as_str() {
            Some(text) => format!("data: {text}\n\n"),
            None => format!("data: {event}\n\n"),
        });
        Self { status: 200, media: "text/event-stream", body: body.collect(), end: ReplyEnd::Whole }
    }

    pub(super) fn status(status: u16, body: &str) -> Self {
        Self { status, media: "application/json", body: body.to_owned(), end: ReplyEnd::Whole }
    }

    pub(super) fn silent() -> Self {
        Self { end: ReplyEnd::Silent, ..Self::status(200, "") }
    }

    pub(super) fn cut(self) -> Self {
        Self { end: ReplyEnd::Cut, ..self }
    }
}

type Answer = Box<dyn Fn(&Billed) -> Reply + Send + Sync>;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is held at a bound and sent.
    Sent,
    /// Nothing of it is sent.
    Refused,
}

pub(super) struct ForgedCall {
    pub(super) body: Vec<u8>,
    /// If the output is [`UP_TO_CAP`], it is the cap that the provider reads.
    pub(super) bill: Billed,
    pub(super) answer: Option<Answer>,
    pub(super) fate: Fate,
}

/// As much output as the request allows.
pub(super) const UP_TO_CAP: u64 = u64::MAX;

pub(super) struct Row {
    name: String,
    pub(super) format: Format,
    pub(super) upstream: CallUpstream,
    /// A name of its own, unless the row is about names: then nothing is known from other rows of the same run.
    pub(super) model: String,
    pub(super) prices_of: &'static str,
    /// Another one than that of its format.
    path: Option<String>,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) query: &'static str,
    pub(super) calls: Vec<ForgedCall>,
    /// Names of the output cap as the server reads them, the first one that is there.
    pub(super) cap_names: Vec<&'static str>,
    /// What the provider's own counter answers; 404 if absent.
    pub(super) counter: Option<Reply>,
    /// In nano-dollars.
    pub(super) ceiling: u64,
    pub(super) is_parallel: bool,
    /// Whether it needs its own run.
    pub(super) is_alone: bool,
    /// Whether the provider's own counter lies: then a bill may be more than its hold, and is booked anyway.
    pub(super) has_lying_counter: bool,
}

/// Enough for any of these requests at a whole context of the dearest model.
const CEILING: u64 = 1_000_000_000_000;

impl Row {
    pub(super) fn new(format: Format, name: impl Into<String>) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // The table matches both by their beginnings.
        let (model, prices_of, cap_names) = match format {
            Format::Messages => ("claude-sonnet-4-5", "anthropic", vec!["max_tokens"]),
            Format::Chat => ("gpt-5-nano", "openai", vec!["max_completion_tokens", "max_tokens"]),
            Format::Responses => ("gpt-5-nano", "openai", vec!["max_output_tokens"]),
            Format::Gemini => (
                "gemini-3.6-flash",
                "google",
                vec![
                    "generationConfig/maxOutputTokens",
                    "generationConfig/max_output_tokens",
                    "generation_config/maxOutputTokens",
                    "generation_config/max_output_tokens",
                ],
            ),
        };
        let model = format!("{model}-{number}");
        Self {
            name: name.into(),
            format,
            upstream: CallUpstream::Provider,
            model,
            prices_of,
            path: None,
            headers: Vec::new(),
            query: "",
            calls: Vec::new(),
            cap_names,
            counter: None,
            ceiling: CEILING,
            is_parallel: false,
            is_alone: false,
            has_lying_counter: false,
        }
    }

    /// Says which one it is, and where.
    pub(super) fn name(&self) -> String {
        format!("{:?}, {:?}: {}", self.format, self.upstream, self.name)
    }

    /// At a base URL of the user's own.
    pub(super) fn elsewhere(self) -> Self {
        Self { upstream: CallUpstream::Elsewhere, ..self }
    }

    pub(super) fn model(self, model: &str) -> Self {
        Self { model: model.to_owned(), is_alone: true, ..self }
    }

    /// Where it goes: Gemini has the model in the path.
    pub(super) fn path(&self) -> String {
        let of_format = || match self.format {
            Format::Gemini => format!("/v1beta/models/{}:generateContent", self.model),
            format => format.path().to_owned(),
        };
        self.path.clone().unwrap_or_else(of_format)
    }

    pub(super) fn at_path(self, path: &str) -> Self {
        let path = Some(path.replace("MODEL", &self.model));
        Self { path, ..self }
    }

    pub(super) fn prices_of(self, prices_of: &'static str) -> Self {
        Self { prices_of, ..self }
    }

    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(super) fn query(self, query: &'static str) -> Self {
        Self { query, ..self }
    }

    pub(super) fn reads_cap(self, cap_names: &[&'static str]) -> Self {
        Self { cap_names: cap_names.to_vec(), ..self }
    }

    pub(super) fn counter(self, reply: Reply) -> Self {
        Self { counter: Some(reply), is_alone: true, ..self }
    }

    pub(super) fn lying_counter(self, reply: Reply) -> Self {
        Self { has_lying_counter: true, ..self.counter(reply) }
    }

    pub(super) fn ceiling(self, ceiling: u64) -> Self {
        Self { ceiling, is_alone: true, ..self }
    }

    /// All calls at the same time; they have one bill.
    pub(super) fn parallel(self) -> Self {
        Self { is_parallel: true, ..self }
    }

    /// A request that is sent, with these fields beside the usual ones.
    pub(super) fn sent(self, fields: Value, bill: Billed) -> Self {
        let is_alone = self.is_alone;
        let body = self.body(fields);
        Self { is_alone, ..self.sent_bytes(body, bill) }
    }

    /// In a separate run: its model is in its bytes.
    pub(super) fn sent_bytes(mut self, body: impl Into<Vec<u8>>, bill: Billed) -> Self {
        self.is_alone = true;
        self.calls.push(ForgedCall { body: body.into(), bill, answer: None, fate: Fate::Sent });
        self
    }

    /// A request of which nothing is sent.
    pub(super) fn refused(self, fields: Value) -> Self {
        let body = self.body(fields);
        self.refused_bytes(body)
    }

    pub(super) fn refused_bytes(mut self, body: impl Into<Vec<u8>>) -> Self {
        let (bill, answer) = (Billed::default(), None);
        self.calls.push(ForgedCall { body: body.into(), bill, answer, fate: Fate::Refused });
        self
    }

    /// How the provider answers the last request, instead of honestly.
    pub(super) fn answers(mut self, answer: impl Fn(&Billed) -> Reply + Send + Sync + 'static) -> Self {
        self.calls.last_mut().unwrap().answer = Some(Box::new(answer));
        self
    }

    /// A whole answer with this usage.
    pub(super) fn reports(self, usage: impl Fn(&Billed) -> Value + Send + Sync + 'static) -> Self {
        let format = self.format;
        self.answers(move |billed| Reply::json(&whole(format, &usage(billed))))
    }

    pub(super) fn alone(self) -> Self {
        Self { is_alone: true, ..self }
    }

    /// A small request with these fields, which replace its own; a field that is null here is left out.
    pub(super) fn body(&self, fields: Value) -> String {
        let mut body = match self.format {
            Format::Messages => json!({ "model": self.model, "max_tokens": 64,
                "messages": [{ "role": "user", "content": "hi" }] }),
            Format::Chat => json!({ "model": self.model, "max_completion_tokens": 64,
                "messages": [{ "role": "user", "content": "hi" }] }),
            Format::Responses => json!({ "model": self.model, "max_output_tokens": 64, "input": "hi" }),
            Format::Gemini => json!({ "generationConfig": { "maxOutputTokens": 64 },
                "contents": [{ "role": "user", "parts": [{ "text": "hi" }] }] }),
        };
        let Value::Object(fields) = fields else { unreachable!("fields are an object") };
        let known = body.as_object_mut().unwrap();
        for (name, value) in fields {
            known.insert(name, value);
        }
        known.retain(|_, value| !value.is_null());
        body.to_string()
    }
}

/// A bill of plain input, and of output up to the cap.
pub(super) const fn input(plain: u64) -> Billed {
    Billed { plain, cached: 0, written_5m: 0, written_1h: 0, output: UP_TO_CAP, apart_nanos: 0 }
}

/// Usage as a provider of this format reports it.
pub(super) fn usage(format: Format, billed: &Billed) -> Value {
    let written = billed.written_5m + billed.written_1h;
    match format {
        Format::Messages => json!({
            "input_tokens": billed.plain, "cache_read_input_tokens": billed.cached,
            "cache_creation_input_tokens": written, "output_tokens": billed.output,
            "cache_creation": { "ephemeral_5m_input_tokens": billed.written_5m,
                "ephemeral_1h_input_tokens": billed.written_1h },
        }),
        Format::Chat => json!({
            "prompt_tokens": billed.input(), "completion_tokens": billed.output,
            "total_tokens": billed.input() + billed.output,
            "prompt_tokens_details": { "cached_tokens": billed.cached, "cache_write_tokens": written },
        }),
        Format::Responses => json!({
            "input_tokens": billed.input(), "output_tokens": billed.output,
            "total_tokens": billed.input() + billed.output,
            "input_tokens_details": { "cached_tokens": billed.cached, "cache_write_tokens": written },
        }),
        Format::Gemini => json!({
            "promptTokenCount": billed.input(), "cachedContentTokenCount": billed.cached,
            "candidatesTokenCount": billed.output / 2, "thoughtsTokenCount": billed.output - billed.output / 2,
            "totalTokenCount": billed.input() + billed.output,
        }),
    }
}

/// A whole answer.
pub(super) fn whole(format: Format, usage: &Value) -> Value {
    match format {
        Format::Messages => json!({ "type": "message", "id": "msg", "role": "assistant", "model": "m",
            "content": [{ "type": "text", "text": "hello" }], "stop_reason": "end_turn", "usage": usage }),
        Format::Chat => json!({ "id": "chat", "object": "chat.completion", "model": "m",
            "choices": [{ "index": 0, "message": { "role": "assistant", "content": "hello" },
                "finish_reason": "stop" }], "usage": usage }),
        Format::Responses => json!({ "id": "resp", "object": "response", "status": "completed", "model": "m",
            "output": [{ "type": "message", "id": "i", "role": "assistant", "status": "completed",
                "content": [{ "type": "output_text", "text": "hello", "annotations": [] }] }],
            "usage": usage }),
        Format::Gemini => json!({ "responseId": "gemini", "modelVersion": "m", "usageMetadata": usage,
            "candidates": [{ "index": 0, "finishReason": "STOP",
                "content": { "role": "model", "parts": [{ "text": "hello" }] } }] }),
    }
}
