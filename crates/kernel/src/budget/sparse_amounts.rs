//! Amounts that are usually zero. A tree has an account for each living agent, and few of them lend, block requests
//! or overran.

use std::ops::Deref;

use super::Amounts;

/// Amounts that take memory only while they are not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SparseAmounts(Option<Box<Amounts>>);

impl SparseAmounts {
    pub(super) fn add(&mut self, more: &Amounts) {
        if !more.is_zero() {
            self.0.get_or_insert_default().add(more);
        }
    }

    /// Subtracts, never below zero.
    pub(super) fn take_away(&mut self, less: &Amounts) {
        let mut left = **self;
        left.take_away(less);
        self.set(left);
    }

    fn set(&mut self, amounts: Amounts) {
        // One representation per value, so equal worlds compare equal.
        match &mut self.0 {
            Some(kept) if !amounts.is_zero() => **kept = amounts,
            kept => *kept = (!amounts.is_zero()).then(|| Box::new(amounts)),
        }
    }
}

impl Deref for SparseAmounts {
    type Target = Amounts;

    #[inline]
    fn deref(&self) -> &Amounts {
        self.0.as_deref().unwrap_or(&Amounts::ZERO)
    }
}
