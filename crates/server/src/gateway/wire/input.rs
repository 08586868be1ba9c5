//! How many tokens an input has at most. The input is taken apart into blocks: messages or their parts, items, tools,
//! instructions. A block that was in the last call of the same agent is in what the provider reported for that call;
//! only the others are counted, exactly where the tokenizer is public and by their bytes otherwise. A block that the
//! provider may have left out then, or that may have changed since, is counted again.
//!
//! An image has its own bound. What is not in the request (files, stored answers) is bounded by the context of the
//! model, because a provider accepts no more. Content that only the provider can read (encrypted reasoning, pages of
//! a PDF) has the same bound, unless the provider counts it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use spinney_drivers::tokens::Tokenizer;
use spinney_drivers::wire::OpaqueHash;

use super::bounds::{
    ANTHROPIC_IMAGE_TOKENS, BASE_TOKENS, BLOCK_TOKENS, GEMINI_IMAGE_TOKENS, INPUT_BLOCKS_MAX,
    OPEN_AI_IMAGE_TOKENS,
};
use super::call_request::CallUpstream;
use super::json_tape::{JsonKind, JsonNode, JsonTape};
use super::opaque_texts::{OpaqueTexts, OpaqueTokens};
use super::route::ProviderApi;

/// Identifies a block by what it says. Two blocks with one fingerprint are the same.
type Fingerprint = [u8; 16];

/// What an input is made of.
#[derive(Clone, Debug, Default)]
pub(super) struct InputBlocks {
    blocks: Vec<Block>,
    /// Whether what is added is said in turns: messages or items.
    pub(super) is_in_turns: bool,
    /// Tokens of everything that is not a block.
    rest: u64,
    /// What of the input is not in the request.
    elsewhere: Option<Elsewhere>,
    /// What decides which blocks the provider leaves out.
    settings: Fingerprint,
    omits: Omits,
}

/// Which blocks a provider is asked to leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Omits {
    #[default]
    Nothing,
    /// Thinking of earlier turns. It is always counted anyway.
    Thinking,
    /// Blocks chosen by their position, such as old tool results.
    ByOrder,
}

/// Input that is not in a request, or that only its provider can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elsewhere {
    /// A stored response, with everything before it.
    Answer,
    /// A stored item, named by its id.
    Item,
    /// A stored file, or the content of a URL.
    File,
    /// The pages of a file that is in the request.
    Pages,
    /// Reasoning or a summary that only the provider can decrypt.
    Encrypted,
    /// A part that we cannot classify.
    Unknown,
}

impl Elsewhere {
    /// Whether the provider's count bounds it: it is in the request, so it cannot change between the count and the call.
    const fn is_countable(self) -> bool {
        matches!(self, Self::Pages | Self::Encrypted)
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Answer => "a response that the provider stores",
            Self::Item => "an item that the provider stores",
            Self::File => "a file",
            Self::Pages => "a file with pages",
            Self::Encrypted => "a part that only the provider can read",
            Self::Unknown => "a part that the gateway does not know",
        }
    }
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug)]
struct Block {
    fingerprint: Fingerprint,
    is_turn: bool,
    span: Range<usize>,
    media: Media,
}

/// The input of a call that a provider has counted.
#[derive(Clone, Debug)]
pub struct CountedInput {
    model: String,
    settings: Fingerprint,
    blocks: Vec<Fingerprint>,
    /// Those that are said in turns, in their order.
    turns: Vec<Fingerprint>,
    tokens: u64,
    /// Whether this is the count of the provider's counter, and not what a call used.
    is_estimate: bool,
}

/// An input that has no bound: part of it is not in the request, and the model's context is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the input has {part}, whose size is unknown, and so is the context of the model: send the text itself, or use a model whose context is in the price table"
)]
pub struct UnboundedInput {
    part: Elsewhere,
}

/// What a block has beyond plain text.
#[derive(Clone, Debug, Default)]
pub(super) struct Media {
    images: u64,
    /// Where the bytes of images are in the body.
    image_spans: Vec<Range<usize>>,
    /// Whether an image is not in the request.
    has_remote_image: bool,
    elsewhere: Option<Elsewhere>,
    /// Texts that only the provider can read.
    opaque: Vec<OpaqueHash>,
    /// The name of a tool, if it is one, and the names of those that it refers to.
    tool_name: Option<Fingerprint>,
    references: Vec<Fingerprint>,
    /// Tokens that the provider adds for it.
    more: u64,
    /// Whether the provider shows it by its place among the turns: once something was said after it, it may be left out.
    pub(super) is_shown_by_place: bool,
    /// What is said of it outside of it, and decides whether it is shown.
    terms: String,
    /// Whether it is counted again in every call, because the provider includes it only in some calls, or because it may
    /// change between calls.
    pub(super) is_recounted: bool,
}

