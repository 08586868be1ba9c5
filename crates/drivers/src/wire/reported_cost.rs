//! The cost of a call as its provider reports it. OpenRouter, DeepInfra, Perplexity and xAI do so, each in a different
//! way. Dollars are parsed from the digits of the number and rounded up to a nano-dollar, without floats.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use spinney_kernel::budget::AMOUNT_MAX;

use super::fault::WireFault;
use super::json::read;

/// A nano-dollar is 10^-9 dollars.
const DOLLARS: i64 = 9;
/// xAI counts in ticks of 10^-10 dollars.
const TICKS: i64 = -1;

/// The cost in a usage object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportedCost {
    /// No cost; most providers report none.
    None,
    Nanos(u64),
    /// A value that cannot be a cost.
    Nonsense,
}

#[derive(Deserialize)]
struct Costs {
    /// A number, or an object with the total.
    cost: Option<Box<RawValue>>,
    estimated_cost: Option<Box<RawValue>>,
    cost_in_usd_ticks: Option<Box<RawValue>>,
    cost_details: Option<Box<RawValue>>,
    is_byok: Option<Value>,
}

#[derive(Deserialize)]
struct Total {
    total_cost: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Details {
    /// With the user's own key, what OpenRouter's upstream bills to that key. Otherwise it is already part of the cost.
    upstream_inference_cost: Option<Box<RawValue>>,
}

/// The largest cost that the usage of an answer reports.
pub(super) fn reported_cost(usage: &RawValue) -> Result<ReportedCost, WireFault> {
    let costs: Costs = read("usage", usage.get())?;
    let is_object = |raw: &RawValue| raw.get().starts_with('{');
    let total = match costs.cost {
        Some(cost) if is_object(&cost) => match read::<Total>("a cost", cost.get())?.total_cost {
            Some(total) => nanos(Some(&total), DOLLARS),
            None => ReportedCost::Nonsense,
        },
        cost => nanos(cost.as_deref(), DOLLARS),
    };
    let upstream = match costs.cost_details.filter(|details| is_object(details)) {
        Some(details) if costs.is_byok != Some(Value::Bool(false)) => {
            read::<Details>("the parts of a cost", details.get())?.upstream_inference_cost
        }
        _ => None,
    };
    let estimated = nanos(costs.estimated_cost.as_deref(), DOLLARS);
    let ticks = nanos(costs.cost_in_usd_ticks.as_deref(), TICKS);
    Ok(total.plus(nanos(upstream.as_deref(), DOLLARS)).larger(estimated).larger(ticks))
}

impl ReportedCost {
    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nonsense, _) | (_, Self::Nonsense) => Self::Nonsense,
            (Self::None, other) => other,
            (one, Self::None) => one,
            (Self::Nanos(a), Self::Nanos(b)) => Self::checked(a.saturating_add(b)),
        }
    }

    fn larger(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nonsense, _) | (_, Self::Nonsense) => Self::Nonsense,
            (Self::None, other) => other,
            (one, Self::None) => one,
            (Self::Nanos(a), Self::Nanos(b)) => Self::Nanos(a.max(b)),
        }
    }

    const fn checked(nanos: u64) -> Self {
        if nanos > AMOUNT_MAX { Self::Nonsense } else { Self::Nanos(nanos) }
    }
}

fn nanos(number: Option<&RawValue>, power: i64) -> ReportedCost {
    let Some(number) = number else { return ReportedCost::None };
    scaled(number.get(), power).map_or(ReportedCost::Nonsense, ReportedCost::checked)
}

