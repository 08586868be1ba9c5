//! Values as people and models write them: dollars, times, percents, counts, and the keys of a budget and of a price. Tree
//! files, configurations and tool arguments share them.
//!
//! Parsing is exact or fails, and an error says what to write instead. A decimal number is parsed from its shortest
//! text, never through float arithmetic.

use std::str::FromStr;

use serde::Deserialize;
use serde_json::{Number, Value};

use crate::budget::{AMOUNT_MAX, AmountError, Ceilings, Price, Resource, nanos_from_usd};
use crate::definition::{BudgetSpec, Lend, OnLow, Repeats, WrapUp};
use crate::primitives::limit;

/// Dollars: `0.50`, `10`, `"$1.5"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Value")]
pub struct Usd(u64);

/// A duration: `200ms`, `90s`, `5m`, `2h`, `1d`, or a whole number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Value")]
pub struct TimeSpan(u64);

/// A timeout: a duration, which pauses while the tree waits for a person, or `{ wall: duration }`, which never
/// pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct Timeout {
    pub span: TimeSpan,
    /// Whether it never pauses.
    pub is_wall: bool,
}

/// A duration, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct SpanOrOff(pub Option<TimeSpan>);

/// A percentage: `10` or `"10%"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Value")]
pub struct Percent(u8);

/// A whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Value")]
pub struct Count(u64);

/// A number of bytes: `512MiB`, `2GB`, or a whole number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Value")]
pub struct ByteSize(u64);

/// A budget by its keys. Absent keys come from the role, then from the parent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the keys of a budget")]
pub struct BudgetKeys {
    pub cost_usd: Option<Usd>,
    pub tokens: Option<Count>,
    /// The most model turns.
    pub steps: Option<Count>,
    pub tool_calls: Option<Count>,
    /// The most attempts after the first.
    pub retries: Option<Count>,
    pub timeout: Option<Timeout>,
    /// Whether every ancestor holds its ceilings from the start.
    pub lend: Option<bool>,
    /// The share of cost and tokens that descendants must leave.
    pub answer_reserve: Option<Percent>,
    pub on_low: Option<OnLow>,
    /// Whether it gets a last call before it runs out of budget.
    pub wrap_up: Option<WrapUp>,
    /// How often it may repeat a tool call that brings nothing new.
    pub repeats: Option<Repeats>,
}

/// A price by its keys, in dollars per million tokens.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the keys of a price")]
pub struct PriceKeys {
    pub input_per_mtok_usd: Usd,
    pub output_per_mtok_usd: Usd,
    pub cached_input_per_mtok_usd: Option<Usd>,
    pub cache_write_per_mtok_usd: Option<Usd>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrittenError {
    #[error(
        "`{text}` is not an amount in USD: write a plain positive number such as 0.25, at most nine decimals"
    )]
    NotUsd {
        /// The input, cut to a readable length.
        text: String,
    },
    #[error("`{text}` USD is above the largest amount, 1000000 USD")]
    UsdTooLarge { text: String },
    #[error(
        "`{text}` is not a time: write a whole number and its unit, such as 200ms, 90s, 5m, 2h or 1d; \
         a number alone is seconds"
    )]
    NotSpan {
        /// The input, cut to a readable length.
        text: String,
    },
    #[error(
        "`{text}` is not a time: write `off`, or a whole number and its unit, such as 200ms, 10s or 1m; \
         a number alone is seconds"
    )]
    NotSpanOrOff {
        /// The input, cut to a readable length.
        text: String,
    },
    /// Zero, or longer than allowed.
    #[error("a time of `{text}` is out of bounds: write at least 1ms and at most 365d")]
    SpanOutOfBounds {
        /// The input, cut to a readable length.
        text: String,
    },
    #[error("`{text}` is not a percent: write a whole number from 0 to {percent_max}, such as 10 or \"10%\"")]
    NotPercent {
        /// The input, cut to a readable length.
        text: String,
        percent_max: u8,
    },
    #[error(
        "`{text}` is not a size: write a whole number and its unit, such as 512MiB or 2GB; a number alone is bytes"
    )]
    NotSize {
        /// The input, cut to a readable length.
        text: String,
    },
    #[error("`{text}` is not a count: write a whole number from 0 to {AMOUNT_MAX}, without quotes")]
    NotCount {
        /// The input, cut to a readable length.
        text: String,
    },
}

