//! Ends waits whose children have ended or whose message has arrived.

use crate::record::{ChildEnd, Outcome, WaitFor, Work};

use super::end;
use crate::primitives::{AgentId, CallId};
use crate::record::{Ballot, WaitNeed};
use crate::rules::Draft;
use crate::world::{AgentIx, World};

pub(crate) fn wake_spawner(draft: &mut Draft<'_>, id: CallId, child: AgentIx) {
    let ended = child_end(draft, child).into_iter().collect();
    end(draft, id, Outcome::Children { ended });
}

/// Ends every wait of `ix` that is satisfied.
pub(crate) fn wake_waits(draft: &mut Draft<'_>, ix: AgentIx) {
    // Most parents wait through spawn calls, and there may be a thousand of those.
    if draft.agent(ix).kinds.waits == 0 {
        return;
    }
    for id in draft.agent(ix).open.clone() {
        if let Some(outcome) = satisfied(draft, ix, id) {
            end(draft, id, outcome);
        }
    }
}

/// Those of `agents` that have ended, in spawn order.
pub(crate) fn ended_of(world: &World, agents: &[AgentId]) -> Vec<ChildEnd> {
    places(world, agents).into_iter().filter_map(|ix| child_end(world, ix)).collect()
}

/// The indices of `agents`, each once, in spawn order.
fn places(world: &World, agents: &[AgentId]) -> Vec<AgentIx> {
    let mut places: Vec<AgentIx> = agents.iter().filter_map(|id| world.agents().find(id)).collect();
    places.sort_unstable();
    places.dedup();
    places
}

fn child_end(world: &World, ix: AgentIx) -> Option<ChildEnd> {
    let ended = world.agents().ended(ix)?;
    Some(ChildEnd { agent: world.agents().id(ix).clone(), state: ended.exit, seq: ended.at })
}

fn satisfied(world: &World, ix: AgentIx, id: CallId) -> Option<Outcome> {
    match &world.call(id)?.work {
        Work::Wait(WaitFor::Children { agents, need, .. }) => {
            is_met(world, agents, *need).then(|| Outcome::Children { ended: ended_of(world, agents) })
        }
        Work::Wait(WaitFor::Message) => {
            world.agent(ix).inbox.all().first().map(|seq| Outcome::Message { seq: *seq })
        }
        Work::Model(_) | Work::Tool(_) | Work::Child(_) | Work::Question(_) => None,
    }
}

fn is_met(world: &World, agents: &[AgentId], need: WaitNeed) -> bool {
    let has_ended =
        |id: &AgentId| world.agents().find(id).is_some_and(|ix| world.agents().ended(ix).is_some());
    match need {
        // Fast path: there may be a thousand, and each end checks this.
        WaitNeed::All => agents.iter().all(has_ended),
        WaitNeed::Any => agents.iter().any(has_ended),
        WaitNeed::First(_) | WaitNeed::Majority => {
            let places = places(world, agents);
            let ballot = |ix: &AgentIx| {
                let ended = world.agents().ended(*ix)?;
                Some(Ballot { is_completed: ended.is_completed(), answer: world.agents().answer(*ix) })
            };
            need.is_met(places.len(), &places.iter().filter_map(ballot).collect::<Vec<_>>())
        }
    }
}
