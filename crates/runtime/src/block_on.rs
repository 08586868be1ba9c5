//! For programs that have no async runtime of their own.

use std::io;

use tokio::runtime::Builder;

/// Runs a future to its end, on a tokio runtime of its own with one worker per core. When it returns, trees that still
/// run are dropped as by a crash; they can be resumed.
///
/// # Errors
/// If the operating system gives no threads or no timers.
///
/// # Panics
/// Inside another tokio runtime: await the future there.
pub fn block_on<F: Future>(future: F) -> io::Result<F::Output> {
    let runtime = Builder::new_multi_thread().enable_time().build()?;
    let output = runtime.block_on(future);
    // A tool may sit on a thread that never returns.
    runtime.shutdown_background();
    Ok(output)
}
