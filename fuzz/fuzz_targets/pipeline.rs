#![no_main]

#[path = "../bodies/pipeline.rs"]
mod pipeline;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pipeline::run(bytes));
