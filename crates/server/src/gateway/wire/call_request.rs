//! The body of a model call: what it asks for, and the same bytes with another output cap. Only what is named here is
//! read; everything else passes as it is.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use spinney_drivers::prices::refused_param;
use spinney_drivers::providers::open_ai_tokenizer;
use spinney_drivers::tokens::Tokenizer;
use spinney_drivers::wire::Secrets;
use spinney_kernel::budget::Used;

use super::bounds::{LONG_CONTEXT, MODEL_NAME_BYTES_MAX, RESPONSES_OUTPUT_TOKENS_MIN, THINKING_TOKENS_MIN};
use super::error::{GatewayError, GatewayErrorKind};
use super::input::{CountedInput, InputBlocks, InputCount, UnboundedInput, image_tokens};
use super::input_blocks::input_blocks;
use super::json_tape::{DuplicateKey, JsonFault, JsonKind, JsonNode, JsonTape};
use super::response::ResponseReader;
use super::route::{CallFormat, ProviderApi};
use super::splice::{Splice, splice};
use super::unbounded::refuse_unbounded;

/// Fields at the top of a body that the gateway reads, beside those that it refuses.
const READ: [&str; 15] = [
    "context_management",
    "conversation",
    "functions",
    "input",
    "instructions",
    "messages",
    "model",
    "previous_response_id",
    "prompt",
    "reasoning",
    "stream",
    "stream_options",
    "system",
    "thinking",
    "truncation",
];

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallUpstream {
    /// The provider itself, at its own address.
    Provider,
    /// Another server that speaks the provider's format: its tokenizer is unknown, and it may know only the older name
    /// of the output cap.
    Elsewhere,
}

/// A model call of a program, read.
#[derive(Clone, Debug)]
pub struct CallRequest {
    format: CallFormat,
    upstream: CallUpstream,
    body: Bytes,
    model: String,
    is_streamed: bool,
    /// Behind the brace of the body: where fields are added.
    inside: usize,
    /// The caps that it has: one, unless a program writes both names of chat completions.
    caps: Vec<AskedCap>,
    thinking: Option<ThinkingBudget>,
    usage: UsageAsk,
    input: InputBlocks,
    /// Whether it asks for a context of a million tokens.
    has_long_context: bool,
}

#[derive(Clone, Debug)]
struct AskedCap {
    span: Range<usize>,
    /// None for null.
    tokens: Option<u64>,
    /// Whether whoever answers knows this name.
    is_enough: bool,
}

/// The budget of Anthropic's thinking, which must be below the cap.
#[derive(Clone, Debug)]
struct ThinkingBudget {
    span: Range<usize>,
    tokens: u64,
}

/// How a stream of chat completions is made to report its usage.
#[derive(Clone, Debug)]
enum UsageAsk {
    /// It does so already, or is no such stream.
    Given,
    /// With this change.
    Change(Splice),
}

/// An output cap with which the provider would refuse the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an output cap of {granted} tokens is too small for this request: it needs at least {min}")]
pub struct CapTooSmall {
    pub granted: u64,
    pub min: u64,
}

