//! Reads the body of a request: bounded in size, in time, and in the memory that all bodies together take.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::wire::bounds::REQUEST_BYTES_MAX;
use super::wire::{GatewayError, GatewayErrorKind};

/// Most bytes of all bodies that are in memory, in units.
const UNITS_MAX: usize = 4_096;
const UNIT_BYTES: usize = 64 * 1024;
/// Longest pause between two pieces of a body, and longest wait for memory.
const IDLE: Duration = Duration::from_secs(30);

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
    pub(super) async fn read(&self, mut body: Incoming) -> Result<RequestBody, GatewayError> {
        if body.size_hint().lower() > REQUEST_BYTES_MAX as u64 {
            return Err(too_large());
        }
        let (mut bytes, mut share, mut room) = (BytesMut::new(), Vec::new(), 0);
        loop {
            let next = timeout(IDLE, body.frame()).await;
            let Some(frame) = next.map_err(|_| late())? else { break };
            let frame = frame.map_err(|_| bad("the body of the request broke off"))?;
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
    let message = format!("the body of the request is larger than {REQUEST_BYTES_MAX} bytes: send less");
    GatewayError::new(GatewayErrorKind::TooLarge, message)
}

fn late() -> GatewayError {
    bad(&format!("the body of the request did not arrive: nothing came for {} s", IDLE.as_secs()))
}

fn full() -> GatewayError {
    let message = "too many large requests wait at the same time: try again later";
    GatewayError::new(GatewayErrorKind::Internal, message)
}

fn bad(message: &str) -> GatewayError {
    GatewayError::new(GatewayErrorKind::BadRequest, message)
}
