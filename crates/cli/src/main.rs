//! `spinney`: runs trees of agents from a file, shows them and controls them. This file only wires things together.

mod args;
mod chat;
mod command;
mod completion;
mod display;
mod error_text;
mod events;
mod exec;
mod exit;
mod explain;
mod follow;
mod hint;
mod huge_pages;
mod interrupt;
mod live;
mod log;
mod permission;
mod prompts;
mod question_lines;
mod result;
mod state_ink;

use std::pin::Pin;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use mimalloc::MiMalloc;
use spinney::tree::is_checking_events;
use spinney_drivers::sandbox::guard_a_box;
use spinney_terminal::out;

use crate::args::Args;
use crate::exit::Exit;
use crate::huge_pages::HugePagesOff;

/// Threads often free what another allocated, which this allocator handles well:
/// `docs/decisions/0007-dependencies.md`.
#[global_allocator]
static MEMORY: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // The helper of a box hands this on to what runs inside.
    huge_pages::restore();
    // Before anything else: the helper of a box knows no arguments and needs no runtime.
    if let Some(exit) = guard_a_box() {
        return exit;
    }
    let without_huge_pages = HugePagesOff::new();
    std::panic::set_hook(Box::new(|panic| {
        // Then it becomes an error.
        if !is_checking_events() {
            out::complain(&panic.to_string());
        }
    }));
    match completion::answer() {
        Ok(true) => return Exit::Completed.into(),
        Ok(false) => {}
        Err(error) => return unparsed(error),
    }
    if let Err(error) = log::start() {
        out::complain(&error.to_string());
        return Exit::Usage.into();
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return unparsed(error),
    };
    let mut builder = if args.command.is_short() {
        tokio::runtime::Builder::new_current_thread()
    } else {
        if let Some(off) = without_huge_pages {
            off.end();
        }
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(spinney::worker_threads());
        builder
    };
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            out::complain(&format!("cannot start: {error}"));
            return Exit::Failed.into();
        }
    };
    // Boxed: `block_on` has a copy of what it runs for each kind of runtime, and this is most of the program.
    let command: Pin<Box<dyn Future<Output = Result<Exit>>>> = Box::pin(command::run(args));
    let exit = runtime.block_on(command).unwrap_or_else(|error| {
        let exit = Exit::of_error(&error);
        if exit != Exit::Closed {
            out::complain(&error_text::in_words(&error));
        }
        exit
    });
    // A thread may still wait for input at the terminal, which is no longer needed.
    runtime.shutdown_background();
    exit.into()
}

/// Prints help, version or usage errors. The parser's own printing would bypass `out`.
fn unparsed(mut error: clap::Error) -> ExitCode {
    args::suggest(&mut error);
    let text = error.render().to_string();
    if error.use_stderr() {
        out::note(text.trim_end());
        return Exit::Usage.into();
    }
    match out::verbatim(text.trim_end()) {
        Ok(()) => Exit::Completed.into(),
        Err(unwritten) if unwritten.is_closed() => Exit::Closed.into(),
        Err(unwritten) => {
            out::complain(&unwritten.to_string());
            Exit::Failed.into()
        }
    }
}
