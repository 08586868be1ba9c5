//! Work that mixes files with reads of a journal runs on a separate thread: a slow disk holds up no worker, and a store that
//! needs the runtime still gets it.

use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

/// Runs work where it holds no worker up. The future itself need not be [`Send`]: it never leaves its thread.
pub async fn off_workers<F>(work: impl FnOnce() -> F + Send + 'static) -> F::Output
where
    F: Future<Output: Send + 'static>,
{
    match spawn_blocking(|| Handle::current().block_on(work())).await {
        Ok(done) => done,
        // Only a panic ends it early: nothing cancels it.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
