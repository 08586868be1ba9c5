//! The server from outside: what reaches a provider and a program, byte for byte; and the gateway as programs see it, with
//! real connections, a small provider of our own behind it, and the tree in between.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "../../examples/web.rs"]
#[expect(dead_code, reason = "its main is for people")]
mod web;

mod agents;
mod ceiling;
mod crash;
mod disturbed;
mod failing_journal;
mod forged;
mod half_open;
mod hidden_keys;
mod provider;
mod run;
mod safety;
mod slow;
mod small_budgets;
mod storm;
mod usage_window;
mod web_handler;
mod wire;
