//! The gateway of `spinney exec`: model calls of an unmodified program, each held before it leaves and settled at what
//! the provider reports.

pub mod bytes;