impl Media {
    /// A tool in it: what the provider adds for it, and whether it is shown in some calls only.
    pub(super) fn add_tool(&mut self, more: u64, is_recounted: bool) {
        self.more = self.more.saturating_add(more);
        self.is_recounted |= is_recounted;
    }

    /// The provider puts the definition of a tool in this place.
    pub(super) fn add_reference(&mut self, name: Option<JsonNode<'_>>) {
        self.references.extend(name.map(name_fingerprint));
    }

    /// What references to it say.
    pub(super) fn set_tool_name(&mut self, name: Option<JsonNode<'_>>) {
        self.tool_name = name.map(name_fingerprint);
    }

    /// Of a part of a message that says more than its role: whether it is shown may depend on what follows it.
    pub(super) fn with_terms(terms: &str) -> Self {
        Self { is_shown_by_place: !terms.is_empty(), terms: terms.to_owned(), ..Self::default() }
    }

    pub(super) fn elsewhere(part: Elsewhere) -> Self {
        let mut media = Self::default();
        media.add_elsewhere(part);
        media
    }

    pub(super) fn add_elsewhere(&mut self, part: Elsewhere) {
        self.is_recounted |= !part.is_countable();
        self.elsewhere = self.elsewhere.filter(|known| !known.is_countable()).or(Some(part));
    }

    /// A text that only the provider can read.
    pub(super) fn add_opaque(&mut self, text: Option<JsonNode<'_>>) {
        match text.and_then(JsonNode::text) {
            Some(text) => self.opaque.push(OpaqueHash::new(&text)),
            None => self.add_elsewhere(Elsewhere::Unknown),
        }
    }

    /// Bytes that only the provider can read, in base64.
    pub(super) fn add_opaque_bytes(&mut self, text: JsonNode<'_>) {
        match text.text() {
            Some(text) => self.opaque.push(OpaqueHash::of_base64(&text)),
            None => self.add_elsewhere(Elsewhere::Unknown),
        }
    }

    /// A text for another agent, which came as an argument of a call.
    pub(super) fn add_handed_on(&mut self, text: Option<JsonNode<'_>>) {
        match text.and_then(JsonNode::text) {
            Some(text) => self.opaque.push(OpaqueHash::of_argument(&text)),
            None => self.add_elsewhere(Elsewhere::Unknown),
        }
    }

    /// An image whose bytes are in the request.
    pub(super) fn add_image(&mut self, bytes: Option<JsonNode<'_>>) {
        self.images += 1;
        self.image_spans.extend(bytes.filter(|bytes| bytes.kind() == JsonKind::Text).map(JsonNode::span));
    }

    /// An image that the provider fetches or stores.
    pub(super) fn add_remote_image(&mut self) {
        self.images += 1;
        (self.has_remote_image, self.is_recounted) = (true, true);
    }
}

impl InputBlocks {
    /// A block of the input. Marks for the provider's cache move from block to block and are not part of its content.
    pub(super) fn push(&mut self, node: JsonNode<'_>, mut media: Media) {
        media.image_spans.sort_by_key(|image| image.start);
        let mut hasher = blake3::Hasher::new();
        if node.kind() == JsonKind::Object {
            for member in node.members().filter(|member| !member.key.is_text("cache_control")) {
                for part in [member.key.raw(), ":", member.value.raw(), ","] {
                    hasher.update(part.as_bytes());
                }
            }
        } else {
            hasher.update(node.raw().as_bytes());
        }
        hasher.update(media.terms.as_bytes());
        let is_plain = media.images == 0
            && media.elsewhere.is_none()
            && media.opaque.is_empty()
            && media.references.is_empty()
            && media.more == 0;
        if self.blocks.len() >= INPUT_BLOCKS_MAX && is_plain {
            self.add_bytes(node.span().len());
        } else {
            let (fingerprint, is_turn) = (short(&hasher), self.is_in_turns);
            self.blocks.push(Block { fingerprint, is_turn, span: node.span(), media });
        }
    }

    /// Something that is not a block.
    pub(super) fn add_bytes(&mut self, bytes: usize) {
        self.rest = self.rest.saturating_add(bytes as u64);
    }

    /// Input that is not in the request at all.
    pub(super) fn add_elsewhere(&mut self, part: Elsewhere) {
        self.elsewhere = Some(part);
    }

