//! The rate limits that a provider announces in the headers of a response. Headers are hostile input: what cannot be
//! is ignored, limit by limit.

use spinney_kernel::port::model::{Allowance, Announced};

use super::bounds::{ALLOWANCE_MAX, PAUSE_MS_MAX};
use super::fault::WireHeader;
use super::instant::{http_date, rfc3339};
use super::pause::duration_ms;

/// Longest value that is read: an instant with a fraction and an offset is shorter.
const VALUE_BYTES_MAX: usize = 64;

/// What the headers of a response announce, whatever its status.
#[must_use]
pub fn announced(headers: &[WireHeader<'_>]) -> Announced {
    let headers = Headers(headers);
    Announced {
        requests: headers.open_ai("requests").or_else(|| headers.anthropic("requests")),
        tokens: headers.open_ai("tokens").or_else(|| headers.anthropic("tokens")),
        input_tokens: headers.anthropic("input-tokens"),
        output_tokens: headers.anthropic("output-tokens"),
    }
}

#[derive(Clone, Copy)]
struct Headers<'h, 'r>(&'h [WireHeader<'r>]);

impl<'r> Headers<'_, 'r> {
    /// With times such as `6m0s`. Servers that speak OpenAI's formats also write them.
    fn open_ai(self, what: &str) -> Option<Allowance> {
        let value = |part: &str| self.value(&format!("x-ratelimit-{part}-{what}"));
        allowance(value("limit")?, value("remaining")?, duration_ms(value("reset")?)?)
    }

    /// With instants, which are measured from the response's own `date`: no clock is needed, and a wrong one on either
    /// side does no harm.
    fn anthropic(self, what: &str) -> Option<Allowance> {
        let value = |part: &str| self.value(&format!("anthropic-ratelimit-{what}-{part}"));
        let (now, whole) = (http_date(self.value("date")?)?, rfc3339(value("reset")?)?);
        allowance(value("limit")?, value("remaining")?, whole.saturating_sub(now))
    }

    /// The first header with this name, if it is short enough to be one of these.
    fn value(self, name: &str) -> Option<&'r str> {
        let found = self.0.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        Some(found.value.trim()).filter(|value| value.len() <= VALUE_BYTES_MAX)
    }
}

/// A limit of zero would mean that no call is ever possible, and then there would be no response that says so.
fn allowance(limit: &str, remaining: &str, reset_ms: u64) -> Option<Allowance> {
    let limit = count(limit).filter(|limit| (1..=ALLOWANCE_MAX).contains(limit))?;
    let remaining = count(remaining).filter(|remaining| *remaining <= limit)?;
    Some(Allowance { limit, remaining, reset_ms: reset_ms.min(PAUSE_MS_MAX) })
}

/// Digits only: the standard parser also takes a plus sign.
fn count(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
