//! Spinney for your own program: trees of AI agents that spawn agents, on a journal that survives them.
//!
//! A [`Home`] runs trees: it is opened on a journal, with the [`Drivers`] that call models and tools; it starts trees,
//! takes them up again after a crash, and puts them away. A [`Tree`] is how callers hold one: ask, signal, wait, look
//! and follow its events. A [`tree_file`] is what people write to describe a tree.
//!
//! Beside it stands the plain [`budget`], for those who want only that: ceilings on money, tokens, steps, tool calls,
//! retries and time that hold up the whole parent chain, without a journal and without a runtime.

#![deny(missing_docs)]

mod breaker;
pub mod budget;
pub mod bus;
pub mod clock;
pub mod draw;
mod drivers;
pub mod function_tool;
mod home;
pub mod hooks;
mod names;
mod output_schema;
mod sync;
pub mod tree;
pub mod tree_file;
pub mod wire;

pub use budget::{Budget, Limits};
pub use drivers::{Drivers, NoDriver};
pub use function_tool::FunctionTool;
pub use home::{Home, Orphan, RemoveError, ResumeError, Shutdown, StartError};
pub use hooks::TreeHooks;
pub use tree::Tree;

/// The README's code compiles as it is written.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
