//! Text as models stream it, for a process that looks at a tree which another one runs. No journal has it. It is bounded and
//! lossy on both sides: a reader that is too slow misses some, and nobody waits for it.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spinney::Tree;
use spinney::bus::{Delta, Seen, Watch, Watcher};
use spinney_kernel::port::model::DeltaKind;
use spinney_kernel::words::{CallId, Seq, TreeId};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Take};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::address::Address;
use super::{Answer, Ask, EXCHANGE_MS_MAX, LINE_BYTES_MAX, line};

/// Processes that get the text of a tree at the same time.
const READERS_MAX: usize = 8;
/// Only the end of a text is shown, so no more of a piece is sent.
const TEXT_BYTES_MAX: usize = 4 * 1024;
/// Pieces that wait for a reader; further ones are dropped.
const WAITING_MAX: usize = 1_024;
/// How long a process may take to say that text follows. Without that, there is none.
const SUBSCRIBE_MS_MAX: u64 = 1_000;

/// A piece of what a model streams, or the end of it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamedText {
    pub(crate) call: CallId,
    pub(crate) attempt: u32,
    kind: TextKind,
    pub(crate) text: String,
    /// The last event before it.
    pub(crate) after: Seq,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TextKind {
    Text,
    Reasoning,
}

impl StreamedText {
    fn of(delta: &Delta) -> Self {
        let from = delta.text.ceil_char_boundary(delta.text.len().saturating_sub(TEXT_BYTES_MAX));
        Self {
            call: delta.call,
            attempt: delta.attempt,
            kind: match delta.kind {
                DeltaKind::Text => TextKind::Text,
                DeltaKind::Reasoning => TextKind::Reasoning,
            },
            text: delta.text[from..].to_owned(),
            after: delta.after,
        }
    }

    pub(crate) const fn kind(&self) -> DeltaKind {
        match self.kind {
            TextKind::Text => DeltaKind::Text,
            TextKind::Reasoning => DeltaKind::Reasoning,
        }
    }
}

/// Who may read the text of a tree.
pub(super) struct TextReaders(Arc<Semaphore>);

impl TextReaders {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(READERS_MAX)))
    }

    /// Begins to watch; `None` if there are too many readers.
    pub(super) fn watch(&self, tree: &Tree) -> Option<WatchedText> {
        let permit = Arc::clone(&self.0).try_acquire_owned().ok()?;
        // Whoever reads text has the events from the journal: of this kind, no more will come.
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
                Some(Ok(Seen::Delta(delta))) => {
                    let line = line::encode(&StreamedText::of(&delta))?;
                    timeout(Duration::from_millis(EXCHANGE_MS_MAX), to.write_all(&line)).await??;
                }
                Some(Ok(Seen::Event(_) | Seen::Missed(_))) => {}
                Some(Err(_)) | None => return Ok(()),
            }
        }
    }
}

/// The text that the models of a tree stream in another process.
pub(crate) struct TextSubscription {
    received: mpsc::Receiver<StreamedText>,
    task: JoinHandle<io::Result<()>>,
}

impl TextSubscription {
    /// `None` if nobody runs the tree, or by a version that sends no text, or there are too many readers.
    pub(crate) async fn begin(home: &Path, tree: TreeId) -> Option<Self> {
        let subscribing = timeout(Duration::from_millis(SUBSCRIBE_MS_MAX), subscribe(home, tree));
        let from = subscribing.await.ok()?.ok()?;
        let (send, received) = mpsc::channel(WAITING_MAX);
        Some(Self { received, task: tokio::spawn(receive(from, send)) })
    }

    /// The next piece; `None` once there will be no more.
    pub(crate) async fn next(&mut self) -> Option<StreamedText> {
        self.received.recv().await
    }
}

impl Drop for TextSubscription {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Both halves of a connection, on which text follows.
type Subscribed = (BufReader<OwnedReadHalf>, OwnedWriteHalf);

async fn subscribe(home: &Path, tree: TreeId) -> io::Result<Subscribed> {
    let address = Address::of(home)?;
    address.check()?;
    let (from, mut to) = UnixStream::connect(address.path()).await?.into_split();
    to.write_all(&line::encode(&Ask::Text { tree })?).await?;
    let mut from = BufReader::new(from);
    match line::decode(&next_line(&mut from).await?).map_err(io::Error::other)? {
        Answer::TextFollows => Ok((from, to)),
        _ => Err(ErrorKind::Unsupported.into()),
    }
}

async fn receive((mut from, _to): Subscribed, send: mpsc::Sender<StreamedText>) -> io::Result<()> {
    loop {
        let text = line::decode(&next_line(&mut from).await?).map_err(io::Error::other)?;
        // What the reader has no time for is lost.
        if let Err(mpsc::error::TrySendError::Closed(_)) = send.try_send(text) {
            return Ok(());
        }
    }
}

async fn next_line(from: &mut BufReader<OwnedReadHalf>) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    from.take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line).await?;
    if line.is_empty() { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(line) }
}
