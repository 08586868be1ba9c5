//! Answer a question that an agent asked.

use serde::{Deserialize, Serialize};

use super::{Accepted, Outside, Verb, person};
use crate::definition::{Refusal, RememberedApproval};
use crate::primitives::{Actor, Body, CallId, TokenCount};
use crate::record::{Outcome, Work};
use crate::rules::{Draft, call, turn};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    pub question: CallId,
    pub answer: Body,
    /// Approves the tool call of the question, and others like it from now on. The text of the answer is not read then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<Box<RememberedApproval>>,
}

impl Answer {
    #[must_use]
    pub fn new(question: CallId, text: impl Into<String>) -> Self {
        Self { question, answer: Body::text(text), remember: None }
    }

    /// A yes that counts for later calls as well.
    #[must_use]
    pub fn always(question: CallId, remember: RememberedApproval) -> Self {
        Self { remember: Some(Box::new(remember)), ..Self::new(question, "yes") }
    }
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
        if let Some(remember) = &self.remember {
            turn::remember(draft, self.question, remember)?;
            return Ok(Accepted {});
        }
        if turn::continue_with(draft, self.question, by, &self.answer) {
            return Ok(Accepted {});
        }
        if let Some(Work::Question(question)) = draft.call(self.question).map(|call| &call.work) {
            question.form.check_answer(self.question, &self.answer.text)?;
        }
        if !turn::answered(draft, self.question, Some(&self.answer.text)) {
            let answered = Outcome::Answered { answer: self.answer.clone(), is_default: false };
            call::end(draft, self.question, answered);
        }
        Ok(Accepted {})
    }
}
