//! Until when a provider takes no calls of an account, because a usage window of it is used up. Providers say it in a
//! header or in the body of a refusal; what they say is not trusted beyond a bound.

use http::{HeaderMap, StatusCode};
use serde_json::Value;
use spinney_kernel::primitives::{Time, limit};

/// Most bytes of a refusal that are read for it.
pub const REFUSAL_BYTES_MAX: usize = 64 * 1024;

/// Points in time, in seconds since 1970.
const RESET_HEADERS: [&str; 2] = ["anthropic-ratelimit-unified-reset", "x-codex-primary-reset-at"];
/// Durations, in seconds.
const PAUSE_HEADERS: [&str; 2] = ["retry-after", "x-codex-primary-reset-after-seconds"];

/// When the window of a refused call ends, if that is at least `least_ms` away. A shorter pause is left to the program,
/// which makes its own retries.
#[must_use]
pub fn usage_window(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    now: Time,
    least_ms: u64,
) -> Option<Time> {
    if status != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    let number = |name: &&str| headers.get(*name)?.to_str().ok()?.trim().parse::<u64>().ok();
    let at = |seconds: u64| seconds.checked_mul(1_000).map(Time);
    let after = |seconds: u64| Some(now.after_ms(seconds.checked_mul(1_000)?));
    let body: Value = serde_json::from_slice(&body[..body.len().min(REFUSAL_BYTES_MAX)]).unwrap_or_default();
    let body = body.get(0).unwrap_or(&body);
    let error = body.get("error").unwrap_or(body);
    let details = error.get("details").and_then(Value::as_array).into_iter().flatten();
    let delays = details.filter_map(|detail| detail.get("retryDelay")?.as_str());
    let said = [
        error.get("resets_at").and_then(Value::as_u64).and_then(at),
        error.get("resets_in_seconds").and_then(Value::as_u64).and_then(after),
    ];
    let resets = RESET_HEADERS.iter().filter_map(number).filter_map(at);
    let pauses = PAUSE_HEADERS.iter().filter_map(number).filter_map(after);
    let delays = delays.filter_map(whole_seconds).filter_map(after);
    let until = resets.chain(pauses).chain(delays).chain(said.into_iter().flatten()).max()?;
    let left = until.0.saturating_sub(now.0);
    (left >= least_ms.max(1)).then(|| until.min(now.after_ms(limit::USAGE_WINDOW_MAX_MS)))
}

/// A duration as Google writes it: `32400s`, or `41.7s`.
fn whole_seconds(delay: &str) -> Option<u64> {
    let number = delay.trim().strip_suffix('s')?;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(part) {
        return None;
    }
    let more = u64::from(part.bytes().any(|digit| digit != b'0'));
    whole.parse::<u64>().ok()?.checked_add(more)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;

    const NOW: Time = Time(1_763_500_000_000);
    const MINUTE: u64 = 60_000;

    fn window(headers: &[(&'static str, &str)], body: &Value) -> Option<Time> {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.insert(*name, HeaderValue::from_str(value).unwrap());
        }
        usage_window(StatusCode::TOO_MANY_REQUESTS, &all, body.to_string().as_bytes(), NOW, MINUTE)
    }

    #[test]
    fn windows_are_read_as_each_provider_writes_them() {
        let at = Some(Time(1_763_518_000_000));
        let plain = json!({ "error": { "type": "rate_limit_error" } });
        assert_eq!(window(&[("anthropic-ratelimit-unified-reset", "1763518000")], &plain), at);
        assert_eq!(window(&[("retry-after", "18000")], &plain), at);
        assert_eq!(window(&[("x-codex-primary-reset-after-seconds", "18000")], &plain), at);
        let codex = json!({ "error": { "type": "usage_limit_reached", "resets_at": 1_763_518_000_u64 } });
        assert_eq!(window(&[], &codex), at);
        let delay = |delay: &str| {
            let info = json!({ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay });
            json!({ "error": { "code": 429, "status": "RESOURCE_EXHAUSTED", "details": [{}, info] } })
        };
        assert_eq!(window(&[], &delay("18000s")), at);
        assert_eq!(window(&[], &json!([delay("17999.5s")])), at);
        assert_eq!(window(&[], &delay("41.7s")), None);
        for wrong in ["", "s", "-5s", "1e9s", "18000", "5.s"] {
            assert_eq!(window(&[], &delay(wrong)), None, "{wrong}");
        }
        assert_eq!(window(&[("retry-after", "5")], &json!({ "error": { "resets_in_seconds": 18_000 } })), at);
    }

    #[test]
    fn a_short_pause_and_another_status_are_no_window() {
        let none = json!({});
        assert_eq!(window(&[("retry-after", "59")], &none), None);
        assert_eq!(window(&[], &none), None);
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", HeaderValue::from_static("18000"));
        for status in [StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE, StatusCode::BAD_REQUEST] {
            assert_eq!(usage_window(status, &headers, b"", NOW, MINUTE), None, "{status}");
        }
    }

    #[test]
    fn no_window_is_longer_than_its_bound() {
        let longest = Some(NOW.after_ms(limit::USAGE_WINDOW_MAX_MS));
        for far in ["99999999999", "18446744073709551"] {
            assert_eq!(window(&[("anthropic-ratelimit-unified-reset", far)], &json!({})), longest, "{far}");
        }
        for wrong in ["18446744073709551615", "-5", "soon", "", "1e9"] {
            assert_eq!(window(&[("retry-after", wrong)], &json!([1, "x"])), None, "{wrong}");
        }
    }
}
