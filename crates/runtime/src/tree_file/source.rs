//! The text of a file whose parser counts in bytes: maps offsets to places, and limits how much the file may hold.

use std::cell::Cell;

use super::error::TextPosition;
use super::value_error::ValueError;
use super::{NESTING_MAX, VALUES_MAX};

/// Bytes between two remembered places. A file may be one long line with a value every other byte, so counting from
/// the start each time would take minutes.
const STRIDE: usize = 256;

pub(super) struct Source<'a> {
    text: &'a str,
    /// The first character at or after each stride, and its place.
    marks: Vec<(usize, TextPosition)>,
    values: Cell<usize>,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut marks = Vec::with_capacity(text.len() / STRIDE + 1);
        let mut place = TextPosition::START;
        for (offset, c) in text.char_indices() {
            if offset >= marks.len() * STRIDE {
                marks.push((offset, place));
            }
            place = place.after(c);
        }
        Self { text, marks, values: Cell::new(0) }
    }

    /// The place of the byte at `offset`, or the end of the text.
    pub(super) fn place(&self, offset: usize) -> TextPosition {
        let at = self.marks.partition_point(|(mark, _)| *mark <= offset);
        let mark = at.checked_sub(1).and_then(|at| self.marks.get(at));
        let (start, place) = mark.copied().unwrap_or((0, TextPosition::START));
        let between = self.text.get(start..offset).or_else(|| self.text.get(start..)).unwrap_or_default();
        between.chars().fold(place, TextPosition::after)
    }

    /// The place of a value, unless it is nested too deeply or there are too many.
    pub(super) fn value(&self, offset: usize, level: usize) -> Result<TextPosition, ValueError> {
        let place = self.place(offset);
        self.values.set(self.values.get() + 1);
        if level > NESTING_MAX || self.values.get() > VALUES_MAX {
            let message = format!("more than {VALUES_MAX} values or {NESTING_MAX} levels");
            return Err(ValueError::new(message).with_help("a tree file needs far less").at(place));
        }
        Ok(place)
    }

    pub(super) fn offset(&self, part: &'a str) -> usize {
        part.as_ptr().addr().saturating_sub(self.text.as_ptr().addr())
    }
}
