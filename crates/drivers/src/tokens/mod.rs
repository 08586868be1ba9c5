//! Counting tokens: exactly where the tokenizer of a model is known, and by a bound and an estimate where it is not. A
//! count is made once, where a text comes in, and is in the journal from then on; holds are sums of counts, so a sum must never
//! be less than what a provider counts over the whole.
//!
//! Nothing here asks a network: the vocabularies are in the binary, and each is unpacked once per process when it is
//! first needed, which takes about a tenth of a second.

mod estimate;
mod seam;
#[cfg(test)]
mod tests;

use tiktoken::CoreBpe;

use seam::Seams;

/// Longest text that is handed to the library at once, in bytes. Its merging takes more than linear time and about
/// thirty bytes of memory per byte of one unbroken stretch, so a longer text is counted in pieces.
const PIECE_BYTES_MAX: usize = 32 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tokenizer {
    /// The encoding of OpenAI's models since GPT-4o.
    O200k,
    /// The encoding of GPT-4 and GPT-3.5.
    Cl100k,
    /// An unknown one: at most one token per byte, because no token of a tokenizer that is made of bytes is shorter.
    Bytes,
}

impl Tokenizer {
    /// The tokenizer of a model, by the name that its provider gives it; a folder before it, as in `openai/gpt-4o`, and
    /// the `ft:` of fine-tuned models change nothing. A model that is not known is counted by its bytes.
    #[must_use]
    pub fn for_model(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        let name = name.strip_prefix("ft:").unwrap_or(name);
        let is = |family: &&str| {
            let rest = name.strip_prefix(*family);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':', '.', '@']))
        };
        // `gpt-4.1` and `gpt-4.5` begin as `gpt-4` does, so the newer ones are looked for first.
        if ["gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "o1", "o3", "o4", "chatgpt-4o"].iter().any(is) {
            Self::O200k
        } else if ["gpt-4", "gpt-3.5"].iter().any(is) {
            Self::Cl100k
        } else {
            Self::Bytes
        }
    }

    /// Its name: what a driver answers to [`tokenizer`](spinney_kernel::port::model::Model::tokenizer).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k",
            Self::Cl100k => "cl100k",
            Self::Bytes => "bytes",
        }
    }

    /// How many tokens a text has on its own. Exact up to 32 KiB, and beyond that as long as there are places to cut it
    /// at; a stretch without one is counted by its bytes, so a hostile text takes linear time and little memory.
    ///
    /// What looks like a special token, such as `<|endoftext|>`, is counted as the text that it is. That is more than
    /// the one token it would be if a provider took it for one.
    #[must_use]
    pub fn count(self, text: &str) -> u64 {
        let Some(library) = self.library() else { return text.len() as u64 };
        if text.len() <= PIECE_BYTES_MAX {
            return library.count(text) as u64;
        }
        Seams::pieces(text, PIECE_BYTES_MAX)
            .map(|piece| match piece.len() {
                0..=PIECE_BYTES_MAX => library.count(piece) as u64,
                bytes => bytes as u64,
            })
            .sum()
    }

    /// How many tokens a text has at most wherever it is: at the beginning of a message or after a line break, and
    /// up to the end of the message or a line break. This is what a driver answers to
    /// [`tokens`](spinney_kernel::port::model::Model::tokens).
    ///
    /// Counts of parts do not bound the count of the whole: tokens may cross a join, and merging differently there
    /// can make more of them as well as fewer. But both encodings split a text before they merge, so what happens at a
    /// join ends at the nearest place where they always split. What is before the first such place and after the last
    /// counts by its bytes, and only where a line break could reach into it: after a full stop, that is one.
    #[must_use]
    pub fn bound(self, text: &str) -> u64 {
        match self {
            Self::Bytes => text.len() as u64,
            Self::O200k | Self::Cl100k => {
                let (head, middle, tail) = Seams::edges(text);
                (head.len() + tail.len()) as u64 + self.count(middle)
            }
        }
    }

    /// What the tokens of a text probably are, if this is not known exactly: what a driver answers to
    /// [`estimate`](spinney_kernel::port::model::Model::estimate).
    #[must_use]
    pub fn estimate(self, text: &str) -> Option<u64> {
        match self {
            Self::Bytes => Some(estimate::estimate(text)),
            Self::O200k | Self::Cl100k => None,
        }
    }

    fn library(self) -> Option<&'static CoreBpe> {
        match self {
            Self::O200k => tiktoken::get_encoding("o200k_base"),
            Self::Cl100k => tiktoken::get_encoding("cl100k_base"),
            Self::Bytes => None,
        }
    }
}