    /// A setting that decides which blocks the provider leaves out.
    pub(super) fn add_setting(&mut self, raw: &str) {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.settings);
        hasher.update(raw.as_bytes());
        self.settings = short(&hasher);
    }

    /// Edits with which the provider leaves blocks out.
    pub(super) fn add_edits(&mut self, omits: Omits, raw: &str) {
        self.omits = self.omits.max(omits);
        self.add_setting(raw);
    }

    pub(super) fn part_count(&self) -> usize {
        self.blocks.len()
    }

    /// The texts in it that only the provider can read.
    pub(super) fn opaque(&self) -> impl Iterator<Item = &OpaqueHash> {
        self.blocks.iter().flat_map(|block| &block.media.opaque)
    }

    /// Whether the provider's count bounds the input: no part of it can change between the count and the call.
    pub(super) fn is_countable(&self) -> bool {
        let is_fixed =
            |media: &Media| !media.has_remote_image && media.elsewhere.is_none_or(Elsewhere::is_countable);
        self.elsewhere.is_none() && self.blocks.iter().all(|block| is_fixed(&block.media))
    }

    /// The counted input that gives the smallest bound for this one. None if the bound is better without any.
    pub(super) fn nearest<'k>(
        &self,
        model: &str,
        known: &'k [Arc<CountedInput>],
    ) -> Option<&'k CountedInput> {
        let is_by_place = self.blocks.iter().any(|block| block.media.is_shown_by_place);
        let omits = if is_by_place { Omits::ByOrder } else { self.omits };
        let usable = known.iter().map(Arc::as_ref).filter(|known| {
            known.model == model
                && known.settings == self.settings
                // With fewer blocks, or in another order, the provider may include blocks that it left out before.
                && match omits {
                    Omits::Nothing => true,
                    Omits::Thinking => self.has_all(known),
                    Omits::ByOrder => self.begins_with(known),
                }
        });
        let bound = |known: &CountedInput| known.tokens.saturating_add(self.bytes_beyond(known));
        let best = usable.min_by_key(|known| bound(known))?;
        let whole: usize = self.blocks.iter().map(|block| block.span.len()).sum();
        (bound(best) < whole as u64 || self.is_covered(best)).then_some(best)
    }

    /// The bytes of the blocks that are not in a counted input.
    fn bytes_beyond(&self, known: &CountedInput) -> u64 {
        self.beyond(known).map(|block| block.span.len() as u64).sum()
    }

    /// Whether this input has blocks without a known bound, and the counted input contains all of them.
    fn is_covered(&self, known: &CountedInput) -> bool {
        let is_bounded = |block: &Block| block.media.elsewhere.is_none() && block.media.opaque.is_empty();
        !self.blocks.iter().all(is_bounded) && self.beyond(known).all(is_bounded)
    }

    /// The blocks that are not in a counted input, or that are always counted again.
    fn beyond(&self, known: &CountedInput) -> impl Iterator<Item = &Block> {
        let mut unseen = known.counted();
        self.blocks.iter().filter(move |block| {
            let left =
                unseen.get_mut(&block.fingerprint).filter(|left| **left > 0 && !block.media.is_recounted);
            left.map(|left| *left -= 1).is_none()
        })
    }

    /// An upper bound of the tokens of all of it.
    pub(super) fn tokens_max(
        &self,
        body: &str,
        count: &InputCount<'_>,
        known: Option<&CountedInput>,
    ) -> Result<u64, UnboundedInput> {
        let mut total = known.map_or(0, |known| known.tokens).saturating_add(BASE_TOKENS);
        let mut elsewhere = self.elsewhere;
        total = total.saturating_add(self.rest);
        let mut opaque = OpaqueTokens::default();
        let mut references = BTreeMap::new();
        let mut add = |block: &Block| {
            elsewhere = elsewhere.or(block.media.elsewhere);
            for name in &block.media.references {
                *references.entry(*name).or_insert(0_u64) += 1;
            }
            for text in &block.media.opaque {
                match count.opaque.origin(text) {
                    Some(origin) => opaque.add(*text, origin),
                    None => elsewhere = elsewhere.or(Some(Elsewhere::Encrypted)),
                }
            }
            total = total.saturating_add(count.block(body, block));
        };
        match known {
            Some(known) => self.beyond(known).for_each(&mut add),
            None => self.blocks.iter().for_each(&mut add),
        }
        total = total.saturating_add(opaque.total());
        // A tool is shown wherever it is referred to; one that comes and goes was counted once.
        for block in &self.blocks {
            let times =
                block.media.tool_name.and_then(|name| references.get(&name)).copied().unwrap_or_default();
            let more = times.saturating_sub(u64::from(block.media.is_recounted));
            if more > 0 {
                total = total.saturating_add(count.block(body, block).saturating_mul(more));
            }
        }
        match (elsewhere, count.context) {
            (None, _) => Ok(total),
            (Some(_), Some(context)) => Ok(total.max(context)),
            (Some(part), None) => Err(UnboundedInput { part }),
        }
    }

    /// The input with the provider's count; `None` if it cannot be compared with later inputs.
    pub(super) fn counted_as(&self, model: &str, tokens: u64, is_estimate: bool) -> Option<CountedInput> {
        if self.elsewhere.is_some() || self.blocks.len() >= INPUT_BLOCKS_MAX {
            return None;
        }
        let blocks = self.blocks.iter().map(|block| block.fingerprint).collect();
        let (model, settings, turns) = (model.to_owned(), self.settings, self.turns().collect());
        Some(CountedInput { model, settings, blocks, turns, tokens, is_estimate })
    }

    fn has_all(&self, known: &CountedInput) -> bool {
        let here = times(self.blocks.iter().map(|block| block.fingerprint));
        known.counted().iter().all(|(block, times)| here.get(block).is_some_and(|here| here >= times))
    }

    /// Whether it has everything of a counted input, and its turns begin with those.
    fn begins_with(&self, known: &CountedInput) -> bool {
        self.has_all(known)
            && self.turns().count() >= known.turns.len()
            && self.turns().zip(&known.turns).all(|(here, known)| here == *known)
    }

    fn turns(&self) -> impl Iterator<Item = Fingerprint> {
        self.blocks.iter().filter(|block| block.is_turn).map(|block| block.fingerprint)
    }
}

