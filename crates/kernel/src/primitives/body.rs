//! A text that crosses a boundary: bounded inline, with references to the rest and to binary parts.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::primitives::{BlobHash, Part, Thought, TokenCount, check_parts, limit};

/// A text of bounded size. If the original was larger, `text` is a preview and `rest` refers to the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Written")]
pub struct Body {
    pub text: String,
    /// The tokens of `text`, if it was counted.
    pub tokens: Option<TokenCount>,
    /// Boxed because most texts have none of it.
    pub beside: Option<Box<BodyExtras>>,
}

/// The optional parts of a [`Body`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BodyExtras {
    /// The whole text, if `text` is only a preview.
    pub rest: Option<BlobRef>,
    /// Byte offset in `text` where the head of the original ends and its tail begins, if both are shown. Read it
    /// through [`Body::ends`], which validates it: a journal may hold any value.
    pub gap: Option<u32>,
    pub parts: Vec<Part>,
    /// The reasoning of the model that wrote the text.
    pub thought: Option<Box<Thought>>,
}

/// The serialized form of a body.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    text: String,
    #[serde(default)]
    rest: Option<BlobRef>,
    #[serde(default)]
    tokens: Option<TokenCount>,
    #[serde(default)]
    gap: Option<u32>,
    #[serde(default)]
    parts: Vec<Part>,
    #[serde(default)]
    thought: Option<Box<Thought>>,
}

impl From<Written> for Body {
    fn from(Written { text, rest, tokens, gap, parts, thought }: Written) -> Self {
        Self { text, tokens, beside: BodyExtras { rest, gap, parts, thought }.boxed() }
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

impl BodyExtras {
    /// `None` if it is empty.
    fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// A reference to a blob by its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlobRef {
    pub hash: BlobHash,
    pub bytes: u64,
}

impl Body {
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), tokens: None, beside: None }
    }

    /// Marks this as a preview. `gap` is the byte offset where the head ends, if the tail is also shown.
    #[must_use]
    pub fn with_rest(mut self, rest: BlobRef, gap: Option<u32>) -> Self {
        let beside = self.beside.get_or_insert_default();
        (beside.rest, beside.gap) = (Some(rest), gap);
        self
    }

    #[must_use]
    pub fn with_parts(mut self, parts: Vec<Part>) -> Self {
        let beside = self.beside.take().map(|beside| *beside).unwrap_or_default();
        self.beside = BodyExtras { parts, ..beside }.boxed();
        self
    }

    #[must_use]
    pub fn with_thought(mut self, thought: Option<Thought>) -> Self {
        let beside = self.beside.take().map(|beside| *beside).unwrap_or_default();
        self.beside = BodyExtras { thought: thought.map(Box::new), ..beside }.boxed();
        self
    }

    #[must_use]
    pub fn thought(&self) -> Option<&Thought> {
        self.beside.as_ref()?.thought.as_deref()
    }

    /// The whole text, if `text` is only a preview.
    #[must_use]
    pub fn rest(&self) -> Option<&BlobRef> {
        self.beside.as_ref()?.rest.as_ref()
    }

    #[must_use]
    pub fn parts(&self) -> &[Part] {
        self.beside.as_ref().map_or(&[], |beside| &beside.parts)
    }

    /// Mutable, so their tokens can be counted.
    pub fn parts_mut(&mut self) -> &mut [Part] {
        self.beside.as_mut().map_or(&mut [], |beside| &mut beside.parts)
    }

    fn gap(&self) -> Option<u32> {
        self.beside.as_ref()?.gap
    }

    /// Head and tail of the original, if `text` consists of both. A gap off a character boundary, or with nothing
    /// left out, is ignored.
    #[must_use]
    pub fn ends(&self) -> Option<(&str, &str)> {
        self.rest()?;
        self.text.split_at_checked(usize::try_from(self.gap()?).ok()?)
    }

    pub fn count(&mut self, tokens: &dyn Fn(&str) -> TokenCount) {
        self.tokens = Some(tokens(&self.text));
    }

    /// Cut to the journal's limits: reports cannot be refused, so they are cut.
    pub(crate) fn bounded(&self) -> Self {
        let text = cut(&self.text, limit::TEXT_BYTES_MAX);
        let tokens = self.tokens.map(|tokens| tokens.at_most(limit::TEXT_BYTES_MAX as u64));
        let body = Self { text, tokens, beside: self.beside.clone() };
        // The longest prefix that keeps within the limits as a whole.
        let fits = |count: &usize| check_parts(self.parts().iter().take(*count)).is_ok();
        let count = (0..=self.parts().len().min(limit::PARTS_MAX)).rev().find(fits).unwrap_or(0);
        if count == self.parts().len() { body } else { body.with_parts(self.parts()[..count].to_vec()) }
    }

    pub(crate) fn only_text(self) -> Self {
        if self.parts().is_empty() { self } else { self.with_parts(Vec::new()) }
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.text.is_empty() && self.tokens.is_none() && self.beside.is_none()
    }

    /// The text's tokens: the count if there is one, else by its bytes.
    #[must_use]
    pub fn counted(&self) -> TokenCount {
        let bytes = self.text.len();
        self.tokens.map_or(TokenCount::of_bytes(bytes), |tokens| tokens.at_most(bytes as u64))
    }
}

/// Cuts at a character boundary, to at most `bytes_max` bytes.
pub(crate) fn cut(text: &str, bytes_max: usize) -> String {
    let end = (0..=text.len().min(bytes_max)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text[..end].to_owned()
}
