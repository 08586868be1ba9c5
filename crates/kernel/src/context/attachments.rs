//! What a message carries beside its text: images, files and facts, as one packet shows them.

use std::fmt;

use super::{Facts, Offloaded};
use crate::primitives::Part;

/// What a message carries beside its text. Most have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attachments {
    /// The file with the whole text, if the text is only a part.
    pub file: Option<Offloaded>,
    pub parts: Vec<Part>,
    /// How many of the first images are no longer shown.
    pub blank: u8,
    pub facts: Option<Box<Facts>>,
}

/// A part as a packet shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown<'m> {
    Whole(&'m Part),
    /// Only a placeholder line.
    LeftOut(&'m Part),
}

impl Attachments {
    /// `None` if there is nothing to carry.
    pub(super) fn boxed(file: Option<Offloaded>, parts: &[Part]) -> Option<Box<Self>> {
        let nothing = file.is_none() && parts.is_empty();
        (!nothing).then(|| Box::new(Self { file, parts: parts.to_vec(), ..Self::default() }))
    }

    /// Facts only.
    pub(super) fn telling(facts: Facts) -> Option<Box<Self>> {
        let has_facts = facts != Facts::default();
        has_facts.then(|| Box::new(Self { facts: Some(Box::new(facts)), ..Self::default() }))
    }

    pub fn shown(&self) -> impl Iterator<Item = Shown<'_>> {
        let mut blank = self.blank;
        self.parts.iter().map(move |part| {
            if part.is_image() && blank > 0 {
                blank -= 1;
                Shown::LeftOut(part)
            } else {
                Shown::Whole(part)
            }
        })
    }

    #[must_use]
    pub fn images(&self) -> usize {
        self.shown().filter(|shown| matches!(shown, Shown::Whole(part) if part.is_image())).count()
    }
}

impl<'m> Shown<'m> {
    #[must_use]
    pub const fn part(self) -> &'m Part {
        match self {
            Self::Whole(part) | Self::LeftOut(part) => part,
        }
    }
}

impl fmt::Display for Shown<'_> {
    /// The line that names it or replaces it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(part) => part.fmt(f),
            Self::LeftOut(part) => f.write_str(&part.placeholder()),
        }
    }
}
