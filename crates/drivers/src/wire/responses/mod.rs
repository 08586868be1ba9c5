//! OpenAI's responses: read and written, with reasoning that goes back encrypted.

mod read;
mod write;

pub(super) use read::ResponsesReader;
pub(super) use write::write;
