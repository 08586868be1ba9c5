//! The bounds of one call.

use std::time::Duration;

/// How long and how large a call may get. No call waits without a bound, and none fills the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Until the connection is established, including TLS.
    pub connect: Duration,
    /// Until the head of the response is there. Providers send it when the model begins, which can take long.
    pub head: Duration,
    /// Between two pieces of the body. Providers that think for long send pings.
    pub idle: Duration,
    /// One attempt from its beginning to its end: a stream of pings has no other bound.
    pub total: Duration,
    /// All bytes of an answer.
    pub body_bytes_max: u64,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(15),
            head: Duration::from_secs(600),
            idle: Duration::from_secs(300),
            total: Duration::from_secs(3_600),
            body_bytes_max: 256 * 1024 * 1024,
        }
    }
}
