//! Programs under a budget: what their runs are continued with, and how each kind of program is led to the gateway.

pub mod agent;
pub mod boxed;
pub mod claude;
pub mod codex;
pub mod environment;
mod gemini;
pub mod keys;
pub mod options;
pub mod other_keys;
pub mod placeholders;
pub mod prepared_run;
pub mod program;
pub mod run_definition;
pub mod run_values;

/// Whether a program confines what it does itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnSandbox {
    /// As the user has set it.
    AsSet,
    /// Our box is around it, and boxes in boxes fail.
    Off,
}

/// Arguments with which a program cannot be led to the gateway.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadArguments(String);
