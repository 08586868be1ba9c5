//! The run of a program behind the gateway: its tree, started or resumed; how it ends; and the report of it.

mod conversation;
mod ending;
mod given_up;
mod interrupt;
mod open_files;
mod program_connections;
mod report;
mod run_settings;
mod run_tree;

pub use conversation::FoundConversation;
pub use ending::{CeilingReached, RunEnd, RunExit, finish, root, settle};
pub use given_up::GivenUpCalls;
pub use interrupt::LastInterrupt;
pub use open_files::allow_many_connections;
pub use program_connections::ProgramConnections;
pub use report::{ExecReport, OwnSpending};
pub use run_settings::{gateway_settings, on_limit};
pub use run_tree::{RunTree, RunTreeError, StartRun, StoredRun, follow_ledger, home_of_run};
