//! Gemini's `generateContent`.

mod read;
mod write;

pub(super) use read::GeminiReader;
pub(super) use write::write;
