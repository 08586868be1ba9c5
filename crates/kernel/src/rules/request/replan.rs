//! Replan a graph: a person changes what it does from now on. Completed steps and their outputs stay.

use serde::{Deserialize, Serialize};

use super::{Accepted, Outside, Verb, person};
use crate::definition::{Refusal, check_said};
use crate::primitives::{Actor, AgentId, Running, limit};
use crate::record::PlanChange;
use crate::rules::{Draft, graph, signal};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replan {
    /// The agent that stands for the graph.
    pub agent: AgentId,
    pub change: PlanChange,
    /// What happens to steps that it is about and that run: they finish first, or are stopped. Those with an instruction
    /// begin again with it.
    #[serde(default)]
    pub running: Running,
}

impl Verb for Replan {
    type Reply = Accepted;

    fn outside(&self) -> Outside {
        Outside::Open
    }
}

impl Replan {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        person(by, "redirect a pipeline")?;
        let ix = signal::target(draft, by, &self.agent)?;
        if let PlanChange::Instruct { text, .. } = &self.change {
            check_said("instruction", text, limit::GRAPH_INSTRUCTION_BYTES_MAX)?;
        }
        graph::replan(draft, ix, &self.change, self.running)?;
        Ok(Accepted {})
    }
}
