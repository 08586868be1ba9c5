//! Rates in virtual time: no minute above the limit, whatever asks; and every tree gets its share.

use std::collections::BTreeMap;

use proptest::prelude::*;
use spinney_kernel::definition::RateLimit;
use spinney_kernel::port::model::{Allowance, Announced};
use spinney_kernel::primitives::{CallId, TreeId};

use super::announced::{Left, Sent};
use super::limiter::{Asking, Limiter, WINDOW_MS};

fn tree(number: u8) -> TreeId {
    TreeId::new([number; 16])
}

fn requests(per_min: u64) -> RateLimit {
    RateLimit { requests_per_min: Some(per_min), tokens_per_min: None }
}

fn tokens(per_min: u64) -> RateLimit {
    RateLimit { requests_per_min: None, tokens_per_min: Some(per_min) }
}

/// Trees that each keep some calls waiting all the time, until `end_ms`. Returns when each tree's calls went out.
fn played(waiting: &[usize], rate: RateLimit, end_ms: u64) -> BTreeMap<u8, Vec<u64>> {
    let mut limiter = Limiter::default();
    let mut went: BTreeMap<u8, Vec<u64>> =
        (0..waiting.len() as u8).map(|number| (number, Vec::new())).collect();
    // When each call asks next; calls of the same moment in a fair order.
    let mut asks = BTreeMap::new();
    let mut calls = 0_u64;
    for (number, count) in waiting.iter().enumerate() {
        for _ in 0..*count {
            calls += 1;
            asks.insert((0_u64, calls.wrapping_mul(0x9e37_79b9_7f4a_7c15)), (number as u8, CallId(calls)));
        }
    }
    while let Some(((now_ms, order), (number, call))) = asks.pop_first() {
        if now_ms > end_ms {
            break;
        }
        let asking = Asking { tree: tree(number), call, tokens: 0 };
        match limiter.ask(asking, rate, now_ms) {
            Ok(()) => {
                limiter.take(asking, rate, now_ms);
                went.entry(number).or_default().push(now_ms);
                calls += 1;
                asks.insert((now_ms + 1, order.rotate_left(7)), (number, CallId(calls)));
            }
            Err(wait_ms) => {
                assert!(wait_ms > 0);
                asks.insert((now_ms + wait_ms, order), (number, call));
            }
        }
    }
    went
}

/// The most calls of any minute.
fn most_in_a_minute(went: &BTreeMap<u8, Vec<u64>>) -> usize {
    let mut times: Vec<u64> = went.values().flatten().copied().collect();
    times.sort_unstable();
    let within =
        |start: &u64| times.iter().filter(|time| (*start..*start + WINDOW_MS).contains(*time)).count();
    times.iter().map(within).max().unwrap_or(0)
}

#[test]
fn a_hundred_trees_share_sixty_calls_a_minute_evenly() {
    // Some have one call waiting, some have sixteen.
    let waiting: Vec<usize> = (0..100).map(|number| [1, 2, 4, 16][number % 4]).collect();
    let went = played(&waiting, requests(60), 60 * 60_000);
    assert!(most_in_a_minute(&went) <= 60);
    let counts: Vec<usize> = went.values().map(Vec::len).collect();
    let all: usize = counts.iter().sum();
    assert!(all >= 59 * 60, "{all} calls in an hour");
    let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
    // 36 calls each in an hour: within a tenth.
    assert!(*least >= 33 && *most <= 39, "{least} to {most}");
}

#[test]
fn a_tree_that_comes_late_waits_for_no_backlog_but_its_turn() {
    let mut limiter = Limiter::default();
    let rate = requests(10);
    for call in 0..10 {
        let asking = Asking { tree: tree(1), call: CallId(call), tokens: 0 };
        assert_eq!(limiter.ask(asking, rate, 0), Ok(()));
        limiter.take(asking, rate, 0);
    }
    for call in 10..40 {
        assert!(limiter.ask(Asking { tree: tree(1), call: CallId(call), tokens: 0 }, rate, 10).is_err());
    }
    // Thirty calls of another tree wait, which takes three minutes; this one is let in with the first of them.
    let late = Asking { tree: tree(2), call: CallId(0), tokens: 0 };
    let wait_ms = limiter.ask(late, rate, 20).unwrap_err();
    assert!(wait_ms <= WINDOW_MS + 100, "{wait_ms}");
    assert_eq!(limiter.ask(late, rate, 20 + wait_ms), Ok(()));
}

