//! How many tokens an input has at most. The input is taken apart into blocks: messages or their parts, items, tools,
//! instructions. A block that was in the last call of the same agent is in what the provider reported for that call;
//! only the others are counted, exactly where the tokenizer is public and by their bytes otherwise. A block that the
//! provider may have left out then is counted again.
//!
//! An image has a bound of its own. What is not in the request (files, stored answers) is bounded by the context of the
//! model, because a provider takes no more.

use std::collections::BTreeMap;
use std::ops::Range;

use spinney_drivers::tokens::Tokenizer;
use spinney_kernel::budget::Used;

use super::bounds::{
    ANTHROPIC_IMAGE_TOKENS, BASE_TOKENS, BLOCK_TOKENS, GPT_4O_MINI_IMAGE_TOKENS, INPUT_BLOCKS_MAX,
    OPEN_AI_IMAGE_TOKENS,
};
use super::json_tape::{JsonKind, JsonNode, JsonTape};
use super::route::ProviderApi;

/// Identifies a block by what it says. Two blocks with one fingerprint are the same.
type Fingerprint = [u8; 16];

/// What an input is made of.
#[derive(Clone, Debug, Default)]
pub(super) struct InputBlocks {
    blocks: Vec<Block>,
    /// Tokens of everything that is no block.
    rest: u64,
    /// What of the input is not in the request.
    elsewhere: Option<&'static str>,
    /// What decides which blocks the provider leaves out.
    settings: Fingerprint,
    /// Whether the provider may leave out blocks of any kind.
    is_edited: bool,
}

#[derive(Clone, Debug)]
struct Block {
    fingerprint: Fingerprint,
    span: Range<usize>,
    media: Media,
}

/// The input of a call that a provider has counted.
#[derive(Clone, Debug)]
pub struct CountedInput {
    model: String,
    settings: Fingerprint,
    /// How often each block was in it.
    blocks: BTreeMap<Fingerprint, u32>,
    tokens: u64,
}

/// An input that has no bound: part of it is not in the request, and the model's context is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the input has {part}, whose size is unknown, and so is the context of the model: send the text itself, or use a model whose context is in the price table"
)]
pub struct UnboundedInput {
    part: &'static str,
}

/// What a block has beyond plain text.
#[derive(Clone, Debug, Default)]
pub(super) struct Media {
    pub(super) images: u64,
    /// Where the bytes of images are in the body.
    pub(super) image_spans: Vec<Range<usize>>,
    /// What of it is not in the request.
    pub(super) elsewhere: Option<&'static str>,
    /// Tokens that the provider adds for it.
    pub(super) more: u64,
    /// Whether the provider shows it in some calls and not in others.
    pub(super) comes_and_goes: bool,
}

