//! Signals: pause, unpause, redirect and cancel, and who may send them. Cancel is not a flag to be checked: it ends
//! the agent, and an ending agent's account is shut, so that whatever comes late below it finds it shut.

use crate::definition::Refusal;
use crate::words::{AgentId, By};
use crate::world::{AgentIx, World};

/// The living agent that `by` may signal: anyone for a person, a descendant for an agent.
pub(crate) fn target(world: &World, by: &By, agent: &AgentId) -> Result<AgentIx, Refusal> {
    let ix = world.living(agent)?;
    match by {
        By::Person => Ok(ix),
        By::Agent(id) => {
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
