//! Spinney for your own program: budgets, and soon whole trees, for AI agents that spawn agents.
//!
//! Today this is the plain [`budget`]: ceilings on money, tokens, steps, tool calls, retries and time that hold up
//! the whole parent chain, without a journal and without a runtime. It stands on the kernel's ledger; every rule
//! about amounts is decided there and nowhere else.
//!
//! Beside it stands the [`tree_file`]: what people write to describe a whole tree, read into the kernel's definition.

mod breaker;
pub mod budget;
pub mod clock;
pub mod draw;
mod drivers;
mod home;
mod sync;
pub mod tree;
pub mod tree_file;

pub use budget::{Budget, Limits};
pub use drivers::{Drivers, NoDriver};
pub use home::{Home, ResumeError, Shutdown, StartError};
pub use tree::Tree;
