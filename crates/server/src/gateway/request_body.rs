//! Reads the body of a request: bounded in size, in time, and in the memory that all bodies together take.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::wire::bounds::REQUEST_BYTES_MAX;
use super::wire::{GatewayError, GatewayErrorKind};

/// Most bytes of all bodies that are in memory, in units.
const UNITS_MAX: usize = 4_096;
const UNIT_BYTES: usize = 64 * 1024;
/// Most bytes that are set aside before they come: what agent programs send.
const USUAL_BYTES: usize = 128 * 1024;
/// Longest pause between two pieces of a body, and longest wait for memory.
const IDLE: Duration = Duration::from_secs(30);
/// Longest time of a whole body, which comes from this machine: one that trickles in keeps its share of the memory.
const WHOLE: Duration = Duration::from_secs(120);

/// The memory of all bodies.
#[derive(Clone, Debug)]
pub(super) struct BodyMemory(Arc<Semaphore>);

impl Default for BodyMemory {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(UNITS_MAX)))
    }
}

/// A body, and its share of the memory.
#[derive(Debug)]
pub(super) struct RequestBody {
    pub(super) bytes: Bytes,
    _share: Vec<OwnedSemaphorePermit>,
}

impl BodyMemory {
    /// Reads a body to its end.
    pub(super) async fn read<B>(&self, body: B) -> Result<RequestBody, GatewayError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let slow = |_| bad(format!("the request body did not arrive within {} s", WHOLE.as_secs()));
        timeout(WHOLE, self.read_pieces(body)).await.map_err(slow)?
    }

    async fn read_pieces<B>(&self, mut body: B) -> Result<RequestBody, GatewayError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let length = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if length > REQUEST_BYTES_MAX {
            return Err(too_large());
        }
        // A long one that never comes takes no more than a usual one.
        let mut bytes = BytesMut::with_capacity(length.min(USUAL_BYTES));
        let (mut share, mut room) = (Vec::new(), 0);
        loop {
            let next = timeout(IDLE, body.frame()).await;
            let Some(frame) = next.map_err(|_| late())? else { break };
            let frame = frame.map_err(|_| bad("the request body was cut off"))?;
            let Ok(piece) = frame.into_data() else { continue };
            if bytes.len() + piece.len() > REQUEST_BYTES_MAX {
                return Err(too_large());
            }
            while room < bytes.len() + piece.len() {
                let unit = timeout(IDLE, Arc::clone(&self.0).acquire_owned()).await;
                let Ok(Ok(unit)) = unit else { return Err(full()) };
                share.push(unit);
                room += UNIT_BYTES;
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(RequestBody { bytes: bytes.freeze(), _share: share })
    }
}

fn too_large() -> GatewayError {
    let message = format!("the request body is larger than {REQUEST_BYTES_MAX} bytes: send less");
    GatewayError::new(GatewayErrorKind::TooLarge, message)
}

fn late() -> GatewayError {
    bad(format!("the request body did not arrive: nothing came for {} s", IDLE.as_secs()))
}

fn full() -> GatewayError {
    let message = "too many large requests wait at the same time: try again later";
    GatewayError::new(GatewayErrorKind::Internal, message)
}

fn bad(message: impl Into<String>) -> GatewayError {
    GatewayError::new(GatewayErrorKind::BadRequest, message)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;

    use futures::stream::{self, Stream, StreamExt as _};
    use http_body::Frame;
    use http_body_util::StreamBody;
    use spinney::clock::instant;
    use tokio::time::sleep;

    use super::*;

    type Pieces = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>> + Send>>;

    /// A body of so many pieces, each after a pause.
    fn pieces(count: usize, bytes: usize, pause: Duration) -> StreamBody<Pieces> {
        let piece = move |_| async move {
            sleep(pause).await;
            Ok(Frame::data(Bytes::from(vec![b'x'; bytes])))
        };
        StreamBody::new(Box::pin(stream::iter(0..count).then(piece)))
    }

    fn memory(units: usize) -> BodyMemory {
        BodyMemory(Arc::new(Semaphore::new(units)))
    }

    /// A program that sends a byte now and then does not keep memory forever.
    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_in_is_cut_in_bounded_time() {
        let since = instant();
        let (read, stalled) = (memory(10), memory(10));
        let error = read.read(pieces(1_000, 1, IDLE - Duration::from_secs(1))).await.unwrap_err();
        assert_eq!((error.kind, since.elapsed()), (GatewayErrorKind::BadRequest, WHOLE));
        assert!(error.message.contains("did not arrive within 120 s"), "{error}");
        assert_eq!(read.0.available_permits(), 10);
        let since = instant();
        let error = stalled.read(pieces(2, 1, WHOLE)).await.unwrap_err();
        assert_eq!((error.kind, since.elapsed()), (GatewayErrorKind::BadRequest, IDLE));
        assert!(error.message.contains("nothing came for 30 s"), "{error}");
    }

    /// All bodies together take no more than their memory: one beyond it waits for another to end, or is refused.
    #[tokio::test(start_paused = true)]
    async fn a_body_beyond_the_memory_of_all_waits_and_is_refused_if_none_ends() {
        let memory = memory(4);
        let large = || pieces(3, UNIT_BYTES, Duration::ZERO);
        let first = memory.read(large()).await.unwrap();
        assert_eq!((first.bytes.len(), memory.0.available_permits()), (3 * UNIT_BYTES, 1));
        let since = instant();
        let error = memory.read(large()).await.unwrap_err();
        assert_eq!((error.kind, since.elapsed()), (GatewayErrorKind::Internal, IDLE));
        assert!(error.message.contains("too many large requests wait"), "{error}");
        // A small one has room anyway.
        memory.read(pieces(1, 10, Duration::ZERO)).await.unwrap();
        let ends = async {
            sleep(IDLE / 2).await;
            drop(first);
        };
        let (second, ()) = tokio::join!(memory.read(large()), ends);
        assert_eq!(second.unwrap().bytes.len(), 3 * UNIT_BYTES);
        assert_eq!(memory.0.available_permits(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_too_large_is_refused_before_it_is_read() {
        let memory = BodyMemory::default();
        let whole = http_body_util::Full::new(Bytes::from(vec![b'x'; REQUEST_BYTES_MAX + 1]));
        assert_eq!(memory.read(whole).await.unwrap_err().kind, GatewayErrorKind::TooLarge);
        let unknown = pieces(65, REQUEST_BYTES_MAX / 64, Duration::ZERO);
        assert_eq!(memory.read(unknown).await.unwrap_err().kind, GatewayErrorKind::TooLarge);
        assert_eq!(memory.0.available_permits(), UNITS_MAX);
    }
}
