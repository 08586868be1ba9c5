//! The binary as people use it: files in, words and exit codes out. Tests wait for output and never for time.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod approvals;
mod bad_input;
mod checkpoints;
mod config;
mod contexts;
mod documents;
mod door;
mod example;
mod files;
mod following;
mod homes;
mod hostile;
mod interrupting;
mod leftovers;
mod logging;
mod looking;
mod losing;
mod models;
mod partial;
mod providers;
mod read_only;
mod removing;
mod replaying;
mod result;
mod result_line;
mod resuming;
mod scenarios;
mod sending;
mod shaped;
mod spawning;
mod stage;
mod steering;
mod suggested;
mod summaries;
mod teams;
mod upstream;
mod workspace;
