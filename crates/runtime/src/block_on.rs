//! Runs a future in programs without an async runtime of their own.

use std::io;
use std::thread::available_parallelism;

use tokio::runtime::Builder;

/// Runs a future to completion on a new tokio runtime with [`worker_threads`] workers. When it returns, running trees are
/// dropped as by a crash; they can be resumed.
///
/// # Errors
/// If the operating system provides no threads or timers.
///
/// # Panics
/// Inside another tokio runtime: await the future there.
pub fn block_on<F: Future>(future: F) -> io::Result<F::Output> {
    let runtime = Builder::new_multi_thread().worker_threads(worker_threads()).enable_all().build()?;
    let output = runtime.block_on(future);
    // A tool may block a thread forever.
    runtime.shutdown_background();
    Ok(output)
}

/// How many workers a tokio runtime for trees should have: one core is left to the thread that writes the journal. On
/// two cores, a second worker takes turns with that thread, and each durable step takes longer.
#[must_use]
pub fn worker_threads() -> usize {
    available_parallelism().map_or(1, |cores| cores.get().saturating_sub(1).max(1))
}
