//! Whether our output still has a reader. A write to a closed pipe fails, but a tree may have nothing to write for long
//! while it spends.

use std::future::pending;
use std::io::{IsTerminal, stdout};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::oneshot;

/// Waits until the reader of standard output is gone. A terminal sends a signal then, and a file has none: this never
/// ends for them.
pub async fn gone() {
    if stdout().is_terminal() {
        return pending().await;
    }
    let (tell, told) = oneshot::channel();
    let watcher = thread::Builder::new().name("reader".to_owned()).spawn(move || {
        if is_gone() {
            // The one who asked may have ended.
            let _ = tell.send(());
        }
    });
    // Without a thread, the next write finds out.
    match watcher {
        Ok(_) if told.await.is_ok() => {}
        Ok(_) | Err(_) => pending().await,
    }
}

/// Waits for the end of the other side; false if that cannot be known.
fn is_gone() -> bool {
    let output = stdout();
    loop {
        // Nothing is asked for: errors are reported always.
        let mut ready = [PollFd::new(&output, PollFlags::empty())];
        match poll(&mut ready, None) {
            Ok(_) => return ready[0].revents().intersects(PollFlags::ERR | PollFlags::HUP),
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
