//! Runs a future in programs without an async runtime of their own.

use std::io;

use tokio::runtime::Builder;

/// Runs a future to completion on a new tokio runtime with one worker per core. When it returns, running trees are
/// dropped as by a crash; they can be resumed.
///
/// # Errors
/// If the operating system provides no threads or timers.
///
/// # Panics
/// Inside another tokio runtime: await the future there.
pub fn block_on<F: Future>(future: F) -> io::Result<F::Output> {
    let runtime = Builder::new_multi_thread().enable_time().build()?;
    let output = runtime.block_on(future);
    // A tool may block a thread forever.
    runtime.shutdown_background();
    Ok(output)
}
