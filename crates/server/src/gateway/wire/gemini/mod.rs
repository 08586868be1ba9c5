//! Gemini's `generateContent` and `streamGenerateContent`. The model and whether the answer is streamed are in the path,
//! the caps in an object of their own, and each field has two spellings.

mod check;
mod config;
mod input;
mod line;
mod names;
pub(in crate::gateway) mod path;

use spinney_kernel::budget::CacheWrites;

use super::call_request::{CallHead, CallUpstream, bad};
use super::call_shape::{CallShape, UsageAsk, is_countable, model_name};
use super::count_request::CountedFields;
use super::error::GatewayError;
use super::json_tape::{JsonKind, JsonNode};
use super::request_check::RequestCheck;
pub(super) use line::place as line_place;
use names::field;
use path::{GeminiMethod, GeminiPath};

/// What the counter is sent of a call.
const COUNTED: [&str; 5] = ["contents", "generationConfig", "systemInstruction", "toolConfig", "tools"];

/// Reads a body, and checks that its cost has a bound.
pub(super) fn shape(
    check: &mut RequestCheck<'_>,
    head: &CallHead<'_>,
    root: JsonNode<'_>,
) -> Result<CallShape, GatewayError> {
    let Some(asked) = GeminiPath::in_whole(head.path) else { return Err(bad("the path names no model")) };
    let is_streamed = asked.method == GeminiMethod::Stream;
    answer_form(is_streamed, head.query)?;
    check::fields(check, root, is_streamed)?;
    if field(root, "contents")?.is_none_or(JsonNode::is_nothing) {
        return Err(bad("`contents` is missing or empty"));
    }
    let config = match field(root, "generationConfig")? {
        Some(config) if !matches!(config.kind(), JsonKind::Object | JsonKind::Null) => {
            return Err(bad("`generationConfig` is not an object"));
        }
        config => config,
    };
    let model = model_name(asked.model)?;
    let input = input::blocks(check, root)?;
    let counted = is_countable(head, root, &input).then(|| {
        let name = serde_json::Value::from(format!("models/{model}"));
        let around = (format!("{{\"generateContentRequest\":{{\"model\":{name},"), "}}");
        let fields = names::fields(root).ok()?;
        let fields = fields.into_iter().filter(|field| COUNTED.contains(&field.name.as_ref()));
        Some(CountedFields::within(around, fields.map(|field| (field.key, field.value))))
    });
    Ok(CallShape {
        model,
        is_streamed,
        caps: config::caps(root, config)?,
        cap_min: 1,
        thinking: None,
        usage: UsageAsk::Given,
        line_place: line_place(root),
        input,
        // It writes caches without marks, at the price of input.
        writes: match head.upstream {
            CallUpstream::Provider => CacheWrites::None,
            CallUpstream::Elsewhere => CacheWrites::Hour,
        },
        counted_fields: counted.flatten(),
    })
}

/// A stream is one of events, and any other answer is one JSON text. The API has a stream that is one list as well; it
/// cannot be read before its end.
fn answer_form(is_streamed: bool, query: Option<&str>) -> Result<(), GatewayError> {
    let mut forms =
        query.unwrap_or_default().split('&').filter_map(|parameter| parameter.strip_prefix("alt="));
    let form = forms.next();
    if forms.next().is_some() {
        return Err(bad("the query parameter `alt` appears twice: send it once"));
    }
    match (is_streamed, form) {
        (true, Some("sse")) | (false, None | Some("json")) => Ok(()),
        (true, _) => Err(bad("a stream that is a JSON list is not supported: send `?alt=sse`")),
        (false, Some(_)) => Err(bad("`generateContent` has one answer: leave the query parameter `alt` out")),
    }
}
