//! Adjust a tree: a person says what holds for all of it from now on. The root's ceilings may rise, fall to what is used, or
//! be new; how many calls run at the same time and what happens to a call that does not fit may change.

use serde::{Deserialize, Serialize};

use super::{Accepted, Verb, person};
use crate::budget::{Ceilings, Shortfall};
use crate::definition::{OnLow, Refusal, TreeLimits};
use crate::primitives::{Actor, AgentId, SourceFile, SourceFiles};
use crate::record::{Adjusted, Event};
use crate::rules::{Draft, clock, turn};
use crate::world::AgentIx;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adjust {
    /// The root's ceilings; one that is not named stays.
    pub limit: Ceilings,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_max: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_low: Option<OnLow>,
    /// The root's timeout, from its start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// What the tree is resumed from, from now on; a file that is not named stays. Their bytes come with the request.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub sources: SourceFiles,
}

impl Verb for Adjust {
    type Reply = Accepted;

    fn sources(&self) -> &[SourceFile] {
        &self.sources
    }
}

impl Adjust {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        person(by, "adjust a tree")?;
        draft.check_running()?;
        let Some(root) = draft.agents().root() else { return Err(Refusal::TreeNotStarted) };
        let agent = draft.agent_id(root).clone();
        draft.living(&agent)?;
        let limit = self.limit.checked()?;
        let Self { parallel_max, on_low, timeout_ms, sources, .. } = self;
        let is_empty =
            parallel_max.is_none() && on_low.is_none() && timeout_ms.is_none() && sources.is_empty();
        if limit.bounded().is_empty() && is_empty {
            return Err(Refusal::AdjustsNothing);
        }
        check_limit(draft, root, &agent, &limit)?;
        let time_left = timeout_ms.map(|ms| clock::left_of(draft, root, ms)).transpose()?;
        if let Some(parallel_max) = parallel_max {
            TreeLimits { parallel_max: *parallel_max, ..draft.limits() }.check()?;
        }
        if let Some(OnLow::Downgrade(model)) = on_low {
            draft.definition().model(model)?;
        }
        let old = draft.account_of(root).terms.limit;
        let rises = limit
            .bounded()
            .iter()
            .any(|resource| old.get(resource).is_some_and(|old| Some(old) < limit.get(resource)));
        let notes = if rises { turn::raise_notes(draft, root, 0) } else { Vec::new() };
        let (parallel_max, on_low, timeout_ms) = (*parallel_max, on_low.clone(), *timeout_ms);
        let sources = sources.clone();
        let adjusted = Adjusted { agent, limit, parallel_max, on_low, timeout_ms, sources };
        draft.record(Event::TreeAdjusted(Box::new(adjusted)));
        if let Some(left_ms) = time_left {
            clock::begin(draft, root, left_ms);
        }
        // The call that halted it is looked at again.
        if draft.halted().is_some() {
            draft.record(Event::TreeUnhalted);
        }
        turn::tell_raised(draft, notes);
        Ok(Accepted {})
    }
}

/// Refuses a ceiling below what is used, held and lent.
fn check_limit(draft: &Draft<'_>, root: AgentIx, agent: &AgentId, limit: &Ceilings) -> Result<(), Refusal> {
    let account = draft.account_of(root);
    for resource in limit.bounded().iter() {
        let limit = limit.get(resource).unwrap_or_default();
        let (spent, held, lent) =
            (account.spent.get(resource), account.held.get(resource), account.lent.get(resource));
        if spent.saturating_add(held).saturating_add(lent) > limit {
            let short = Shortfall { resource, limit, reserve: 0, spent, held, lent, asked: 0 };
            return Err(Refusal::CeilingBelowUse { account: agent.clone(), short });
        }
    }
    Ok(())
}
