//! A view of a tree: its agents, open questions, and how it ended.

use serde::{Deserialize, Serialize};
use spinney_kernel::context::{Contexts, End};
use spinney_kernel::definition::{AnswerForm, Network, SubjectPattern};
use spinney_kernel::primitives::{AgentId, Body, CallId, Seq};
use spinney_kernel::record::{ToolAsk, Work};
use spinney_kernel::world::{AgentView, Call, CallStage, Halt, TreeState, World};

/// A tree at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TreeSnapshot {
    /// Its last event.
    pub seq: Seq,
    /// Its state.
    pub state: TreeState,
    /// All agents, living and ended, in spawn order.
    pub agents: Vec<AgentView>,
    /// Open questions.
    pub questions: Vec<OpenQuestion>,
    /// The agents that are programs which run: they continue when a ceiling is raised, and are lost when their process ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<AgentId>,
    /// Why it starts no new work, if it is halted.
    pub halted: Option<Halt>,
    /// How it ended, if it has.
    pub end: Option<End>,
    /// Its progress if it has not ended: the last text of the root's model.
    pub so_far: Option<Body>,
}

/// An open question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// The id to answer it by.
    pub question: CallId,
    /// Ids from the root down to the asking agent.
    pub path: Vec<AgentId>,
    /// The running tool call that asks. The question ends with it, also if the process that ran it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The question. For a tool that needs approval it may show only the beginning of the arguments.
    pub text: String,
    /// The whole tool call that a yes permits.
    pub approves: Option<Box<ToolAsk>>,
    /// What may be answered.
    #[serde(default, skip_serializing_if = "AnswerForm::is_text")]
    pub form: AnswerForm,
    /// The hosts that a yes lets that call connect to, beside those of the agent.
    #[serde(default, skip_serializing_if = "Network::is_denied")]
    pub network: Network,
    /// The widest pattern that the approval can be remembered with ([`Answer::always`](crate::request::Answer::always)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offers: Option<SubjectPattern>,
    /// Whether the agent has answered and waits for what comes next, because it is kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_after_answer: bool,
}

impl TreeSnapshot {
    /// The view of a world and its contexts.
    #[must_use]
    pub fn at(world: &World, contexts: &Contexts) -> Self {
        let question = |(id, call): (CallId, &Call)| match &call.work {
            Work::Question(question) => Some(OpenQuestion {
                call: question.call,
                question: id,
                path: world.agents().path(call.agent),
                text: question.text.clone(),
                approves: question.approves.clone(),
                form: question.form.clone(),
                network: question.network.clone(),
                offers: question.offered(world.definition()),
                is_after_answer: question.is_after_answer,
            }),
            Work::Model(_) | Work::Tool(_) | Work::Child(_) | Work::Wait(_) => None,
        };
        let program = |(_, call): (CallId, &Call)| {
            let runs = call.work.is_program() && matches!(call.stage, CallStage::Running { .. });
            runs.then(|| world.agents().id(call.agent).clone())
        };
        let root = world.agents().root();
        Self {
            seq: world.seq(),
            state: world.state(),
            agents: world.directory().collect(),
            questions: world.calls().all().filter_map(question).collect(),
            programs: world.calls().all().filter_map(program).collect(),
            halted: world.halted().cloned(),
            end: contexts.end().cloned(),
            so_far: root.and_then(|root| contexts.said(world.agents().id(root))).cloned(),
        }
    }
}
