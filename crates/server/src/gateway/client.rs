//! The program's side of a call: the response that it waits for, or reads. It may be gone at any moment, and may read
//! slowly or not at all; neither holds anything else up for long.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body::{Body, Frame};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::wire::ErrorReply;

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
    Coming(mpsc::Receiver<Piece>),
    /// Everything was sent.
    Over,
}

/// What a body is made of. One that ends without its end was cut.
#[derive(Debug)]
enum Piece {
    Bytes(Bytes),
    End,
}

/// The response broke off. The connection is closed without an end of the body, so the program sees it.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the response was cut off")]
pub(super) struct BodyCut;

/// A program that waits for its response.
#[derive(Debug)]
pub(super) struct Client(ClientState);

#[derive(Debug)]
enum ClientState {
    /// Nothing was sent.
    Waits(oneshot::Sender<Response<ClientBody>>),
    Reads {
        pieces: mpsc::Sender<Piece>,
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
        let is_sent = match pieces.try_send(Piece::Bytes(bytes)) {
            Ok(()) => true,
            Err(TrySendError::Full(piece)) => {
                matches!(timeout(STALLED, pieces.send(piece)).await, Ok(Ok(())))
            }
            Err(TrySendError::Closed(_)) => false,
        };
        if !is_sent {
            // Without the end of its body, so what it may still read is visibly cut.
            self.0 = ClientState::Gone;
        }
    }

    /// Sends a piece if there is room: a ping that finds none is not needed.
    pub(super) fn offer(&self, bytes: Bytes) {
        if let ClientState::Reads { pieces, .. } = &self.0 {
            let _ = pieces.try_send(Piece::Bytes(bytes));
        }
    }

    /// Sends a whole response of our own.
    pub(super) fn reply(self, reply: ErrorReply) {
        if let ClientState::Waits(send) = self.0 {
            let _ = send.send(whole(reply));
        }
    }

    /// Ends a stream with our own event. It cannot begin inside another event: then the response
    /// breaks off.
    pub(super) async fn end_with(mut self, event: Bytes) {
        let ClientState::Reads { ending, .. } = &self.0 else { return };
        if ending.is_between_events() {
            self.send(event).await;
            self.end().await;
        }
    }

    /// Ends the response. One whose client is dropped without it breaks off.
    pub(super) async fn end(self) {
        if let ClientState::Reads { pieces, .. } = self.0 {
            let _ = timeout(STALLED, pieces.send(Piece::End)).await;
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
        let pieces = &mut self.get_mut().0;
        let coming = match pieces {
            Pieces::Whole(bytes) => return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Pieces::Coming(coming) => coming,
            Pieces::Over => return Poll::Ready(None),
        };
        let piece = std::task::ready!(coming.poll_recv(context));
        Poll::Ready(match piece {
            Some(Piece::Bytes(bytes)) => Some(Ok(Frame::data(bytes))),
            Some(Piece::End) => {
                *pieces = Pieces::Over;
                None
            }
            None => {
                *pieces = Pieces::Over;
                Some(Err(BodyCut))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Pieces::Whole(None) | Pieces::Over)
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match &self.0 {
            Pieces::Whole(bytes) => {
                http_body::SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64)
            }
            Pieces::Coming(_) | Pieces::Over => http_body::SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    /// The bytes of a body, and whether it ended with its end.
    async fn read(mut body: ClientBody) -> (usize, bool) {
        let mut bytes = 0;
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => bytes += frame.data_ref().map_or(0, Bytes::len),
                Err(BodyCut) => return (bytes, false),
            }
        }
        (bytes, true)
    }

    async fn begun() -> (Client, ClientBody) {
        let (mut client, response) = client();
        client.begin(StatusCode::OK, HeaderMap::new());
        (client, response.await.unwrap().into_body())
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_that_stalls_sees_that_its_response_was_cut() {
        let (mut client, body) = begun().await;
        for _ in 0..PIECES_MAX + 3 {
            client.send(Bytes::from_static(b"x")).await;
        }
        client.end().await;
        assert_eq!(read(body).await, (PIECES_MAX, false));
    }

    #[tokio::test]
    async fn a_response_is_whole_only_with_its_end() {
        let (mut client, body) = begun().await;
        client.send(Bytes::from_static(b"data: 1\n\n")).await;
        client.end().await;
        assert_eq!(read(body).await, (9, true));
        let (mut client, body) = begun().await;
        client.send(Bytes::from_static(b"data: 1\n\n")).await;
        client.end_with(Bytes::from_static(b"data: 2\n\n")).await;
        assert_eq!(read(body).await, (18, true));
        let (mut client, body) = begun().await;
        client.send(Bytes::from_static(b"data: 1")).await;
        client.end_with(Bytes::from_static(b"data: 2\n\n")).await;
        assert_eq!(read(body).await, (7, false));
        let (client, body) = begun().await;
        drop(client);
        assert_eq!(read(body).await, (0, false));
    }

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
