//! Charge outside spending: booked up the whole chain, and never refused for lack of budget, because it is already
//! spent.

use serde::{Deserialize, Serialize};

use super::{Accepted, Outside, Verb, person};
use crate::budget::Amounts;
use crate::definition::{Refusal, check_text};
use crate::primitives::{Actor, AgentId, limit};
use crate::record::Event;
use crate::rules::Draft;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charge {
    /// Booked at this agent's account and every one above.
    pub agent: AgentId,
    pub amounts: Amounts,
    #[serde(default)]
    pub note: String,
}

impl Verb for Charge {
    type Reply = Accepted;

    fn outside(&self) -> Outside {
        Outside::Open
    }
}

impl Charge {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        person(by, "charge outside spending")?;
        draft.check_running()?;
        let found = draft.agents().find(&self.agent);
        let ix = found.ok_or_else(|| Refusal::UnknownAgent { agent: self.agent.clone() })?;
        check_text("note", &self.note, limit::NOTE_BYTES_MAX)?;
        let amounts = self.amounts.checked()?;
        // Bills may come late: an ended agent's charge is booked at the nearest ancestor that still has an account.
        let payer = std::iter::once(ix)
            .chain(draft.agents().above(ix))
            .find(|ix| draft.agents().living(*ix).is_some());
        let agent = match payer {
            Some(ix) => draft.agent_id(ix).clone(),
            None => unreachable!("the root of a running tree lives"),
        };
        draft.record(Event::Charged { agent, amounts, note: self.note.clone() });
        Ok(Accepted {})
    }
}
