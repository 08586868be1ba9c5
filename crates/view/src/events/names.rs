//! What the text of an event needs from earlier events: the purpose of each open call, and the tools of each agent's
//! last answer. Events name calls by number and tools by index.

use std::collections::BTreeMap;

use spinney_kernel::budget::Amounts;
use spinney_kernel::context::OpenCalls;
use spinney_kernel::primitives::{AgentId, CallId, ModelName};
use spinney_kernel::record::{Event, HeldBy, Outcome, ToolAsk};

/// What the open calls of a tree are about.
#[derive(Default)]
pub struct EventNames {
    /// The open calls.
    pub calls: OpenCalls,
    /// The tool calls of each agent's last answer.
    asks: BTreeMap<AgentId, Vec<ToolAsk>>,
    /// What is held for each call that runs.
    held: BTreeMap<CallId, Amounts>,
    /// What held back each call that has not started since.
    held_by: BTreeMap<CallId, HeldBy>,
    /// The model of a call before the switch that is described.
    switched_from: Option<ModelName>,
}

impl EventNames {
    /// Call it before describing the event.
    pub fn enter(&mut self, event: &Event) {
        if let Event::CallSwitched { call, .. } = event {
            self.switched_from = self.calls.find(*call).and_then(|open| open.purpose.model().cloned());
        }
        self.calls.enter(event);
        if let Event::CallStarted { call, held, .. } = event {
            self.held.insert(*call, *held);
            self.held_by.remove(call);
        }
        if let Event::CallHeldBack { call, by, .. } = event {
            self.held_by.insert(*call, *by);
        }
        if let Event::CallEnded { call, outcome: Outcome::Done { asks, .. }, .. } = event
            && let Some(open) = self.calls.find(*call)
            && open.purpose.is_turn()
        {
            self.asks.insert(open.agent.clone(), asks.clone());
        }
    }

    /// What held a call back that waits now.
    #[must_use]
    pub fn held_by(&self, call: CallId) -> Option<HeldBy> {
        self.held_by.get(&call).copied()
    }

    /// Call it after describing the event.
    pub fn leave(&mut self, event: &Event) {
        self.calls.leave(event);
        if let Event::CallEnded { call, .. }
        | Event::AttemptFailed { call, .. }
        | Event::CallHeldBack { call, .. } = event
        {
            self.held.remove(call);
        }
        if let Event::CallEnded { call, .. } = event {
            self.held_by.remove(call);
        }
        if let Event::AgentEnded { agent, .. } = event {
            self.asks.remove(agent);
        }
    }

    /// Whether a switch keeps the model and only lowers the output cap.
    pub(super) fn keeps_model(&self, model: &ModelName) -> bool {
        self.switched_from.as_ref() == Some(model)
    }

    pub(super) fn held(&self, call: CallId) -> Option<&Amounts> {
        self.held.get(&call)
    }

    /// A tool that an agent asked for in its last answer.
    #[must_use]
    pub fn ask(&self, agent: &AgentId, ask: u32) -> Option<&ToolAsk> {
        self.asks.get(agent)?.get(ask as usize)
    }
}

#[cfg(test)]
mod tests {
    use spinney_kernel::record::{ModelCall, Work};

    use super::*;
    use crate::events::describe;

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

    #[test]
    fn a_call_that_gets_a_smaller_cap_does_not_read_as_another_model() {
        let (call, model) = (CallId(1), "first".parse::<ModelName>().unwrap());
        let work = Work::Model(ModelCall::new(model.clone(), 1, 9));
        let asked = Event::CallAsked { call, agent: "root".parse().unwrap(), work };
        let switched = Event::CallSwitched { call, model, output_cap: 5 };
        let mut names = EventNames::default();
        [&asked, &switched].into_iter().for_each(|event| names.enter(event));
        let text = describe(&names, &switched).text;
        assert_eq!(
            text,
            "asks model first for at most 5 tokens out, because its budget has no room for more"
        );
    }
}
