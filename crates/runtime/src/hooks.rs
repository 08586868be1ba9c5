//! Hooks around the calls of trees, for programs that embed Spinney and want to observe or stop calls. A home gets
//! them when it is opened. They run where a call leaves the process, so neither a replay nor the recovery of ended
//! calls runs one. The plain budget has its own hooks ([`budget::Hooks`](crate::budget::Hooks)).

use std::sync::Arc;

use spinney_kernel::budget::Amounts;
use spinney_kernel::context::Origin;
use spinney_kernel::definition::Tags;
use spinney_kernel::port::{model, tool};
use spinney_kernel::primitives::{CallId, Fault, ModelName, ToolName};

/// Hooks around every attempt at a model or tool call, of every tree of a home.
///
/// Each runs on a thread that may block. A slow hook holds up only the agent of its call; an agent that is stopped
/// does not wait for it. A panic counts as a failure and affects no tree.
pub trait TreeHooks: Send + Sync {
    /// The amounts are held and the call is about to leave. An error refuses it: nothing is called, no money and no
    /// tokens are spent, and the hold returns. A tool's agent reads the reason as the tool's result; a model's agent
    /// fails with it. A call that is restarted after a crash is asked about again.
    ///
    /// # Errors
    /// The reason to refuse.
    fn before_call(&self, call: &Calling) -> Result<(), String> {
        let _ = call;
        Ok(())
    }

    /// The call has ended and these amounts are about to be booked: the actual usage, or the full hold if it is
    /// unknown. An error cannot undo them: they are booked, and the agent fails with the code `charge_refused` and
    /// that reason, before it acts on the result.
    ///
    /// # Errors
    /// The reason to fail the agent.
    fn before_charge(&self, call: &Calling, actual: &Amounts) -> Result<(), String> {
        let _ = (call, actual);
        Ok(())
    }

    /// The attempt failed: the other side failed, it timed out, or it was stopped. There may be another attempt.
    fn on_error(&self, call: &Calling, fault: &Fault) {
        let _ = (call, fault);
    }

    /// The attempt returned a result. A tool's own error is a result.
    fn on_result(&self, call: &Calling, result: &Returned) {
        let _ = (call, result);
    }
}

/// One attempt at a call, as hooks see it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Calling {
    /// The tree, and ids from the root down to the agent.
    pub origin: Arc<Origin>,
    /// The call's number.
    pub call: CallId,
    /// The first is 1.
    pub attempt: u32,
    /// The model or tool.
    pub target: Target,
    /// Idempotency key: the same for every start of the same attempt; its driver also gets it.
    pub key: String,
    /// The amounts held for it at the agent and every ancestor.
    pub held: Amounts,
    /// The tags of its tree.
    pub tags: Arc<Tags>,
}

/// The model or tool of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A model, by its name in the tree.
    Model(ModelName),
    /// A tool.
    Tool(ToolName),
}

impl Target {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Model(model) => model.as_str(),
            Self::Tool(tool) => tool.as_str(),
        }
    }
}

/// What a call returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Returned {
    /// A model's answer.
    Model(model::ModelAnswer),
    /// A tool's answer.
    Tool(tool::ToolAnswer),
}

impl Returned {
    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Model(answer) => &answer.text,
            Self::Tool(answer) => &answer.text,
        }
    }
}
