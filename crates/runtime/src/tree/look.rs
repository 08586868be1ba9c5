//! A look at a tree: every agent, what people are asked, and how it ended.

use serde::{Deserialize, Serialize};
use spinney_kernel::context::{Contexts, End};
use spinney_kernel::record::{ToolAsk, Work};
use spinney_kernel::words::{AgentId, Body, CallId, Seq};
use spinney_kernel::world::{AgentView, Halt, TreeState, World};

/// A tree at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Look {
    /// Its last event.
    pub seq: Seq,
    /// Its state.
    pub state: TreeState,
    /// Every agent there is or was, in order of birth.
    pub agents: Vec<AgentView>,
    /// What people are asked.
    pub questions: Vec<OpenQuestion>,
    /// Why it takes no new work, if it does not.
    pub halted: Option<Halt>,
    /// How it ended, if it has.
    pub end: Option<End>,
    /// As far as it got, if it has not ended: the last thing that the root's model said.
    pub so_far: Option<Body>,
}

/// A question that nobody has answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// By this it is answered.
    pub question: CallId,
    /// Ids from the root down to who asks.
    pub path: Vec<AgentId>,
    /// What is asked. For a tool that needs a person's leave it may show only the beginning of its arguments.
    pub text: String,
    /// The call that a yes allows, whole.
    pub approves: Option<Box<ToolAsk>>,
}

impl Look {
    /// What there is to see.
    #[must_use]
    pub fn at(world: &World, contexts: &Contexts) -> Self {
        let question = |(id, call): (CallId, &spinney_kernel::world::Call)| match &call.work {
            Work::Question(question) => Some(OpenQuestion {
                question: id,
                path: world.agents().path(call.agent),
                text: question.text.clone(),
                approves: question.approves.clone(),
            }),
            Work::Model(_) | Work::Tool(_) | Work::Child(_) | Work::Wait(_) => None,
        };
        let root = world.agents().root();
        Self {
            seq: world.seq(),
            state: world.state(),
            agents: world.directory().collect(),
            questions: world.calls().all().filter_map(question).collect(),
            halted: world.halted().cloned(),
            end: contexts.end().cloned(),
            so_far: root.and_then(|root| contexts.said(world.agents().id(root))).cloned(),
        }
    }
}
