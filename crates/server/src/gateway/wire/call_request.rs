//! The body of a model call: what it asks for, and the same bytes with another output cap. Only what is named here is
//! read; everything else passes as it is.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use spinney_drivers::providers::open_ai_tokenizer;
use spinney_drivers::tokens::Tokenizer;
use spinney_drivers::wire::{Keep, Permitted, ReadAs, RequestName, Secrets, ServedFrom, UndividedWrites};
use spinney_kernel::budget::{CacheWrites, Used};

use super::bounds::LONG_CONTEXT;
use super::call_shape::{CallShape, UsageAsk, has_long_context};
use super::count_request;
use super::error::{GatewayError, GatewayErrorKind};
use super::input::{CountedInput, InputCount, UnboundedInput, image_tokens};
use super::json_tape::{AmbiguousKey, JsonFault, JsonKind, JsonTape};
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
    /// As the program wrote it.
    pub path: &'h str,
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
    shape: CallShape,
    /// Whether it asks for a context of a million tokens.
    has_long_context: bool,
    /// Names whose cost has no bound and that the user allowed.
    outside_bound: BTreeSet<RequestName>,
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
        let CallHead { format, upstream, headers, .. } = head;
        plain_encoding(headers)?;
        plain_charset(headers)?;
        let text = std::str::from_utf8(&body).map_err(|_| bad("the body is not UTF-8"))?;
        let tape = JsonTape::read(text)?;
        let root = tape.root();
        if root.kind() != JsonKind::Object {
            return Err(bad("the body is not a JSON object"));
        }
        let mut check = RequestCheck::new(&head);
        let shape = CallShape::read(&mut check, &head, root)?;
        let has_long_context = has_long_context(headers);
        let outside_bound = check.outside_bound();
        Ok(Self { format, upstream, shape, has_long_context, outside_bound, body })
    }

    #[must_use]
    pub const fn format(&self) -> CallFormat {
        self.format
    }

    /// The model, by the name that the program sends.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.shape.model
    }

    /// Whether the program wants a stream.
    #[must_use]
    pub const fn is_streamed(&self) -> bool {
        self.shape.is_streamed
    }

    /// The most expensive cache write that the request can cause.
    #[must_use]
    pub const fn writes(&self) -> CacheWrites {
        self.shape.writes
    }

    /// Names in it whose cost has no bound and that the user allowed.
    #[must_use]
    pub const fn outside_bound(&self) -> &BTreeSet<RequestName> {
        &self.outside_bound
    }

    /// The output cap to hold: what the program asks for, or `default` for each answer if it asks for none.
    #[must_use]
    pub fn output_cap(&self, default: u64) -> u64 {
        self.shape.caps.total(default)
    }

    /// The smallest output cap that the provider takes with this request.
    #[must_use]
    pub const fn output_cap_min(&self) -> u64 {
        self.shape.caps.total_min(self.shape.cap_min)
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
        self.shape.input.tokens_max(text, &count, self.shape.input.nearest(&self.shape.model, known))
    }

    /// The known origins of the texts in it that only the provider can read.
    #[must_use]
    pub fn opaque_in(&self, texts: &OpaqueTexts) -> OpaqueTexts {
        texts.only(self.shape.input.opaque())
    }

    /// Whether the bound of the input is counted in tokens, which takes much longer than counting bytes.
    #[must_use]
    pub fn is_tokenized(&self) -> bool {
        self.tokenizer() != Tokenizer::Bytes
    }

    fn tokenizer(&self) -> Tokenizer {
        match (self.format.api(), self.upstream) {
            (ProviderApi::OpenAi, CallUpstream::Provider) => open_ai_tokenizer(&self.shape.model),
            (ProviderApi::Anthropic | ProviderApi::Gemini, _) | (_, CallUpstream::Elsewhere) => {
                Tokenizer::Bytes
            }
        }
    }

    /// The input of this call for the bound of the next one, if the provider counted it.
    #[must_use]
    pub fn counted_input(&self, used: &Used) -> Option<CountedInput> {
        let Used::Tokens(usage) = used else { return None };
        self.shape.input.counted_as(&self.shape.model, usage.input_tokens(), false)
    }

    /// How many parts its input has.
    #[must_use]
    pub fn part_count(&self) -> usize {
        self.shape.input.part_count()
    }

    /// Whether the provider's count can bound the input.
    #[must_use]
    pub const fn is_countable(&self) -> bool {
        self.shape.counted_fields.is_some()
    }

    /// The URL and the body of a request to the provider's counter; `None` if its count cannot bound the input.
    pub(crate) fn count_request(&self, base_url: &str, query: Option<&str>) -> Option<(String, Bytes)> {
        let fields = self.shape.counted_fields.as_ref()?;
        let path = count_request::path(self.format, &self.shape.model)?;
        // Gemini's says in which form the answer is wanted.
        let query = query.filter(|_| self.format != CallFormat::Gemini);
        let url = self.format.api().url(base_url, "", &path, query);
        Some((url, fields.body(&self.body)))
    }

    /// The bound of the input according to the counter's response.
    pub(crate) fn counted_max(&self, answer: &[u8]) -> Option<u64> {
        count_request::bound(self.format, answer)
    }

    /// The input of this call for the bound of later ones, as the provider's counter counted it.
    #[must_use]
    pub fn input_of(&self, tokens: u64) -> Option<CountedInput> {
        self.shape.input.counted_as(&self.shape.model, tokens, true)
    }

    /// Whether the bound of the input rests on the provider's counter, with these earlier inputs.
    #[must_use]
    pub fn is_estimated(&self, known: &[Arc<CountedInput>]) -> bool {
        self.shape.input.nearest(&self.shape.model, known).is_some_and(CountedInput::is_estimate)
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
        self.spliced(granted, self.shape.line_place.splice(line).into_iter().collect())
    }

    fn spliced(&self, granted: u64, added: Vec<Splice>) -> Result<Bytes, CapTooSmall> {
        let each = self.shape.caps.share(granted);
        let mut splices = self.shape.caps.lowered(each);
        if !splices.is_empty() {
            let min = self.output_cap_min();
            if granted < min {
                return Err(CapTooSmall { granted, min });
            }
            splices.extend(self.shape.thinking.as_ref().and_then(|thinking| thinking.lowered(each)));
        }
        if let UsageAsk::Change(change) = &self.shape.usage {
            splices.push(change.clone());
        }
        splices.extend(added);
        Ok(splice(&self.body, splices))
    }

    /// Reads the response to this call.
    #[must_use]
    pub fn reader(&self, status: StatusCode, headers: &HeaderMap, secrets: Secrets) -> ResponseReader {
        let hides_usage = matches!(self.shape.usage, UsageAsk::Change(_));
        let read_as = ReadAs {
            format: self.format.wire(),
            model: self.shape.model.clone(),
            keep: Keep::Facts,
            secrets,
            served_from: self.upstream.served_from(),
            // The program may ask for either lifetime.
            undivided_writes: match self.shape.writes {
                CacheWrites::Hour => UndividedWrites::Hour,
                CacheWrites::None | CacheWrites::Minutes => UndividedWrites::Minutes,
            },
        };
        ResponseReader::new(read_as, hides_usage, status, headers)
    }
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
