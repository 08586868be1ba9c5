//! The kernel decides: everything a tree of agents may do, as pure functions over one [`World`].
//!
//! ```text
//! input ─► decide(world, input) ─► events (applied) ─► effects ─► each ends in ONE report ─► input
//! ```
//!
//! No async, no clock, no randomness, no IO: time, ids and token counts arrive with the [`Input`].
//! A new verb is one new file in `request/` and one match arm.

pub mod agent;
mod batch;
pub mod body;
pub mod budget;
pub mod by;
pub mod call;
pub mod caps;
pub mod category;
pub mod checkpoint;
pub mod checkpoint_kind;
mod clock;
pub mod clock_kind;
pub mod context;
pub mod cut;
mod decide;
pub mod definition;
pub mod digest;
mod draft;
pub mod durability;
pub mod effect;
pub mod envelope;
pub mod event;
pub mod fault;
pub mod findings;
mod hash;
pub mod header;
pub mod holding;
pub mod id;
pub mod input;
pub mod limit;
pub mod offload;
pub mod output_schema;
pub mod part;
pub mod port;
pub mod refusal;
pub mod report;
pub mod request;
pub mod retention;
pub mod retry;
pub mod running;
pub mod signal;
pub mod standing;
pub mod summary;
pub mod thread;
pub mod time;
pub mod tool_ask;
pub mod trace;
pub mod turn;
pub mod wait_need;
pub mod why;
pub mod window;
pub mod world;
pub mod wrap_up;
pub mod written;

pub use batch::Batch;
pub use decide::{Decision, Reply, decide};
pub use effect::Effect;
pub use event::Event;
pub use hash::{ByName, NameHasher};
pub use input::{By, Input, What};
pub use refusal::Refusal;
pub use report::Report;
pub use request::Request;
pub use world::World;
