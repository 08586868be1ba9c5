//! The keys of the terminal, as the bytes that they send. The terminal gives us each key, and shows none itself. Ctrl-C is
//! still a signal.

use std::io::{self, PipeReader, PipeWriter, stdin};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::mpsc;

use super::mode::{KeyByKey, is_foreground};

/// How much is read at once, and how many reads wait.
const READ_BYTES: usize = 1_024;
const READS_MAX: usize = 64;

pub struct KeyReader {
    keys: mpsc::Receiver<Vec<u8>>,
    /// Closed to end the thread.
    stop: Option<PipeWriter>,
    reader: Option<JoinHandle<()>>,
    /// Dropped after the thread has ended.
    mode: KeyByKey,
}

impl KeyReader {
    /// Takes the keyboard. `None` while it belongs to others: a process in the background must not touch it. What was typed
    /// before is dropped, because it cannot be meant for what is shown now.
    pub fn begin() -> io::Result<Option<Self>> {
        if !is_foreground() {
            return Ok(None);
        }
        let (is_stopped, stop) = io::pipe()?;
        let Some(mode) = KeyByKey::begin()? else { return Ok(None) };
        let (send, keys) = mpsc::channel(READS_MAX);
        let reader = thread::Builder::new().name("keys".to_owned());
        let reader = reader.spawn(move || read_keys(&is_stopped, &send))?;
        Ok(Some(Self { keys, stop: Some(stop), reader: Some(reader), mode }))
    }

    /// Sets the mode again if it was changed.
    pub fn keep(&self) -> io::Result<()> {
        self.mode.keep()
    }

    /// Drops what was pressed and not taken.
    pub fn forget(&mut self) {
        while self.keys.try_recv().is_ok() {}
    }

    /// The bytes of the keys that were pressed next; `None` if the terminal is gone.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        self.keys.recv().await
    }
}

impl Drop for KeyReader {
    fn drop(&mut self) {
        self.keys.close();
        drop(self.stop.take());
        // It waits for nothing else.
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

/// Reads until it is stopped, or the terminal is gone.
fn read_keys(is_stopped: &PipeReader, send: &mpsc::Sender<Vec<u8>>) {
    let input = stdin();
    loop {
        let mut ready = [PollFd::new(&input, PollFlags::IN), PollFd::new(is_stopped, PollFlags::IN)];
        match poll(&mut ready, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return,
        }
        let [keys, stopped] = ready.map(|ready| ready.revents());
        if !stopped.is_empty() {
            return;
        }
        let mut bytes = vec![0; READ_BYTES];
        match rustix::io::read(&input, bytes.as_mut_slice()) {
            Ok(0) if keys.intersects(PollFlags::HUP | PollFlags::ERR) => return,
            Ok(0) | Err(Errno::INTR) => {}
            Ok(count) => {
                bytes.truncate(count);
                if send.blocking_send(bytes).is_err() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}