impl Usd {
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }
}

impl ByteSize {
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = WrittenError;
    fn from_str(text: &str) -> Result<Self, WrittenError> {
        let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let unit: u64 = match unit.trim_start() {
            "B" => 1,
            "kB" | "KB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "TB" => 1_000_000_000_000,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            "TiB" => 1 << 40,
            _ => 0,
        };
        let number: Option<u64> = number.parse().ok().filter(|_| unit > 0);
        let bytes = number.and_then(|number| number.checked_mul(unit)).filter(|bytes| *bytes <= AMOUNT_MAX);
        bytes.map(Self).ok_or_else(|| WrittenError::NotSize { text: cut(text) })
    }
}

impl TryFrom<Value> for ByteSize {
    type Error = WrittenError;
    fn try_from(value: Value) -> Result<Self, WrittenError> {
        match (&value, value.as_u64().filter(|bytes| *bytes <= AMOUNT_MAX)) {
            (Value::String(text), _) => text.parse(),
            (_, Some(bytes)) => Ok(Self(bytes)),
            (_, None) => Err(WrittenError::NotSize { text: shown(&value) }),
        }
    }
}

impl TimeSpan {
    /// In milliseconds; at least one, at most [`limit::TIMEOUT_MS_MAX`].
    #[must_use]
    pub const fn ms(self) -> u64 {
        self.0
    }

    fn from_ms(ms: Option<u64>, text: &str) -> Result<Self, WrittenError> {
        let bounded = ms.filter(|ms| (1..=limit::TIMEOUT_MS_MAX).contains(ms));
        bounded.map(Self).ok_or_else(|| WrittenError::SpanOutOfBounds { text: text.to_owned() })
    }
}

impl Percent {
    #[must_use]
    pub const fn percent(self) -> u8 {
        self.0
    }
}

impl Count {
    #[must_use]
    pub const fn count(self) -> u64 {
        self.0
    }
}

impl BudgetKeys {
    /// As the kernel stores it.
    #[must_use]
    pub fn spec(&self) -> BudgetSpec {
        let counts = [
            (Resource::Cost, self.cost_usd.map(Usd::nanos)),
            (Resource::Tokens, self.tokens.map(Count::count)),
            (Resource::Steps, self.steps.map(Count::count)),
            (Resource::ToolCalls, self.tool_calls.map(Count::count)),
            (Resource::Retries, self.retries.map(Count::count)),
        ];
        let given = counts.into_iter().filter_map(|(resource, amount)| Some((resource, amount?)));
        BudgetSpec {
            limit: given.fold(Ceilings::NONE, |limit, (resource, amount)| limit.with(resource, amount)),
            timeout_ms: self.timeout.map(|timeout| timeout.span.ms()),
            timeout_wall: self.timeout.is_some_and(|timeout| timeout.is_wall),
            lend: self.lend.map(|lend| if lend { Lend::Yes } else { Lend::No }),
            answer_reserve: self.answer_reserve.map(Percent::percent),
            on_low: self.on_low.clone(),
            wrap_up: self.wrap_up,
            repeats: self.repeats,
        }
    }
}

impl PriceKeys {
    #[must_use]
    pub fn price(&self) -> Price {
        Price {
            cached_input_per_mtok: self.cached_input_per_mtok_usd.map(Usd::nanos),
            cache_write_per_mtok: self.cache_write_per_mtok_usd.map(Usd::nanos),
            ..Price::flat(self.input_per_mtok_usd.nanos(), self.output_per_mtok_usd.nanos())
        }
    }
}

