//! The body of a model call: what it asks for, and the same bytes with another output cap. Only what is named here is
//! read; everything else passes as it is.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use spinney_drivers::providers::open_ai_tokenizer;
use spinney_drivers::tokens::Tokenizer;
use spinney_drivers::wire::{Keep, Permitted, ReadAs, RequestName, Secrets, ServedFrom, UndividedWrites};
use spinney_kernel::budget::{CacheWrites, Used};

use super::added_line::LinePlace;
use super::bounds::{
    COUNTED_BYTES_MAX, LONG_CONTEXT, MODEL_NAME_BYTES_MAX, RESPONSES_OUTPUT_TOKENS_MIN, THINKING_TOKENS_MIN,
};
use super::count_request::{self, CountedFields};
use super::error::{GatewayError, GatewayErrorKind};
use super::input::{CountedInput, InputBlocks, InputCount, UnboundedInput, image_tokens};
use super::input_blocks::input_blocks;
use super::json_tape::{AmbiguousKey, JsonFault, JsonKind, JsonNode, JsonTape};
use super::opaque_texts::OpaqueTexts;
use super::request_check::RequestCheck;
use super::response::ResponseReader;
use super::route::{CallFormat, ProviderApi};
use super::splice::{Splice, splice};

/// The server that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallUpstream {
    /// The provider itself, at its own address.
    Provider,
    /// Another server that speaks the provider's format: its tokenizer is unknown, and it may know only the older name
    /// of the output cap.
    Elsewhere,
}

impl CallUpstream {
    const fn served_from(self) -> ServedFrom {
        match self {
            Self::Provider => ServedFrom::Provider,
            Self::Elsewhere => ServedFrom::Elsewhere,
        }
    }
}

/// What is known about a call before its body is read.
#[derive(Clone, Copy, Debug)]
pub struct CallHead<'h> {
    pub format: CallFormat,
    pub upstream: CallUpstream,
    pub headers: &'h HeaderMap,
    pub query: Option<&'h str>,
    /// The names that the user has allowed although their cost has no bound.
    pub permitted: &'h Permitted,
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
    /// Where a line is added that its agent reads.
    line_place: LinePlace,
    input: InputBlocks,
    /// Whether it asks for a context of a million tokens.
    has_long_context: bool,
    /// The most expensive cache write that the request can cause.
    writes: CacheWrites,
    /// Names whose cost has no bound and that the user allowed.
    outside_bound: BTreeSet<RequestName>,
    /// The fields for the provider's counter, if its count can bound the input.
    counted_fields: Option<CountedFields>,
}