#[test]
fn an_abandoned_place_holds_nobody_up_for_long() {
    let mut limiter = Limiter::default();
    let rate = requests(1);
    let asking = |call| Asking { tree: tree(call as u8), call: CallId(call), tokens: 0 };
    limiter.take(asking(1), rate, 0);
    let first = limiter.ask(asking(2), rate, 0).unwrap_err();
    let second = limiter.ask(asking(3), rate, 0).unwrap_err();
    assert!(second > first);
    // The second one never asks again.
    assert!(limiter.ask(asking(3), rate, first).is_err(), "its place comes first");
    assert_eq!(limiter.ask(asking(3), rate, first + 5_000), Ok(()));
    // Neither does a tree that is gone.
    assert!(limiter.ask(asking(4), rate, first + 5_000).is_err());
    limiter.forget(tree(3));
    assert_eq!(limiter.ask(asking(4), rate, first + 5_000), Ok(()));
}

#[test]
fn tokens_are_counted_at_their_bound_and_corrected_to_what_was_used() {
    let mut limiter = Limiter::default();
    let rate = tokens(1_000);
    let asking = |call, tokens| Asking { tree: tree(1), call: CallId(call), tokens };
    assert_eq!(limiter.ask(asking(1, 800), rate, 0), Ok(()));
    let taken = limiter.take(asking(1, 800), rate, 0);
    assert!(limiter.ask(asking(2, 300), rate, 500).is_err());
    limiter.settle(taken, 600);
    assert_eq!(limiter.ask(asking(2, 300), rate, 600), Ok(()));
    limiter.take(asking(2, 300), rate, 600);
    // A call that is larger than the whole minute goes when nothing else is counted.
    let large = asking(3, 5_000);
    let wait_ms = limiter.ask(large, rate, 600).unwrap_err();
    assert_eq!(limiter.ask(large, rate, 600 + wait_ms), Ok(()));
}

#[test]
fn an_announced_limit_is_refilled_evenly_until_its_reset() {
    let mut left = Left::default();
    let one = Sent { requests: 1, input_tokens: 0, output_tokens: 0 };
    assert_eq!(left.wait_ms(one, 0), 0, "nothing was announced");
    let allowance = Allowance { limit: 60, remaining: 2, reset_ms: 58_000 };
    let announced = Announced { requests: Some(allowance), ..Announced::default() };
    // One more was sent after the call that brought this.
    left.learn(announced, one, 1_000);
    assert_eq!(left.wait_ms(one, 1_000), 0);
    left.take(one);
    assert_eq!(left.wait_ms(one, 1_000), 1_000, "one is refilled each second");
    assert_eq!(left.wait_ms(one, 2_000), 0);
    (0..90).for_each(|_| left.take(one));
    assert_eq!(left.wait_ms(one, 2_000), 57_000, "at the reset it says nothing any more");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_minute_has_more_calls_than_its_limit(
        waiting in prop::collection::vec(1_usize..6, 1..12),
        per_min in 1_u64..90,
    ) {
        let went = played(&waiting, requests(per_min), 10 * 60_000);
        prop_assert!(most_in_a_minute(&went) as u64 <= per_min);
        let all: usize = went.values().map(Vec::len).sum();
        prop_assert!(all as u64 >= 9 * per_min, "{all} calls in ten minutes");
        // Where each tree has a call waiting whenever there is room, all get the same. In the first minute a tree that
        // asks before the others takes what is free.
        if per_min <= waiting.len() as u64 {
            let after_first = |times: &Vec<u64>| times.iter().filter(|time| **time >= WINDOW_MS).count();
            let counts: Vec<usize> = went.values().map(after_first).collect();
            let (least, most) = (counts.iter().min().unwrap_or(&0), counts.iter().max().unwrap_or(&0));
            prop_assert!(most - least <= 2, "{least} to {most}");
        }
    }
}
