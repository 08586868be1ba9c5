//! The names that most programs need: `use spinney::prelude::*;`.

pub use crate::budget::{Budget, Limits, spend};
pub use crate::function_tool::{FunctionTool, RawCall, ToolRequest};
pub use crate::hooks::{Calling, Returned, Target, TreeHooks};
#[cfg(feature = "sqlite")]
pub use crate::{Access, MemoryJournal, SqliteJournal};
pub use crate::{Drivers, FunctionModel, Home, Shutdown, Tree, TreeFile};
pub use spinney_kernel::definition::{Definition, Role};
pub use spinney_kernel::port::model::{ModelAnswer, ModelAttempt};
pub use spinney_kernel::record::ToolAsk;
