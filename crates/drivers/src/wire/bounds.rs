//! The bounds of what is read from a provider. Whatever goes beyond one is a fault, and nothing is kept of the rest.

/// Longest line of a stream, in bytes. Some providers repeat the whole answer in their last event, on one line.
pub const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Largest event of a stream, in bytes: the data of all its lines together.
pub const EVENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Longest name of an event, in bytes. A longer one is none that we know.
pub const EVENT_NAME_BYTES_MAX: usize = 256;
/// Longest text of one answer, in bytes: far above what any model says in one call.
pub const ANSWER_TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest reasoning of one answer that is kept, in bytes.
pub const REASONING_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Most tool calls of one answer.
pub const CALLS_MAX: usize = 1_000;
/// Largest arguments of all tool calls of one answer together, in bytes.
pub const ARGUMENTS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Longest id or name that a provider may give a tool call, a model or an answer, in bytes.
pub const WIRE_NAME_BYTES_MAX: usize = 512;
/// Most content blocks, output items or parts of one answer.
pub const BLOCKS_MAX: usize = 4_096;
/// Most bytes that an answer may want sent back unchanged.
pub const RAW_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Largest continuation data, in bytes: what goes back unchanged, and where it belongs. It is kept as one blob.
pub const CONTINUATION_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most of an error's body that is read, in bytes.
pub const ERROR_BODY_BYTES_MAX: usize = 64 * 1024;
/// Longest text of a fault that people are shown, in bytes.
pub const FAULT_TEXT_BYTES_MAX: usize = 512;
/// Longest pause that a provider's words are turned into, in milliseconds: a day. The kernel has a stricter bound.
pub const PAUSE_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// Largest rate limit that a provider can announce: far above what any provider has.
pub const ALLOWANCE_MAX: u64 = 1_000_000_000_000;
