//! Hooks around the calls of trees: what a program that embeds Spinney wants to see, or stop. They are given to a home
//! with its drivers and act where a call leaves the process, so that no replay and no recovery of what has ended ever
//! runs one. The plain budget has hooks of its own, by the same words ([`budget::Hooks`](crate::budget::Hooks)).

use std::sync::Arc;

use spinney_kernel::budget::Amounts;
use spinney_kernel::context::Origin;
use spinney_kernel::definition::Tags;
use spinney_kernel::port::{model, tool};
use spinney_kernel::words::{CallId, Fault, ModelName, ToolName};

/// What is called around every attempt at a call of a model or a tool, of every tree of a home.
///
/// Each runs on a thread that may wait. A slow one holds up the agent whose call it is about and nobody else; an agent
/// that is stopped does not wait for it. What panics has failed, and hurts no tree.
pub trait TreeHooks: Send + Sync {
    /// The amounts are held and the call is about to leave. An error refuses it: nothing is called, no money and no
    /// tokens are spent, and the hold returns. A tool's agent reads the reason as the result of the tool; a model's
    /// agent fails with it. A call that was out when its process died is asked about again if it is started again.
    ///
    /// # Errors
    /// The reason to refuse.
    fn before_call(&self, call: &Calling) -> Result<(), String> {
        let _ = call;
        Ok(())
    }

    /// The call has ended and these amounts are about to be booked: what was really used, or all that was held if
    /// nobody knows. An error cannot unspend them: they are booked, and the agent fails with the code `charge_refused`
    /// and that reason, before it acts on what the call returned.
    ///
    /// # Errors
    /// The reason to fail the agent.
    fn before_charge(&self, call: &Calling, actual: &Amounts) -> Result<(), String> {
        let _ = (call, actual);
        Ok(())
    }

    /// The attempt came to nothing: the other side failed, it took too long, or it was stopped. There may be another.
    fn on_error(&self, call: &Calling, fault: &Fault) {
        let _ = (call, fault);
    }

    /// The attempt returned something. A tool that says it could not do what it was asked has returned that.
    fn on_result(&self, call: &Calling, result: &Returned) {
        let _ = (call, result);
    }
}

/// One attempt at a call, as hooks see it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Calling {
    /// For whom: the tree, and ids from the root down.
    pub origin: Arc<Origin>,
    /// Which call.
    pub call: CallId,
    /// Which attempt; the first is 1.
    pub attempt: u32,
    /// What is called.
    pub target: Target,
    /// The same for every start of the same attempt, as its driver is given it.
    pub key: String,
    /// What is held for it, at the agent and at all above it.
    pub held: Amounts,
    /// The tags of its tree.
    pub tags: Arc<Tags>,
}

/// What is called.
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
    /// What it says.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Model(answer) => &answer.text,
            Self::Tool(answer) => &answer.text,
        }
    }
}