impl CallRequest {
    /// Reads the body of a call. It takes time in proportion to the body; one of many megabytes does not belong on a thread
    /// that others wait for.
    ///
    /// # Errors
    /// If it cannot be read, goes beyond a bound, or asks for something whose cost no hold bounds.
    pub fn read(
        format: CallFormat,
        upstream: CallUpstream,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Self, GatewayError> {
        plain_encoding(headers)?;
        let text = std::str::from_utf8(&body).map_err(|_| bad("the body is not UTF-8"))?;
        let tape = JsonTape::read(text)?;
        let root = tape.root();
        if root.kind() != JsonKind::Object {
            return Err(bad("the body is no JSON object"));
        }
        if upstream == CallUpstream::Elsewhere {
            refuse_other_case(root)?;
        }
        refuse_unbounded(format, root)?;
        let is_streamed = match root.member("stream")? {
            None => false,
            Some(stream) => match stream.kind() {
                JsonKind::True => true,
                JsonKind::False | JsonKind::Null => false,
                _ => return Err(bad("`stream` is neither true nor false")),
            },
        };
        let inside = root.span().start + 1;
        let (model, caps) = (model(root)?, caps(format, upstream, root)?);
        let thinking = if format == CallFormat::Messages { thinking(root)? } else { None };
        let usage = match (format, is_streamed) {
            (CallFormat::Chat, true) => usage_ask(root, inside)?,
            _ => UsageAsk::Given,
        };
        let input = input_blocks(format, root)?;
        let has_long_context = has_long_context(headers);
        Ok(Self {
            format,
            upstream,
            model,
            is_streamed,
            inside,
            caps,
            thinking,
            usage,
            input,
            has_long_context,
            body,
        })
    }

    #[must_use]
    pub const fn format(&self) -> CallFormat {
        self.format
    }

    /// The model, by the name that the program sends.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Whether the program wants a stream.
    #[must_use]
    pub const fn is_streamed(&self) -> bool {
        self.is_streamed
    }

    /// The output cap to hold: what the program asks for, or `default` if it asks for none.
    #[must_use]
    pub fn output_cap(&self, default: u64) -> u64 {
        let asked = self.caps.iter().filter_map(|cap| cap.tokens).max();
        asked.unwrap_or(default).max(1)
    }

    /// The smallest output cap that the provider takes with this request.
    #[must_use]
    pub fn output_cap_min(&self) -> u64 {
        match self.format {
            CallFormat::Messages if self.thinking.is_some() => THINKING_TOKENS_MIN + 1,
            CallFormat::Responses => RESPONSES_OUTPUT_TOKENS_MIN,
            CallFormat::Messages | CallFormat::Chat => 1,
        }
    }

    /// An upper bound of the input's tokens, with the model's context if it is known, and with the input of this agent's
    /// last call on the same model if the provider counted it. It counts everything that is new, which can take longer than
    /// reading it; the first count in a process loads an encoding.
    ///
    /// # Errors
    /// If there is no bound.
    pub fn input_tokens_max(
        &self,
        context: Option<u64>,
        known: Option<&CountedInput>,
    ) -> Result<u64, UnboundedInput> {
        let (api, tokenizer) = (self.format.api(), self.tokenizer());
        let image_tokens = image_tokens(api, &self.model);
        let context =
            context.map(|known| if self.has_long_context { known.max(LONG_CONTEXT) } else { known });
        let count = InputCount { model: &self.model, tokenizer, image_tokens, context };
        let text = std::str::from_utf8(&self.body).unwrap_or_default();
        self.input.tokens_max(text, &count, known)
    }

    /// Whether the bound of the input is counted in tokens, which takes much longer than counting bytes.
    #[must_use]
    pub fn is_tokenized(&self) -> bool {
        self.tokenizer() != Tokenizer::Bytes
    }

    fn tokenizer(&self) -> Tokenizer {
        match (self.format.api(), self.upstream) {
            (ProviderApi::OpenAi, CallUpstream::Provider) => open_ai_tokenizer(&self.model),
            (ProviderApi::Anthropic, _) | (_, CallUpstream::Elsewhere) => Tokenizer::Bytes,
        }
    }

    /// The input of this call for the bound of the next one, if the provider counted it.
    #[must_use]
    pub fn counted_input(&self, used: &Used) -> Option<CountedInput> {
        self.input.known(&self.model, used)
    }

    /// The body to send with the output cap that was granted. It is the program's own, byte for byte, but for the cap,
    /// Anthropic's thinking budget and `stream_options.include_usage`.
    ///
    /// # Errors
    /// If the provider would refuse such a small cap.
    pub fn body(&self, granted: u64) -> Result<Bytes, CapTooSmall> {
        let mut splices: Vec<Splice> = self
            .caps
            .iter()
            .filter(|cap| cap.tokens.is_none_or(|asked| asked > granted))
            .map(|cap| Splice::new(cap.span.clone(), granted.to_string()))
            .collect();
        if !self.caps.iter().any(|cap| cap.is_enough) {
            let cap = self.output_cap(granted).min(granted);
            splices.push(Splice::field(self.inside, self.cap_field(), cap));
        }
        if !splices.is_empty() {
            let min = self.output_cap_min();
            if granted < min {
                return Err(CapTooSmall { granted, min });
            }
            let thinking = self.thinking.as_ref().filter(|thinking| thinking.tokens >= granted);
            splices.extend(thinking.map(|thinking| thinking.lowered(granted)));
        }
        if let UsageAsk::Change(change) = &self.usage {
            splices.push(change.clone());
        }
        Ok(splice(&self.body, splices))
    }

    /// Reads the response to this call.
    #[must_use]
    pub fn reader(&self, status: StatusCode, headers: &HeaderMap, secrets: Secrets) -> ResponseReader {
        let hides_usage = matches!(self.usage, UsageAsk::Change(_));
        ResponseReader::new(self.format, &self.model, hides_usage, status, headers, secrets)
    }

    /// The cap that is added where the program sends none.
    const fn cap_field(&self) -> &'static str {
        match (self.format, self.upstream) {
            (CallFormat::Messages, _) | (CallFormat::Chat, CallUpstream::Elsewhere) => "max_tokens",
            (CallFormat::Chat, CallUpstream::Provider) => "max_completion_tokens",
            (CallFormat::Responses, _) => "max_output_tokens",
        }
    }
}

impl ThinkingBudget {
    /// The budget under a lower cap: at least a quarter of the cap is for the answer.
    fn lowered(&self, cap: u64) -> Splice {
        let tokens = (cap - cap / 4).max(THINKING_TOKENS_MIN);
        Splice::new(self.span.clone(), tokens.to_string())
    }
}

/// Anthropic's larger context is asked for in a header.
fn has_long_context(headers: &HeaderMap) -> bool {
    let betas = headers.get_all("anthropic-beta").iter().filter_map(|betas| betas.to_str().ok());
    betas.flat_map(|betas| betas.split(',')).any(|beta| beta.trim().starts_with("context-1m"))
}

fn plain_encoding(headers: &HeaderMap) -> Result<(), GatewayError> {
    let encodings = headers.get_all(header::CONTENT_ENCODING);
    if encodings.iter().any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(bad("the body is compressed, which the gateway does not read: send it as it is"));
    }
    Ok(())
}

