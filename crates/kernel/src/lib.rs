//! The kernel decides: everything a tree of agents may do, as pure functions over one [`World`](world::World).
//!
//! ```text
//! input ─► decide(world, input) ─► events (applied) ─► effects ─► each ends in ONE report ─► input
//! ```
//!
//! No async, no clock, no randomness, no IO: time, ids and token counts arrive with the [`Input`](rules::Input).
//! The modules are layers, from the bottom to the top; none imports from one above it:
//!
//! | layer | holds |
//! |---|---|
//! | [`primitives`] | ids, times, limits, texts, faults |
//! | [`budget`] | amounts, ceilings, the ledger |
//! | [`definition`] | what a tree is made of, and refusals |
//! | [`record`] | events and what they are made of |
//! | [`window`] | which messages a model call sees |
//! | [`context`] | the messages themselves |
//! | [`world`] | everything a tree is at one moment |
//! | [`port`] | models and tools, as traits |
//! | [`rules`] | [`decide`](rules::decide()), requests, reports, turns, calls |
//!
//! A new verb is one new file in `rules/request/` and one match arm.

pub mod budget;
pub mod context;
pub mod definition;
pub mod port;
pub mod primitives;
pub mod record;
pub mod rules;
pub mod window;
pub mod world;
