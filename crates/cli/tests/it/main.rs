//! The binary as people use it: files in, text and exit codes out. Tests wait for output, never for time.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod approvals;
mod asking;
mod bad_input;
mod book;
mod chaos;
mod checking;
mod checkpoints;
mod config;
mod contexts;
mod docs;
mod doctor;
mod error_messages;
mod example;
mod exec;
mod exec_live;
mod file_tools;
mod following;
mod graphs;
mod homes;
mod hostile;
mod huge_pages;
mod interrupting;
mod leftovers;
mod listing;
mod live_view;
mod logging;
mod looking;
mod lost_commits;
mod models;
mod output_schema;
mod partial;
#[cfg(feature = "peers")]
mod peers;
#[cfg(feature = "peers")]
mod provider;
mod providers;
mod pty;
mod read_only;
mod removing;
mod replaying;
mod result;
mod result_line;
mod resuming;
mod scenarios;
mod scripts;
mod secrets;
mod sending;
mod spawning;
mod stage;
mod steering;
mod stopped_terminal;
mod suggested;
mod summaries;
mod teams;
mod tls;
mod tls_upstream;
mod top;
mod untrusted_input;
mod upstream;
mod workspace;
