//! Wait for children or a message. The agent holds no slot and no budget while it waits.

use serde::{Deserialize, Serialize};

use super::{Verb, acting, room_for_call, timeout};
use crate::world::AgentIx;

use crate::definition::Refusal;
use crate::primitives::{Actor, AgentId, CallId, limit};
use crate::record::{Alarm, Event, WaitFor, WaitNeed, WaitReason};
use crate::rules::Draft;
use crate::rules::call::wake_waits;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    pub agent: AgentId,
    pub wait: WaitFor,
    /// Has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum WaitReply {
    Waiting {
        call: CallId,
        why: WaitReason,
    },
    /// What it waits for already happened, so it has ended.
    Over,
}

impl Verb for Wait {
    type Reply = WaitReply;
}

impl Wait {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<WaitReply, Refusal> {
        let ix = acting(draft, by, &self.agent)?;
        room_for_call(draft, ix)?;
        let ms = timeout(self.timeout_ms, limit::WAIT_TIMEOUT_MS)?;
        let why = match &self.wait {
            WaitFor::Message => WaitReason::Message,
            WaitFor::Children { agents, need, .. } => {
                if *need == WaitNeed::First(0) {
                    return Err(Refusal::NothingToWaitFor);
                }
                self.check_children(draft, ix, agents)?;
                WaitReason::Children
            }
        };
        let call = draft.calls().next_id();
        let alarm = Alarm { timer: draft.next_timer(), at: draft.now().after_ms(ms) };
        let (agent, wait) = (self.agent.clone(), self.wait.clone());
        let ask = draft.ask();
        draft.record(Event::WaitStarted { call, agent, ask, wait, alarm });
        wake_waits(draft, ix);
        Ok(if draft.call(call).is_some() { WaitReply::Waiting { call, why } } else { WaitReply::Over })
    }

    fn check_children(&self, draft: &Draft<'_>, ix: AgentIx, agents: &[AgentId]) -> Result<(), Refusal> {
        if agents.is_empty() {
            return Err(Refusal::NothingToWaitFor);
        }
        let count_max = draft.agents().len();
        if agents.len() > count_max {
            return Err(Refusal::TooMany { what: "children".to_owned(), count: agents.len(), count_max });
        }
        for id in agents {
            let found = draft.agents().find(id);
            let child = found.ok_or_else(|| Refusal::UnknownAgent { agent: id.clone() })?;
            if draft.agents().parent(child) != Some(ix) {
                return Err(Refusal::NotAChild { parent: self.agent.clone(), agent: id.clone() });
            }
        }
        Ok(())
    }
}