/// A JSON number times a power of ten, rounded up. None if it is negative, not a number, or too large.
fn scaled(number: &str, power: i64) -> Option<u64> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = &digits[digits.iter().position(|digit| *digit != b'0').unwrap_or(digits.len())..];
    if digits.is_empty() {
        return Some(0);
    }
    // With a larger exponent, in either direction, every number is too large or rounds up from almost zero.
    let (sign, size) = match exponent.strip_prefix('-') {
        Some(size) => (-1, size),
        None => (1, exponent.strip_prefix('+').unwrap_or(exponent)),
    };
    let exponent = sign * size.parse::<i64>().unwrap_or(i64::MAX).min(1 << 40);
    let shift = exponent - i64::try_from(fraction.len()).ok()? + power;
    let whole_digits = i64::try_from(digits.len()).ok()? + shift;
    let kept = usize::try_from(whole_digits).unwrap_or_default();
    if kept > DIGITS_MAX {
        return None;
    }
    let (counted, rest) = digits.split_at(kept.min(digits.len()));
    let whole = counted.iter().fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    let zeros = u32::try_from(kept - counted.len()).ok()?;
    let is_rounded = rest.iter().any(|digit| *digit != b'0');
    (whole * 10_u64.pow(zeros)).checked_add(u64::from(is_rounded))
}

/// Every number with this many digits fits into a `u64`, and the largest amount has fewer.
const DIGITS_MAX: usize = 19;

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(usage: &str) -> ReportedCost {
        reported_cost(serde_json::from_str(usage).unwrap()).unwrap()
    }

    #[test]
    fn dollars_are_read_from_their_digits_and_rounded_up() {
        let table = [
            ("0", 0),
            ("0.0", 0),
            ("0e999999999999999999999", 0),
            ("1", 1_000_000_000),
            ("0.95", 950_000_000),
            ("0.000000001", 1),
            ("0.0000000011", 2),
            ("0.0000000010", 1),
            ("1.2e-05", 12_000),
            ("1.23456789012e-05", 12_346),
            ("1E-9", 1),
            ("1e-10", 1),
            ("1e-999999999999999999999", 1),
            ("12.5e+1", 125_000_000_000),
            ("0.1", 100_000_000),
            ("0.30000000000000004", 300_000_001),
            ("1000000", AMOUNT_MAX),
            ("1e6", AMOUNT_MAX),
        ];
        for (text, nanos) in table {
            assert_eq!(reported(&format!(r#"{{"cost":{text}}}"#)), ReportedCost::Nanos(nanos), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_a_cost_is_nonsense() {
        let table = [
            "-1",
            "-0.1e-30",
            "1000000.000000001",
            "1e30",
            "1e999999999999999999999",
            "9999999999999999999999",
            "\"0.95\"",
            "true",
            "[1]",
            "{}",
            "{\"total_cost\":-1}",
        ];
        for text in table {
            assert_eq!(reported(&format!(r#"{{"cost":{text}}}"#)), ReportedCost::Nonsense, "{text}");
        }
    }

    #[test]
    fn every_provider_that_says_a_cost_is_understood() {
        let table = [
            (r#"{"prompt_tokens":1}"#, ReportedCost::None),
            (r#"{"cost":null,"cost_details":null}"#, ReportedCost::None),
            (
                r#"{"cost":2,"is_byok":false,"cost_details":{"upstream_inference_cost":2}}"#,
                ReportedCost::Nanos(2_000_000_000),
            ),
            (
                r#"{"cost":0.95,"cost_details":{"upstream_inference_cost":19}}"#,
                ReportedCost::Nanos(19_950_000_000),
            ),
            (
                r#"{"cost":0.5,"is_byok":true,"cost_details":{"upstream_inference_cost":1}}"#,
                ReportedCost::Nanos(1_500_000_000),
            ),
            (
                r#"{"cost":0.5,"cost_details":{"upstream_inference_cost":null}}"#,
                ReportedCost::Nanos(500_000_000),
            ),
            (r#"{"cost":{"input_tokens_cost":0.1,"total_cost":0.3}}"#, ReportedCost::Nanos(300_000_000)),
            (r#"{"estimated_cost":2.5e-7}"#, ReportedCost::Nanos(250)),
            (r#"{"cost_in_usd_ticks":37756001}"#, ReportedCost::Nanos(3_775_601)),
            (r#"{"cost":1e-9,"cost_in_usd_ticks":30}"#, ReportedCost::Nanos(3)),
            (r#"{"cost":1,"estimated_cost":-1}"#, ReportedCost::Nonsense),
        ];
        for (usage, cost) in table {
            assert_eq!(reported(usage), cost, "{usage}");
        }
    }
}
