//! Randomness: the only place of the library that generates any. Everything else is given the numbers.

use std::hash::{BuildHasher, RandomState};
use std::io;

use spinney_kernel::primitives::TreeId;

/// Unguessable bytes from the operating system, for keys.
///
/// # Errors
/// If the system gives none.
pub fn secret() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// A stream of random numbers. The same seed gives the same stream.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// An unpredictable stream.
    #[must_use]
    pub fn fresh() -> Self {
        // The standard library seeds its hashers from the operating system; two of them are two draws.
        Self(RandomState::new().hash_one(0_u64) ^ RandomState::new().hash_one(1_u64).rotate_left(32))
    }

    /// The stream of a seed.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "a stream of draws does not end, so it is no iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// An id for a new tree: the time first, so ids sort by age, then 80 random bits.
    pub fn tree_id(&mut self, now_ms: u64) -> TreeId {
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&now_ms.to_be_bytes()[2..]);
        bytes[6..8].copy_from_slice(&self.next().to_be_bytes()[..2]);
        bytes[8..].copy_from_slice(&self.next().to_be_bytes());
        TreeId::new(bytes)
    }
}
