//! How long a provider asks us to stay away. Providers say it in many ways; the plainest that is there counts.

use super::fault::WireHeader;
use super::instant::{http_date, rfc3339};

/// The pause that the headers of a response ask for. Points in time are measured from the response's own `date`, so no
/// clock is needed, and a wrong one on either side does no harm.
pub(super) fn asked_pause(headers: &[WireHeader<'_>]) -> Option<u64> {
    let value = |name: &str| {
        let found = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| header.value.trim())
    };
    let now = value("date").and_then(http_date);
    let until = |then: u64| now.map(|now| then.saturating_sub(now));
    let plain = value("retry-after-ms").and_then(|ms| decimal_ms(ms, 1));
    plain
        .or_else(|| {
            value("retry-after")
                .and_then(|pause| decimal_ms(pause, 1_000).or_else(|| until(http_date(pause)?)))
        })
        .or_else(|| resets(headers, &until))
}

/// The latest reset of a limit that is used up. Limits that are not used up do not matter.
fn resets(headers: &[WireHeader<'_>], until: &dyn Fn(u64) -> Option<u64>) -> Option<u64> {
    let lower = |header: &WireHeader<'_>| header.name.to_ascii_lowercase();
    let used_up = |name: &str| {
        let mut remaining = headers.iter().filter(|header| lower(header) == name);
        remaining.any(|header| header.value.trim() == "0")
    };
    let reset = |header: &WireHeader<'_>| {
        let name = lower(header);
        let value = header.value.trim();
        if let Some(what) = name.strip_prefix("x-ratelimit-reset-") {
            return used_up(&format!("x-ratelimit-remaining-{what}")).then(|| duration_ms(value))?;
        }
        let what = name.strip_prefix("anthropic-ratelimit-")?.strip_suffix("-reset")?;
        used_up(&format!("anthropic-ratelimit-{what}-remaining")).then(|| until(rfc3339(value)?))?
    };
    headers.iter().filter_map(reset).max()
}

/// A time as OpenAI and Google write it: `1s`, `6m0s`, `20ms`, `1h2m3.5s`; a bare number has seconds.
pub(super) fn duration_ms(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    if let Some(seconds) = decimal_ms(rest, 1_000) {
        return Some(seconds);
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let number = &rest[..rest.find(|c: char| !c.is_ascii_digit() && c != '.')?];
        let after = &rest[number.len()..];
        let unit = &after[..after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len())];
        let factor = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        total = total.checked_add(decimal_ms(number, factor)?)?;
        rest = &after[unit.len()..];
    }
    (!text.trim().is_empty()).then_some(total)
}

/// A decimal number times a factor, rounded up, without floats.
fn decimal_ms(text: &str, factor: u64) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(part) {
        return None;
    }
    // Nine digits behind the point are enough for anything that is a pause.
    let digits = &part[..part.len().min(9)];
    let scale = 10_u64.pow(u32::try_from(digits.len()).ok()?);
    let behind = if digits.is_empty() { 0 } else { digits.parse::<u64>().ok()? };
    let behind = u128::from(behind) * u128::from(factor);
    let behind = u64::try_from(behind.div_ceil(u128::from(scale))).ok()?;
    whole.parse::<u64>().ok()?.checked_mul(factor)?.checked_add(behind)
}
