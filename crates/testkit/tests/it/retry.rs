//! When an attempt fails: retry, fall back or give up; breakers, rate limits and delays.

use spinney_kernel::definition::{Allow, Definition, ModelSpec};
use spinney_kernel::primitives::retry::{Retry, after};
use spinney_kernel::primitives::{CallId, Fault, FaultKind, TreeId, limit};
use spinney_kernel::record::{Effect, Event};
use spinney_testkit::{Scenario, check};

use crate::observed::{attempts, effects, events, name};

/// Without a fallback of `m`.
fn alone(definition: &mut Definition) {
    definition.models[0].fallback.clear();
}

fn played(fixture: &str, change: impl FnOnce(&mut Definition), script: &str) -> String {
    let mut play = Scenario::grow_as(fixture, change);
    play.run(script);
    format!("{}\n{}", play.log(), play.tree())
}

/// After a failure the fallback is called at once; the retry is counted.
#[test]
fn a_failing_model_is_left_for_its_fallback() {
    let script = "call a $0.10\nfailed #1 server $0.02\ndone #1 $0.004";
    insta::assert_snapshot!(check("root $1.00 / a", script), @"
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    #1 attempt failed: Server, spent $0.02 tokens=20
    #1 switched: cheap, cap 100
    #1 started again (2): held $0.01 tokens=100 steps=1 retries=1
    #1 ended: done, spent $0.004 tokens=40 steps=1 retries=1
    root idle, spent $0.024 tokens=60 steps=1 retries=1, of $1.00
      a idle, spent $0.024 tokens=60 steps=1 retries=1, of $1.00
    ");
}

/// Without a fallback the same model is tried again after a delay, which doubles.
#[test]
fn without_a_fallback_the_same_model_is_tried_after_a_growing_pause() {
    let script = "call a $0.10\nfailed #1 server\npass 1s\nfailed #1 timeout\npass 2s\ndone #1 $0.10";
    insta::assert_snapshot!(played("root $1.00 / a", alone, script), @"
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    #1 attempt failed: Server, spent nothing
    #1 waiting: backoff until 1371
    #1 started again (2): held $0.10 tokens=100 steps=1 retries=1
    #1 attempt failed: Timeout, spent retries=1
    #1 waiting: backoff until 2629
    #1 started again (3): held $0.10 tokens=100 steps=1 retries=1
    #1 ended: done, spent $0.10 tokens=100 steps=1 retries=1
    root idle, spent $0.10 tokens=100 steps=1 retries=2, of $1.00
      a idle, spent $0.10 tokens=100 steps=1 retries=2, of $1.00
    ");
}

/// The delay that the provider asks for is kept to the millisecond.
#[test]
fn a_provider_that_says_when_to_come_back_is_obeyed() {
    let script = "call a $0.10\nfailed #1 rate_limit after=1234ms\npass 1233ms\npass 1ms";
    insta::assert_snapshot!(check("root $1.00 / a", script), @"
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    #1 attempt failed: RateLimit, spent nothing
    #1 waiting: backoff until 2234
    #1 started again (2): held $0.10 tokens=100 steps=1 retries=1
    root idle, held $0.10 tokens=100 steps=1 retries=1, of $1.00
      a running, held $0.10 tokens=100 steps=1 retries=1, of $1.00
    ");
}

/// An excessive delay is a fault without a retry; a fallback may be used.
#[test]
fn a_pause_beyond_the_bound_is_not_waited_for() {
    let script = "call a $0.10\nfailed #1 rate_limit after=601s";
    insta::assert_snapshot!(played("root / a", alone, script), @"
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    #1 ended: failed (RateLimit), spent nothing
    root idle
      a idle
    ");
    insta::assert_snapshot!(check("root / a", script), @"
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    #1 attempt failed: RateLimit, spent nothing
    #1 switched: cheap, cap 100
    #1 started again (2): held $0.01 tokens=100 steps=1 retries=1
    root idle, held $0.01 tokens=100 steps=1 retries=1
      a running, held $0.01 tokens=100 steps=1 retries=1
    ");
}

/// Attempts of one call are bounded, fallbacks and delays together.
#[test]
fn attempts_at_one_call_are_bounded_with_fallbacks_included() {
    let ring = |definition: &mut Definition| {
        for number in 0..9 {
            let model = ModelSpec { fallback: Vec::new(), ..definition.models[1].clone() };
            definition.models.insert(name(&format!("x{number}")), model);
        }
        definition.models[0].fallback = (0..9).map(|number| name(&format!("x{number}"))).collect();
    };
    for kind in ["server", "rate_limit", "auth"] {
        for change in [ring as fn(&mut Definition), alone] {
            let mut play = Scenario::grow_as("root / a", change);
            play.run("call a $0.10");
            for _ in 0..20 {
                play.run(&format!("failed #1 {kind}\npass 60s"));
            }
            assert!(attempts(&play) <= limit::ATTEMPTS_MAX as usize, "{kind}: {}", play.log());
            assert!(play.world().call(CallId(1)).is_none(), "{kind}: it ends");
        }
    }
}

/// A busy provider is retried, but the last attempt uses the fallback if there is one.
#[test]
fn the_last_attempt_at_a_busy_model_goes_to_its_fallback() {
    let fail = "failed #1 rate_limit after=1s\npass 1s\n".repeat(4);
    insta::assert_snapshot!(check("root / a", &format!("call a $0.10\n{fail}")), @"
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    #1 attempt failed: RateLimit, spent nothing
    #1 waiting: backoff until 2000
    #1 started again (2): held $0.10 tokens=100 steps=1 retries=1
    #1 attempt failed: RateLimit, spent retries=1
    #1 waiting: backoff until 3000
    #1 started again (3): held $0.10 tokens=100 steps=1 retries=1
    #1 attempt failed: RateLimit, spent retries=1
    #1 switched: cheap, cap 100
    #1 started again (4): held $0.01 tokens=100 steps=1 retries=1
    #1 ended: failed (RateLimit), spent retries=1
    root idle, spent retries=3
      a idle, spent retries=3
    ");
}

/// Permanent faults end the call at once, with what it used.
#[test]
fn a_fault_that_no_retry_mends_ends_the_call() {
    for kind in ["auth", "invalid", "stopped"] {
        let mut play = Scenario::grow_as("root / a", alone);
        play.run(&format!("call a $0.10\nfailed #1 {kind} $0.01"));
        assert_eq!((attempts(&play), play.world().calls().all().count()), (1, 0), "{kind}");
    }
}

/// A call that we stopped does not fall back either.
#[test]
fn a_call_that_we_stopped_is_not_tried_elsewhere() {
    insta::assert_snapshot!(check("root / a", "call a $0.10\nfailed #1 stopped $0.01"), @"
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    #1 ended: failed (Stopped), spent $0.01 tokens=10
    root idle, spent $0.01 tokens=10
      a idle, spent $0.01 tokens=10
    ");
}

/// A tool is tried again only if it is repeatable.
#[test]
fn a_tool_is_tried_again_only_if_it_is_repeatable() {
    insta::assert_snapshot!(check("root / a", "tool a write\nfailed #1 timeout"), @"
    #1 asked by a
    #1 started: held tool_calls=1
    #1 ended: failed (Timeout), spent tool_calls=1
    root idle, spent tool_calls=1
      a idle, spent tool_calls=1
    ");
    let script = "tool a read repeatable\nfailed #1 timeout after=10ms\npass 10ms\ndone #1";
    insta::assert_snapshot!(check("root / a", script), @"
    #1 asked by a
    #1 started: held tool_calls=1
    #1 attempt failed: Timeout, spent tool_calls=1
    #1 waiting: backoff until 1010
    #1 started again (2): held tool_calls=1 retries=1
    #1 ended: done, spent tool_calls=1 retries=1
    root idle, spent tool_calls=2 retries=1
      a idle, spent tool_calls=2 retries=1
    ");
}

/// In a tree without retries left no call is tried again, on any model.
#[test]
fn retries_of_one_branch_are_missing_in_another() {
    let script = "call a $0.10\nfailed #1 server\ndone #1 $0.001\ncall b $0.10\nfailed #2 server";
    insta::assert_snapshot!(check("root retries=1 / a\nroot / b", script), @"
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    #1 attempt failed: Server, spent nothing
    #1 switched: cheap, cap 100
    #1 started again (2): held $0.01 tokens=100 steps=1 retries=1
    #1 ended: done, spent $0.001 tokens=10 steps=1 retries=1
    #2 asked by b
    #2 started: held $0.10 tokens=100 steps=1
    #2 ended: failed (Server), spent nothing
    root idle, spent $0.001 tokens=10 steps=1 retries=1, of retries=1
      a idle, spent $0.001 tokens=10 steps=1 retries=1, of retries=1
      b idle, of retries=1
    ");
}

/// A call that used the last retry itself gives up at once, without a delay.
#[test]
fn a_call_that_used_the_last_retry_gives_up_at_once() {
    let script = "call a $0.10\nfailed #1 server\npass 1s\nfailed #1 server $0.02";
    insta::assert_snapshot!(played("root retries=1 / a", alone, script), @"
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    #1 attempt failed: Server, spent nothing
    #1 waiting: backoff until 1371
    #1 started again (2): held $0.10 tokens=100 steps=1 retries=1
    #1 ended: failed (Server), spent $0.02 tokens=20 retries=1
    root idle, spent $0.02 tokens=20 retries=1, of retries=1
      a idle, spent $0.02 tokens=20 retries=1, of retries=1
    ");
}

/// A waiting retry that loses the last retry to another call is refused as a call; its agent continues.
#[test]
fn a_retry_that_comes_too_late_ends_the_call_and_not_the_agent() {
    let script = "
        call a $0.10
        call b $0.10
        failed #1 rate_limit after=1s
        failed #2 rate_limit after=2s
        pass 1s
        pass 1s
        done #1 $0.10
        call b $0.05";
    insta::assert_snapshot!(check("root retries=1 / a\nroot / b", script), @"
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    #2 asked by b
    #2 started: held $0.10 tokens=100 steps=1
    #1 attempt failed: RateLimit, spent nothing
    #1 waiting: backoff until 2000
    #2 attempt failed: RateLimit, spent nothing
    #2 waiting: backoff until 3000
    #1 started again (2): held $0.10 tokens=100 steps=1 retries=1
    #2 waiting: budget of root
    #1 ended: done, spent $0.10 tokens=100 steps=1 retries=1
    #2 ended: failed (RateLimit), spent nothing
    #3 asked by b
    #3 started: held $0.05 tokens=50 steps=1
    root idle, spent $0.10 tokens=100 steps=1 retries=1, held $0.05 tokens=50 steps=1, of retries=1
      a idle, spent $0.10 tokens=100 steps=1 retries=1, of retries=1
      b running, held $0.05 tokens=50 steps=1, of retries=1
    ");
}

/// L16 (decision part): a fallback that the agent may not call is never called, and lists intersect down the tree.
#[test]
fn a_fallback_outside_the_allowlist_is_never_called() {
    let lists = |definition: &mut Definition| {
        let cheap = definition.models[1].clone();
        definition.models.insert(name("dear"), cheap);
        definition.models[0].fallback = vec![name("cheap"), name("dear")];
        definition.roles[0].caps.models = Allow::only([name("m"), name("cheap")]);
        definition.roles[1].caps.models = Allow::only([name("m"), name("dear")]);
    };
    for failure in ["failed #1 server", "failed #1 auth", "failed #1 rate_limit", "open m\ncall a $0.10"] {
        let mut play = Scenario::grow_as("root / a", lists);
        let recorded = effects(&mut play, &format!("call a $0.10\n{failure}\npass 60s\n{failure}\npass 60s"));
        let models = |effect: &Effect| match effect {
            Effect::CallModel { model, .. } => Some(model.to_string()),
            Effect::CallTool { .. } | Effect::StopCalls { .. } | Effect::SetTimer { .. } => None,
        };
        assert!(recorded.iter().filter_map(models).all(|model| model == "m"), "{failure}");
        assert!(!events(&play).iter().any(|event| matches!(event, Event::CallSwitched { .. })), "{failure}");
    }
}

/// L16 (decision part): a fallback that both lists allow is still used.
#[test]
fn a_fallback_inside_every_allowlist_is_called() {
    let lists = |definition: &mut Definition| {
        definition.roles[0].caps.models = Allow::only([name("free"), name("m"), name("cheap")]);
        definition.roles[1].caps.models = Allow::only([name("m"), name("cheap")]);
    };
    insta::assert_snapshot!(played("root / a", lists, "call a $0.10\nfailed #1 server"), @"
    #1 asked by a
    #1 started: held $0.10 tokens=100 steps=1
    #1 attempt failed: Server, spent nothing
    #1 switched: cheap, cap 100
    #1 started again (2): held $0.01 tokens=100 steps=1 retries=1
    root idle, held $0.01 tokens=100 steps=1 retries=1
      a running, held $0.01 tokens=100 steps=1 retries=1
    ");
}

/// An open breaker sends calls to the fallback, including those in line; without a fallback they are refused.
#[test]
fn an_open_breaker_sends_calls_elsewhere_or_refuses_them() {
    let script = "call a $0.60\ncall a $0.60\nopen m\ncall a $0.10\nclose m\ncall a $0.10";
    insta::assert_snapshot!(check("root $1.00 / a", script), @"
    #1 asked by a
    #1 started: held $0.60 tokens=600 steps=1
    #2 asked by a
    #2 waiting: budget of a
    breaker of m: Open
    #2 switched: cheap, cap 600
    #2 started: held $0.06 tokens=600 steps=1
    #3 asked by a
    #3 switched: cheap, cap 100
    #3 started: held $0.01 tokens=100 steps=1
    breaker of m: Closed
    #4 asked by a
    #4 started: held $0.10 tokens=100 steps=1
    root idle, held $0.77 tokens=1400 steps=4, of $1.00
      a running, held $0.77 tokens=1400 steps=4, of $1.00
    ");
    insta::assert_snapshot!(played("root $1.00 / a", alone, script), @"
    #1 asked by a
    #1 started: held $0.60 tokens=600 steps=1
    #2 asked by a
    #2 waiting: budget of a
    breaker of m: Open
    #2 ended: refused (model `m` is not available: its breaker is open; try another model or later), spent nothing
    #3 asked by a
    #3 ended: refused (model `m` is not available: its breaker is open; try another model or later), spent nothing
    breaker of m: Closed
    #4 asked by a
    #4 started: held $0.10 tokens=100 steps=1
    root idle, held $0.70 tokens=700 steps=2, of $1.00
      a running, held $0.70 tokens=700 steps=2, of $1.00
    ");
}

/// A rate limit blocks calls to that model until it ends, and no longer; other models are not affected.
#[test]
fn a_rate_limited_model_is_waited_for_until_then() {
    let script = "
        rate m 5s
        call a $0.10
        call a $0.10 model=cheap
        send root hello
        pass 4999ms
        pass 1ms";
    insta::assert_snapshot!(check("root $1.00 / a", script), @"
    m limited until 6000
    #1 asked by a
    #1 waiting: rate until 6000
    #2 asked by a
    #2 started: held $0.01 tokens=100 steps=1
    message from a person to root: hello
    #1 started: held $0.10 tokens=100 steps=1
    root idle, held $0.11 tokens=200 steps=2, of $1.00
      a running, held $0.11 tokens=200 steps=2, of $1.00
    ");
}

/// A limit that is lifted early or moved takes effect.
#[test]
fn a_rate_limit_that_moves_is_followed() {
    insta::assert_snapshot!(check("root / a", "rate m 5s\ncall a $0.10\nrate m 9s\npass 5s\nrate m 0s"), @"
    m limited until 6000
    #1 asked by a
    #1 waiting: rate until 6000
    m limited until 10000
    #1 waiting: rate until 10000
    m limited until 6000
    #1 started: held $0.10 tokens=100 steps=1
    root idle, held $0.10 tokens=100 steps=1
      a running, held $0.10 tokens=100 steps=1
    ");
}

/// The delay of a call is the same in every replay, and different calls have different delays.
#[test]
fn pauses_are_bounded_and_spread_without_randomness() {
    let server = Fault::new(FaultKind::Server);
    let ms = |attempt, call| match after(&server, attempt, TreeId::new([7; 16]), CallId(call)) {
        Retry::After { ms } => ms,
        Retry::No => panic!("attempt {attempt} may be repeated"),
    };
    for call in 1..100 {
        assert!((250..=500).contains(&ms(1, call)) && (1_000..=2_000).contains(&ms(3, call)));
        assert_eq!(ms(2, call), ms(2, call));
    }
    assert!((1..100).any(|call| ms(1, call) != ms(1, call + 1)), "they are spread");
    assert_eq!(after(&server, limit::ATTEMPTS_MAX, TreeId::new([7; 16]), CallId(1)), Retry::No);
}

/// After a restart a model call is settled at its full hold and takes a new one, which may be refused.
#[test]
fn a_lost_model_call_is_paid_in_full_and_tried_with_a_new_hold() {
    let script = "call a $0.40\nlost #1\nlost #1";
    insta::assert_snapshot!(check("root $9.00 / a $1.00", script), @"
    #1 asked by a
    #1 started: held $0.40 tokens=400 steps=1
    #1 attempt failed: lost, spent $0.40 tokens=400, presumed $0.40 tokens=400
    #1 started again (2): held $0.40 tokens=400 steps=1
    #1 attempt failed: lost, spent $0.40 tokens=400, presumed $0.40 tokens=400
    #1 ended: refused (cost ceiling of `a`: limit $1.00, spent $0.80, held $0.00, asked $0.40: answer with what you have, or ask for less), spent nothing
    a ended: exhausted (cost of a), spent $0.80 tokens=800
    root idle, spent $0.80 tokens=800, of $9.00
      a exhausted, spent $0.80 tokens=800
    ");
}

/// After a restart a repeatable effect starts again under the same key and hold; any other tool is lost.
#[test]
fn a_lost_effect_is_repeated_only_if_that_is_the_same_as_once() {
    let script = "tool a read repeatable $0.10\nlost #1\ntool a write $0.10\nlost #2";
    insta::assert_snapshot!(check("root $1.00 / a", script), @"
    #1 asked by a
    #1 started: held $0.10 tool_calls=1
    #1 resumed
    #2 asked by a
    #2 started: held $0.10 tool_calls=1
    #2 ended: lost, spent $0.10 tool_calls=1, presumed $0.10
    root idle, spent $0.10 tool_calls=1, held $0.10 tool_calls=1, of $1.00
      a running, spent $0.10 tool_calls=1, held $0.10 tool_calls=1, of $1.00
    ");
    let mut play = Scenario::grow("root $1.00 / a");
    let first = effects(&mut play, "tool a read repeatable");
    let second = effects(&mut play, "lost #1");
    assert_eq!(first, second, "the same attempt under the same key");
}

/// The consequence of each kind of fault, with and without a fallback: retry, fall back or give up.
#[test]
fn every_kind_of_fault_has_its_decision() {
    let kinds = [
        "rate_limit",
        "server",
        "overloaded",
        "timeout",
        "cut",
        "auth",
        "out_of_credit",
        "invalid",
        "context_too_long",
        "content_filter",
        "declined",
        "stopped",
    ];
    let next = |kind: &str, change: fn(&mut Definition)| {
        let log = played("root $1.00 / a", change, &format!("call a $0.10\nfailed #1 {kind}"));
        let follows = log.lines().find_map(|line| {
            let words =
                [("waiting: backoff", "again"), ("switched", "elsewhere"), ("ended: failed", "not at all")];
            words.into_iter().find(|(text, _)| line.contains(text)).map(|(_, word)| word)
        });
        follows.unwrap_or("nothing").to_owned()
    };
    let keep = |_: &mut Definition| {};
    let table: Vec<String> =
        kinds.iter().map(|kind| format!("{kind}: {}, {}", next(kind, keep), next(kind, alone))).collect();
    insta::assert_snapshot!(table.join("\n"), @"
    rate_limit: again, again
    server: elsewhere, again
    overloaded: elsewhere, again
    timeout: elsewhere, again
    cut: elsewhere, again
    auth: elsewhere, not at all
    out_of_credit: elsewhere, not at all
    invalid: elsewhere, not at all
    context_too_long: elsewhere, not at all
    content_filter: elsewhere, not at all
    declined: elsewhere, not at all
    stopped: not at all, not at all
    ");
}
