//! Equal tool calls in a row: the same tool, arguments and result. It keeps digests and counts, no texts.
//!
//! The calls of one answer are counted in the order in which the model asked for them, once all of them have returned.

use crate::definition::Builtin;
use crate::primitives::Body;
use crate::record::{ExitKind, Outcome, ToolAsk};

type CallDigest = [u8; 16];

/// The row of equal calls before an agent's last answer, and the calls of that answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Repeated {
    before: Streak,
    calls: Vec<AskedCall>,
    /// The tool of the answer's last call.
    tool: Box<str>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Streak {
    digest: CallDigest,
    count: u32,
    is_noticed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum AskedCall {
    /// It has not returned, or never will.
    Open(CallDigest),
    Ended(CallDigest),
    /// It waits or looks, or its result is not its own: it ends a row.
    Uncounted,
}

/// A row of equal calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row<'p> {
    pub(crate) tool: &'p str,
    pub(crate) count: u32,
    /// Whether the agent was warned about it.
    pub(crate) is_noticed: bool,
}

impl Repeated {
    pub(super) fn asked(&mut self, asks: &[ToolAsk]) {
        self.close();
        self.calls = asks.iter().map(AskedCall::from_ask).collect();
        self.tool = asks.last().map(|ask| ask.tool.as_str().into()).unwrap_or_default();
    }

    pub(super) fn ended(&mut self, ask: u32, outcome: &Outcome) {
        match outcome {
            // The tool that runs now will answer.
            Outcome::Approved => {}
            Outcome::Done { body, .. } => self.answered(ask, body),
            Outcome::Failed { fault } => self.end(ask, &[fault.kind.as_str(), &fault.message]),
            Outcome::Refused { refusal } => self.end(ask, &["refused", &refusal.to_string()]),
            // A child's answer was added when it was given; what another child left unfinished is never the same.
            // Who is told that and waits again repeats itself.
            Outcome::NobodyLeft => self.end(ask, &["nobody_left"]),
            Outcome::Children { ended } if ended.iter().all(|end| end.state == ExitKind::Completed) => {
                self.end(ask, &["completed"]);
            }
            Outcome::Children { .. }
            | Outcome::Lost
            | Outcome::Cancelled
            | Outcome::Answered { .. }
            | Outcome::Message { .. }
            | Outcome::Expired { .. } => self.change(ask, |_| AskedCall::Uncounted),
        }
    }

    pub(super) fn answered(&mut self, ask: u32, body: &Body) {
        let parts = body.parts().iter().map(|part| part.blob().hash.as_str());
        self.end(ask, &std::iter::once(whole(body)).chain(parts).collect::<Vec<_>>());
    }

    pub(super) fn child_answered(&mut self, ask: u32, body: &Body) {
        self.change(ask, |call| AskedCall::Open(digest(&call, &[whole(body)])));
    }

    /// The row after the answer's calls; `None` if they were counted before.
    pub(super) fn row(&self) -> Option<Row<'_>> {
        let Streak { count, is_noticed, .. } = self.streak();
        (!self.calls.is_empty()).then_some(Row { tool: &self.tool, count, is_noticed })
    }

    pub(super) fn noticed(&mut self) {
        self.close();
        self.before.is_noticed = true;
    }

    /// Counts the answer's calls.
    pub(super) fn close(&mut self) {
        self.before = self.streak();
        self.calls = Vec::new();
    }

    fn streak(&self) -> Streak {
        self.calls.iter().fold(self.before, |streak, call| match call {
            AskedCall::Ended(digest) if streak.count > 0 && streak.digest == *digest => {
                Streak { count: streak.count.saturating_add(1), ..streak }
            }
            AskedCall::Ended(digest) => Streak { digest: *digest, count: 1, is_noticed: false },
            AskedCall::Open(_) | AskedCall::Uncounted => Streak::default(),
        })
    }

    fn end(&mut self, ask: u32, result: &[&str]) {
        self.change(ask, |call| AskedCall::Ended(digest(&call, result)));
    }

    fn change(&mut self, ask: u32, change: impl FnOnce(CallDigest) -> AskedCall) {
        if let Some(call) = self.calls.get_mut(ask as usize)
            && let AskedCall::Open(digest) = *call
        {
            *call = change(digest);
        }
    }
}

impl AskedCall {
    fn from_ask(ask: &ToolAsk) -> Self {
        match is_counted(ask) {
            true => Self::Open(digest(&CallDigest::default(), &[&ask.tool, &ask.args])),
            false => Self::Uncounted,
        }
    }
}

/// Whether a call may be part of a row: tools that wait or look may be called again and again. A wait for messages is part of
/// one if it ended because none can come.
pub(super) fn is_counted(ask: &ToolAsk) -> bool {
    let builtin = Builtin::ALL.into_iter().find(|builtin| builtin.as_str() == ask.tool);
    match builtin {
        Some(
            Builtin::WaitAgent
            | Builtin::ListAgents
            | Builtin::AskHuman
            | Builtin::ReadContext
            | Builtin::ListContext,
        ) => false,
        Some(
            Builtin::SpawnAgent
            | Builtin::SendMessage
            | Builtin::FollowupTask
            | Builtin::DelegateToAgent
            | Builtin::HandBack
            | Builtin::CancelAgent
            | Builtin::WaitMessage
            | Builtin::WriteContext
            | Builtin::RunPipeline,
        )
        | None => true,
    }
}

/// The text, or what names all of it.
fn whole(body: &Body) -> &str {
    body.rest().map_or(body.text.as_str(), |rest| rest.hash.as_str())
}

/// Adds texts to a digest, each with its length, so no two lists read the same.
fn digest(before: &CallDigest, texts: &[&str]) -> CallDigest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(before);
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    let mut digest = CallDigest::default();
    digest.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    digest
}
