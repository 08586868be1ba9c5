//! The texts in a run's responses that only the provider can read. Each has at most as many tokens as the response that
//! contained it. Without that response, only the model's context bounds its tokens.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use spinney_drivers::wire::OpaqueHash;

use super::bounds::OPAQUE_TEXTS_MAX;

/// The response that contained a text, and its output tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) response: u64,
    pub(super) tokens: u64,
}

/// Where each text came from. The oldest are forgotten first.
#[derive(Debug, Default)]
pub struct OpaqueTexts {
    origins: BTreeMap<OpaqueHash, Origin>,
    order: VecDeque<OpaqueHash>,
    responses: u64,
}

impl OpaqueTexts {
    /// Adds the texts of a response with this many output tokens.
    pub fn add(&mut self, texts: &[OpaqueHash], tokens: u64) {
        self.responses += 1;
        let origin = Origin { response: self.responses, tokens };
        for text in texts {
            match self.origins.entry(*text) {
                Entry::Vacant(vacant) => {
                    vacant.insert(origin);
                    self.order.push_back(*text);
                }
                // A model may repeat a text of an earlier response: that does not make it shorter.
                Entry::Occupied(mut known) => {
                    if known.get().tokens < tokens {
                        known.insert(origin);
                    }
                }
            }
        }
        while self.order.len() > OPAQUE_TEXTS_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.origins.remove(&oldest);
            }
        }
    }

    /// A copy with these texts only.
    pub(super) fn only<'t>(&self, texts: impl Iterator<Item = &'t OpaqueHash>) -> Self {
        let known = texts.filter_map(|text| Some((*text, self.origin(text)?)));
        Self { origins: known.collect(), ..Self::default() }
    }

    pub(super) fn origin(&self, text: &OpaqueHash) -> Option<Origin> {
        self.origins.get(text).copied()
    }
}

/// What the texts of an input come to. All texts of one response have at most its tokens, as often as any of them is sent.
#[derive(Default)]
pub(super) struct OpaqueTokens {
    by_response: BTreeMap<u64, (u64, BTreeMap<OpaqueHash, u64>)>,
}

impl OpaqueTokens {
    pub(super) fn add(&mut self, text: OpaqueHash, Origin { response, tokens }: Origin) {
        let (_, times) = self.by_response.entry(response).or_insert_with(|| (tokens, BTreeMap::new()));
        *times.entry(text).or_insert(0) += 1;
    }

    pub(super) fn total(&self) -> u64 {
        let response = |(tokens, times): &(u64, BTreeMap<OpaqueHash, u64>)| {
            tokens.saturating_mul(times.values().copied().max().unwrap_or_default())
        };
        self.by_response.values().map(response).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_texts_are_forgotten() {
        let mut texts = OpaqueTexts::default();
        let hash = |at: usize| OpaqueHash::new(&at.to_string());
        for at in 0..=OPAQUE_TEXTS_MAX {
            texts.add(&[hash(at)], at as u64);
        }
        assert_eq!(texts.origin(&hash(0)), None);
        assert_eq!(texts.origin(&hash(1)), Some(Origin { response: 2, tokens: 1 }));
        assert_eq!(texts.origins.len(), OPAQUE_TEXTS_MAX);
    }
}
