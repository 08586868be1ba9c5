//! The rules: what may happen in a tree and what follows from it. [`decide`] is the entry point; everything else is
//! reached through it.

pub(crate) mod agent;
pub(crate) mod call;
pub(crate) mod checkpoint;
pub(crate) mod clock;
pub(crate) mod compat;
mod decide;
mod draft;
pub(crate) mod graph;
mod input;
pub(crate) mod program;
pub mod report;
pub mod request;
pub(crate) mod shared;
pub(crate) mod signal;
pub(crate) mod turn;
mod verb;

pub use decide::{Decision, InputReply, Receipt, decide, decide_report, decide_request};
pub(crate) use draft::{Draft, StepOver};
pub use input::{Input, InputKind};
pub use report::Report;
pub use request::{Reply, Request};
