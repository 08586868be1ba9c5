//! Parts: images and files that belong to a message. A message holds their description and a reference; the bytes are
//! blobs and never appear in an event. A part is validated when it is made, wherever it comes from.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::primitives::{BlobHash, BlobRef, MediaType, PartName, TokenCount, limit};

/// Image types that models accept.
pub const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Hex digits of a blob's hash that are shown in a line.
const HASH_DIGITS: usize = 16;
/// Suffix of the line that replaces a hidden image.
const LEFT_OUT: &str = ": left out, only newer images are shown";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// An image that a model looks at. A packet contains a bounded number of them.
    Image,
    File,
}

impl PartKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::File => "file",
        }
    }

    #[must_use]
    pub fn from_media(media: &MediaType) -> Self {
        if IMAGE_TYPES.contains(&media.as_str()) { Self::Image } else { Self::File }
    }
}

/// An image or a file of a message, by reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Part {
    kind: PartKind,
    media: MediaType,
    name: PartName,
    blob: BlobRef,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<TokenCount>,
}

/// A part together with its bytes, before it is added to a message.
#[derive(Clone, PartialEq, Eq)]
pub struct Enclosure {
    pub kind: PartKind,
    pub media: MediaType,
    pub name: PartName,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum BadPart {
    #[error("`{name}` is empty: send something, or leave it out")]
    Empty { name: PartName },
    #[error("`{name}` has {bytes} bytes and the limit is {bytes_max}: make it smaller, or pass it in pieces")]
    TooLarge { name: PartName, bytes: u64, bytes_max: u64 },
    #[error("`{name}` is not an image type that models accept ({media}): use one of {}, or send it as a file", IMAGE_TYPES.join(", "))]
    NoImage { name: PartName, media: MediaType },
    #[error("{count} parts are too many, the limit is {count_max}: send them in several messages")]
    TooMany { count: usize, count_max: usize },
    #[error(
        "the parts have {bytes} bytes together and the limit is {bytes_max}: send them in several messages"
    )]
    TooLargeTogether { bytes: u64, bytes_max: u64 },
    #[error("the bytes of `{name}` are missing: send them with it")]
    NoBytes { name: PartName },
    #[error("the {what} holds text only: leave the parts out, or send them as a message")]
    TextOnly { what: String },
}

impl Part {
    /// # Errors
    /// If it is empty or too large, or an image of a type that models do not accept.
    pub fn new(kind: PartKind, media: MediaType, name: PartName, blob: BlobRef) -> Result<Self, BadPart> {
        let (bytes, bytes_max) = (blob.bytes, limit::PART_BYTES_MAX);
        match kind {
            _ if bytes == 0 => Err(BadPart::Empty { name }),
            _ if bytes > bytes_max => Err(BadPart::TooLarge { name, bytes, bytes_max }),
            PartKind::Image if PartKind::from_media(&media) != PartKind::Image => {
                Err(BadPart::NoImage { name, media })
            }
            PartKind::Image | PartKind::File => Ok(Self { kind, media, name, blob, tokens: None }),
        }
    }

    #[must_use]
    pub const fn kind(&self) -> PartKind {
        self.kind
    }

    #[must_use]
    pub const fn media(&self) -> &MediaType {
        &self.media
    }

    #[must_use]
    pub const fn name(&self) -> &PartName {
        &self.name
    }

    #[must_use]
    pub const fn blob(&self) -> &BlobRef {
        &self.blob
    }

    #[must_use]
    pub const fn is_image(&self) -> bool {
        matches!(self.kind, PartKind::Image)
    }

    /// Sets its tokens where it is shown.
    pub const fn count(&mut self, tokens: TokenCount) {
        self.tokens = Some(tokens);
    }

    /// Its tokens where it is shown: the count if there is one, else [`limit::IMAGE_TOKENS`] for an image and the bytes
    /// for a file. The line that names it comes on top.
    #[must_use]
    pub fn counted(&self) -> TokenCount {
        self.tokens.unwrap_or(TokenCount::exact(match self.kind {
            PartKind::Image => limit::IMAGE_TOKENS,
            PartKind::File => self.blob.bytes,
        }))
    }

    pub(crate) fn line_tokens(&self) -> TokenCount {
        TokenCount::of_bytes(self.placeholder().len())
    }

    /// The line that replaces it when it is not shown.
    #[must_use]
    pub fn placeholder(&self) -> String {
        let line = self.to_string();
        let open = line.strip_suffix(']').unwrap_or(&line);
        format!("{open}{LEFT_OUT}]")
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, media, name, blob: BlobRef { hash, bytes }, tokens: _ } = self;
        let hash = hash.as_str().get(..HASH_DIGITS).unwrap_or_default();
        write!(f, "[{} {name}, {media}, {bytes} bytes, blob {hash}]", kind.as_str())
    }
}

impl Enclosure {
    /// The media type decides whether it is an image or a file.
    #[must_use]
    pub fn new(media: MediaType, name: PartName, bytes: Vec<u8>) -> Self {
        Self { kind: PartKind::from_media(&media), media, name, bytes }
    }

    /// The part that a message holds.
    ///
    /// # Errors
    /// If it is empty or too large, or an image of a type that models do not accept.
    pub fn part(&self) -> Result<Part, BadPart> {
        let (kind, media, name) = (self.kind, self.media.clone(), self.name.clone());
        let bytes = self.bytes.len() as u64;
        // Do not hash what will be refused for its size.
        let hash = BlobHash::digest(if bytes > limit::PART_BYTES_MAX { &[] } else { &self.bytes });
        Part::new(kind, media, name, BlobRef { hash, bytes })
    }
}

impl fmt::Debug for Enclosure {
    /// Shows the number of bytes, not the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, media, name, bytes } = self;
        write!(f, "Enclosure({} {name}, {media}, {} bytes)", kind.as_str(), bytes.len())
    }
}

/// Splits enclosures into parts and their bytes, in the same order.
///
/// # Errors
/// If one of them is invalid, or they are too many or too large together.
pub fn enclose(enclosures: Vec<Enclosure>) -> Result<(Vec<Part>, Vec<Vec<u8>>), BadPart> {
    let parts = enclosures.iter().map(Enclosure::part).collect::<Result<Vec<_>, _>>()?;
    check_parts(parts.iter())?;
    Ok((parts, enclosures.into_iter().map(|enclosure| enclosure.bytes).collect()))
}

/// Refuses more parts than one message may have.
///
/// # Errors
/// If they are too many, or too large together.
pub fn check_parts<'p>(parts: impl Iterator<Item = &'p Part>) -> Result<(), BadPart> {
    let (mut count, mut bytes) = (0, 0_u64);
    for part in parts {
        (count, bytes) = (count + 1, bytes.saturating_add(part.blob.bytes));
    }
    if count > limit::PARTS_MAX {
        return Err(BadPart::TooMany { count, count_max: limit::PARTS_MAX });
    }
    if bytes > limit::PARTS_BYTES_MAX {
        return Err(BadPart::TooLargeTogether { bytes, bytes_max: limit::PARTS_BYTES_MAX });
    }
    Ok(())
}

/// The serialized form, before validation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    kind: PartKind,
    media: MediaType,
    name: PartName,
    blob: BlobRef,
    #[serde(default)]
    tokens: Option<TokenCount>,
}

impl TryFrom<Unchecked> for Part {
    type Error = BadPart;
    fn try_from(unchecked: Unchecked) -> Result<Self, BadPart> {
        let Unchecked { kind, media, name, blob, tokens } = unchecked;
        Ok(Self { tokens, ..Self::new(kind, media, name, blob)? })
    }
}
