#![no_main]

#[path = "../bodies/journal_reader.rs"]
mod journal_reader;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| journal_reader::run(bytes));
