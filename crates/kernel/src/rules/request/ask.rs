//! Ask a person. Only the asking agent waits, at any depth, and the question survives restarts. A question of a running
//! tool call ends with that call.

use serde::{Deserialize, Serialize};

use super::{Verb, acting, room_for_call, timeout};
use crate::definition::{Refusal, check_said};
use crate::primitives::{Actor, AgentId, CallId, TokenCount, limit};
use crate::record::{Alarm, Event, OnTimeout, Question};
use crate::rules::{Draft, call};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    pub agent: AgentId,
    pub question: Question,
    /// Has a default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskReply {
    /// The id to answer it by.
    pub question: CallId,
}

impl Verb for Ask {
    type Reply = AskReply;

    fn count(&mut self, tokens: &dyn Fn(&str) -> TokenCount) {
        if let OnTimeout::Default(body) = &mut self.question.on_timeout {
            body.count(tokens);
        }
    }
}

impl Ask {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<AskReply, Refusal> {
        let ix = acting(draft, by, &self.agent)?;
        room_for_call(draft, ix)?;
        let ms = timeout(self.timeout_ms, limit::QUESTION_TIMEOUT_MS)?;
        check_said("question", &self.question.text, limit::TEXT_BYTES_MAX)?;
        let default = match &self.question.on_timeout {
            OnTimeout::Default(answer) => {
                answer.checked("default answer")?;
                Some(answer.text.as_str())
            }
            OnTimeout::Fail | OnTimeout::Cancel => None,
        };
        self.question.form.check(default).map_err(|reason| Refusal::BadQuestion { reason })?;
        if let Some(asking) = self.question.call {
            if !draft.call(asking).is_some_and(|call| call.is_live_tool_of(ix)) {
                return Err(Refusal::NotRunning { call: asking });
            }
            // An attempt that was lost may have left one.
            call::end_questions(draft, asking);
        }
        let call = draft.calls().next_id();
        let alarm = Alarm { timer: draft.next_timer(), at: draft.now().after_ms(ms) };
        // Only a turn asks for approval of a tool.
        let (agent, question) = (self.agent.clone(), Question { approves: None, ..self.question.clone() });
        let ask = draft.ask();
        draft.record(Event::QuestionAsked { call, agent, ask, question, alarm });
        Ok(AskReply { question: call })
    }
}
