//! Open questions of a tree, also while another process runs it.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use spinney::bus::{Tail, TracedEvent};
use spinney::tree::OpenQuestion;
use spinney_journal::{Journal, JournalFault};
use spinney_kernel::definition::Definition;
use spinney_kernel::primitives::{AgentId, CallId, TreeId};
use spinney_kernel::record::Event;

/// Every question of a tree that was asked and has not ended.
///
/// # Errors
/// If the tree cannot be read.
pub async fn open(
    journal: &dyn Journal,
    tree: TreeId,
) -> Result<BTreeMap<CallId, OpenQuestion>, JournalFault> {
    let (mut open, mut tail) = (BTreeMap::new(), Tail::new(journal, tree));
    let mut started: Option<Arc<Definition>> = None;
    while let Some(TracedEvent { recorded, context, .. }) = tail.next().await? {
        match recorded.event {
            Event::TreeStarted { definition, .. } => started = Some(definition),
            Event::QuestionAsked { call, question, .. } => {
                let offers = started.as_ref().and_then(|definition| question.offered(definition));
                let (path, asking, text) = (context.path().to_vec(), question.call, question.text);
                let (approves, network, form) = (question.approves, question.network, question.form);
                let is_after_answer = question.is_after_answer;
                let asked = OpenQuestion {
                    question: call,
                    path,
                    call: asking,
                    text,
                    approves,
                    form,
                    network,
                    offers,
                    is_after_answer,
                };
                open.insert(call, asked);
            }
            Event::CallEnded { call, .. } => {
                open.remove(&call);
            }
            _ => {}
        }
    }
    Ok(open)
}

/// A question for programs, in full.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct QuestionView<'a> {
    /// Its number.
    #[schemars(with = "u64")]
    pub question: CallId,
    /// The agent that asks, from the root down.
    pub path: String,
    /// What it asks.
    pub text: &'a str,
    /// The answers that count, if only some do.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub choices: &'a [String],
    /// The JSON Schema of the answer, if it has to be JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    pub answer_schema: Option<Value>,
    /// The tool call that a yes permits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approves: Option<ApprovedCall<'a>>,
}

/// A tool call that waits for a yes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ApprovedCall<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its arguments, exactly as the model wrote them.
    pub args: &'a str,
    /// The hosts that a yes lets it connect to, beside those of its agent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The widest pattern that a yes can be remembered with; with hosts, these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always: Option<String>,
}

impl<'a> From<&'a OpenQuestion> for QuestionView<'a> {
    fn from(open: &'a OpenQuestion) -> Self {
        let OpenQuestion { question, path, text, approves, form, network, offers, .. } = open;
        let answer_schema = form.schema().and_then(|schema| serde_json::from_str(schema.text()).ok());
        let hosts = network.rules().map(ToString::to_string).collect();
        let always = offers.as_ref().map(ToString::to_string);
        let approves =
            approves.as_ref().map(|ask| ApprovedCall { tool: &ask.tool, args: &ask.args, hosts, always });
        Self {
            question: *question,
            path: joined(path),
            text,
            choices: form.choices(),
            answer_schema,
            approves,
        }
    }
}

/// Ids from the root down, as events show them.
#[must_use]
pub fn joined(path: &[AgentId]) -> String {
    let path: Vec<&str> = path.iter().map(AgentId::as_str).collect();
    path.join("/")
}
