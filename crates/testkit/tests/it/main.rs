//! The kernel's rules, one module per topic: text in, snapshot out, and laws under random load.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod bad_amount;
mod bad_input;
mod bad_script;
mod budget;
mod campaign;
mod caps;
mod deep;
mod docs;
mod ending;
mod fixed;
mod function_tool;
mod halt;
mod lease;
mod lend_and_reserve;
mod on_low;
mod price;
mod question;
mod replay;
mod retry;
mod scene;
mod scripted;
mod scripted_docs;
mod scripted_tool;
mod seen;
mod signal;
mod sim;
mod slot;
mod snapshot;
mod spawn;
mod turn;
mod wait;
mod whole;
mod written;
