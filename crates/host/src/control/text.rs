//! Text as models and tools stream it, for a process that looks at a tree which another one runs. No journal has it. It is bounded and
//! lossy on both sides: a reader that is too slow misses some, and nothing waits for it.

use std::collections::VecDeque;
use std::future::pending;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spinney::bus::Delta;
use spinney_kernel::port::model::DeltaKind;
use spinney_kernel::primitives::{AgentId, CallId, Seq, TreeId};
use spinney_view::events::TextPiece;
use spinney_view::visibility::WatchRight;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{ControlReply, ControlRequest, LINE_BYTES_MAX, line};
use crate::system::socket_address::SocketAddress;

/// Longest text of a piece.
const TEXT_BYTES_MAX: usize = 4 * 1024;
/// Pieces that wait for a reader; further ones are dropped.
const WAITING_MAX: usize = 1_024;
/// How long a process may take to say that text follows. Without that, there is none.
const SUBSCRIBE_MS_MAX: u64 = 1_000;

/// A piece of what a model or tool streams.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamedText {
    /// The call.
    pub call: CallId,
    /// Which attempt of it.
    pub attempt: u32,
    kind: TextKind,
    /// The agent: ids from the root down.
    pub path: Vec<AgentId>,
    /// Its byte offset in the text of its kind.
    pub offset: usize,
    /// What was streamed.
    pub text: String,
    /// The last event before it.
    pub after: Seq,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TextKind {
    Text,
    Reasoning,
    Output,
}

impl StreamedText {
    /// What was streamed, in pieces of bounded size.
    pub fn from_delta(delta: &Delta) -> impl Iterator<Item = Self> {
        let mut rest = delta.text.as_str();
        let mut offset = delta.offset;
        std::iter::from_fn(move || {
            let (text, after) = rest.split_at(rest.floor_char_boundary(TEXT_BYTES_MAX));
            let piece = (!text.is_empty()).then(|| Self {
                call: delta.call,
                attempt: delta.attempt,
                kind: match delta.kind {
                    DeltaKind::Text => TextKind::Text,
                    DeltaKind::Reasoning => TextKind::Reasoning,
                    DeltaKind::Output => TextKind::Output,
                },
                path: delta.origin.path.to_vec(),
                offset,
                text: text.to_owned(),
                after: delta.after,
            });
            (rest, offset) = (after, offset + text.len());
            piece
        })
    }

    /// As it is shown.
    #[must_use]
    pub fn as_piece(&self) -> TextPiece<'_> {
        TextPiece {
            path: &self.path,
            call: self.call,
            attempt: self.attempt,
            kind: self.kind(),
            offset: self.offset,
            text: &self.text,
            after: self.after,
        }
    }

    /// Whether it is an answer, reasoning or the output of a tool.
    pub const fn kind(&self) -> DeltaKind {
        match self.kind {
            TextKind::Text => DeltaKind::Text,
            TextKind::Reasoning => DeltaKind::Reasoning,
            TextKind::Output => DeltaKind::Output,
        }
    }
}

/// The text that the models of a tree stream in another process.
struct TextSubscription {
    received: mpsc::Receiver<StreamedText>,
    task: JoinHandle<io::Result<()>>,
}

impl TextSubscription {
    /// `None` if no process runs the tree, or by a version that sends no text, or there are too many readers.
    async fn begin(home: &Path, tree: TreeId, right: WatchRight) -> Option<Self> {
        let subscribing = timeout(Duration::from_millis(SUBSCRIBE_MS_MAX), subscribe(home, tree, right));
        let from = subscribing.await.ok()?.ok()?;
        let (send, received) = mpsc::channel(WAITING_MAX);
        Some(Self { received, task: tokio::spawn(receive(from, send)) })
    }

    /// The next piece; `None` once there will be no more.
    async fn next(&mut self) -> Option<StreamedText> {
        self.received.recv().await
    }
}

impl Drop for TextSubscription {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Text of a tree that another process runs, until the events before it have come from its journal, a little later.
#[derive(Default)]
pub struct StreamedTexts {
    subscription: Option<TextSubscription>,
    waiting: VecDeque<StreamedText>,
}

impl StreamedTexts {
    /// Asks the process that runs the tree for its text, unless that was done. Another process may run it by now.
    pub async fn subscribe(&mut self, home: &Path, tree: TreeId) {
        self.subscribe_as(home, tree, WatchRight::Owner).await;
    }

    /// The same with no more than this right.
    pub async fn subscribe_as(&mut self, home: &Path, tree: TreeId, right: WatchRight) {
        if self.subscription.is_none() {
            self.subscription = TextSubscription::begin(home, tree, right).await;
        }
    }

    /// Waits for the next piece, which never comes without a process that sends text.
    pub async fn next(&mut self) -> StreamedText {
        if let Some(subscription) = &mut self.subscription {
            if let Some(text) = subscription.next().await {
                return text;
            }
            self.subscription = None;
        }
        pending().await
    }

    /// Keeps a piece until its turn. The oldest one makes room for it.
    pub fn add(&mut self, text: StreamedText) {
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(text);
    }

    /// A piece whose events have come, up to this one.
    pub fn due(&mut self, seen: Seq) -> Option<StreamedText> {
        self.waiting.pop_front_if(|text| text.after <= seen)
    }
}

/// Both halves of a connection, on which text follows.
type Subscribed = (BufReader<OwnedReadHalf>, OwnedWriteHalf);

async fn subscribe(home: &Path, tree: TreeId, right: WatchRight) -> io::Result<Subscribed> {
    let address = SocketAddress::for_home(home)?;
    address.check()?;
    let (from, mut to) = UnixStream::connect(address.path()).await?.into_split();
    to.write_all(&line::encode(&ControlRequest::Text { tree, right })?).await?;
    let mut from = BufReader::new(from);
    match line::decode(&next_line(&mut from).await?).map_err(io::Error::other)? {
        ControlReply::TextFollows => Ok((from, to)),
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

pub(super) async fn next_line(from: &mut BufReader<OwnedReadHalf>) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    from.take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line).await?;
    if line.is_empty() { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(line) }
}