fn model(root: JsonNode<'_>) -> Result<String, GatewayError> {
    let Some(model) = root.member("model")?.and_then(JsonNode::text) else {
        return Err(bad("`model` is missing or is no text"));
    };
    let is_name = (1..=MODEL_NAME_BYTES_MAX).contains(&model.len()) && !model.contains(char::is_control);
    if !is_name {
        return Err(bad(format!(
            "`model` is empty, longer than {MODEL_NAME_BYTES_MAX} bytes, or not printable"
        )));
    }
    Ok(model.into_owned())
}

fn caps(
    format: CallFormat,
    upstream: CallUpstream,
    root: JsonNode<'_>,
) -> Result<Vec<AskedCap>, GatewayError> {
    let names: &[&str] = match format {
        CallFormat::Messages => &["max_tokens"],
        CallFormat::Chat => &["max_completion_tokens", "max_tokens"],
        CallFormat::Responses => &["max_output_tokens"],
    };
    let mut caps = Vec::new();
    for name in names {
        let Some(cap) = root.member(name)? else { continue };
        let tokens = cap.whole_number();
        if tokens.is_none() && !cap.is_null() {
            return Err(bad(format!("`{name}` is no whole number")));
        }
        // Some servers pass over the newer name.
        let is_enough = upstream == CallUpstream::Provider || *name != "max_completion_tokens";
        caps.push(AskedCap { span: cap.span(), tokens, is_enough });
    }
    // Null means that there is none. One place for the cap is enough, if it is one that is read.
    let has_cap = caps.iter().any(|cap| cap.tokens.is_some() && cap.is_enough);
    match (has_cap, upstream) {
        (true, _) => caps.retain(|cap| cap.tokens.is_some()),
        (false, CallUpstream::Provider) => caps.truncate(1),
        (false, CallUpstream::Elsewhere) => {}
    }
    Ok(caps)
}

/// Some servers take `Max_Tokens` for `max_tokens`, and of two the last. What decides there is not certain.
fn refuse_other_case(root: JsonNode<'_>) -> Result<(), GatewayError> {
    for member in root.members() {
        let Some(name) = member.key.text() else { continue };
        // Up and down again, so that letters such as the long s become plain ones.
        let folded: String = name.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect();
        let is_read = READ.contains(&folded.as_str()) || refused_param(&folded).is_some();
        if folded != name && is_read {
            let name: String = name.chars().filter(|letter| !letter.is_control()).take(64).collect();
            return Err(bad(format!("some servers read `{name}` as `{folded}`: write it in lower case")));
        }
    }
    Ok(())
}

fn thinking(root: JsonNode<'_>) -> Result<Option<ThinkingBudget>, GatewayError> {
    let Some(thinking) = root.member("thinking")? else { return Ok(None) };
    let Some(budget) = thinking.member("budget_tokens")?.filter(|budget| !budget.is_null()) else {
        return Ok(None);
    };
    let Some(tokens) = budget.whole_number() else {
        return Err(bad("`thinking.budget_tokens` is no whole number"));
    };
    Ok(Some(ThinkingBudget { span: budget.span(), tokens }))
}

fn usage_ask(root: JsonNode<'_>, inside: usize) -> Result<UsageAsk, GatewayError> {
    const ASK: &str = r#"{"include_usage":true}"#;
    let Some(options) = root.member("stream_options")? else {
        return Ok(UsageAsk::Change(Splice::field(inside, "stream_options", ASK)));
    };
    match options.kind() {
        JsonKind::Null => return Ok(UsageAsk::Change(Splice::new(options.span(), ASK))),
        JsonKind::Object => {}
        _ => return Err(bad("`stream_options` is no object")),
    }
    let Some(include) = options.member("include_usage")? else {
        let inside = options.span().start + 1;
        let change = match options.is_nothing() {
            true => Splice::new(inside..inside, r#""include_usage":true"#),
            false => Splice::field(inside, "include_usage", true),
        };
        return Ok(UsageAsk::Change(change));
    };
    match include.kind() {
        JsonKind::True => Ok(UsageAsk::Given),
        JsonKind::False | JsonKind::Null => Ok(UsageAsk::Change(Splice::new(include.span(), "true"))),
        _ => Err(bad("`stream_options.include_usage` is neither true nor false")),
    }
}

pub(super) fn bad(message: impl Into<String>) -> GatewayError {
    GatewayError::new(GatewayErrorKind::BadRequest, message)
}

impl From<JsonFault> for GatewayError {
    fn from(fault: JsonFault) -> Self {
        match fault {
            JsonFault::Unexpected { .. } => bad(format!("the body cannot be read: {fault}")),
            JsonFault::TooManyValues | JsonFault::TooLarge => {
                Self::new(GatewayErrorKind::TooLarge, format!("the body is too large: {fault}"))
            }
        }
    }
}

impl From<DuplicateKey> for GatewayError {
    fn from(DuplicateKey(name): DuplicateKey) -> Self {
        bad(format!("`{name}` is in one object twice: send it once"))
    }
}
