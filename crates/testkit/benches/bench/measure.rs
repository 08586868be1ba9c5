//! Measuring times: two things in turns, the minimum of many rounds, so noise affects both alike.

use std::time::Instant;

const ROUNDS: usize = 25;

/// Nanoseconds per operation, the minimum of many rounds.
pub(crate) fn least(count: u32, mut run: impl FnMut()) -> f64 {
    (0..ROUNDS).map(|_| round(count, &mut run)).fold(f64::INFINITY, f64::min)
}

/// Nanoseconds per operation on a value that is created for each round; creating it is not counted.
pub(crate) fn least_on<T>(count: u32, make: impl Fn() -> T, run: impl Fn(&mut T)) -> f64 {
    let fresh = |_| {
        let mut thing = make();
        round(count, &mut || run(&mut thing))
    };
    (0..ROUNDS * 4).map(fresh).fold(f64::INFINITY, f64::min)
}

/// Nanoseconds per operation of two things, measured in turns.
pub(crate) fn least_of_both(count: u32, mut ours: impl FnMut(), mut other: impl FnMut()) -> (f64, f64) {
    let mut best = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        best.0 = best.0.min(round(count, &mut ours));
        best.1 = best.1.min(round(count, &mut other));
    }
    best
}

fn round(count: u32, run: &mut impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..count {
        run();
    }
    start.elapsed().as_nanos() as f64 / f64::from(count)
}

/// The heading of a table.
pub(crate) fn title(text: &str) {
    println!("\n{text}\n{}", "-".repeat(text.len()));
}

/// A row of a table: what, ours, the other, and their ratio.
pub(crate) fn row(what: &str, ours: &str, other: &str, relation: &str) {
    println!("{what:<44} {ours:>16} {other:>28}   {relation}");
}

/// The median.
pub(crate) fn median(values: Vec<f64>) -> f64 {
    at_percent(values, 50)
}

/// The median ratio of rounds that measured both: noise at one moment affects both alike.
pub(crate) fn paired(one: &[f64], other: &[f64]) -> f64 {
    median(one.iter().zip(other).map(|(one, other)| one / other).collect())
}

/// A percentile.
pub(crate) fn at_percent(mut values: Vec<f64>, percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() * percent).div_ceil(100) - 1]
}

/// A readable time.
pub(crate) fn time(ns: f64) -> String {
    if ns < 10_000.0 {
        format!("{ns:.1} ns")
    } else if ns < 10_000_000.0 {
        format!("{:.1} µs", ns / 1_000.0)
    } else {
        format!("{:.1} ms", ns / 1_000_000.0)
    }
}

/// `123x better`; small ratios have a fraction.
pub(crate) fn better(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.1}x better") } else { format!("{ratio:.0}x better") }
}

/// `1.23x (at most 3x: holds)`.
pub(crate) fn at_most(ratio: f64, bound: f64) -> String {
    format!("{ratio:.2}x (at most {bound}x: {})", verdict(ratio <= bound))
}

/// `123x faster (at least 50x: holds)`.
pub(crate) fn at_least(ratio: f64, bound: f64) -> String {
    format!("{} (at least {bound}x: {})", better(ratio), verdict(ratio >= bound))
}

pub(crate) fn verdict(holds: bool) -> &'static str {
    if holds { "holds" } else { "MISSED" }
}
