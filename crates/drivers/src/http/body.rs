//! The body of an answer, in pieces as they come.

use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode};
use tokio::time::timeout;

use super::client::failed;
use super::limits::HttpLimits;
use crate::wire::{FaultReader, WireFault, WireFaultKind};

/// A body that is being read.
#[derive(Debug)]
pub struct HttpBody {
    response: Response,
    limits: HttpLimits,
    faults: FaultReader,
    bytes: u64,
}

impl HttpBody {
    pub(super) const fn new(response: Response, limits: HttpLimits, faults: FaultReader) -> Self {
        Self { response, limits, faults, bytes: 0 }
    }

    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The next piece; none if the body ended as it should.
    ///
    /// # Errors
    /// If the connection broke, nothing came for too long, or the body is too large.
    pub async fn next(&mut self) -> Result<Option<Bytes>, WireFault> {
        let chunk = match timeout(self.limits.idle, self.response.chunk()).await {
            Ok(Ok(chunk)) => chunk,
            Ok(Err(error)) => return Err(failed(&self.faults, error, "the answer was cut off")),
            Err(_) => {
                let seconds = self.limits.idle.as_secs();
                let message = format!("the provider sent nothing for {seconds} s");
                return Err(WireFault::new(WireFaultKind::Timeout, message));
            }
        };
        self.bytes += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        if self.bytes > self.limits.body_bytes_max {
            let message = format!("the answer has more than {} bytes", self.limits.body_bytes_max);
            return Err(WireFault::new(WireFaultKind::TooLarge, message));
        }
        Ok(chunk)
    }
}
