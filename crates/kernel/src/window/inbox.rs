//! What was written to an agent and it has not read. Most agents have nothing of it most of the time, and then it takes
//! one word.

use crate::words::Seq;

/// The events that brought what an agent has not read, the oldest first.
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

    /// Whether nothing is in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn push(&mut self, at: Seq) {
        self.0.get_or_insert_default().at.push(at);
    }

    /// Takes out what this event brought, and says which place that had.
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
