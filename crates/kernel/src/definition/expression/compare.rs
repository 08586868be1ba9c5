//! Numbers of JSON, compared exactly. An integer is never rounded to a decimal for it.

use std::cmp::Ordering;

use serde_json::Number;

/// 2 to the 64th power: above every integer of JSON as we read it.
const ABOVE_INTEGERS: f64 = 18_446_744_073_709_551_616.0;
/// Minus 2 to the 63rd power: the lowest integer.
const LOWEST_INTEGER: f64 = -9_223_372_036_854_775_808.0;

/// The order of two numbers.
pub(super) fn numbers(left: &Number, right: &Number) -> Ordering {
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(left), None) => integer_and_decimal(left, decimal(right)),
        (None, Some(right)) => integer_and_decimal(right, decimal(left)).reverse(),
        (None, None) => decimal(left).partial_cmp(&decimal(right)).unwrap_or(Ordering::Equal),
    }
}

/// The number as an integer, if it was written as one.
pub(super) fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// JSON has neither infinities nor NaN.
fn decimal(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

fn integer_and_decimal(integer: i128, decimal: f64) -> Ordering {
    if decimal >= ABOVE_INTEGERS {
        return Ordering::Less;
    }
    if decimal < LOWEST_INTEGER {
        return Ordering::Greater;
    }
    let whole = whole_part(decimal);
    // The whole part of a decimal in this range is a decimal itself, so this compares the fraction with zero.
    integer.cmp(&whole).then_with(|| (whole as f64).partial_cmp(&decimal).unwrap_or(Ordering::Equal))
}

/// A decimal without its fraction; the closest integer of 128 bits if it is larger than that.
pub(super) const fn whole_part(decimal: f64) -> i128 {
    decimal as i128
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn order(left: &serde_json::Value, right: &serde_json::Value) -> Ordering {
        numbers(left.as_number().unwrap(), right.as_number().unwrap())
    }

    #[test]
    fn integers_beyond_what_a_decimal_can_hold_are_compared_exactly() {
        assert_eq!(
            order(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992.0)),
            Ordering::Greater
        );
        assert_eq!(order(&json!(9_007_199_254_740_992.0), &json!(9_007_199_254_740_993_u64)), Ordering::Less);
        assert_eq!(order(&json!(u64::MAX), &json!(18_446_744_073_709_551_616.0)), Ordering::Less);
        assert_eq!(order(&json!(u64::MAX), &json!(i64::MIN)), Ordering::Greater);
        assert_eq!(order(&json!(i64::MIN), &json!(-9_223_372_036_854_775_808.0)), Ordering::Equal);
        assert_eq!(order(&json!(i64::MIN), &json!(-1e300)), Ordering::Greater);
    }

    #[test]
    fn fractions_count() {
        assert_eq!(order(&json!(2), &json!(2.5)), Ordering::Less);
        assert_eq!(order(&json!(3), &json!(2.5)), Ordering::Greater);
        assert_eq!(order(&json!(-2), &json!(-2.5)), Ordering::Greater);
        assert_eq!(order(&json!(-3), &json!(-2.5)), Ordering::Less);
        assert_eq!(order(&json!(2), &json!(2.0)), Ordering::Equal);
        assert_eq!(order(&json!(0), &json!(-0.0)), Ordering::Equal);
        assert_eq!(order(&json!(0.1), &json!(0.2)), Ordering::Less);
    }
}
