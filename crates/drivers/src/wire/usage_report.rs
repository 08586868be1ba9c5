//! The usage in the events of one answer, and how it is combined. Servers repeat counts, leave some out, and may report
//! less in a later event than in an earlier one. The booked cost must not be lower than the bill, so the most expensive
//! reading that is consistent with all events counts: a count never shrinks.
//!
//! This assumes that cache reads cost at most as much as plain input, cache writes at least as much, and one-hour writes
//! the most.

use serde_json::Value;

use super::answer::WireUsage;
use super::reported_cost::ReportedCost;

/// The usage in one event. A missing count is not zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UsageReport {
    /// Input that was neither read from nor written to a cache, if the provider counts it separately.
    pub(super) fresh_input: Option<u64>,
    /// All input, if the provider reports a total.
    pub(super) whole_input: Option<u64>,
    pub(super) cache_read: Option<u64>,
    /// All cache writes, whatever their lifetime.
    pub(super) cache_written: Option<u64>,
    pub(super) cache_written_5m: Option<u64>,
    pub(super) cache_written_1h: Option<u64>,
    /// All output, including reasoning.
    pub(super) output: Option<u64>,
    pub(super) reasoning: Option<u64>,
    pub(super) reported_nanos: Option<u64>,
    pub(super) apart_nanos: u64,
    pub(super) has_unknown_price: bool,
}

/// The assumed lifetime of cache writes if the provider does not report it. Only Anthropic has two lifetimes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndividedWrites {
    /// The request did not ask for one-hour writes.
    Minutes,
    /// The request may have asked for one-hour writes, which cost more.
    Hour,
}

impl UsageReport {
    /// The most expensive reading that is consistent with both. If both agree, it is what they report.
    pub(super) fn combined(self, other: Self) -> Self {
        let (a, b) = (self.filled_from(&other), other.filled_from(&self));
        // A total of all input stands, whatever its parts. Parts without a total are combined with those of the other event.
        let total = match a.whole_input {
            Some(_) => self.input_total().max(other.input_total()),
            None => a.input_total().max(b.input_total()),
        };
        let hour = a.cache_written_1h.max(b.cache_written_1h).map(|hour| hour.min(total));
        let left = total - hour.unwrap_or_default();
        let minutes = a.cache_written_5m.max(b.cache_written_5m).map(|minutes| minutes.min(left));
        let divided = hour.unwrap_or_default() + minutes.unwrap_or_default();
        let written = divided.max(a.written_total()).max(b.written_total());
        let unwritten = total.saturating_sub(written);
        let read = smaller(a.cache_read, b.cache_read).map(|read| read.min(unwritten));
        let rest = unwritten - read.unwrap_or_default();
        let output = a.written_output().larger(b.written_output());
        Self {
            fresh_input: a.fresh_input.map(|_| rest),
            whole_input: a.whole_input.map(|_| total),
            cache_read: read,
            cache_written: a.cache_written.map(|_| written),
            cache_written_5m: minutes,
            cache_written_1h: hour,
            output: a.output.map(|_| output.said.saturating_add(output.reasoned)),
            reasoning: a.reasoning.max(b.reasoning),
            reported_nanos: a.reported_nanos.max(b.reported_nanos),
            apart_nanos: a.apart_nanos.max(b.apart_nanos),
            has_unknown_price: a.has_unknown_price || b.has_unknown_price,
        }
    }

