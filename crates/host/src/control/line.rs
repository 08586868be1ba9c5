//! One line on the socket: a version and a message. The version is read first, so a line of another version is
//! refused by its number and not by some field.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use spinney_kernel::rules::request;

/// How a process answers a line that it does not know, such as a request of a newer release.
pub(super) const UNKNOWN_LINE: &str = "not a line of the control socket";

/// A line that is not one of ours, or of another version.
#[derive(Debug)]
pub enum LineError {
    /// It is of this version.
    Version(u32),
    /// It is not our JSON.
    Json(serde_json::Error),
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(theirs) => write!(
                f,
                "this process uses request version {} and the other one version {theirs}: use the same release of Spinney for both",
                request::VERSION
            ),
            Self::Json(error) => write!(f, "{UNKNOWN_LINE}: {error}"),
        }
    }
}

impl std::error::Error for LineError {}

#[derive(Serialize)]
struct Line<'a, T> {
    version: u32,
    body: &'a T,
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Received<T> {
    #[serde(rename = "version")]
    _version: u32,
    body: T,
}

/// A line with our version.
pub fn encode<T: Serialize>(body: &T) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&Line { version: request::VERSION, body })?;
    line.push(b'\n');
    Ok(line)
}

/// What a line of our version says.
pub fn decode<T: DeserializeOwned>(line: &[u8]) -> Result<T, LineError> {
    let Version { version } = serde_json::from_slice(line).map_err(LineError::Json)?;
    if version != request::VERSION {
        return Err(LineError::Version(version));
    }
    let received: Received<T> = serde_json::from_slice(line).map_err(LineError::Json)?;
    Ok(received.body)
}
