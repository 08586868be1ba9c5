//! Retry and backoff arithmetic. No randomness: the jitter is a hash of what is being retried, so a replay waits
//! exactly as long as the first run did, and yet two trees do not retry at the same moment.

use crate::primitives::{CallId, Fault, TreeId, limit};

/// What to do after a failed attempt at the same model or tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Try again after this pause.
    After { ms: u64 },
    /// Retrying makes no sense.
    No,
}

/// Decides about a retry after `faults` failed attempts, this one included.
#[must_use]
pub fn after(fault: &Fault, faults: u32, tree: TreeId, call: CallId) -> Retry {
    if !fault.is_retryable() || faults >= limit::ATTEMPTS_MAX {
        return Retry::No;
    }
    match fault.retry_after_ms {
        Some(ms) if ms > limit::RETRY_AFTER_MAX_MS => Retry::No,
        Some(ms) => Retry::After { ms },
        None => Retry::After { ms: backoff_ms(faults, tree, call) },
    }
}

/// Doubles with each attempt up to a bound. The upper half is jitter.
fn backoff_ms(attempt: u32, tree: TreeId, call: CallId) -> u64 {
    let doubled = limit::BACKOFF_FIRST_MS.saturating_mul(1 << attempt.saturating_sub(1).min(16));
    let whole = doubled.min(limit::BACKOFF_MAX_MS);
    let half = whole / 2;
    half + jitter(attempt, tree, call) % (whole - half + 1)
}

fn jitter(attempt: u32, tree: TreeId, call: CallId) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(tree.bytes()).update(&call.0.to_le_bytes()).update(&attempt.to_le_bytes());
    hasher.finalize().as_bytes().iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}
