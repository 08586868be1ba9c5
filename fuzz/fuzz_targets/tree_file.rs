#![no_main]

#[path = "../bodies/tree_file.rs"]
mod tree_file;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tree_file::run(bytes));
