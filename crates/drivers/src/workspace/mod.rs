//! Workspaces: one folder per agent, which no other agent shares.
//!
//! ```text
//! <home>/workspace/<tree>/<agent>/history/step_001.json …   what the agent did, for people: a fold of the journal
//!                                 outputs/…                  what the agent made, within limits
//!                                 offload/{hash}.txt         long tool outputs, whole, from the journal
//!                                 scratch/…                  where its commands work
//!                                 copy/…                     its working copy, if it has one: `working_copies/`
//! ```
//!
//! All of it is a copy of what the journal has. `history/` and `offload/` are ours: whatever is in them and is not what the
//! journal says is replaced or removed. `outputs/` is the agent's: what is missing is filled in when the tree is resumed,
//! and what the journal does not name is left alone. `scratch/` is in no journal. Below `<tree>` every folder is opened by a handle of
//! the one above it and no link is followed, so nothing an agent plants leads us out.

mod agent_locks;
mod atomic;
mod copy_files;
mod fault;
mod fold;
mod folder;
mod history;
#[cfg(all(feature = "processes", target_os = "linux"))]
mod left_outputs;
mod name;
mod observation;
mod offload;
#[cfg(all(feature = "processes", target_os = "linux"))]
mod output_kind;
mod outputs;
mod place;
#[cfg(all(feature = "processes", target_os = "linux"))]
mod scratch;
#[cfg(all(feature = "processes", target_os = "linux"))]
mod session_files;
mod short;
mod step;
mod step_writer;

pub(crate) use agent_locks::{AgentLock, AgentLocks};
#[cfg(test)]
pub(crate) use atomic::FLUSHES;
pub use fault::WorkspaceFault;
pub use fold::{StepChange, Steps};
#[cfg(all(feature = "processes", target_os = "linux"))]
pub(crate) use left_outputs::{LeftOutputs, OutputMarks};
#[cfg(all(feature = "processes", target_os = "linux"))]
pub use output_kind::OutputKind;
pub(crate) use outputs::{NotRemoved, Stopped};
pub use place::{Workspace, Workspaces};

/// The folder of an agent's working copy.
pub(crate) const COPY: &str = "copy";

#[cfg(all(feature = "processes", target_os = "linux"))]
pub(crate) use scratch::CommandFolders;
#[cfg(all(feature = "processes", target_os = "linux"))]
pub(crate) use session_files::{SessionFilesError, SessionPlace};
pub use step::{Metadata, Step};
pub use step_writer::StepWriter;
