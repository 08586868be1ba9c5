//! The program's side of a call: the response that it waits for, or reads. It may be gone at any moment, and may read
//! slowly or not at all; neither holds anything else up for long.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body::{Body, Frame};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::bytes::ErrorReply;

/// Pieces that wait for a program that reads slowly.
const PIECES_MAX: usize = 32;
/// How long a program may read nothing before it counts as gone.
const STALLED: Duration = Duration::from_secs(120);

/// The body of a response, as it is made.
#[derive(Debug)]
pub(super) struct ClientBody(Pieces);

#[derive(Debug)]
enum Pieces {
    Whole(Option<Bytes>),
    Coming(mpsc::Receiver<Result<Bytes, BodyCut>>),
}

/// The response broke off. The connection is closed without an end of the body, so the program sees it.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the response broke off")]
pub(super) struct BodyCut;

/// A program that waits for its response.
#[derive(Debug)]
pub(super) struct Client(ClientState);

#[derive(Debug)]
enum ClientState {
    /// Nothing was sent.
    Waits(oneshot::Sender<Response<ClientBody>>),
    Reads {
        pieces: mpsc::Sender<Result<Bytes, BodyCut>>,
        ending: Ending,
    },
    Gone,
}

/// The last bytes of what was sent: whether an event of a stream may follow.
#[derive(Clone, Copy, Debug, Default)]
struct Ending([u8; 4]);

impl Ending {
    fn sent(&mut self, bytes: &[u8]) {
        let last = &bytes[bytes.len().saturating_sub(self.0.len())..];
        self.0.rotate_left(last.len());
        let from = self.0.len() - last.len();
        self.0[from..].copy_from_slice(last);
    }

    /// Whether nothing was sent, or the end of an event.
    fn is_between_events(self) -> bool {
        let Self(last) = self;
        last == [0; 4] || last == *b"\r\n\r\n" || last.ends_with(b"\n\n") || last.ends_with(b"\r\r")
    }
}

/// A client, and where its response will come from.
pub(super) fn client() -> (Client, oneshot::Receiver<Response<ClientBody>>) {
    let (send, response) = oneshot::channel();
    (Client(ClientState::Waits(send)), response)
}

impl Client {
    /// Whether the head of the response was sent.
    pub(super) const fn has_begun(&self) -> bool {
        matches!(self.0, ClientState::Reads { .. })
    }

    pub(super) fn is_gone(&self) -> bool {
        match &self.0 {
            ClientState::Waits(send) => send.is_closed(),
            ClientState::Reads { pieces, .. } => pieces.is_closed(),
            ClientState::Gone => true,
        }
    }

    /// Waits until the program has closed its connection.
    pub(super) async fn gone(&mut self) {
        match &mut self.0 {
            ClientState::Waits(send) => send.closed().await,
            ClientState::Reads { pieces, .. } => pieces.closed().await,
            ClientState::Gone => {}
        }
    }

    /// Sends the head of the response, once.
    pub(super) fn begin(&mut self, status: StatusCode, headers: HeaderMap) {
        self.0 = match std::mem::replace(&mut self.0, ClientState::Gone) {
            ClientState::Waits(send) => {
                let (pieces, coming) = mpsc::channel(PIECES_MAX);
                match send.send(response(status, headers, Pieces::Coming(coming))) {
                    Ok(()) => ClientState::Reads { pieces, ending: Ending::default() },
                    Err(_) => ClientState::Gone,
                }
            }
            begun => begun,
        };
    }

    /// Sends a piece of the body. A program that reads nothing for long counts as gone.
    pub(super) async fn send(&mut self, bytes: Bytes) {
        let ClientState::Reads { pieces, ending } = &mut self.0 else { return };
        if bytes.is_empty() {
            return;
        }
        ending.sent(&bytes);
        if !matches!(timeout(STALLED, pieces.send(Ok(bytes))).await, Ok(Ok(()))) {
            self.0 = ClientState::Gone;
        }
    }

    /// Sends a piece if there is room: a ping that finds none is not needed.
    pub(super) fn offer(&self, bytes: Bytes) {
        if let ClientState::Reads { pieces, .. } = &self.0 {
            let _ = pieces.try_send(Ok(bytes));
        }
    }

    /// Sends a whole response of our own.
    pub(super) fn reply(self, reply: ErrorReply) {
        if let ClientState::Waits(send) = self.0 {
            let _ = send.send(whole(reply));
        }
    }

    /// Ends a stream with an event of our own. One that would begin inside another event is no event: then the response
    /// breaks off.
    pub(super) async fn end_with(mut self, event: Bytes) {
        let ClientState::Reads { ending, .. } = &self.0 else { return };
        if ending.is_between_events() { self.send(event).await } else { self.cut().await }
    }

    /// Breaks the response off.
    pub(super) async fn cut(self) {
        if let ClientState::Reads { pieces, .. } = self.0 {
            let _ = timeout(STALLED, pieces.send(Err(BodyCut))).await;
        }
    }
}

/// A whole response of our own.
pub(super) fn whole(ErrorReply { status, headers, body }: ErrorReply) -> Response<ClientBody> {
    response(status, headers, Pieces::Whole(Some(body)))
}

fn response(status: StatusCode, headers: HeaderMap, pieces: Pieces) -> Response<ClientBody> {
    let mut response = Response::new(ClientBody(pieces));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = BodyCut;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyCut>>> {
        match &mut self.get_mut().0 {
            Pieces::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Pieces::Coming(coming) => {
                coming.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Pieces::Whole(None))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match &self.0 {
            Pieces::Whole(bytes) => {
                http_body::SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64)
            }
            Pieces::Coming(_) => http_body::SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_may_follow_only_the_end_of_another() {
        let after = |pieces: &[&str]| {
            let mut ending = Ending::default();
            for piece in pieces {
                ending.sent(piece.as_bytes());
            }
            ending.is_between_events()
        };
        for whole in
            [&[][..], &["data: 1\n\n"], &["data: 1\n", "\n"], &["data: 1\r\n\r", "\n"], &["data: 1\r\r"]]
        {
            assert!(after(whole), "{whole:?}");
        }
        for half in [&["data: {\"a\""][..], &["data: 1\n"], &["data: 1\n\n", "d"], &["data: 1\r\n"]] {
            assert!(!after(half), "{half:?}");
        }
    }
}
