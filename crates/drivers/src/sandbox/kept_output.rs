//! What is kept of an output: its beginning and its end.

use std::collections::VecDeque;

/// The standard stream that something was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    Stdout,
    Stderr,
}

/// The head and the tail of an output, and how long it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptOutput {
    part_bytes_max: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total_bytes: u64,
}

impl KeptOutput {
    pub(super) fn new(part_bytes_max: usize) -> Self {
        Self { part_bytes_max, ..Self::default() }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total_bytes = self.total_bytes.saturating_add(bytes.len() as u64);
        let room = self.part_bytes_max.saturating_sub(self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        let rest = rest.split_at(rest.len().saturating_sub(self.part_bytes_max)).1;
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.part_bytes_max);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    /// All of it up to the bound.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The last bytes that are not in the head.
    #[must_use]
    pub fn tail(&self) -> Vec<u8> {
        self.tail.iter().copied().collect()
    }

    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// How many bytes between head and tail were not kept.
    #[must_use]
    pub fn omitted_bytes(&self) -> u64 {
        self.total_bytes - (self.head.len() + self.tail.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::KeptOutput;

    #[test]
    fn the_beginning_and_the_end_of_an_output_are_kept() {
        let all: Vec<u8> = (0..=99).collect();
        for part in [1, 3, 7, 100] {
            let mut kept = KeptOutput::new(10);
            all.chunks(part).for_each(|bytes| kept.push(bytes));
            assert_eq!(kept.head(), &all[..10]);
            assert_eq!(kept.tail(), &all[90..]);
            assert_eq!((kept.total_bytes(), kept.omitted_bytes()), (100, 80));
        }
        let mut short = KeptOutput::new(10);
        short.push(&all[..12]);
        assert_eq!(
            (short.head(), short.tail().as_slice(), short.omitted_bytes()),
            (&all[..10], &all[10..12], 0)
        );
    }
}
