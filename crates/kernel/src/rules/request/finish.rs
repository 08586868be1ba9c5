//! Finish: an agent ends with its answer. Anything that still runs below it is stopped.

use serde::{Deserialize, Serialize};

use super::{Accepted, Verb, acting, check_not_for_steps};
use crate::definition::Refusal;
use crate::primitives::{Actor, AgentId, Body, TokenCount};
use crate::record::Exit;
use crate::rules::{Draft, agent};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finish {
    pub agent: AgentId,
    pub result: Body,
}

impl Verb for Finish {
    type Reply = Accepted;

    fn count(&mut self, tokens: &dyn Fn(&str) -> TokenCount) {
        self.result.count(tokens);
    }
}

impl Finish {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        let ix = acting(draft, by, &self.agent)?;
        check_not_for_steps(draft, ix)?;
        self.result.checked("result")?;
        agent::end(draft, ix, Exit::Completed, Some(self.result.clone()));
        Ok(Accepted {})
    }
}
