//! How much a model thinks before it answers.

/// Whether and how much a model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinking {
    /// The model decides.
    Adaptive,
    /// At most so many tokens. They are a part of the output cap.
    Budget(u64),
}
