//! Branch a tree: a new tree that shares all events so far, starts without running effects, and has its own budget.

use serde::{Deserialize, Serialize};

use super::{Accepted, Verb, acting, person};
use crate::budget::{Amounts, Ceilings, Terms, Used};
use crate::definition::{BudgetSpec, OnLost, Refusal};
use crate::primitives::{Actor, AgentId, CallId, Time, TreeId};
use crate::record::{Branched, Event, Outcome, Work};
use crate::rules::agent::end_if_drained;
use crate::rules::turn::{Lead, with_reserve};
use crate::rules::{Draft, call};
use crate::world::{AgentIx, AgentState};

/// Decided on the world of the origin at the branch point; the events are the first batch of the new tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    pub tree: TreeId,
    /// The branch point is a checkpoint of this agent.
    pub agent: AgentId,
    /// Its ceilings. A ceiling of the origin that is not given here applies again in full.
    pub budget: Ceilings,
    /// When the last shared event was recorded. Time left at that moment is still left.
    pub since: Time,
}

impl Verb for Branch {
    type Reply = Accepted;
}

impl Branch {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        person(by, "branch a tree")?;
        acting(draft, by, &self.agent)?;
        let Some(root) = draft.agents().root() else { return Err(Refusal::TreeNotStarted) };
        let terms = self.terms(draft, root)?;
        let account = draft.agent(root).account;
        let mut renewed = draft.ledger().clone();
        renewed.renew(account, terms);
        if let Some(short) = renewed.overlent(account) {
            return Err(Refusal::Ceiling { account: draft.agent_id(root).clone(), short });
        }
        let branched = Branched {
            tree: self.tree,
            from: draft.tree(),
            at: draft.seq(),
            name: draft.definition().name.clone(),
            terms,
            later_ms: draft.now().0.saturating_sub(self.since.0),
            continuation: None,
        };
        draft.record(Event::TreeBranched(Box::new(branched)));
        // Nothing starts until the branch is run.
        if draft.rules() >= 4 {
            call::suspend(draft);
        } else if !draft.is_suspended() && !draft.agent(root).paused {
            // The head records that no person paused it.
            draft.record(Event::AgentPaused { agent: draft.agent_id(root).clone() });
            call::park(draft, root);
        }
        if draft.halted().is_some() {
            draft.record(Event::TreeUnhalted);
        }
        let out = draft.calls().all().filter(|(_, call)| call.is_running());
        for id in out.map(|(id, _)| id).collect::<Vec<CallId>>() {
            lose(draft, id);
        }
        Ok(Accepted {})
    }

    fn terms(&self, draft: &Draft<'_>, root: AgentIx) -> Result<Terms, Refusal> {
        let given = self.budget.checked()?;
        if given.bounded().is_empty() {
            return Err(Refusal::BranchWithoutBudget);
        }
        let old = draft.account_of(root).terms.limit;
        let limit = BudgetSpec::with_limit(given).or(&BudgetSpec::with_limit(old)).limit;
        let definition = draft.definition();
        let role = definition.roles.get(&draft.agent(root).terms.role);
        let budget =
            role.map_or_else(|| definition.budget.clone(), |role| definition.budget.or(&role.budget));
        let agent_terms = &draft.agent(root).terms;
        let first = draft.agent(root).progress.window.headers().first();
        let packet = first.map_or(0, |header| u64::from(header.tokens));
        let lead = role.and_then(|role| {
            Lead::new(
                definition,
                role,
                &agent_terms.caps,
                agent_terms.depth,
                &agent_terms.model,
                packet,
                draft.now(),
            )
        });
        Ok(with_reserve(Terms::plain(limit), draft.rules(), &budget, lead.as_ref()))
    }
}

/// An effect that runs in the origin does not run here. What can be requested again will be; the origin pays for the
/// running one, so nothing counts as spent here.
fn lose(draft: &mut Draft<'_>, id: CallId) {
    let Some(call) = draft.call(id) else { return };
    let ix = call.agent;
    let again = match &call.work {
        Work::Model(_) => true,
        Work::Tool(work) => work.lost == OnLost::Repeatable,
        Work::Child(_) | Work::Wait(_) | Work::Question(_) => false,
    };
    let live = matches!(draft.agent(ix).state, AgentState::Live) && !call.stopped;
    if live && again {
        call::attempt_failed(draft, id, None, Amounts::ZERO, Used::NOTHING);
        call::admit(draft, id, None);
    } else {
        call::end_running(draft, id, Outcome::Lost, Amounts::ZERO, Used::Unknown);
        end_if_drained(draft, ix);
    }
}
