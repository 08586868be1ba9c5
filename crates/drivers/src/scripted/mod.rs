//! The scripted model, and scripted tools: they answer from a file, without an account, exactly and every time alike.
//!
//! A [`Script`] is YAML: `rules` for the model, `tools` beside them. The first rule that matches answers; latency, usage
//! and failures are part of the script. `docs/scripted-model.md` describes every key.
//!
//! What an attempt meets is a pure function of the attempt itself: nothing is counted from one call to the next, so a
//! crash changes nothing. The only IO in here is waiting, and only where a script asks for it.

mod call;
mod fail;
mod file;
mod filter;
mod language;
mod mention;
mod model;
mod problem;
mod rule;
mod script;
mod template;
mod tool;
mod turn;
mod when;

pub use mention::{Mentioned, ScriptMention};
pub use model::ScriptedModel;
pub use problem::ScriptError;
pub use script::{SCRIPT_BYTES_MAX, Script};
pub use template::{FUEL_MAX, MARKS_MAX, RENDERED_BYTES_MAX};
pub use tool::ScriptedTool;
