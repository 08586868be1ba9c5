//! Claude Code and Codex under `spinney exec`, at a ceiling, at a deadline and after a kill.

use std::time::Duration;

use serde_json::Value;
use spinney_kernel::budget::Usage;

use super::exec::{assert_bill, billed, exec};
use super::outside::{BIRCHES, DONE, OAKS, Program, ended, ended_within};
use crate::provider::{Answer, Exchange, Pace, Provider, Question};
use crate::test_folder::TestFolder;

/// How long a program may take that is stopped at its limit: two seconds to start, and it does not try again for long.
const STOPPED_MAX: Duration = Duration::from_secs(30);

/// What the first call of the main agent may cost at most, and a bit.
const fn ceiling(program: Program) -> &'static str {
    match program {
        Program::ClaudeCode => "1.10",
        Program::Codex => "0.55",
    }
}

/// The first answer uses so much of its hold that no other call fits below the ceiling.
fn dear_at_first(program: Program, question: &Question) -> Answer {
    let mut answer = program.answer(question);
    if question.results.is_empty() && answer.calls.len() == 2 {
        answer.usage = match program {
            Program::ClaudeCode => Usage { cache_write_1h: 20_011, output: 31_513, ..answer.usage },
            Program::Codex => Usage { cache_write: 3_001, output: 31_513, ..answer.usage },
        };
    }
    answer
}

/// G11 (by the real programs): at the ceiling everything waits; a raise lets it continue to its end, and the bill is right.
#[test]
fn g11_a_real_program_at_its_ceiling_waits_and_finishes_after_a_raise() {
    for program in Program::ALL {
        let (stage, provider) =
            (TestFolder::new(), Provider::new(move |question| dear_at_first(program, question)));
        let mut playing =
            exec(&stage, program, &provider, &["--budget-usd", ceiling(program), "--on-low", "halt"]);
        playing.until_noted("continue with: ");
        assert_eq!(provider.answered().len(), 1, "{program:?}: only the first call fits");
        let raised = stage.spinney(&["budget", "last", "--add-usd", "20"]);
        assert_eq!(raised.code, Some(0), "{program:?} {raised:?}");
        let ended = ended(playing);
        assert_eq!(ended.code, Some(0), "{program:?} {ended:?}");
        assert!(ended.out.contains(DONE), "{program:?} {ended:?}");
        assert_bill(program, &provider, &stage.spinney(&["events", "last", "--json"]).json());
    }
}

/// With `--on-low halt`, the first call of Claude Code does not fit, and the notice says that a smaller cap would.
#[test]
fn with_whole_caps_the_first_call_of_claude_code_waits_under_a_small_budget() {
    let program = Program::ClaudeCode;
    let (stage, provider) = (TestFolder::new(), Provider::new(move |question| program.answer(question)));
    let mut playing = exec(&stage, program, &provider, &["--budget-usd", "0.65", "--on-low", "halt"]);
    let waits = playing.until_noted("everything waits");
    let short = "a call of `main` needs more than the cost ceiling of `main`: limit $0.65, spent $0.00, held $0.00, asked $0.";
    assert!(waits.contains(short), "{waits}");
    let cap = playing.until_noted("--on-low halt");
    assert_eq!(
        cap,
        "spinney: the call asks for up to 32,000 tokens of output. Without --on-low halt, that is lowered to what fits.\n"
    );
    let asked: f64 =
        waits.split("asked $").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    let raise = playing.until_noted("continue with: ");
    let added: f64 = raise.trim_end().rsplit("--add-usd ").next().unwrap().parse().unwrap();
    assert!(added > asked - 0.66 && added < 1.11 * (asked - 0.65) + 0.01, "{raise} for {asked}");
    assert_eq!(stage.spinney(&["cancel", "last"]).code, Some(0));
    assert_eq!(ended(playing).code, Some(4));
    assert!(provider.answered().is_empty(), "nothing went up");
}