impl CountedInput {
    /// Whether this is the count of the provider's counter, and not what a call used.
    #[must_use]
    pub const fn is_estimate(&self) -> bool {
        self.is_estimate
    }

    /// How often each block is in it.
    fn counted(&self) -> BTreeMap<Fingerprint, u32> {
        times(self.blocks.iter().copied())
    }
}

fn times(blocks: impl Iterator<Item = Fingerprint>) -> BTreeMap<Fingerprint, u32> {
    let mut times = BTreeMap::new();
    for block in blocks {
        *times.entry(block).or_insert(0) += 1;
    }
    times
}

/// How an input is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct InputCount<'o> {
    pub(super) opaque: &'o OpaqueTexts,
    pub(super) tokenizer: Tokenizer,
    pub(super) image_tokens: u64,
    /// The most that the model takes, if it is known.
    pub(super) context: Option<u64>,
}

impl InputCount<'_> {
    fn block(&self, body: &str, block: &Block) -> u64 {
        let (raw, media) = (&body[block.span.clone()], &block.media);
        let image_bytes: usize = media.image_spans.iter().map(Range::len).sum();
        let bytes = raw.len().saturating_sub(image_bytes) as u64;
        let text = match self.tokenizer {
            Tokenizer::Bytes => bytes,
            tokenizer @ (Tokenizer::O200k | Tokenizer::Cl100k) => exact(tokenizer, raw, block).min(bytes),
        };
        let images = media.images.saturating_mul(self.image_tokens);
        text.saturating_add(images).saturating_add(media.more).saturating_add(BLOCK_TOKENS)
    }
}

/// Counts every key and value of a block on its own: how the provider joins them is not known, but each join is a mark or
/// its own break. OpenAI writes a text among others with quotation marks and a bar, which are three.
fn exact(tokenizer: Tokenizer, raw: &str, block: &Block) -> u64 {
    let Ok(tape) = JsonTape::read(raw) else { return raw.len() as u64 };
    let is_image = |node: JsonNode<'_>| {
        let start = node.span().start + block.span.start;
        block.media.image_spans.binary_search_by_key(&start, |image| image.start).is_ok()
    };
    let count = |node: JsonNode<'_>| match node.kind() {
        JsonKind::Text if is_image(node) => 0,
        JsonKind::Text => node.text().map_or(node.raw().len() as u64, |text| tokenizer.bound(&text) + 3),
        JsonKind::Number => node.raw().len() as u64 + 1,
        JsonKind::Object | JsonKind::Array | JsonKind::True | JsonKind::False | JsonKind::Null => 2,
    };
    tape.root().with_descendants().map(count).fold(0, u64::saturating_add)
}

/// The most tokens of one image. A server elsewhere may show it as it is.
pub(super) const fn image_tokens(api: ProviderApi, upstream: CallUpstream) -> u64 {
    match (api, upstream) {
        (ProviderApi::Anthropic, CallUpstream::Provider) => ANTHROPIC_IMAGE_TOKENS,
        (ProviderApi::Gemini, CallUpstream::Provider) => GEMINI_IMAGE_TOKENS,
        (ProviderApi::Anthropic | ProviderApi::Gemini, CallUpstream::Elsewhere)
        | (ProviderApi::OpenAi, _) => OPEN_AI_IMAGE_TOKENS,
    }
}

fn name_fingerprint(name: JsonNode<'_>) -> Fingerprint {
    let mut hasher = blake3::Hasher::new();
    hasher.update(name.text().unwrap_or_default().as_bytes());
    short(&hasher)
}

fn short(hasher: &blake3::Hasher) -> Fingerprint {
    let mut fingerprint = Fingerprint::default();
    hasher.finalize_xof().fill(&mut fingerprint);
    fingerprint
}
