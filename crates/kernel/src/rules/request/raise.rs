//! Raise a ceiling: a person adds to an agent's budget, and a halted tree continues where it was.

use serde::{Deserialize, Serialize};

use super::{Accepted, Outside, Verb, person};
use crate::budget::{Amounts, Fit};
use crate::definition::Refusal;
use crate::primitives::{Actor, AgentId, limit};
use crate::record::{ClockKind, Event};
use crate::rules::{Draft, clock, turn};
use crate::world::AgentIx;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raise {
    pub agent: AgentId,
    pub add: Amounts,
    /// Time added to each of its clocks.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub add_ms: u64,
}

const fn is_zero(ms: &u64) -> bool {
    *ms == 0
}

impl Verb for Raise {
    type Reply = Accepted;

    fn outside(&self) -> Outside {
        Outside::Open
    }
}

impl Raise {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        person(by, "raise a ceiling")?;
        let ix = draft.living(&self.agent)?;
        let add = self.add.checked()?;
        let account = draft.account_of(ix);
        account.terms.limit.raised(&add)?;
        let bounded = account.terms.limit.bounded();
        let clocks = self.clocks(draft, ix)?;
        let only_time = add.is_zero() && !clocks.is_empty();
        if add.only(bounded).is_zero() && !only_time {
            return Err(Refusal::RaisesNothing { bounded: bounded.iter().collect() });
        }
        // Ancestors hold what was lent, so raising it means lending more.
        let lent = draft.ledger().lent_by_raise(draft.agent(ix).account, &add);
        if let (false, Some(parent)) = (lent.is_zero(), account.parent) {
            match draft.ledger().fit_below(parent, &lent) {
                Fit::Yes | Fit::Shut(_) => {}
                Fit::Wait(by, short) | Fit::Never(by, short) => {
                    return Err(Refusal::Ceiling { account: draft.owner(by), short });
                }
            }
        }
        let notes = turn::raise_notes(draft, ix, self.add_ms);
        draft.record(Event::LimitRaised { agent: self.agent.clone(), add, add_ms: self.add_ms });
        for kind in clocks {
            clock::extend(draft, ix, kind, self.add_ms);
        }
        if draft.halted().is_some_and(|halt| halt.account == self.agent) {
            draft.record(Event::TreeUnhalted);
        }
        turn::tell_raised(draft, notes);
        Ok(Accepted {})
    }
    /// The clocks that get more time. Refused for an agent without clocks.
    fn clocks(&self, draft: &Draft<'_>, ix: AgentIx) -> Result<Vec<ClockKind>, Refusal> {
        if self.add_ms == 0 {
            return Ok(Vec::new());
        }
        let clocks = clock::extendable(draft, ix);
        if clocks.is_empty() {
            return Err(Refusal::NoTimeout { agent: self.agent.clone() });
        }
        let given = clocks.iter().filter_map(|kind| draft.clock(ix, *kind)).map(|clock| clock.given_ms);
        let (ms, ms_max) = (given.max().unwrap_or(0).saturating_add(self.add_ms), limit::TIMEOUT_MS_MAX);
        if ms > ms_max { Err(Refusal::BadTimeout { ms, ms_max }) } else { Ok(clocks) }
    }
}
