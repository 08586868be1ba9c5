//! Agents that are programs: what they answered, and the ceiling at which their last call was given up.

use super::{AgentIx, World};
use crate::definition::Refusal;
use crate::record::Outcome;

impl World {
    /// Notes at which ceiling a call of a program was given up.
    pub(super) fn given_up(&mut self, ix: AgentIx, outcome: &Outcome) {
        if let Outcome::Refused { refusal: Refusal::Ceiling { account, short } } = outcome
            && let Some(program) = self.program_above(ix)
        {
            self.agents.agent_mut(program).given_up = Some(Box::new((account.clone(), *short)));
        }
    }

    /// Keeps the answer of an agent that is a program.
    pub(super) fn program_answered(&mut self, ix: AgentIx, outcome: &Outcome) {
        if let Outcome::Done { body, is_error: false, .. } = outcome {
            self.agents.answered(ix, body);
            self.step_answered(ix, body, false);
        }
    }

    /// The nearest agent from here up that is a running program.
    pub(super) fn program_above(&self, ix: AgentIx) -> Option<AgentIx> {
        let runs = |ix: &AgentIx| {
            let agent = self.agents.living(*ix);
            agent.is_some_and(|agent| {
                agent.open.iter().any(|id| self.calls.find(*id).is_some_and(|call| call.work.is_program()))
            })
        };
        std::iter::once(ix).chain(self.agents.above(ix)).find(runs)
    }
}