#[derive(Clone, Debug)]
struct AskedCap {
    span: Range<usize>,
    /// None for null.
    tokens: Option<u64>,
    /// Whether the server knows this name.
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
    /// It already does, or is not such a stream.
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
    pub fn read(head: CallHead<'_>, body: Bytes) -> Result<Self, GatewayError> {
        let CallHead { format, upstream, headers, query, .. } = head;
        plain_encoding(headers)?;
        plain_charset(headers)?;
        let text = std::str::from_utf8(&body).map_err(|_| bad("the body is not UTF-8"))?;
        let tape = JsonTape::read(text)?;
        let root = tape.root();
        if root.kind() != JsonKind::Object {
            return Err(bad("the body is not a JSON object"));
        }
        let mut check = RequestCheck::new(&head);
        check.head(headers, query)?;
        check.fields(root)?;
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
        let line_place = LinePlace::new(format, root, inside);
        let input = input_blocks(&mut check, root)?;
        let has_long_context = has_long_context(headers);
        let is_countable =
            upstream == CallUpstream::Provider && body.len() <= COUNTED_BYTES_MAX && input.is_countable();
        let counted_fields = is_countable.then(|| CountedFields::new(format, root)).flatten();
        let writes = match (format, upstream) {
            (CallFormat::Messages, CallUpstream::Provider) => cache_writes(root)?,
            // A server that hands the request on may add marks of its own.
            (CallFormat::Messages, CallUpstream::Elsewhere) => cache_writes(root)?.max(CacheWrites::Hour),
            // Their providers write without marks.
            (CallFormat::Chat | CallFormat::Responses, _) => CacheWrites::Hour,
        };
        Ok(Self {
            format,
            upstream,
            model,
            is_streamed,
            inside,
            caps,
            thinking,
            usage,
            line_place,
            input,
            has_long_context,
            writes,
            outside_bound: check.outside_bound(),
            counted_fields,
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

    /// The most expensive cache write that the request can cause.
    #[must_use]
    pub const fn writes(&self) -> CacheWrites {
        self.writes
    }

    /// Names in it whose cost has no bound and that the user allowed.
    #[must_use]
    pub const fn outside_bound(&self) -> &BTreeSet<RequestName> {
        &self.outside_bound
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

    /// An upper bound of the input's tokens, with the model's context if it is known, and with inputs of earlier calls on
    /// the same model that the provider counted. It counts everything that is new, which can take longer than
    /// reading it; the first count in a process loads an encoding.
    ///
    /// # Errors
    /// If there is no bound.
    pub fn input_tokens_max(
        &self,
        context: Option<u64>,
        known: &[Arc<CountedInput>],
        opaque: &OpaqueTexts,
    ) -> Result<u64, UnboundedInput> {
        let (api, tokenizer) = (self.format.api(), self.tokenizer());
        let image_tokens = image_tokens(api, self.upstream);
        let context =
            context.map(|known| if self.has_long_context { known.max(LONG_CONTEXT) } else { known });
        let count = InputCount { opaque, tokenizer, image_tokens, context };
        let text = std::str::from_utf8(&self.body).unwrap_or_default();
        self.input.tokens_max(text, &count, self.input.nearest(&self.model, known))
    }

    /// The known origins of the texts in it that only the provider can read.
    #[must_use]
    pub fn opaque_in(&self, texts: &OpaqueTexts) -> OpaqueTexts {
        texts.only(self.input.opaque())
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
        let Used::Tokens(usage) = used else { return None };
        self.input.counted_as(&self.model, usage.input_tokens(), false)
    }

    /// How many parts its input has.
    #[must_use]
    pub fn part_count(&self) -> usize {
        self.input.part_count()
    }

    /// Whether the provider's count can bound the input.
    #[must_use]
    pub const fn is_countable(&self) -> bool {
        self.counted_fields.is_some()
    }

    /// The URL and the body of a request to the provider's counter; `None` if its count cannot bound the input.
    pub(crate) fn count_request(&self, base_url: &str, query: Option<&str>) -> Option<(String, Bytes)> {
        let fields = self.counted_fields.as_ref()?;
        let url = self.format.api().url(base_url, count_request::path(self.format)?, query);
        Some((url, fields.body(&self.body)))
    }

    /// The bound of the input according to the counter's response.
    pub(crate) fn counted_max(&self, answer: &[u8]) -> Option<u64> {
        count_request::bound(self.format, answer)
    }

    /// The input of this call for the bound of later ones, as the provider's counter counted it.
    #[must_use]
    pub fn input_of(&self, tokens: u64) -> Option<CountedInput> {
        self.input.counted_as(&self.model, tokens, true)
    }

    /// Whether the bound of the input rests on the provider's counter, with these earlier inputs.
    #[must_use]
    pub fn is_estimated(&self, known: &[Arc<CountedInput>]) -> bool {
        self.input.nearest(&self.model, known).is_some_and(CountedInput::is_estimate)
    }

    /// The body to send with the output cap that was granted. It is the program's own, byte for byte, but for the cap,
    /// Anthropic's thinking budget and `stream_options.include_usage`.
    ///
    /// # Errors
    /// If the provider would refuse such a small cap.
    pub fn body(&self, granted: u64) -> Result<Bytes, CapTooSmall> {
        self.spliced(granted, Vec::new())
    }

    /// The same with a line at the end of the system prompt. It takes at most
    /// [`TOLD_LINE_TOKENS_MAX`](super::TOLD_LINE_TOKENS_MAX) of input; a longer line is cut.
    ///
    /// # Errors
    /// If the provider would refuse such a small cap.
    pub fn body_telling(&self, granted: u64, line: &str) -> Result<Bytes, CapTooSmall> {
        self.spliced(granted, self.line_place.splice(line).into_iter().collect())
    }

    fn spliced(&self, granted: u64, added: Vec<Splice>) -> Result<Bytes, CapTooSmall> {
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
        splices.extend(added);
        Ok(splice(&self.body, splices))
    }

    /// Reads the response to this call.
    #[must_use]
    pub fn reader(&self, status: StatusCode, headers: &HeaderMap, secrets: Secrets) -> ResponseReader {
        let hides_usage = matches!(self.usage, UsageAsk::Change(_));
        let read_as = ReadAs {
            format: self.format.wire(),
            model: self.model.clone(),
            keep: Keep::Facts,
            secrets,
            served_from: self.upstream.served_from(),
            // The program may ask for either lifetime.
            undivided_writes: match self.writes {
                CacheWrites::Hour => UndividedWrites::Hour,
                CacheWrites::None | CacheWrites::Minutes => UndividedWrites::Minutes,
            },
        };
        ResponseReader::new(read_as, hides_usage, status, headers)
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
    betas.flat_map(|betas| betas.split(',')).any(|beta| beta.trim() == "context-1m-2025-08-07")
}

fn plain_encoding(headers: &HeaderMap) -> Result<(), GatewayError> {
    let encodings = headers.get_all(header::CONTENT_ENCODING);
    if encodings.iter().any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(bad("the body is compressed, which the gateway does not support: send it uncompressed"));
    }
    Ok(())
}

/// The body goes up as UTF-8. With another charset, a server could read a different body.
fn plain_charset(headers: &HeaderMap) -> Result<(), GatewayError> {
    for value in headers.get_all(header::CONTENT_TYPE) {
        let value = value.to_str().map_err(|_| bad("`content-type` is not plain text"))?.to_ascii_lowercase();
        let charset = value.split(';').filter_map(|part| part.trim().strip_prefix("charset")).next();
        let is_utf_8 = |charset: &str| {
            let charset = charset.trim_start().strip_prefix('=').unwrap_or_default().trim();
            matches!(charset.trim_matches('"'), "utf-8" | "utf8")
        };
        if !charset.is_none_or(is_utf_8) {
            return Err(bad("the `charset` of the body is not UTF-8: send UTF-8"));
        }
    }
    Ok(())
}

/// The most expensive cache write that the markers of a request ask for. Markers count wherever they are: the provider
/// decides which of them it reads.
fn cache_writes(root: JsonNode<'_>) -> Result<CacheWrites, GatewayError> {
    let mut writes = CacheWrites::None;
    for object in root.with_descendants().filter(|node| node.kind() == JsonKind::Object) {
        for member in object.members().filter(|member| !member.value.is_null()) {
            if let Some(key) = member.key.text().filter(|key| key.eq_ignore_ascii_case("cache_control")) {
                writes = writes.max(mark_time(&key, member.value)?);
            }
        }
    }
    Ok(writes)
}

/// How long a mark asks the provider to keep what it caches.
fn mark_time(key: &str, mark: JsonNode<'_>) -> Result<CacheWrites, GatewayError> {
    let is_ttl = |key: JsonNode<'_>| key.text().is_some_and(|key| key.eq_ignore_ascii_case("ttl"));
    let ttl: Vec<_> = mark.members().filter(|member| is_ttl(member.key) && !member.value.is_null()).collect();
    let is_exact = key == "cache_control" && ttl.iter().all(|ttl| ttl.key.is_text("ttl"));
    match ttl.iter().map(|ttl| ttl.value).collect::<Vec<_>>().as_slice() {
        _ if !is_exact => Ok(CacheWrites::Hour),
        [] => Ok(CacheWrites::Minutes),
        [ttl] if ttl.is_text("5m") => Ok(CacheWrites::Minutes),
        [ttl] if ttl.is_text("1h") => Ok(CacheWrites::Hour),
        // The data of a tool may look like a mark, but has no type.
        _ if mark.members().any(|member| member.key.is_text("type")) => {
            Err(bad("the `ttl` of a `cache_control` is neither 5m nor 1h"))
        }
        _ => Ok(CacheWrites::Hour),
    }
}

fn model(root: JsonNode<'_>) -> Result<String, GatewayError> {
    let Some(model) = root.member("model")?.and_then(JsonNode::text) else {
        return Err(bad("`model` is missing or is not text"));
    };
    let is_name = (1..=MODEL_NAME_BYTES_MAX).contains(&model.len()) && !model.contains(char::is_control);
    if !is_name {
        return Err(bad(format!(
            "`model` is empty, longer than {MODEL_NAME_BYTES_MAX} bytes, or not printable"
        )));
    }
    Ok(model.into_owned())
}

/// The names of the output cap.
pub(super) const fn cap_names(format: CallFormat) -> &'static [&'static str] {
    match format {
        CallFormat::Messages => &["max_tokens"],
        CallFormat::Chat => &["max_completion_tokens", "max_tokens"],
        CallFormat::Responses => &["max_output_tokens"],
    }
}

fn caps(
    format: CallFormat,
    upstream: CallUpstream,
    root: JsonNode<'_>,
) -> Result<Vec<AskedCap>, GatewayError> {
    // Anthropic fills its cache with such a request.
    let takes_zero = (format, upstream) == (CallFormat::Messages, CallUpstream::Provider);
    let mut caps = Vec::new();
    for name in cap_names(format) {
        let Some(cap) = root.member(name)? else { continue };
        let tokens = cap.whole_number();
        if tokens.is_none() && !cap.is_null() {
            return Err(bad(format!("`{name}` is not a whole number")));
        }
        if tokens == Some(0) && !takes_zero {
            return Err(bad(format!("`{name}` is 0, which some servers read as no cap: send at least 1")));
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

fn thinking(root: JsonNode<'_>) -> Result<Option<ThinkingBudget>, GatewayError> {
    let Some(thinking) = root.member("thinking")? else { return Ok(None) };
    let Some(budget) = thinking.member("budget_tokens")?.filter(|budget| !budget.is_null()) else {
        return Ok(None);
    };
    let Some(tokens) = budget.whole_number() else {
        return Err(bad("`thinking.budget_tokens` is not a whole number"));
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
        _ => return Err(bad("`stream_options` is not an object")),
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

impl From<AmbiguousKey> for GatewayError {
    fn from(key: AmbiguousKey) -> Self {
        bad(key.to_string())
    }
}
