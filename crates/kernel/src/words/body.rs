//! A text that crosses a boundary: bounded inline, the rest and everything that is no text by reference.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::words::{BlobHash, Part, Thought, check_parts, limit};

/// A text of bounded size. Where the original was larger, `text` is its preview and `rest` names the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Written")]
pub struct Body {
    /// The text, or the preview of it.
    pub text: String,
    /// How many tokens `text` has at most, if somebody counted.
    pub tokens: Option<u64>,
    /// What most texts have nothing of.
    pub beside: Option<Box<Beside>>,
}

/// What a text has beside itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// The whole, if the text is only a preview.
    pub rest: Option<BlobRef>,
    /// The byte of the text at which the beginning of the whole ends and its end begins, if both are shown. Whoever
    /// reads it asks [`Body::ends`], which trusts no journal.
    pub gap: Option<u32>,
    /// Images and files that belong to it.
    pub parts: Vec<Part>,
    /// What the model thought that said it.
    pub thought: Option<Box<Thought>>,
}

/// A body as it is written down.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    text: String,
    #[serde(default)]
    rest: Option<BlobRef>,
    #[serde(default)]
    tokens: Option<u64>,
    #[serde(default)]
    gap: Option<u32>,
    #[serde(default)]
    parts: Vec<Part>,
    #[serde(default)]
    thought: Option<Box<Thought>>,
}

impl From<Written> for Body {
    fn from(Written { text, rest, tokens, gap, parts, thought }: Written) -> Self {
        Self { text, tokens, beside: Beside { rest, gap, parts, thought }.boxed() }
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (rest, gap, parts, thought) = (self.rest(), self.gap(), self.parts(), self.thought());
        let optional =
            [rest.is_some(), self.tokens.is_some(), gap.is_some(), !parts.is_empty(), thought.is_some()];
        let fields = 1 + optional.into_iter().filter(|is_there| *is_there).count();
        let mut body = serializer.serialize_struct("Body", fields)?;
        body.serialize_field("text", &self.text)?;
        if let Some(rest) = rest {
            body.serialize_field("rest", rest)?;
        }
        if let Some(tokens) = self.tokens {
            body.serialize_field("tokens", &tokens)?;
        }
        if let Some(gap) = gap {
            body.serialize_field("gap", &gap)?;
        }
        if !parts.is_empty() {
            body.serialize_field("parts", parts)?;
        }
        if let Some(thought) = thought {
            body.serialize_field("thought", thought)?;
        }
        body.end()
    }
}

impl Beside {
    /// In a box, unless nothing is in it.
    fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// A blob, by what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlobRef {
    /// The hash of the bytes.
    pub hash: BlobHash,
    pub bytes: u64,
}

impl Body {
    /// A text that is whole.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), tokens: None, beside: None }
    }

    /// This as the preview of a whole, with the byte at which the beginning of that ends if its end is shown, too.
    #[must_use]
    pub fn with_rest(mut self, rest: BlobRef, gap: Option<u32>) -> Self {
        let beside = self.beside.get_or_insert_default();
        (beside.rest, beside.gap) = (Some(rest), gap);
        self
    }

    /// This with images and files.
    #[must_use]
    pub fn with_parts(mut self, parts: Vec<Part>) -> Self {
        let beside = self.beside.take().map(|beside| *beside).unwrap_or_default();
        self.beside = Beside { parts, ..beside }.boxed();
        self
    }

    /// This with what the model thought that said it, or without.
    #[must_use]
    pub fn with_thought(mut self, thought: Option<Thought>) -> Self {
        let beside = self.beside.take().map(|beside| *beside).unwrap_or_default();
        self.beside = Beside { thought: thought.map(Box::new), ..beside }.boxed();
        self
    }

    /// What the model thought that said it.
    #[must_use]
    pub fn thought(&self) -> Option<&Thought> {
        self.beside.as_ref()?.thought.as_deref()
    }

    /// The whole, if the text is only a preview.
    #[must_use]
    pub fn rest(&self) -> Option<&BlobRef> {
        self.beside.as_ref()?.rest.as_ref()
    }

    /// Images and files that belong to it.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        self.beside.as_ref().map_or(&[], |beside| &beside.parts)
    }

    /// The same, to have them counted.
    pub fn parts_mut(&mut self) -> &mut [Part] {
        self.beside.as_mut().map_or(&mut [], |beside| &mut beside.parts)
    }

    fn gap(&self) -> Option<u32> {
        self.beside.as_ref()?.gap
    }

    /// The head and the tail of the whole, if `text` is these two. A gap that is not between two characters of it, or
    /// with nothing to be left out, is none.
    #[must_use]
    pub fn ends(&self) -> Option<(&str, &str)> {
        self.rest()?;
        self.text.split_at_checked(usize::try_from(self.gap()?).ok()?)
    }

    /// Has its text counted.
    pub fn count(&mut self, tokens: &dyn Fn(&str) -> u64) {
        self.tokens = Some(tokens(&self.text));
    }

    /// This, cut to what a journal takes. Reports are not refused, so they are cut.
    pub(crate) fn bounded(&self) -> Self {
        let text = cut(&self.text, limit::TEXT_BYTES_MAX);
        let tokens = self.tokens.map(|tokens| tokens.min(limit::TEXT_BYTES_MAX as u64));
        let body = Self { text, tokens, beside: self.beside.clone() };
        // As many from the beginning as keep to the bounds together.
        let fits = |count: &usize| check_parts(self.parts().iter().take(*count)).is_ok();
        let count = (0..=self.parts().len().min(limit::PARTS_MAX)).rev().find(fits).unwrap_or(0);
        if count == self.parts().len() { body } else { body.with_parts(self.parts()[..count].to_vec()) }
    }

    /// This without images and files.
    pub(crate) fn only_text(self) -> Self {
        if self.parts().is_empty() { self } else { self.with_parts(Vec::new()) }
    }

    /// Whether nothing is in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.text.is_empty() && self.tokens.is_none() && self.beside.is_none()
    }

    /// The most tokens that the text can have: what was counted, or else its bytes, because no token is shorter.
    #[must_use]
    pub fn tokens_max(&self) -> u64 {
        let bytes = self.text.len() as u64;
        self.tokens.map_or(bytes, |tokens| tokens.min(bytes))
    }
}

/// A text, cut at a character so that it has at most so many bytes.
pub(crate) fn cut(text: &str, bytes_max: usize) -> String {
    let end = (0..=text.len().min(bytes_max)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text[..end].to_owned()
}
