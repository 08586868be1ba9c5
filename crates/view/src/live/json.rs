//! The agents of a live tree for programs.

use serde_json::{Value, json};

use super::LiveTree;
use crate::questions::joined;

impl LiveTree {
    /// Every agent as an object, in spawn order.
    pub fn agents_json(&self) -> impl Iterator<Item = Value> {
        self.agents.iter().map(|(ix, note)| {
            let view = self.world.view(*ix);
            let mut agent = json!({
                "agent": view.agent,
                "path": joined(&self.world.agents().path(*ix)),
                "parent": view.parent,
                "role": view.role,
                "depth": view.depth,
                "state": view.status.to_string(),
                "goal": note.goal,
                "step": note.step,
                "spent": view.spent,
                "presumed": view.presumed,
                "held": view.held,
                "limit": view.limit,
                "refusals": note.refusals,
                "failure": note.failure,
            });
            if let Some(steps) = self.graphs.iter().find(|steps| steps.graph == view.agent)
                && let Ok(progress) = serde_json::to_value(steps)
            {
                agent["pipeline"] = progress;
            }
            agent
        })
    }
}
