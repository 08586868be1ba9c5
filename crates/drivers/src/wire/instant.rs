//! Points in time as headers write them, as milliseconds since 1970. No clock is read.

use std::time::UNIX_EPOCH;

/// `Sun, 06 Nov 1994 08:49:37 GMT`, or one of the two older forms.
pub(super) fn http_date(text: &str) -> Option<u64> {
    let since = httpdate::parse_http_date(text.trim()).ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

/// `2026-11-16T08:20:32Z`, with a fraction or an offset instead of `Z`.
pub(super) fn rfc3339(text: &str) -> Option<u64> {
    let (date, time) = text.trim().split_once(['T', 't', ' '])?;
    let mut parts = date.split('-');
    let (year, month, day) = (number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?);
    let zone = time.find(['Z', 'z', '+', '-'])?;
    let clock = time[..zone].split_once('.').map_or(&time[..zone], |(clock, _)| clock);
    let seconds = days(year, month, day)? * 86_400 + seconds_of_day(clock)?;
    let offset = match &time[zone..] {
        "Z" | "z" => return Some(seconds * 1_000),
        offset => offset,
    };
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let shift = number(hours)? * 3_600 + number(minutes)? * 60;
    let utc = if offset.starts_with('+') { seconds.checked_sub(shift)? } else { seconds + shift };
    Some(utc * 1_000)
}

fn seconds_of_day(text: &str) -> Option<u64> {
    let mut parts = text.split(':');
    let (hours, minutes, seconds) = (number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?);
    let is_time = hours < 24 && minutes < 60 && seconds <= 60 && parts.next().is_none();
    is_time.then_some(hours * 3_600 + minutes * 60 + seconds)
}

/// Days since 1970 of a day of the Gregorian calendar, counted from March so that a leap day is the last of its year.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    days.checked_sub(719_468)
}

fn number(text: &str) -> Option<u64> {
    (text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}