impl FromStr for Usd {
    type Err = WrittenError;
    fn from_str(text: &str) -> Result<Self, WrittenError> {
        nanos_from_usd(text).map(Self).map_err(|error| match error {
            AmountError::NotUsd { text } => WrittenError::NotUsd { text },
            AmountError::TooLarge { .. } => WrittenError::UsdTooLarge { text: cut(text) },
        })
    }
}

impl TryFrom<Value> for Usd {
    type Error = WrittenError;
    fn try_from(value: Value) -> Result<Self, WrittenError> {
        match &value {
            Value::String(text) => text.parse(),
            Value::Number(number) => plain(number).parse(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                Err(WrittenError::NotUsd { text: shown(&value) })
            }
        }
    }
}

impl FromStr for TimeSpan {
    type Err = WrittenError;
    fn from_str(text: &str) -> Result<Self, WrittenError> {
        let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let unit_ms: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60 * 1_000,
            "h" => 60 * 60 * 1_000,
            "d" => 24 * 60 * 60 * 1_000,
            _ => 0,
        };
        if number.is_empty() || unit_ms == 0 {
            return Err(WrittenError::NotSpan { text: cut(text) });
        }
        let number: Option<u64> = number.parse().ok();
        Self::from_ms(number.and_then(|number| number.checked_mul(unit_ms)), &cut(text))
    }
}

impl TryFrom<Value> for TimeSpan {
    type Error = WrittenError;
    fn try_from(value: Value) -> Result<Self, WrittenError> {
        match (&value, value.as_u64()) {
            (Value::String(text), _) => text.parse(),
            (_, Some(seconds)) => Self::from_ms(seconds.checked_mul(1_000), &seconds.to_string()),
            (_, None) => Err(WrittenError::NotSpan { text: shown(&value) }),
        }
    }
}

impl TryFrom<Value> for SpanOrOff {
    type Error = WrittenError;
    fn try_from(value: Value) -> Result<Self, WrittenError> {
        match value.as_str() {
            Some("off") => Ok(Self(None)),
            _ => value.try_into().map(|span| Self(Some(span))).map_err(|error| match error {
                WrittenError::NotSpan { text } => WrittenError::NotSpanOrOff { text },
                other => other,
            }),
        }
    }
}

impl TryFrom<Value> for Timeout {
    type Error = WrittenError;
    fn try_from(mut value: Value) -> Result<Self, WrittenError> {
        let keys = value.as_object_mut().filter(|keys| keys.len() == 1);
        match keys.and_then(|keys| keys.remove("wall")) {
            Some(wall) => Ok(Self { span: wall.try_into()?, is_wall: true }),
            None => Ok(Self { span: value.try_into()?, is_wall: false }),
        }
    }
}

impl TryFrom<Value> for Percent {
    type Error = WrittenError;
    fn try_from(value: Value) -> Result<Self, WrittenError> {
        let percent_max = limit::ANSWER_RESERVE_PERCENT_MAX;
        let signed = value.as_str().and_then(|text| text.strip_suffix('%'));
        let digits = signed.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let number = digits.map_or_else(|| value.as_u64(), |text| text.parse().ok());
        number
            .and_then(|number| u8::try_from(number).ok())
            .filter(|number| *number <= percent_max)
            .map(Self)
            .ok_or_else(|| WrittenError::NotPercent { text: shown(&value), percent_max })
    }
}

impl TryFrom<Value> for Count {
    type Error = WrittenError;
    fn try_from(value: Value) -> Result<Self, WrittenError> {
        let number = value.as_u64().filter(|number| *number <= AMOUNT_MAX);
        number.map(Self).ok_or_else(|| WrittenError::NotCount { text: shown(&value) })
    }
}

/// Plain digits; JSON would write a small number with an exponent.
fn plain(number: &Number) -> String {
    let point = number.is_f64().then(|| number.as_f64()).flatten();
    point.map_or_else(|| number.to_string(), |number| number.to_string())
}

pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => cut(text),
        Value::Number(number) => cut(&plain(number)),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => cut(&value.to_string()),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(40).collect()
}
