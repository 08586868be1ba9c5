//! What comes along with a message beside its text: images and files, as one packet shows them.

use std::fmt;

use super::{Facts, Offloaded};
use crate::words::Part;

/// What comes along with a message. Most have nothing of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Along {
    /// The file with the whole, if the text is only parts of it.
    pub file: Option<Offloaded>,
    pub parts: Vec<Part>,
    /// How many of the images, the first of them, are no longer shown.
    pub blank: u8,
    /// What stands behind the text.
    pub facts: Option<Box<Facts>>,
}

/// A part as a packet shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown<'m> {
    Whole(&'m Part),
    /// Only the line in its place.
    LeftOut(&'m Part),
}

impl Along {
    /// In a box, unless it is nothing.
    pub(super) fn boxed(file: Option<Offloaded>, parts: &[Part]) -> Option<Box<Self>> {
        let nothing = file.is_none() && parts.is_empty();
        (!nothing).then(|| Box::new(Self { file, parts: parts.to_vec(), ..Self::default() }))
    }

    /// Nothing but what stands behind the text.
    pub(super) fn telling(facts: Facts) -> Option<Box<Self>> {
        let has_facts = facts != Facts::default();
        has_facts.then(|| Box::new(Self { facts: Some(Box::new(facts)), ..Self::default() }))
    }

    /// The parts, in order.
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

    /// How many images are shown.
    #[must_use]
    pub fn images(&self) -> usize {
        self.shown().filter(|shown| matches!(shown, Shown::Whole(part) if part.is_image())).count()
    }
}

impl<'m> Shown<'m> {
    /// The part, shown or not.
    #[must_use]
    pub const fn part(self) -> &'m Part {
        match self {
            Self::Whole(part) | Self::LeftOut(part) => part,
        }
    }
}

impl fmt::Display for Shown<'_> {
    /// The line that names it or stands in its place.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(part) => part.fmt(f),
            Self::LeftOut(part) => f.write_str(&part.placeholder()),
        }
    }
}
