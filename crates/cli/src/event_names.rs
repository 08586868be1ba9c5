//! What the text of an event needs from earlier events: the purpose of each open call, and the tools of each agent's
//! last answer. Events name calls by number and tools by index.

use std::collections::BTreeMap;

use spinney_kernel::budget::Amounts;
use spinney_kernel::context::OpenCalls;
use spinney_kernel::record::{Event, Outcome, ToolAsk};
use spinney_kernel::words::{AgentId, CallId};

#[derive(Default)]
pub(crate) struct EventNames {
    pub(crate) calls: OpenCalls,
    /// The tool calls of each agent's last answer.
    asks: BTreeMap<AgentId, Vec<ToolAsk>>,
    /// What is held for each call that runs.
    held: BTreeMap<CallId, Amounts>,
}

impl EventNames {
    /// Call it before describing the event.
    pub(crate) fn enter(&mut self, event: &Event) {
        self.calls.enter(event);
        if let Event::CallStarted { call, held, .. } = event {
            self.held.insert(*call, *held);
        }
        if let Event::CallEnded { call, outcome: Outcome::Done { asks, .. }, .. } = event
            && let Some(open) = self.calls.find(*call)
            && open.aim.is_turn()
        {
            self.asks.insert(open.agent.clone(), asks.clone());
        }
    }

    /// Call it after describing the event.
    pub(crate) fn leave(&mut self, event: &Event) {
        self.calls.leave(event);
        if let Event::CallEnded { call, .. } | Event::AttemptFailed { call, .. } = event {
            self.held.remove(call);
        }
        if let Event::AgentEnded { agent, .. } = event {
            self.asks.remove(agent);
        }
    }

    pub(crate) fn held(&self, call: CallId) -> Option<&Amounts> {
        self.held.get(&call)
    }

    pub(crate) fn ask(&self, agent: &AgentId, ask: u32) -> Option<&ToolAsk> {
        self.asks.get(agent)?.get(ask as usize)
    }
}

#[cfg(test)]
mod tests {
    use spinney_kernel::record::{ModelCall, Work};

    use super::*;
    use crate::event_text::describe;

    #[test]
    fn a_call_that_switches_models_is_named_after_the_new_model() {
        let call = CallId(1);
        let [first, other] = ["first", "other"].map(|name| name.parse().unwrap());
        let model = ModelCall::new(first, 1, 1);
        let asked = Event::CallAsked { call, agent: "root".parse().unwrap(), work: Work::Model(model) };
        let switched = Event::CallSwitched { call, model: other, output_cap: 1 };
        let started = Event::CallStarted { call, attempt: 2, held: Amounts::ZERO, at: None, leads: None };
        let mut names = EventNames::default();
        [&asked, &switched, &started].into_iter().for_each(|event| names.enter(event));
        let text = describe(&names, &started).text;
        assert!(text.starts_with("starts model other, attempt 2"), "{text}");
    }
}
