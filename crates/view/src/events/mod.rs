//! Events as sentences for people who follow a tree, and as JSON for programs.

mod asked_by;
mod connections;
mod filter;
mod json;
mod line;
mod names;
mod text;

pub use asked_by::asked_by;
pub use filter::{EventFilter, EventFilterError};
pub use json::{TextPiece, event_json, event_path};
pub use line::EventLine;
pub use names::EventNames;
pub use text::{EventText, EventWeight, describe, settled};
