//! What people and programs read of a tree: each view is a fold of its journal, and the same for every face. Nothing here
//! prints, knows a terminal or names a command: a face puts views into its own words.

#![deny(missing_docs)]

pub mod agent_answer;
pub mod agents;
pub mod approval;
pub mod boxes;
pub mod branches;
pub mod checkpoints;
pub mod context_message;
pub mod continued;
pub mod costs;
pub mod events;
pub mod expected_agents;
mod first_batch;
mod fold;
pub mod live;
pub mod outline;
pub mod outside_calls;
pub mod packet_prefix;
pub mod questions;
pub mod recall;
pub mod remedy;
pub mod result;
mod run_ledger;
pub mod schema;
pub mod shared;
pub mod spent;
pub mod topics;
pub mod typed_answer;
pub mod visibility;
pub mod window;
pub mod wording;

pub use first_batch::TreeBeginning;
pub use fold::{TreeFold, each_event, fold};
pub use run_ledger::RunLedger;
