//! The laws of questions that tools ask while they run: such a question is of a tool call that runs, the only one of it, and
//! ends before the call does.

use std::collections::BTreeMap;

use spinney_kernel::primitives::CallId;
use spinney_kernel::record::Event;

use super::law::{Law, hold};

/// Open questions, and the calls that ask.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolQuestions(BTreeMap<CallId, CallId>);

impl ToolQuestions {
    /// Reads one event.
    pub(super) fn see(&mut self, event: &Event) -> Law {
        match event {
            Event::QuestionAsked { call, question, .. } => {
                if let Some(asking) = question.call {
                    hold(!self.asks(asking), || format!("{asking} asks two questions at once"))?;
                    self.0.insert(*call, asking);
                }
            }
            Event::CallEnded { call, .. } => {
                self.0.remove(call);
                hold(!self.asks(*call), || format!("{call} ended, and its question did not"))?;
            }
            Event::CallResumed { call } | Event::AttemptFailed { call, .. } => {
                hold(!self.asks(*call), || format!("{call} begins again, and its question is open"))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn asks(&self, call: CallId) -> bool {
        self.0.values().any(|asking| *asking == call)
    }
}
