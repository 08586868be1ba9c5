//! Answer a question that an agent asked.

use serde::{Deserialize, Serialize};

use super::{Accepted, Outside, Verb, person};
use crate::definition::Refusal;
use crate::primitives::{Actor, Body, CallId, TokenCount};
use crate::record::{Outcome, Work};
use crate::rules::{Draft, call, turn};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    pub question: CallId,
    pub answer: Body,
}

impl Verb for Answer {
    type Reply = Accepted;

    fn count(&mut self, tokens: &dyn Fn(&str) -> TokenCount) {
        self.answer.count(tokens);
    }

    fn outside(&self) -> Outside {
        Outside::if_whole(&self.answer)
    }
}

impl Answer {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        person(by, "answer a question")?;
        draft.check_running()?;
        self.answer.checked("answer")?;
        let is_question = |work: &Work| matches!(work, Work::Question(_));
        if !draft.call(self.question).is_some_and(|call| is_question(&call.work)) {
            let open =
                draft.calls().all().filter(|(_, call)| is_question(&call.work)).map(|(id, _)| id).collect();
            return Err(Refusal::UnknownQuestion { question: self.question, open });
        }
        if let Some(refusal) = draft.late_answer(self.question, draft.now()) {
            return Err(refusal);
        }
        if !turn::answered(draft, self.question, Some(&self.answer.text)) {
            let answered = Outcome::Answered { answer: self.answer.clone(), is_default: false };
            call::end(draft, self.question, answered);
        }
        Ok(Accepted {})
    }
}
