//! Text as models stream it, for other processes. It is bounded and lossy: a reader that is too slow misses some, and nothing
//! waits for it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use spinney::Tree;
use spinney::bus::{Watch, WatchItem, Watcher};
use spinney_host::control::{EXCHANGE_MS_MAX, StreamedText, line};
use spinney_kernel::primitives::TreeId;
use spinney_view::visibility::{VisibleEvents, WatchRight};
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
    pub(super) fn watch(&self, tree: &Tree, right: WatchRight) -> Option<WatchedText> {
        let permit = Arc::clone(&self.0).try_acquire_owned().ok()?;
        let watch = if right.sees_everything() {
            // Readers get the events from the journal: no more text will come.
            let none = Some("tree_started".to_owned());
            Watch { after: tree.status().seq, kind: none, deltas: true, ..Watch::default() }
        } else {
            Watch { deltas: true, ..Watch::default() }
        };
        let visible = VisibleEvents::new(right);
        Some(WatchedText { tree: tree.id(), watcher: tree.watch(watch), visible, _permit: permit })
    }
}

/// The text of a tree for one reader.
pub(super) struct WatchedText {
    tree: TreeId,
    visible: VisibleEvents,
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
                Some(Ok(WatchItem::Delta(delta))) if self.visible.shows_text(delta.call) => {
                    for text in StreamedText::from_delta(&delta) {
                        let line = line::encode(&text)?;
                        timeout(Duration::from_millis(EXCHANGE_MS_MAX), to.write_all(&line)).await??;
                    }
                }
                Some(Ok(WatchItem::Event(traced))) => {
                    // Which calls are shown: readers get the events themselves from the journal.
                    let _ = self.visible.event(self.tree, &traced);
                }
                Some(Ok(WatchItem::Delta(_) | WatchItem::Missed(_))) => {}
                Some(Err(_)) | None => return Ok(()),
            }
        }
    }
}
