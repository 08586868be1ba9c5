//! The servers behind one name: one for all agents of a tree, or one for each.

use std::sync::{Arc, Mutex, PoisonError};

use spinney_kernel::definition::ServerScope;
use spinney_kernel::primitives::AgentId;

use super::server::Server;

/// How many agents have a server of their own. Beyond that, the one that was idle longest ends.
const AGENTS_MAX: usize = 16;

/// By the path of its agent.
type OfAgent = (Box<[AgentId]>, Arc<Server>);

pub(super) struct AgentServers {
    /// The one that was asked for its tools.
    first: Arc<Server>,
    /// Those of agents, the one that was used last at the end.
    of_agents: Mutex<Vec<OfAgent>>,
}

impl AgentServers {
    pub(super) fn new(first: Server) -> Self {
        Self { first: Arc::new(first), of_agents: Mutex::default() }
    }

    /// What all of them are.
    pub(super) fn any(&self) -> &Server {
        &self.first
    }

    /// The one that an agent calls.
    ///
    /// # Errors
    /// If too many agents call theirs at this moment.
    pub(super) fn of(&self, agent: &[AgentId]) -> Result<Arc<Server>, String> {
        if self.first.scope() == ServerScope::Tree {
            return Ok(Arc::clone(&self.first));
        }
        let mut all = self.of_agents.lock().unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().position(|(of, _)| **of == *agent);
        let server = match found {
            Some(at) => all.remove(at).1,
            // The first agent gets the one that runs already, for as long as the tree.
            None if all.is_empty() => Arc::clone(&self.first),
            None => {
                if all.len() >= AGENTS_MAX {
                    let is_idle = |server: &Arc<Server>| Arc::strong_count(server) == 1;
                    let idle = all.iter().position(|(_, server)| is_idle(server)).ok_or_else(|| {
                        format!(
                            "{AGENTS_MAX} agents are calling this server, which is the most: call it later"
                        )
                    })?;
                    all.remove(idle);
                }
                Arc::new(self.first.for_agent(agent))
            }
        };
        all.push((agent.into(), Arc::clone(&server)));
        Ok(server)
    }
}
