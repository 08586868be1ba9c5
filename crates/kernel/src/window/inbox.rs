//! The unread messages of an agent. Usually empty, and then it takes one machine word.

use crate::primitives::Seq;

/// The events of an agent's unread messages, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inbox(Option<Box<Letters>>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Letters {
    at: Vec<Seq>,
}

impl FromIterator<Seq> for Inbox {
    fn from_iter<T: IntoIterator<Item = Seq>>(at: T) -> Self {
        let at: Vec<Seq> = at.into_iter().collect();
        Self((!at.is_empty()).then(|| Box::new(Letters { at })))
    }
}

impl Inbox {
    #[must_use]
    pub fn all(&self) -> &[Seq] {
        self.0.as_ref().map_or(&[], |letters| &letters.at)
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn push(&mut self, at: Seq) {
        self.0.get_or_insert_default().at.push(at);
    }

    /// Removes the message of this event and returns its position.
    pub(crate) fn take(&mut self, at: Seq) -> Option<usize> {
        let letters = &mut self.0.as_mut()?.at;
        let place = letters.iter().position(|letter| *letter == at)?;
        letters.remove(place);
        if letters.is_empty() {
            self.0 = None;
        }
        Some(place)
    }

    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }
}
