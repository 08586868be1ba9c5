//! OpenAI's chat completions, and what others speak under that name.

mod read;
mod write;

pub(super) use read::ChatReader;
pub(super) use write::{ChatDialect, write};
