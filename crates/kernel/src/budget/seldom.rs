//! Amounts that are mostly nothing. A tree has an account for each living agent, and few of them lend, are waited for
//! or were overrun.

use std::ops::Deref;

use super::Amounts;

/// Amounts that take room only while they are something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seldom(Option<Box<Amounts>>);

impl Seldom {
    pub(super) fn add(&mut self, more: &Amounts) {
        if !more.is_zero() {
            self.0.get_or_insert_default().add(more);
        }
    }

    /// Takes from each what is there.
    pub(super) fn take_away(&mut self, less: &Amounts) {
        let mut left = **self;
        left.take_away(less);
        self.set(left);
    }

    /// Puts these in their place.
    fn set(&mut self, amounts: Amounts) {
        // Equal amounts are kept equally, so that equal worlds are equal.
        match &mut self.0 {
            Some(kept) if !amounts.is_zero() => **kept = amounts,
            kept => *kept = (!amounts.is_zero()).then(|| Box::new(amounts)),
        }
    }
}

impl Deref for Seldom {
    type Target = Amounts;

    #[inline]
    fn deref(&self) -> &Amounts {
        self.0.as_deref().unwrap_or(&Amounts::ZERO)
    }
}
