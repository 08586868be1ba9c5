//! Shares one agent's messages with another, by reference and each once.

use crate::primitives::AgentId;
use crate::record::Event;
use crate::rules::Draft;
use crate::window::{SharedContent, Window};

/// What happens to messages that were shared before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    /// They stay, and only new ones are shared.
    Stays,
    /// They are removed, and all current ones are shared.
    Goes,
}

/// Shares what the recipient does not have yet. Returns the number of messages.
pub(crate) fn share(
    draft: &mut Draft<'_>,
    from: &AgentId,
    to: &AgentId,
    news: SharedContent,
    before: Before,
) -> u32 {
    let window = |agent: &AgentId| {
        let ix = draft.agents().find(agent)?;
        Some(&draft.agents().living(ix)?.progress.window)
    };
    let (Some(known), Some(own)) = (window(from), window(to)) else { return 0 };
    let (spans, replaces) = match before {
        Before::Stays => (known.news(own, from, news), Vec::new()),
        Before::Goes => (known.news(&Window::default(), from, news), own.shared_places(from)),
    };
    let shared = spans.iter().map(|span| span.to - span.from).sum();
    if !spans.is_empty() || !replaces.is_empty() {
        let (from, to, as_is) = (from.clone(), to.clone(), false);
        draft.record(Event::ContextShared { from, to, spans, as_is, replaces });
    }
    shared
}
