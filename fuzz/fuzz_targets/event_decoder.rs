#![no_main]

#[path = "../bodies/event_decoder.rs"]
mod event_decoder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| event_decoder::run(bytes));
