//! Dollars as they are written, to nano-dollars, without a float on the way.

use anyhow::{Context, bail, ensure};

const NANO_DIGITS: i64 = 9;
/// More digits than any price has: what comes from outside is bounded.
const DIGITS_MAX: usize = 64;

/// Nano-dollars, rounded up: a price is never less than what it says.
pub(super) fn nanos_rounded_up(text: &str) -> anyhow::Result<u64> {
    let number = || format!("`{text}` is no amount of dollars");
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().with_context(number)?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    ensure!(!whole.is_empty() && digits.len() <= DIGITS_MAX, number());
    ensure!(digits.bytes().all(|digit| digit.is_ascii_digit()), number());
    // The last digit stands for so many tens of a nano-dollar.
    let shift = exponent.saturating_add(NANO_DIGITS).saturating_sub(i64::try_from(fraction.len())?);
    if !digits.contains(|digit| digit != '0') {
        return Ok(0);
    }
    if shift >= 0 {
        let zeros = usize::try_from(shift)?;
        ensure!(zeros <= DIGITS_MAX, number());
        return format!("{digits}{}", "0".repeat(zeros)).parse().with_context(number);
    }
    let kept = digits.len().saturating_sub(usize::try_from(shift.unsigned_abs())?);
    let (kept, lost) = digits.split_at(kept);
    let down: u64 = if kept.is_empty() { 0 } else { kept.parse().with_context(number)? };
    match down.checked_add(u64::from(lost.contains(|digit| digit != '0'))) {
        Some(nanos) => Ok(nanos),
        None => bail!(number()),
    }
}

#[cfg(test)]
mod tests {
    use super::nanos_rounded_up;

    #[test]
    fn dollars_become_nano_dollars_and_nothing_is_lost() {
        let nanos = |text| nanos_rounded_up(text).unwrap();
        assert_eq!(nanos("0"), 0);
        assert_eq!(nanos("0.0"), 0);
        assert_eq!(nanos("15"), 15_000_000_000);
        assert_eq!(nanos("0.003625"), 3_625_000);
        assert_eq!(nanos("0.041666666666666664"), 41_666_667);
        assert_eq!(nanos("0.18000000000000002"), 180_000_001);
        assert_eq!(nanos("0.000000001"), 1);
        assert_eq!(nanos("0.0000000001"), 1);
        assert_eq!(nanos("1e-7"), 100);
        assert_eq!(nanos("2.5E3"), 2_500_000_000_000);
        assert_eq!(nanos("1e-30"), 1);
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in ["", "-1", ".5", "1.2.3", "1e", "1e99", "NaN", "\"1\"", "1_000", "99999999999999999999"] {
            assert!(nanos_rounded_up(text).is_err(), "{text}");
        }
    }
}
