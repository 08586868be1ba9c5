//! Publish a message to whoever watches its topic.

use serde::{Deserialize, Serialize};

use super::send::check_message;
use crate::definition::{Refusal, check_said};
use crate::record::Event;
use crate::rules::{Draft, Reply};
use crate::words::{Body, By, Envelope, limit};

/// Publish a message. No agent reads it; those who watch its topic do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publish {
    pub body: Body,
    pub envelope: Envelope,
}

impl Publish {
    pub(super) fn decide(&self, draft: &mut Draft<'_>, by: &By) -> Result<Reply, Refusal> {
        check_message(draft, by, &self.envelope)?;
        self.body.checked("published message")?;
        check_said("message", &self.body.text, limit::TEXT_BYTES_MAX)?;
        if self.envelope.topic.is_none() {
            return Err(Refusal::TextEmpty { what: "topic".to_owned() });
        }
        let (from, body, envelope) = (by.clone(), self.body.clone(), self.envelope.clone());
        draft.record(Event::MessagePublished { from, body, envelope });
        Ok(Reply::Done)
    }
}
