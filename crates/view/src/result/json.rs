//! The result of a tree for programs.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use spinney_kernel::budget::Resource;
use spinney_kernel::primitives::{AgentId, ModelName, TreeId};

use super::{ResultError, TreeResult};
use crate::boxes::WeakBox;
use crate::branches::AgentBranch;
use crate::questions::QuestionView;
use crate::spent::Spent;

/// A result as JSON: the last line of a run, and the answer to later requests for it.
#[derive(Serialize, JsonSchema)]
pub struct ResultJson<'r> {
    #[serde(rename = "type")]
    kind: &'static str,
    /// Null if there is no tree.
    #[schemars(with = "Option<String>")]
    tree: Option<TreeId>,
    /// `completed`, `failed`, `cancelled`, `halted`, `waiting`, `paused` or `stopped`.
    state: &'static str,
    /// The answer, or how far a halted tree is.
    output: &'r str,
    /// The shared values, by name.
    outputs: &'r Map<String, Value>,
    succeeded: &'r [String],
    failed: &'r [String],
    skipped: &'r [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    cancelled: &'r [String],
    /// What agents left, as paths.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    files: &'r [String],
    /// Null if it could not be read.
    spent: Option<Spent>,
    /// Calls of built-in tools, which cost nothing.
    builtin_calls: Option<u64>,
    /// How many agents there were.
    agents: Option<usize>,
    elapsed_ms: u64,
    /// The hash of the journal.
    event_hash: &'r str,
    /// Models that answered from a script.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(with = "Vec<String>")]
    scripted: &'r [ModelName],
    /// Branches with what agents changed in their working copies.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    branches: &'r [AgentBranch],
    /// Roles whose commands ran in a weaker box (open_to_signals) or in none.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    weak_boxes: &'r [WeakBox],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorJson<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    questions: Vec<QuestionView<'r>>,
}

/// Why a tree did not complete, as JSON.
#[derive(Serialize, JsonSchema)]
pub struct ErrorJson<'r> {
    code: &'r str,
    message: &'r str,
    /// What helps, in the words of the face that wrote it.
    remedy: Option<&'r str>,
    #[serde(flatten)]
    numbers: Option<NumbersJson<'r>>,
}

/// The numbers of a ceiling that has no room.
#[derive(Serialize, JsonSchema)]
struct NumbersJson<'r> {
    /// The agent whose ceiling it is.
    #[schemars(with = "String")]
    account: &'r AgentId,
    #[schemars(with = "String")]
    resource: Resource,
    limit: u64,
    reserve: u64,
    spent: u64,
    held: u64,
    lent: u64,
    asked: u64,
}

impl TreeResult {
    /// The same for programs, with what helps in the words of a face.
    #[must_use]
    pub fn json<'r>(&'r self, remedy: Option<&'r str>) -> ResultJson<'r> {
        let Self { steps, usage, .. } = self;
        ResultJson {
            kind: "result",
            tree: self.tree,
            state: self.state.as_str(),
            output: &self.output,
            outputs: &steps.outputs,
            succeeded: &steps.succeeded,
            failed: &steps.failed,
            skipped: &steps.skipped,
            cancelled: &steps.cancelled,
            files: &self.files,
            branches: &self.branches,
            spent: usage.as_ref().map(|(spent, _)| *spent),
            builtin_calls: usage.as_ref().map(|_| steps.builtin_calls),
            agents: usage.as_ref().map(|(_, agents)| *agents),
            elapsed_ms: self.elapsed_ms,
            event_hash: &self.event_hash,
            scripted: &self.scripted,
            weak_boxes: &self.weak_boxes,
            error: self.error.as_ref().map(|error| error.json(remedy)),
            questions: self.questions.iter().map(QuestionView::from).collect(),
        }
    }
}

impl ResultError {
    /// For programs, with what helps in the words of a face.
    #[must_use]
    pub fn json<'r>(&'r self, remedy: Option<&'r str>) -> ErrorJson<'r> {
        let numbers = self.numbers.as_ref().map(|(account, short)| NumbersJson {
            account,
            resource: short.resource,
            limit: short.limit,
            reserve: short.reserve,
            spent: short.spent,
            held: short.held,
            lent: short.lent,
            asked: short.asked,
        });
        ErrorJson { code: &self.code, message: &self.message, remedy, numbers }
    }
}
