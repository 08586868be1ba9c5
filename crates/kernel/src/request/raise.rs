//! Raise a ceiling: a person tops an agent's budget up, and a halted tree goes on from where it stood.

use serde::{Deserialize, Serialize};

use super::person;
use crate::budget::{Amounts, Fit};
use crate::decide::{Draft, Reply};
use crate::event::Event;
use crate::id::AgentId;
use crate::input::By;
use crate::refusal::Refusal;
use crate::turn;

/// Raise the ceilings of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raise {
    /// Whose.
    pub agent: AgentId,
    /// By how much.
    pub add: Amounts,
}

impl Raise {
    pub(super) fn decide(&self, draft: &mut Draft<'_>, by: &By) -> Result<Reply, Refusal> {
        person(by, "raise a ceiling")?;
        let ix = draft.living(&self.agent)?;
        let add = self.add.checked()?;
        let account = draft.account_of(ix);
        account.terms.limit.raised(&add)?;
        let bounded = account.terms.limit.bounded();
        if add.only(bounded).is_zero() {
            return Err(Refusal::RaisesNothing { bounded: bounded.iter().collect() });
        }
        // What was lent stands at the ancestors: raising it means lending more.
        let lent = draft.ledger().lent_by_raise(draft.agent(ix).account, &add);
        if let (false, Some(parent)) = (lent.is_zero(), account.parent) {
            match draft.ledger().fit_below(parent, &lent) {
                Fit::Yes | Fit::Shut(_) => {}
                Fit::Wait(by, short) | Fit::Never(by, short) => {
                    return Err(Refusal::Ceiling { account: draft.owner(by), short });
                }
            }
        }
        let notes = turn::raise_notes(draft, ix);
        draft.record(Event::LimitRaised { agent: self.agent.clone(), add });
        if draft.halted().is_some_and(|halt| halt.account == self.agent) {
            draft.record(Event::TreeUnhalted);
        }
        turn::tell_raised(draft, notes);
        Ok(Reply::Done)
    }
}
