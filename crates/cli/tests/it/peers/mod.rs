//! Programs that we did not write. In place of our own upstream: aimock, which speaks the providers' formats, and a real
//! small model. In place of our own agents: Claude Code and Codex. In place of our own servers of tools: those of the
//! protocol itself. They need more than Rust, so these tests have a feature of their own; `make test-peers` installs
//! everything and runs them.

mod aimock;
mod exec;
mod exec_box;
mod exec_limits;
mod exec_options;
mod exec_processes;
mod exec_small_budget;
mod gemini;
mod mcp;
mod mcp_servers;
mod outside;
mod outside_directly;
mod package_managers;
mod peer;
mod programs;
mod recipes;
mod same_tree;
mod sdk_names;
mod smollm2;
