//! Text as models stream it, for other processes. It is bounded and lossy: a reader that is too slow misses some, and nothing
//! waits for it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use spinney::Tree;
use spinney::bus::{Watch, WatchItem, Watcher};
use spinney_host::control::{EXCHANGE_MS_MAX, StreamedText, line};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader, Take};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Processes that get the text of a tree at the same time.
const READERS_MAX: usize = 8;

/// Who may read the text of a tree.
pub(super) struct TextReaders(Arc<Semaphore>);

impl TextReaders {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(READERS_MAX)))
    }

    /// Begins to watch; `None` if there are too many readers.
    pub(super) fn watch(&self, tree: &Tree) -> Option<WatchedText> {
        let permit = Arc::clone(&self.0).try_acquire_owned().ok()?;
        // Readers get the events from the journal: no more text will come.
        let none = Some("tree_started".to_owned());
        let watch = Watch { after: tree.status().seq, kind: none, deltas: true, ..Watch::default() };
        Some(WatchedText { watcher: tree.watch(watch), _permit: permit })
    }
}

/// The text of a tree for one reader.
pub(super) struct WatchedText {
    watcher: Watcher,
    _permit: OwnedSemaphorePermit,
}

impl WatchedText {
    /// Sends text until the reader is gone or too slow, or nothing more comes.
    pub(super) async fn send(
        mut self,
        mut from: BufReader<Take<OwnedReadHalf>>,
        mut to: OwnedWriteHalf,
    ) -> io::Result<()> {
        // A reader says nothing more; the end of its side is the end of the connection.
        from.get_mut().set_limit(1);
        loop {
            let seen = tokio::select! {
                seen = self.watcher.next() => seen,
                _ = from.read_u8() => return Ok(()),
            };
            match seen {
                Some(Ok(WatchItem::Delta(delta))) => {
                    for text in StreamedText::from_delta(&delta) {
                        let line = line::encode(&text)?;
                        timeout(Duration::from_millis(EXCHANGE_MS_MAX), to.write_all(&line)).await??;
                    }
                }
                Some(Ok(WatchItem::Event(_) | WatchItem::Missed(_))) => {}
                Some(Err(_)) | None => return Ok(()),
            }
        }
    }
}