    /// The sum of the tokens of two model calls.
    pub(super) fn plus(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (one, None) | (None, one) => one,
        };
        Self {
            fresh_input: sum(self.fresh_input, other.fresh_input),
            whole_input: sum(self.whole_input, other.whole_input),
            cache_read: sum(self.cache_read, other.cache_read),
            cache_written: sum(self.cache_written, other.cache_written),
            cache_written_5m: sum(self.cache_written_5m, other.cache_written_5m),
            cache_written_1h: sum(self.cache_written_1h, other.cache_written_1h),
            output: sum(self.output, other.output),
            reasoning: sum(self.reasoning, other.reasoning),
            ..self
        }
    }

    /// Whether it counts at least as many tokens of every kind.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.fresh_input >= other.fresh_input
            && self.whole_input >= other.whole_input
            && self.cache_read >= other.cache_read
            && self.cache_written >= other.cache_written
            && self.cache_written_5m >= other.cache_written_5m
            && self.cache_written_1h >= other.cache_written_1h
            && self.output >= other.output
            && self.reasoning >= other.reasoning
    }

    /// Adds the cost that the provider reported.
    pub(super) fn with_cost(self, cost: ReportedCost) -> Self {
        match cost {
            ReportedCost::None => self,
            ReportedCost::Nanos(nanos) => Self { reported_nanos: Some(nanos), ..self },
            ReportedCost::Nonsense => Self { has_unknown_price: true, ..self },
        }
    }

    /// The usage in parts that do not overlap.
    pub(super) fn usage(&self, undivided: UndividedWrites) -> WireUsage {
        let total = self.input_total();
        let mut hour = self.cache_written_1h.unwrap_or_default().min(total);
        let mut minutes = self.cache_written_5m.unwrap_or_default().min(total - hour);
        let rest = self.written_total().saturating_sub(hour + minutes);
        match undivided {
            UndividedWrites::Minutes => minutes += rest,
            UndividedWrites::Hour => hour += rest,
        }
        let read = self.cache_read.unwrap_or_default().min(total - hour - minutes);
        let is_input_known = self.fresh_input.is_some() || self.whole_input.is_some();
        let is_undivided = self.cache_written_5m.is_none() && self.cache_written_1h.is_none();
        let counts_as = |lifetime| self.cache_written.is_some() && is_undivided && undivided == lifetime;
        let in_minutes =
            self.cache_written_5m.is_some() || minutes > 0 || counts_as(UndividedWrites::Minutes);
        let in_hour = self.cache_written_1h.is_some() || hour > 0 || counts_as(UndividedWrites::Hour);
        WireUsage {
            input: is_input_known.then_some(total - hour - minutes - read),
            output: self.output,
            cache_read: self.cache_read.map(|_| read),
            cache_written_5m: in_minutes.then_some(minutes),
            cache_written_1h: in_hour.then_some(hour),
            reasoning: self.reasoning,
            reported_nanos: self.reported_nanos,
            apart_nanos: self.apart_nanos,
            has_unknown_price: self.has_unknown_price,
        }
    }

    /// Takes missing counts from another event.
    fn filled_from(&self, other: &Self) -> Self {
        Self {
            fresh_input: self.fresh_input.or(other.fresh_input),
            whole_input: self.whole_input.or(other.whole_input),
            cache_read: self.cache_read.or(other.cache_read),
            cache_written: self.cache_written.or(other.cache_written),
            output: self.output.or(other.output),
            reasoning: self.reasoning.or(other.reasoning),
            ..*self
        }
    }

    fn input_total(&self) -> u64 {
        let read = self.cache_read.unwrap_or_default();
        let apart = self.fresh_input.unwrap_or_default().saturating_add(read);
        apart.saturating_add(self.written_total()).max(self.whole_input.unwrap_or_default())
    }

    /// All cache writes: the larger of the reported total and the sum of its parts.
    fn written_total(&self) -> u64 {
        let [minutes, hour] = [self.cache_written_5m, self.cache_written_1h].map(Option::unwrap_or_default);
        self.cache_written.unwrap_or_default().max(minutes.saturating_add(hour))
    }

    fn written_output(&self) -> WrittenOutput {
        let output = self.output.unwrap_or_default();
        let reasoned = self.reasoning.unwrap_or_default().min(output);
        WrittenOutput { said: output - reasoned, reasoned }
    }
}

/// The output of a model. Either part may be the more expensive one.
#[derive(Clone, Copy)]
struct WrittenOutput {
    said: u64,
    reasoned: u64,
}

impl WrittenOutput {
    fn larger(self, other: Self) -> Self {
        Self { said: self.said.max(other.said), reasoned: self.reasoned.max(other.reasoned) }
    }
}

fn smaller(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.zip(b).map(|(a, b)| a.min(b)).or(a).or(b)
}

/// Tiers of providers that cost no more than the standard one.
const TIERS: [&str; 8] =
    ["auto", "batch", "default", "flex", "on_demand", "scale", "standard", "standard_only"];

/// Whether an answer of this tier may cost more than the price says.
pub(super) fn is_dearer_tier(tier: Option<&Value>) -> bool {
    says_other_than(tier, &TIERS)
}

/// Whether a field is present and has a value other than these.
pub(super) fn says_other_than(field: Option<&Value>, known: &[&str]) -> bool {
    match field {
        None | Some(Value::Null) => false,
        Some(Value::String(word)) => !word.is_empty() && !known.contains(&word.as_str()),
        Some(_) => true,
    }
}

/// Whether a field contains a number that is not zero.
pub(super) fn counts_something(field: &Value) -> bool {
    match field {
        Value::Null | Value::Bool(_) | Value::String(_) => false,
        Value::Number(number) => number.as_u64() != Some(0),
        Value::Array(items) => items.iter().any(counts_something),
        Value::Object(members) => members.values().any(counts_something),
    }
}
