//! Redirect an agent: a person gives it a new instruction while it runs. Completed work stays.

use serde::{Deserialize, Serialize};

use super::{Accepted, Outside, Verb, check_reads, person};
use crate::definition::{Refusal, check_said};
use crate::primitives::{Actor, AgentId, Body, Running, TokenCount, limit};
use crate::record::{Event, Exit, Work};
use crate::rules::call::wake_waits;
use crate::rules::{Draft, agent, graph, signal, turn};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Redirect {
    pub agent: AgentId,
    pub instruction: String,
    /// Its tokens, if counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenCount>,
    /// What happens to its running calls and its children.
    #[serde(default)]
    pub running: Running,
}

impl Verb for Redirect {
    type Reply = Accepted;

    fn count(&mut self, tokens: &dyn Fn(&str) -> TokenCount) {
        self.tokens = Some(tokens(&self.instruction));
    }

    fn outside(&self) -> Outside {
        Outside::Open
    }
}

impl Redirect {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        person(by, "redirect an agent")?;
        let ix = signal::target(draft, by, &self.agent)?;
        check_reads(draft, ix)?;
        check_said("instruction", &self.instruction, limit::TEXT_BYTES_MAX)?;
        draft.record(Event::AgentRedirected {
            agent: self.agent.clone(),
            instruction: self.instruction.clone(),
            tokens: self.tokens,
            running: self.running,
        });
        if self.running.stops() {
            // A stopped child still ends the call that spawned it.
            agent::drop_waiting(draft, ix, |work| matches!(work, Work::Child(_)));
            for child in draft.agents().children(ix).collect::<Vec<_>>() {
                // Whoever asked for a pipeline reads what of it is done.
                let so_far = if draft.rules() < 8 { None } else { graph::so_far(draft, child) };
                agent::end(draft, child, Exit::Cancelled { reason: "redirected".to_owned() }, so_far);
            }
        }
        wake_waits(draft, ix);
        turn::hear(draft, ix, by, &Body::text(self.instruction.clone()));
        Ok(Accepted {})
    }
}
