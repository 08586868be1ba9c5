//! Everything that is looked for, at one position of a text. It depends on the bytes alone, so it is the same however the
//! text is cut into pieces.

use std::ops::Range;
use std::sync::Arc;

use super::private_keys::PrivateKeys;
use super::values::{Secret, Values};
use super::words::Words;

pub(super) struct Scan {
    values: Arc<Values>,
    state: u32,
    words: Words,
    private_keys: PrivateKeys,
    at: usize,
}

impl Scan {
    pub(super) fn new(values: Arc<Values>) -> Self {
        let (words, private_keys) = (Words::default(), PrivateKeys::default());
        Self { values, state: 0, words, private_keys, at: 0 }
    }

    pub(super) fn values(&self) -> &Values {
        &self.values
    }

    /// Takes the next byte, and says which bytes up to it are secret.
    pub(super) fn step(&mut self, byte: u8, mut cover: impl FnMut(Range<usize>, Secret)) {
        let at = self.at;
        self.at += 1;
        self.state = self.values.step(self.state, byte);
        if let Some((from, secret)) = self.words.step(at, byte) {
            cover(from..self.at, secret);
        }
        if let Some(from) = self.private_keys.step(at, byte) {
            cover(from..self.at, Secret::PrivateKey);
        }
        if let Some((length, secret)) = self.values.ended(self.state) {
            cover(self.at - length..self.at, secret);
        }
    }

    /// What is before this position does not belong to a secret that begins later.
    pub(super) fn decided(&self) -> usize {
        let of_values = self.at - self.values.depth(self.state);
        let others = [self.words.held_from(), self.private_keys.held_from()];
        others.into_iter().flatten().fold(of_values, usize::min)
    }
}
