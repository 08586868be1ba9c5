//! What every face of Spinney shares: homes on disk, tree files with their models, what the user allows, and how trees are
//! started, resumed, found and steered. Nothing here prints or asks: warnings are events of `tracing`, questions are data,
//! and errors have types that a face puts into its own words.

#![deny(missing_docs)]

mod approved_drivers;
pub mod attachments;
mod caller_trace;
pub mod check;
pub mod checkpoints;
pub mod continuing;
pub mod control;
pub mod defaults;
pub mod detached;
pub mod doctor;
mod error_text;
pub mod exec;
pub mod explain;
pub mod followed_list;
pub mod following;
pub mod home;
pub mod home_costs;
mod host;
pub mod inside;
mod listed_heads;
pub mod notify;
mod off_workers;
mod open_home;
mod own_drivers;
pub mod prelude;
pub mod prepared;
pub mod price_list;
pub mod project;
pub mod redaction;
pub mod removal;
pub mod secrets;
pub mod server_packages;
pub mod server_trial;
pub mod shell_word;
mod side_folders;
mod system;
pub mod text_file;
pub mod transfer;
pub mod tree_file;
pub mod tree_list;
pub mod trust;
pub mod user;
pub mod verification;

pub use caller_trace::caller_trace;
pub use error_text::with_causes;
pub use host::{
    Host, HostResumeError, HostStartError, HostedTree, RefusedEgress, scripted_models, stored_result,
};
pub use off_workers::off_workers;
pub use open_home::{BranchTreeError, OpenHome, OpenResumeError};
pub use own_drivers::OwnDrivers;
/// The runtime, for everything that is not about files.
pub use spinney;
