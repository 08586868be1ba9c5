//! Telling an agent what another one knows, by reference and each message once.

use crate::record::Event;
use crate::rules::Draft;
use crate::window::{News, Window};
use crate::words::AgentId;

/// What becomes of what was told before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    /// It stays, and only what is new is told.
    Stays,
    /// It goes, and everything that is known now is told.
    Goes,
}

/// Tells a living agent what another one knows and it does not. Says how many messages that are.
pub(crate) fn tell(draft: &mut Draft<'_>, from: &AgentId, to: &AgentId, news: News, before: Before) -> u32 {
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
