//! The bounds of what the gateway reads and keeps. What goes beyond one is refused, or is not read and settled at its
//! full hold; it is never cut.

/// Largest body of a request, in bytes: above what any provider takes.
pub const REQUEST_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Most JSON values and keys in the body of a request. Sixteen bytes are kept for each while it is read.
pub const REQUEST_VALUES_MAX: usize = 1_000_000;
/// Largest response that is not a stream and is read for its usage, in bytes. A larger one passes and is settled at its
/// full hold.
pub const WHOLE_RESPONSE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Largest event that is held back to see whether it is the usage that we asked for, in bytes.
pub const HELD_EVENT_BYTES_MAX: usize = 64 * 1024;
/// Longest name of a model, in bytes: the price table looks up none that is longer.
pub const MODEL_NAME_BYTES_MAX: usize = 256;
/// Longest id of a session or an agent that a program sends, in bytes. A longer one counts as missing.
pub const WIRE_ID_BYTES_MAX: usize = 128;
/// Longest path that is looked at, in bytes.
pub const PATH_BYTES_MAX: usize = 1_024;
/// Most parts of an input that are kept to compare them with the next call. Of an input with more, nothing is compared.
pub const INPUT_BLOCKS_MAX: usize = 20_000;
/// The most texts, readable only by a provider, that are remembered with the output tokens of their responses.
pub const OPAQUE_TEXTS_MAX: usize = 50_000;
/// Longest text of our own errors, in bytes.
pub const ERROR_TEXT_BYTES_MAX: usize = 2_048;

/// What a provider adds to every input: its own instructions, and those for tools.
pub const BASE_TOKENS: u64 = 1_024;
/// What a part of an input has beyond its own text: marks of roles, separators.
pub const BLOCK_TOKENS: u64 = 8;
/// What a tool adds that the provider defines and the program runs, such as a shell or an editor.
pub const DEFINED_TOOL_TOKENS: u64 = 1_024;
/// Most tokens of an image at Anthropic, which makes larger ones smaller.
pub const ANTHROPIC_IMAGE_TOKENS: u64 = 4_800;
/// Most tokens of an image at OpenAI: newer models keep its size and count up to 30,000 patches with a factor of up to
/// 1.62; `gpt-4o-mini` counts 2,833 plus 5,667 for each of up to eight tiles.
pub const OPEN_AI_IMAGE_TOKENS: u64 = 50_000;
/// Most tokens of an image at Gemini: older models make it smaller than 3,072 by 3,072 pixels and count 258 for each of up
/// to 17 tiles, newer ones count up to 2,240 for the finest resolution.
pub const GEMINI_IMAGE_TOKENS: u64 = 8_192;
/// The context of Anthropic's models with `context-1m` in `anthropic-beta`.
pub const LONG_CONTEXT: u64 = 1_000_000;

/// Smallest thinking budget that Anthropic takes. The cap must be larger.
pub const THINKING_TOKENS_MIN: u64 = 1_024;
/// Smallest `max_output_tokens` that OpenAI's responses take.
pub const RESPONSES_OUTPUT_TOKENS_MIN: u64 = 16;

/// The margin for Anthropic's and Gemini's counts of an input: the larger of this and the fraction below.
pub const COUNT_MARGIN_TOKENS: u64 = 512;
/// The fraction of the count, as its divisor.
pub const COUNT_MARGIN_PART: u64 = 50;
/// The margin for OpenAI's count of an input.
pub const OPEN_AI_COUNT_MARGIN_TOKENS: u64 = 64;
/// The largest body that is sent to a counter, in bytes.
pub const COUNTED_BYTES_MAX: usize = 8 * 1024 * 1024;
