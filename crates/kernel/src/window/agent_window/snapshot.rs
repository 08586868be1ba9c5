//! Saves the content of a window for a checkpoint and restores it. The size is not part of it: the current size
//! applies.

pub(crate) use crate::record::WindowSnapshot;

use super::{MessageList, RareParts, Window};
use crate::primitives::AgentId;
use crate::record::Tie;

impl Window {
    #[must_use]
    pub(crate) fn holding(&self) -> WindowSnapshot {
        WindowSnapshot {
            headers: self.headers().to_vec(),
            unread: self.unread() as u32,
            images: self.rare.as_ref().map(|rare| rare.images.clone()).unwrap_or_default(),
            left_out: self.left_out().collect(),
            tellers: self.rare.as_ref().map(|rare| rare.tellers.clone()).unwrap_or_default(),
        }
    }

    pub(crate) fn restore(&mut self, holding: &WindowSnapshot) {
        self.shrunk();
        let headers = holding.headers.iter().copied().collect();
        self.list.restore(MessageList::new(headers, holding.unread));
        let (tellers, images) = (holding.tellers.clone(), holding.images.clone());
        let mut rare = RareParts { tellers, images, ..RareParts::default() };
        for (category, left) in &holding.left_out {
            rare.left_out[category.place()] = *left;
        }
        self.rare = Some(Box::new(rare)).filter(|rare| **rare != RareParts::default());
    }

    /// Forgets another agent's context messages beyond the first `contexts`: they no longer exist, and their
    /// replacements are new.
    pub(crate) fn knows_at_most(&mut self, teller: &AgentId, contexts: u32) {
        let tellers = self.rare.iter_mut().flat_map(|rare| &mut rare.tellers);
        for known in tellers.filter(|known| known.agent == *teller) {
            known.contexts = known.contexts.min(contexts);
        }
    }

    /// The number of messages in its agent's context, dropped ones included.
    #[must_use]
    pub fn messages(&self) -> u64 {
        let held = self.headers().iter().filter(|header| header.tie != Tie::Folded).count() as u64;
        held + self.left_out().map(|(_, left)| u64::from(left.messages)).sum::<u64>()
    }
}
