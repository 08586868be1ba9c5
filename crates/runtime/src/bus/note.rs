//! Messages for the bus, and the topic on which their replies arrive.

use spinney_kernel::primitives::{AgentId, Envelope, Topic};
use spinney_kernel::record::Event;

use super::TracedEvent;

/// A message for the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The recipient; everyone who watches the topic if absent.
    pub to: Option<AgentId>,
    /// Its metadata.
    pub envelope: Envelope,
    /// Its text.
    pub text: String,
}

/// A reply to an event, if the event can be replied to.
#[must_use]
pub fn reply(to: &TracedEvent, text: impl Into<String>) -> Option<Note> {
    let (Event::MessageSent { envelope, .. } | Event::MessagePublished { envelope, .. }) = &to.recorded.event
    else {
        return None;
    };
    let correlation = Some(envelope.correlation.clone()?);
    let topic = Some(reply_topic(envelope.topic.as_ref()));
    Some(Note {
        to: None,
        envelope: Envelope { topic, correlation, ..Envelope::default() },
        text: text.into(),
    })
}

/// The topic of the replies to a message with this topic.
pub(crate) fn reply_topic(topic: Option<&Topic>) -> Topic {
    topic.map_or_else(Topic::reply, Topic::reply_to)
}
