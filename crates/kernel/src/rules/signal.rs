//! Signals: who may pause, unpause, redirect and cancel an agent. Cancel is not a flag that code has to check: it
//! ends the agent and shuts its account, so late work below finds the account shut.

use crate::definition::Refusal;
use crate::primitives::{Actor, AgentId};
use crate::world::{AgentIx, World};

/// The living agent that `by` may signal: any agent for someone outside, a descendant for an agent.
pub(crate) fn target(world: &World, by: &Actor, agent: &AgentId) -> Result<AgentIx, Refusal> {
    let ix = world.living(agent)?;
    match by {
        Actor::Outside(_) => Ok(ix),
        Actor::Agent(id) => {
            let from = world.living(id)?;
            let mut above = world.agents().above(ix);
            if above.any(|ancestor| ancestor == from) {
                Ok(ix)
            } else {
                Err(Refusal::NotYours { by: id.clone(), agent: agent.clone() })
            }
        }
    }
}
