//! The names that most programs need: `use spinney_host::prelude::*;`. Those of `spinney` are among them.

pub use spinney::block_on;
pub use spinney::prelude::*;
pub use spinney_view::result::TreeResult;

pub use crate::prepared::StartRequest;
pub use crate::tree_file::overrides::GivenValues;
pub use crate::{Host, HostedTree};
