//! Fakes for trees of agents: a clock that tests control, trees from text and back to text, homes for whole trees
//! with scripted models, and a simulator driven by a seed. Public, so that programs that
//! embed Spinney can be tested with it.

#![deny(missing_docs)]

mod caching_model;
mod clock;
pub mod conformance;
mod contexts;
pub mod fixture;
pub mod golden;
pub mod http_tool_server;
#[cfg(feature = "whole")]
pub mod kill_campaign;
pub mod processes;
mod recorder;
mod render;
pub mod scenario;
mod script;
pub mod sim;
mod test_home;
pub mod tool_server;
pub mod transfer_campaign;

pub use spinney;
pub use spinney_drivers;
pub use spinney_drivers::scripted;
pub use spinney_store;

pub use caching_model::CachingModel;
pub use clock::SteadyClock;
pub use contexts::contexts_of;
pub use recorder::Recorder;
pub use scenario::{Scenario, check};
pub use test_home::{TestHome, definition, recorded, settled};
