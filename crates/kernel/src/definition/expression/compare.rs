//! Numbers of JSON, compared exactly by their digits. Nothing is computed with them, and nothing is rounded.

use std::cmp::Ordering;

use serde_json::Number;

/// The order of two numbers.
pub(super) fn numbers(left: &Number, right: &Number) -> Ordering {
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => decimal(left).cmp(&decimal(right)),
    }
}

/// The number as an integer, if it was written as one.
pub(super) fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// The number without its fraction; `None` if that is too large.
pub(super) fn whole_part(number: &Number) -> Option<i128> {
    decimal(number).whole_part()
}

fn decimal(number: &Number) -> Decimal {
    Decimal::read(&number.to_string()).unwrap_or_default()
}

/// A decimal number: 0.`digits` times ten to the power of `exponent`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Decimal {
    is_negative: bool,
    /// Without zeros at either end; zero has none.
    digits: Vec<u8>,
    exponent: i64,
}

impl Decimal {
    /// Reads digits with at most one point, and an exponent of ten. `None` if the text is something else.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (is_negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (number, power) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let power: i32 = power.parse().ok()?;
        let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        digits.drain(..zeros);
        digits.truncate(digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1));
        if digits.is_empty() {
            return Some(Self::default());
        }
        let exponent = i64::from(power) + i64::try_from(whole.len()).ok()? - i64::try_from(zeros).ok()?;
        Some(Self { is_negative, digits, exponent })
    }

    pub(super) fn whole_part(&self) -> Option<i128> {
        let Some(places) = usize::try_from(self.exponent).ok().filter(|_| !self.digits.is_empty()) else {
            return Some(0);
        };
        let digit = |place: usize| i128::from(self.digits.get(place).map_or(0, |digit| digit - b'0'));
        // A larger exponent has no digits that fit.
        let whole = (0..places.min(PLACES_MAX))
            .try_fold(0_i128, |whole, place| whole.checked_mul(10)?.checked_add(digit(place)));
        let whole = whole.filter(|_| places <= PLACES_MAX)?;
        Some(if self.is_negative { -whole } else { whole })
    }
}

/// Places of the largest integer of 128 bits.
const PLACES_MAX: usize = 39;

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.digits.is_empty(), number.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let size = || self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits));
        match sign(self).cmp(&sign(other)) {
            Ordering::Equal if sign(self) < 0 => size().reverse(),
            Ordering::Equal if sign(self) > 0 => size(),
            signs => signs,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn numbers_are_ordered_by_their_digits() {
        let ordered = [
            "-1e300",
            "-9223372036854775808",
            "-3",
            "-2.5",
            "-2",
            "-0.3",
            "0",
            "1e-9",
            "0.1",
            "0.2",
            "1",
            "2.5",
            "3",
            "9007199254740992.0",
            "9007199254740993",
            "18446744073709551615",
            "1e20",
            "1.5e300",
        ];
        for (place, left) in ordered.iter().enumerate() {
            for (other, right) in ordered.iter().enumerate() {
                assert_eq!(numbers(&number(left), &number(right)), place.cmp(&other), "{left} {right}");
            }
        }
        for (left, right) in [("2", "2.0"), ("0", "-0.0"), ("100", "1e2"), ("-5", "-5.000"), ("0.50", "0.5")]
        {
            assert_eq!(numbers(&number(left), &number(right)), Ordering::Equal, "{left} {right}");
        }
    }

    #[test]
    fn the_whole_part_loses_the_fraction_and_has_a_limit() {
        let whole = |text: &str| Decimal::read(text).and_then(|decimal| decimal.whole_part());
        assert_eq!(
            [whole("12.9"), whole("-12.9"), whole("0.99"), whole("-0.0")],
            [Some(12), Some(-12), Some(0), Some(0)]
        );
        assert_eq!(
            [whole("1e3"), whole("+.5"), whole("7."), whole("1e-400")],
            [Some(1_000), Some(0), Some(7), Some(0)]
        );
        assert_eq!([whole("1e40"), whole("1e999999"), whole("x"), whole("")], [None; 4]);
        assert_eq!([whole("1e"), whole("--1"), whole("1.2.3"), whole("inf"), whole(".")], [None; 5]);
        assert_eq!(whole("1e9999999999"), None);
    }
}
