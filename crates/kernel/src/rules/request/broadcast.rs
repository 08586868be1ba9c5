//! Share an agent's messages of some categories with several agents, by reference, each once.

use serde::{Deserialize, Serialize};

use super::{Outside, Verb, acting};
use crate::definition::Refusal;
use crate::primitives::{Actor, AgentId, Category, limit};
use crate::rules::turn::Before;
use crate::rules::{Draft, turn};
use crate::window::SharedContent;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Broadcast {
    pub from: AgentId,
    pub to: Vec<AgentId>,
    /// `context`, and for a person also `system`.
    pub categories: Vec<Category>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BroadcastReply {
    /// Messages delivered to each recipient, in the order of the request; 0 if nothing was new to it.
    pub messages: Vec<u32>,
}

impl Verb for Broadcast {
    type Reply = BroadcastReply;

    fn outside(&self) -> Outside {
        Outside::Open
    }
}

impl Broadcast {
    pub(in crate::rules) fn decide(
        &self,
        draft: &mut Draft<'_>,
        by: &Actor,
    ) -> Result<BroadcastReply, Refusal> {
        acting(draft, by, &self.from)?;
        if self.to.is_empty() || self.categories.is_empty() {
            return Err(Refusal::TextEmpty { what: "list of recipients or categories".to_owned() });
        }
        if self.to.len() > limit::SHARES_MAX {
            let (what, count) = ("recipients".to_owned(), self.to.len());
            return Err(Refusal::TooMany { what, count, count_max: limit::SHARES_MAX });
        }
        for to in &self.to {
            draft.living(to)?;
            if *to == self.from {
                return Err(Refusal::TellsItself { agent: to.clone() });
            }
        }
        for category in &self.categories {
            match (category, by) {
                (Category::Context, _) | (Category::System, Actor::Outside(_)) => {}
                (
                    Category::System
                    | Category::Dialog
                    | Category::Output
                    | Category::Error
                    | Category::Internal
                    | Category::Unknown,
                    _,
                ) => return Err(Refusal::CategoryNotAllowed { category: *category }),
            }
        }
        let is_whole = self.categories.contains(&Category::System);
        let news = if is_whole { SharedContent::Briefing } else { SharedContent::Context };
        let shared = |to| turn::share(draft, &self.from, to, news, Before::Stays);
        Ok(BroadcastReply { messages: self.to.iter().map(shared).collect() })
    }
}
