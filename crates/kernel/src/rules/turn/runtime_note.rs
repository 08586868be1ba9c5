//! Messages that the runtime itself writes to an agent.

use crate::primitives::{Actor, Body, Envelope};
use crate::record::Event;
use crate::rules::Draft;
use crate::world::AgentIx;

pub(super) fn send(draft: &mut Draft<'_>, ix: AgentIx, text: impl Into<String>) {
    // Before rules 6 the journal said that a person had written them.
    let from = if draft.rules() >= 6 { Actor::RUNTIME } else { Actor::PERSON };
    let (to, body, envelope) = (draft.agent_id(ix).clone(), Body::text(text), Envelope::default());
    draft.record(Event::MessageSent { from, to, body, envelope });
}