impl InputBlocks {
    /// A block of the input. Marks for the provider's cache move from block to block and are no part of what it says.
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
        let is_plain = media.images == 0 && media.elsewhere.is_none() && media.more == 0;
        if self.blocks.len() >= INPUT_BLOCKS_MAX && is_plain {
            self.add_bytes(node.span().len());
        } else {
            self.blocks.push(Block { fingerprint: short(&hasher), span: node.span(), media });
        }
    }

    /// Something that is no block.
    pub(super) fn add_bytes(&mut self, bytes: usize) {
        self.rest = self.rest.saturating_add(bytes as u64);
    }

    /// Input that is not in the request at all.
    pub(super) fn add_elsewhere(&mut self, part: &'static str) {
        self.elsewhere = Some(part);
    }

    /// A setting that decides which blocks the provider leaves out.
    pub(super) fn add_setting(&mut self, raw: &str) {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.settings);
        hasher.update(raw.as_bytes());
        self.settings = short(&hasher);
    }

    /// The provider leaves out what it finds too old or too much.
    pub(super) fn add_edits(&mut self, raw: &str) {
        self.is_edited = true;
        self.add_setting(raw);
    }

    /// An upper bound of the tokens of all of it.
    pub(super) fn tokens_max(
        &self,
        body: &str,
        count: &InputCount<'_>,
        known: Option<&CountedInput>,
    ) -> Result<u64, UnboundedInput> {
        let known = known.filter(|known| known.model == count.model && known.settings == self.settings);
        // With fewer blocks the provider may show some that it left out before.
        let known = known.filter(|known| !self.is_edited || self.has_all(known));
        let mut unseen = known.map(|known| known.blocks.clone()).unwrap_or_default();
        let mut total = known.map_or(0, |known| known.tokens).saturating_add(BASE_TOKENS);
        let mut elsewhere = self.elsewhere;
        total = total.saturating_add(self.rest);
        for block in &self.blocks {
            if !block.media.comes_and_goes
                && let Some(left) = unseen.get_mut(&block.fingerprint).filter(|left| **left > 0)
            {
                *left -= 1;
                continue;
            }
            elsewhere = elsewhere.or(block.media.elsewhere);
            total = total.saturating_add(count.block(body, block));
        }
        match (elsewhere, count.context) {
            (None, _) => Ok(total),
            (Some(_), Some(context)) => Ok(total.max(context)),
            (Some(part), None) => Err(UnboundedInput { part }),
        }
    }

    /// The input with what a provider counted for it; none if it did not count, or if there is too much to compare.
    pub(super) fn known(&self, model: &str, used: &Used) -> Option<CountedInput> {
        let Used::Tokens(usage) = used else { return None };
        if self.elsewhere.is_some() || self.blocks.len() >= INPUT_BLOCKS_MAX {
            return None;
        }
        let (model, settings) = (model.to_owned(), self.settings);
        Some(CountedInput { model, settings, blocks: self.counted(), tokens: usage.input_tokens() })
    }

    fn has_all(&self, known: &CountedInput) -> bool {
        let here = self.counted();
        known.blocks.iter().all(|(block, times)| here.get(block).is_some_and(|here| here >= times))
    }

    /// How often each block is in it.
    fn counted(&self) -> BTreeMap<Fingerprint, u32> {
        let mut blocks = BTreeMap::new();
        for block in &self.blocks {
            *blocks.entry(block.fingerprint).or_insert(0) += 1;
        }
        blocks
    }
}

/// How an input is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct InputCount<'m> {
    pub(super) model: &'m str,
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

/// Counts every key and value of a block by itself: how the provider joins them is not known, but each join is a mark or
/// a break of its own.
fn exact(tokenizer: Tokenizer, raw: &str, block: &Block) -> u64 {
    let Ok(tape) = JsonTape::read(raw) else { return raw.len() as u64 };
    let is_image = |node: JsonNode<'_>| {
        let start = node.span().start + block.span.start;
        block.media.image_spans.binary_search_by_key(&start, |image| image.start).is_ok()
    };
    let count = |node: JsonNode<'_>| match node.kind() {
        JsonKind::Text if is_image(node) => 0,
        JsonKind::Text => node.text().map_or(node.raw().len() as u64, |text| tokenizer.bound(&text) + 1),
        JsonKind::Number => node.raw().len() as u64 + 1,
        JsonKind::Object | JsonKind::Array | JsonKind::True | JsonKind::False | JsonKind::Null => 2,
    };
    tape.root().with_descendants().map(count).fold(0, u64::saturating_add)
}

/// The most tokens of one image.
pub(super) fn image_tokens(api: ProviderApi, model: &str) -> u64 {
    match api {
        ProviderApi::Anthropic => ANTHROPIC_IMAGE_TOKENS,
        ProviderApi::OpenAi if model.contains("4o-mini") => GPT_4O_MINI_IMAGE_TOKENS,
        ProviderApi::OpenAi => OPEN_AI_IMAGE_TOKENS,
    }
}

fn short(hasher: &blake3::Hasher) -> Fingerprint {
    let mut fingerprint = Fingerprint::default();
    hasher.finalize_xof().fill(&mut fingerprint);
    fingerprint
}
