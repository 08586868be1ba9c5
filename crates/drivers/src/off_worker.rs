//! Work that takes a while, such as rendering a template or writing a file, runs on a blocking thread and not on an async
//! worker.

use std::future::pending;
use std::panic::resume_unwind;

use tokio::runtime::{Handle, RuntimeFlavor};

/// Runs `work` on a thread that may be busy for long. Dropping the future stops the wait.
///
/// Without a runtime, or with one that has a single thread, it runs here: there is no other worker to keep free, and
/// answers of several agents keep their order.
pub(crate) async fn off_worker<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let handle = Handle::try_current().ok();
    let Some(handle) = handle.filter(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread) else {
        return work();
    };
    match handle.spawn_blocking(work).await.map_err(|error| error.try_into_panic()) {
        Ok(done) => done,
        Err(Ok(panic)) => resume_unwind(panic),
        // The runtime is shutting down: it drops this future next.
        Err(Err(_)) => pending().await,
    }
}
