//! Send a message to an agent of the tree, or to one that does not exist yet.

use serde::{Deserialize, Serialize};

use super::{Outside, Verb, check_reads};
use crate::definition::Refusal;
use crate::primitives::{Actor, AgentId, Body, Category, Envelope, TokenCount, limit};
use crate::record::Event;
use crate::rules::call::wake_waits;
use crate::rules::turn::check_category;
use crate::rules::{Draft, turn};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Send {
    pub to: AgentId,
    pub body: Body,
    #[serde(default, skip_serializing_if = "Envelope::is_plain")]
    pub envelope: Envelope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum SendReply {
    /// In the recipient's inbox.
    Delivered,
    /// No agent has that name yet; the message waits until one is spawned.
    Queued,
}

impl Verb for Send {
    type Reply = SendReply;

    fn count(&mut self, tokens: &dyn Fn(&str) -> TokenCount) {
        self.body.count(tokens);
    }

    fn bodies_with_parts(&mut self) -> Vec<&mut Body> {
        vec![&mut self.body]
    }

    fn outside(&self) -> Outside {
        // Its parts come with their bytes.
        if self.body.rest().is_none() { Outside::Open } else { Outside::RefersElsewhere }
    }
}

impl Send {
    /// Text only.
    #[must_use]
    pub fn plain(to: AgentId, body: Body) -> Self {
        Self { to, body, envelope: Envelope::default() }
    }

    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<SendReply, Refusal> {
        check_message(draft, by, &self.envelope)?;
        self.body.checked_message()?;
        let to = self.to.clone();
        let Some(ix) = draft.agents().find(&to) else { return self.keep(draft, by) };
        let ix = draft.living(&to).map(|_| ix)?;
        check_reads(draft, ix)?;
        room(draft.agent(ix).inbox.all().len(), &to)?;
        self.record(draft, by);
        if self.envelope.category == Category::Context {
            turn::spread(draft, ix);
        }
        wake_waits(draft, ix);
        turn::hear(draft, ix, by, &self.body);
        Ok(SendReply::Delivered)
    }

    /// No agent has that name yet: the message waits until one is spawned.
    fn keep(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<SendReply, Refusal> {
        let to = &self.to;
        if draft.rules() >= 3 && to.is_reserved() {
            return Err(Refusal::NotAnAgent { agent: to.clone() });
        }
        match draft.unspawned().get(to) {
            Some(letters) => room(letters.len(), to)?,
            None if draft.unspawned().len() >= limit::UNSPAWNED_MAX => {
                let what = "agents that are not there and have messages waiting".to_owned();
                let count = draft.unspawned().len() + 1;
                return Err(Refusal::TooMany { what, count, count_max: limit::UNSPAWNED_MAX });
            }
            None => {}
        }
        self.record(draft, by);
        Ok(SendReply::Queued)
    }

    fn record(&self, draft: &mut Draft<'_>, by: &Actor) {
        let Self { to, body, envelope } = self.clone();
        draft.record(Event::MessageSent { from: by.clone(), to, body, envelope });
    }
}

fn room(waiting: usize, agent: &AgentId) -> Result<(), Refusal> {
    if waiting < limit::INBOX_MAX {
        return Ok(());
    }
    Err(Refusal::InboxFull { agent: agent.clone(), waiting })
}

/// Checks that apply to every message, whatever its recipient.
pub(super) fn check_message(draft: &Draft<'_>, by: &Actor, envelope: &Envelope) -> Result<(), Refusal> {
    draft.check_running()?;
    if let Actor::Agent(from) = by {
        draft.living(from)?;
        let topic = envelope.topic.as_ref().filter(|topic| draft.rules() >= 3 && topic.is_own());
        if let Some(topic) = topic {
            return Err(Refusal::ReservedTopic { topic: topic.clone() });
        }
    }
    if envelope.ttl == Some(0) {
        return Err(Refusal::Forwarded);
    }
    check_category(envelope.category)
}
