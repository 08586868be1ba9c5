//! `spinney`: runs trees of agents from a file, looks at them and steers them. This file only wires.

mod agents;
mod args;
mod cast;
mod command;
mod control;
mod enclosing;
mod exit;
mod follow;
mod hint;
mod ids;
mod interrupt;
mod kept;
mod out;
mod place;
mod private;
mod recall;
mod result;
mod screen;
mod scribing;
mod source;
mod story;
mod wording;

use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;

use crate::args::Args;
use crate::exit::Exit;

/// What one thread allocates another frees all the time here, and this one takes that well: `docs/decisions/0007-dependencies.md`.
#[global_allocator]
static MEMORY: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            out::complain(&format!("cannot start: {error}"));
            return Exit::Failed.into();
        }
    };
    let exit = runtime.block_on(command::run(args)).unwrap_or_else(|error| {
        let exit = Exit::of_error(&error);
        if exit != Exit::Closed {
            out::complain(&format!("{error:#}"));
        }
        exit
    });
    // Somebody may still be asked something at the terminal; nobody waits for that answer now.
    runtime.shutdown_background();
    exit.into()
}
