#![no_main]

#[path = "../bodies/expressions.rs"]
mod expressions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| expressions::run(bytes));
