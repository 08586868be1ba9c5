//! What the formats have in common: where a request has its model, its caps, its input and the end of its system prompt.
//! Each format is read by its own rules; from there on all calls are the same.

use std::ops::Range;

use http::HeaderMap;
use spinney_kernel::budget::CacheWrites;

use super::added_line::LinePlace;
use super::bounds::{
    COUNTED_BYTES_MAX, MODEL_NAME_BYTES_MAX, RESPONSES_OUTPUT_TOKENS_MIN, THINKING_TOKENS_MIN,
};
use super::call_request::{CallHead, CallUpstream, bad};
use super::count_request::CountedFields;
use super::error::GatewayError;
use super::gemini;
use super::input::InputBlocks;
use super::input_blocks::input_blocks;
use super::json_tape::{JsonKind, JsonNode};
use super::output_caps::OutputCaps;
use super::request_check::RequestCheck;
use super::route::CallFormat;
use super::splice::Splice;

/// What a format's reader finds in a request.
#[derive(Clone, Debug)]
pub(super) struct CallShape {
    pub(super) model: String,
    pub(super) is_streamed: bool,
    pub(super) caps: OutputCaps,
    /// The smallest output cap that the provider takes for an answer.
    pub(super) cap_min: u64,
    pub(super) thinking: Option<ThinkingBudget>,
    pub(super) usage: UsageAsk,
    /// Where a line is added that its agent reads.
    pub(super) line_place: LinePlace,
    pub(super) input: InputBlocks,
    /// The most expensive cache write that the request can cause.
    pub(super) writes: CacheWrites,
    /// The fields for the provider's counter, if its count can bound the input.
    pub(super) counted_fields: Option<CountedFields>,
}

/// The budget of Anthropic's thinking, which must be below the cap.
#[derive(Clone, Debug)]
pub(super) struct ThinkingBudget {
    span: Range<usize>,
    tokens: u64,
}

/// How a stream of chat completions is made to report its usage.
#[derive(Clone, Debug)]
pub(super) enum UsageAsk {
    /// It already does, or is not such a stream.
    Given,
    /// With this change.
    Change(Splice),
}

impl CallShape {
    /// Reads a body, and checks that its cost has a bound.
    pub(super) fn read(
        check: &mut RequestCheck<'_>,
        head: &CallHead<'_>,
        root: JsonNode<'_>,
    ) -> Result<Self, GatewayError> {
        check.head(head.headers, head.query)?;
        match head.format {
            CallFormat::Messages | CallFormat::Chat | CallFormat::Responses => {
                Self::of_fields(check, head, root)
            }
            CallFormat::Gemini => gemini::shape(check, head, root),
        }
    }

    /// A body of the formats that have everything among its fields.
    fn of_fields(
        check: &mut RequestCheck<'_>,
        head: &CallHead<'_>,
        root: JsonNode<'_>,
    ) -> Result<Self, GatewayError> {
        let CallHead { format, upstream, .. } = *head;
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
        let (model, caps) = (model(root)?, OutputCaps::of_fields(format, upstream, root)?);
        let thinking = if format == CallFormat::Messages { thinking(root)? } else { None };
        let usage = match (format, is_streamed) {
            (CallFormat::Chat, true) => usage_ask(root, inside)?,
            _ => UsageAsk::Given,
        };
        let cap_min = match format {
            CallFormat::Messages if thinking.is_some() => THINKING_TOKENS_MIN + 1,
            CallFormat::Responses => RESPONSES_OUTPUT_TOKENS_MIN,
            CallFormat::Messages | CallFormat::Chat | CallFormat::Gemini => 1,
        };
        let line_place = LinePlace::new(format, root, inside);
        let input = input_blocks(check, root)?;
        let counted_fields = is_countable(head, root, &input).then(|| CountedFields::new(format, root));
        let writes = match (format, upstream) {
            (CallFormat::Messages, CallUpstream::Provider) => cache_writes(root)?,
            // A server that hands the request on may add marks of its own.
            (CallFormat::Messages, CallUpstream::Elsewhere) => cache_writes(root)?.max(CacheWrites::Hour),
            // Their providers write without marks.
            (CallFormat::Chat | CallFormat::Responses | CallFormat::Gemini, _) => CacheWrites::Hour,
        };
        Ok(Self {
            model,
            is_streamed,
            caps,
            cap_min,
            thinking,
            usage,
            line_place,
            input,
            writes,
            counted_fields: counted_fields.flatten(),
        })
    }
}

/// Whether the provider's counter can bound the input of a request.
pub(super) fn is_countable(head: &CallHead<'_>, root: JsonNode<'_>, input: &InputBlocks) -> bool {
    head.upstream == CallUpstream::Provider && root.span().len() <= COUNTED_BYTES_MAX && input.is_countable()
}

/// The name of a model, as it is sent.
///
/// # Errors
/// If no price table has such a name.
pub(super) fn model_name(model: &str) -> Result<String, GatewayError> {
    let is_name = (1..=MODEL_NAME_BYTES_MAX).contains(&model.len()) && !model.contains(char::is_control);
    if !is_name {
        return Err(bad(format!(
            "`model` is empty, longer than {MODEL_NAME_BYTES_MAX} bytes, or not printable"
        )));
    }
    Ok(model.to_owned())
}

impl ThinkingBudget {
    /// The change under a lower cap, if the budget is not below it: at least a quarter of the cap is for the answer.
    pub(super) fn lowered(&self, cap: u64) -> Option<Splice> {
        let tokens = (cap - cap / 4).max(THINKING_TOKENS_MIN);
        (self.tokens >= cap).then(|| Splice::new(self.span.clone(), tokens.to_string()))
    }
}

/// Whether a larger context of Anthropic's is asked for, which is done in a header.
pub(super) fn has_long_context(headers: &HeaderMap) -> bool {
    let betas = headers.get_all("anthropic-beta").iter().filter_map(|betas| betas.to_str().ok());
    betas.flat_map(|betas| betas.split(',')).any(|beta| beta.trim() == "context-1m-2025-08-07")
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
    model_name(&model)
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
