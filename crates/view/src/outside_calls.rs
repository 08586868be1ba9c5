//! The calls of an agent of an outside program: what it sent and was answered, byte for byte.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use spinney_journal::{Batch, Journal, JournalFault};
use spinney_kernel::budget::Resource;
use spinney_kernel::primitives::{AgentId, Body, CallId, ModelName, Time, TreeId};
use spinney_kernel::record::{Event, Outcome, Work};

use crate::agents;
use crate::recall::RecallError;
use crate::spent::Spent;
use crate::{TreeFold, fold};

/// A call of the agent.
pub struct ProgramCall {
    /// As the program named it.
    pub model: ModelName,
    /// When it was asked for.
    pub asked: Time,
    /// What was sent; empty if that was not kept.
    pub request: Body,
    /// How it ended, if it has.
    pub ended: Option<ProgramCallEnd>,
}

/// The end of a call.
pub struct ProgramCallEnd {
    /// The time.
    pub at: Time,
    /// How.
    pub outcome: Outcome,
    /// What it cost.
    pub spent: Spent,
}

/// The calls of an agent, oldest first.
///
/// # Errors
/// If there is no such agent, or the journal cannot be read.
pub async fn outside_calls(
    journal: &dyn Journal,
    tree: TreeId,
    agent: &AgentId,
) -> Result<BTreeMap<CallId, ProgramCall>, RecallError> {
    let known = agents::known(journal, tree).await?;
    if !known.contains(agent) {
        return Err(RecallError::Unknown { agent: agent.clone(), known });
    }
    let mut calls = Calls { agent, calls: BTreeMap::new() };
    fold(journal, tree, &mut calls).await?;
    Ok(calls.calls)
}

struct Calls<'a> {
    agent: &'a AgentId,
    calls: BTreeMap<CallId, ProgramCall>,
}

impl TreeFold for Calls<'_> {
    fn take(&mut self, batch: &Batch) -> ControlFlow<()> {
        let at = batch.input.now;
        for event in &batch.events {
            match event {
                Event::CallAsked { call, agent, work: Work::Model(work) } if agent == self.agent => {
                    let request = work.outside.as_ref().map(|outside| outside.request.clone());
                    let (model, request) = (work.model.clone(), request.unwrap_or_default());
                    self.calls.insert(*call, ProgramCall { model, asked: at, request, ended: None });
                }
                Event::CallEnded { call, outcome, spent, presumed, .. } => {
                    if let Some(made) = self.calls.get_mut(call) {
                        let spent = Spent { all: *spent, presumed: *presumed };
                        made.ended = Some(ProgramCallEnd { at, outcome: outcome.clone(), spent });
                    }
                }
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }
}

impl ProgramCall {
    /// What the program sent; empty if that was not kept.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub async fn sent(&self, journal: &dyn Journal) -> Result<String, JournalFault> {
        let mut bytes = Vec::new();
        for part in self.request.parts() {
            bytes.extend(journal.blob(part.blob()).await?.unwrap_or_default());
        }
        if bytes.is_empty() {
            return Ok(self.request.text.clone());
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What it was answered, if it was and that was kept. Its text may be only the start of it.
    #[must_use]
    pub fn answer(&self) -> Option<&Body> {
        self.ended.as_ref().and_then(|end| end.outcome.body())
    }
}

/// How a call ended, in one word.
#[must_use]
pub const fn end_word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done { .. } => "answered",
        Outcome::Failed { .. } => "failed",
        Outcome::Lost => "lost",
        Outcome::Refused { .. } => "refused",
        Outcome::Cancelled => "withdrawn",
        Outcome::Approved
        | Outcome::Answered { .. }
        | Outcome::Children { .. }
        | Outcome::Message { .. }
        | Outcome::NobodyLeft
        | Outcome::Expired { .. } => "over",
    }
}

/// A call with its whole texts, for programs.
pub struct ProgramCallView<'c> {
    /// Its number in the tree.
    pub call: CallId,
    /// The agent.
    pub agent: &'c AgentId,
    /// What is known of it.
    pub made: &'c ProgramCall,
    /// What was sent.
    pub sent: &'c str,
    /// What was answered.
    pub answer: &'c str,
}

impl Serialize for ProgramCallView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("call", &self.call)?;
        map.serialize_entry("agent", self.agent)?;
        map.serialize_entry("model", &self.made.model)?;
        map.serialize_entry("asked", &self.made.asked)?;
        map.serialize_entry("request", self.sent)?;
        if let Some(ProgramCallEnd { at, outcome, spent }) = &self.made.ended {
            map.serialize_entry("ended", at)?;
            map.serialize_entry("end", end_word(outcome))?;
            map.serialize_entry("cost_nanos", &spent.get(Resource::Cost))?;
            map.serialize_entry("tokens", &spent.get(Resource::Tokens))?;
            let [cost_nanos, tokens] =
                [Resource::Cost, Resource::Tokens].map(|resource| spent.presumed.get(resource));
            map.serialize_entry("presumed", &PresumedPart { cost_nanos, tokens })?;
            map.serialize_entry("response", self.answer)?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct PresumedPart {
    cost_nanos: u64,
    tokens: u64,
}
