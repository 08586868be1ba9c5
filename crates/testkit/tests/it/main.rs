//! The kernel's rules, one module per topic: text in, snapshot out, and laws under random load.

mod bad_amount;
mod bad_input;
mod budget;
mod caps;
mod deep;
mod docs;
mod ending;
mod fixed;
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
mod seen;
mod signal;
mod sim;
mod slot;
mod snapshot;
mod spawn;
mod wait;
