//! Publish a message to the watchers of its topic.

use serde::{Deserialize, Serialize};

use super::send::check_message;
use super::{Accepted, Outside, Verb};
use crate::definition::{Refusal, check_said};
use crate::primitives::{Actor, Body, Envelope, limit};
use crate::record::Event;
use crate::rules::Draft;

/// No agent reads it; watchers of its topic do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publish {
    pub body: Body,
    pub envelope: Envelope,
}

impl Verb for Publish {
    type Reply = Accepted;

    fn outside(&self) -> Outside {
        Outside::if_whole(&self.body)
    }
}

impl Publish {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        check_message(draft, by, &self.envelope)?;
        self.body.checked("published message")?;
        check_said("message", &self.body.text, limit::TEXT_BYTES_MAX)?;
        if self.envelope.topic.is_none() {
            return Err(Refusal::TextEmpty { what: "topic".to_owned() });
        }
        let (from, body, envelope) = (by.clone(), self.body.clone(), self.envelope.clone());
        draft.record(Event::MessagePublished { from, body, envelope });
        Ok(Accepted {})
    }
}
