//! How long a provider keeps what it was asked to cache.

use serde::Deserialize;
use serde_json::Value;

use super::literals::shown;

/// `off`, `5m` or `1h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub enum CacheTime {
    /// Nothing is cached.
    Off,
    FiveMinutes,
    Hour,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a time for a cache: write off, 5m or 1h")]
pub struct NotCacheTime {
    /// The input, cut to a readable length.
    text: String,
}

impl TryFrom<Value> for CacheTime {
    type Error = NotCacheTime;
    fn try_from(value: Value) -> Result<Self, NotCacheTime> {
        match value.as_str() {
            Some("off") => Ok(Self::Off),
            Some("5m") => Ok(Self::FiveMinutes),
            Some("1h") => Ok(Self::Hour),
            _ => Err(NotCacheTime { text: shown(&value) }),
        }
    }
}
