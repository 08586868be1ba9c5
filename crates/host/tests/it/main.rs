//! Programs that run tree files.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "../../examples/file.rs"]
#[expect(dead_code, reason = "its main is for people")]
mod file;
#[path = "../../examples/provider.rs"]
#[expect(dead_code, reason = "its main is for people")]
mod provider;

mod embedding;
mod faces;