/// G11 (by the real programs): with `--on-limit stop` the program ends and shows our text, and our own line has the command
/// that raises.
#[test]
fn g11_a_real_program_shows_our_text_when_the_limit_stops_it() {
    for program in Program::ALL {
        let (stage, provider) =
            (TestFolder::new(), Provider::new(move |question| dear_at_first(program, question)));
        let options = ["--budget-usd", ceiling(program), "--on-limit", "stop", "--on-low", "halt"];
        let ended = ended_within(exec(&stage, program, &provider, &options), STOPPED_MAX);
        assert_eq!(ended.code, Some(3), "{program:?} {ended:?}");
        assert!(!ended.out.contains(DONE), "{program:?} {ended:?}");
        let screen = format!("{}{}", ended.out, ended.err);
        assert!(screen.contains("a person can raise the budget"), "{program:?} {ended:?}");
        assert!(!ended.out.contains("spinney budget"), "{program:?} {ended:?}");
        assert!(ended.err.contains("raise it with: spinney budget"), "{program:?} {ended:?}");
        assert_eq!(provider.answered().len(), 1, "{program:?}: nothing more was asked");
    }
}

/// A deadline ends a program that waits for an answer, and what the answer may have cost is booked.
#[test]
fn a_deadline_ends_a_real_program_in_the_middle_of_an_answer() {
    for program in Program::ALL {
        let stage = TestFolder::new();
        // Codex would act on a call as soon as it has come, before the answer is whole.
        let provider = Provider::new(move |_| Answer::says(DONE, Usage::default()).at(Pace::Open));
        let ended = ended(exec(&stage, program, &provider, &["--budget-usd", "20", "--timeout", "8s"]));
        assert_eq!(ended.code, Some(1), "{program:?} {ended:?}");
        assert!(ended.err.contains("it took longer than its timeout of 8 seconds"), "{program:?} {ended:?}");
        assert_eq!(provider.answered().len(), 1, "{program:?} {ended:?}");
        let events = stage.spinney(&["events", "last", "--json"]).json();
        let of_type = |kind: &str| events.iter().find(|event| event["type"] == kind).unwrap();
        let (held, spent) = (&of_type("call_started")["held"], &of_type("call_ended")["spent"]);
        assert_eq!(held["cost_nanos"], spent["cost_nanos"], "{program:?}: nobody knows its usage");
    }
}

/// G11 (by the real programs): a killed gateway loses no booking. What was asked for and has no recorded end is booked at its
/// hold, and the same ledger continues with the program started again.
#[test]
fn g11_a_killed_gateway_loses_no_booking_of_a_real_program() {
    for program in Program::ALL {
        let stage = TestFolder::new();
        let provider = Provider::new(move |question| {
            let is_part = question.has(OAKS) || question.has(BIRCHES);
            program.answer(question).at(if is_part { Pace::Late } else { Pace::AtOnce })
        });
        let playing = exec(&stage, program, &provider, &["--budget-usd", "20"]);
        provider.until("a request of each sub-agent", |exchanges| {
            let is_late = |exchange: &&Exchange| {
                exchange.answered.as_ref().is_some_and(|(_, answer)| answer.pace == Pace::Late)
            };
            exchanges.iter().filter(is_late).count() == 2
        });
        playing.kill();
        provider.release();
        let ended = ended(exec(&stage, program, &provider, &["--resume", "last"]));
        assert_eq!(ended.code, Some(0), "{program:?} {ended:?}");
        assert!(ended.out.contains(DONE), "{program:?} {ended:?}");

        let events = stage.spinney(&["events", "last", "--json"]).json();
        let of_type = |kind: &'static str| events.iter().filter(move |event| event["type"] == kind);
        let held = |call: &Value| {
            let started = of_type("call_started").find(|event| event["call"] == *call).unwrap();
            started["held"]["cost_nanos"].as_u64().unwrap()
        };
        let spent = |event: &Value| event["spent"]["cost_nanos"].as_u64().unwrap_or_default();
        let presumed = of_type("call_ended").filter(|event| spent(event) == held(&event["call"])).count();
        assert!(presumed >= 2, "{program:?}: {presumed} calls have no recorded end");
        let booked: u64 = of_type("call_ended").chain(of_type("attempt_failed")).map(spent).sum();
        let billed: u64 = billed(program, &provider).values().sum();
        assert!(booked >= billed, "{program:?}: {booked} booked, {billed} billed");
        let verified = stage.spinney(&["replay", "last", "--verify"]);
        assert_eq!(verified.code, Some(0), "{verified:?}");
    }
}
