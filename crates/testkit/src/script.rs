//! The lines of a script. Agents are named as in the fixture, calls by their number.
//!
//! ```text
//! call a $0.20 [model=m]         a model call that costs at most $0.20 (200 tokens)
//! tool a read_file [$0.01] [repeatable]
//! done #1 $0.15 [says=other] · failed #1 server [$0.05] [after=200ms] · lost #1
//! said #1 words | tool {"args":…} | tool …   an agent that takes turns: its model answers
//! spawn a b as ROLE [terms…]     b below a
//! charge a $0.10 · raise a $1.00 (or tokens=…)
//! send a hello · wait a for b c [any] · wait a message · ask a Which? [default=x] [timeout=5s] · answer #3 yes
//! finish a done · fail a broken · cancel a · pause a · unpause a · redirect a elsewhere [stop]
//! open m · close m · rate m 5s   breaker and rate limit of a model
//! suspend [was-pause] · continue  no process runs the tree; one does again
//! pass 5s                        time goes by and timers that are due fire
//! ```

use spinney_kernel::budget::{Amounts, Resource, Usage, Used, nanos_from_usd};
use spinney_kernel::definition::{ApprovalScope, OnLost, RememberedApproval, SubjectPattern};
use spinney_kernel::primitives::{Body, CallId, Fault, FaultKind, Running, TimerId};
use spinney_kernel::record::{
    BreakerState as Gate, Failure, FailureCode, OnTimeout, Question, Sources, StopReason, ToolAsk, WaitFor,
    WaitNeed, Work,
};
use spinney_kernel::rules::report::{
    Breaker, Continued, Done, Failed, Lost, Rate, RateKind, Report, Suspended, Timer,
};
use spinney_kernel::rules::request::{
    Answer, Ask, Cancel, Charge, Fail, Finish, Hold, HoldFor, Pause, Raise, Redirect, Request, Send, Spawn,
    Unpause, Wait,
};
use spinney_kernel::world::CallStage;

use crate::Scenario;
use crate::fixture::{self, NANOS_PER_TOKEN, millis, number, parse};

/// Runs one line of a script.
pub(crate) fn run_line(play: &mut Scenario, line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let Some((verb, rest)) = words.split_first() else { return };
    match *verb {
        "pass" => pass(play, millis(rest.first().copied().unwrap_or_default())),
        "said" | "cut" => {
            let stop = if *verb == "cut" { StopReason::OutputCap } else { StopReason::End };
            let report = said(play, line, stop);
            play.report(report);
        }
        "suspend" => {
            let was_pause = rest.contains(&"was-pause");
            play.report(Report::Suspended(Suspended { was_pause }));
        }
        "continue" => {
            play.report(Report::Continued(Continued {}));
        }
        "done" | "failed" | "lost" | "open" | "close" | "rate" => {
            let report = report(play, verb, rest);
            play.report(report);
        }
        // The log has the refusal.
        _ => drop(play.ask(request(verb, rest))),
    }
}

/// Advances time and fires due timers, the earliest first.
fn pass(play: &mut Scenario, ms: u64) {
    play.pass(ms);
    while let Some(timer) = due(play) {
        play.report(Report::Timer(Timer { timer }));
    }
}

fn due(play: &Scenario) -> Option<TimerId> {
    let due = play.world().alarms().filter(|alarm| alarm.at <= play.now());
    due.min_by_key(|alarm| (alarm.at, alarm.timer)).map(|alarm| alarm.timer)
}

fn request(verb: &str, rest: &[&str]) -> Request {
    let (name, rest) = rest.split_first().unwrap_or_else(|| panic!("`{verb}` of whom?"));
    let agent = || parse(name);
    let said = || rest.join(" ");
    match verb {
        "call" | "tool" => Request::Hold(Hold { agent: agent(), effect: hold_for(verb, rest) }),
        "spawn" => Request::Spawn(spawn(name, rest)),
        "charge" => Request::Charge(Charge { agent: agent(), amounts: amounts(rest), note: String::new() }),
        "raise" => {
            let add_ms = option(rest, "time").map_or(0, millis);
            Request::Raise(Raise { agent: agent(), add: amounts(rest), add_ms })
        }
        "send" => Request::Send(Send::plain(agent(), Body::text(said()))),
        "wait" => Request::Wait(Wait { agent: agent(), wait: wait_for(rest), timeout_ms: timeout(rest) }),
        "ask" => Request::Ask(Ask { agent: agent(), question: question(rest), timeout_ms: timeout(rest) }),
        "answer" => Request::Answer(answer(call_id(name), &said())),
        "finish" => Request::Finish(Finish { agent: agent(), result: Body::text(said()) }),
        "fail" => {
            let error =
                Failure { code: FailureCode::from_text(&said()), message: "it went wrong".to_owned() };
            Request::Fail(Fail { agent: agent(), error, partial: None })
        }
        "pause" => Request::Pause(Pause { agent: agent() }),
        "unpause" => Request::Unpause(Unpause::now(agent())),
        "cancel" => Request::Cancel(Cancel { agent: agent(), reason: said() }),
        "redirect" => Request::Redirect(Redirect {
            agent: agent(),
            instruction: said(),
            tokens: None,
            running: if rest.contains(&"stop") { Running::Stops } else { Running::Finishes },
        }),
        _ => panic!("`{verb}` is no command"),
    }
}

fn hold_for(verb: &str, rest: &[&str]) -> HoldFor {
    let cost = rest.iter().find(|word| word.starts_with('$')).map_or(0, |word| nanos(word));
    if verb == "call" {
        let model = option(rest, "model").map(parse);
        return HoldFor::Model { model, input_tokens: 0, output_cap: Some(cost / NANOS_PER_TOKEN) };
    }
    let lost = if rest.contains(&"repeatable") { OnLost::Repeatable } else { OnLost::Presumed };
    HoldFor::Tool {
        tool: parse(rest.first().copied().unwrap_or("tool")),
        args: String::new(),
        cost_nanos_max: cost,
        lost,
    }
}

fn spawn(parent: &str, rest: &[&str]) -> Spawn {
    let (name, rest) = rest.split_first().unwrap_or_else(|| panic!("spawn whom?"));
    let (role, terms) = match rest {
        ["as", role, terms @ ..] => (*role, terms),
        terms => (*name, terms),
    };
    let (budget, collect) = fixture::budget(&terms.join(" "));
    Spawn { id: Some(parse(name)), budget, collect, ..Scenario::spawn(parent, role) }
}

fn wait_for(rest: &[&str]) -> WaitFor {
    if rest.first() == Some(&"message") {
        return WaitFor::Message;
    }
    let names = rest.iter().filter(|word| !["for", "any"].contains(word) && !word.contains('='));
    let need = if rest.contains(&"any") { WaitNeed::Any } else { WaitNeed::All };
    WaitFor::Children { agents: names.map(|name| parse(name)).collect(), need, sources: Sources::LeftOut }
}

fn question(rest: &[&str]) -> Question {
    let said: Vec<&str> =
        rest.iter().copied().filter(|word| !word.contains('=') && *word != "cancel").collect();
    let on_timeout = match option(rest, "default") {
        Some(answer) => OnTimeout::answer(answer),
        None if rest.contains(&"cancel") => OnTimeout::Cancel,
        None => OnTimeout::Fail,
    };
    Question::new(said.join(" "), on_timeout)
}

fn report(play: &Scenario, verb: &str, rest: &[&str]) -> Report {
    let first = rest.first().copied().unwrap_or_default();
    match verb {
        "open" => Report::Breaker(Breaker { model: parse(first), breaker: Gate::Open }),
        "close" => Report::Breaker(Breaker { model: parse(first), breaker: Gate::Closed }),
        "rate" | "window" => {
            let until = play.now().after_ms(millis(rest.get(1).copied().unwrap_or("1s")));
            let cause = if verb == "rate" { RateKind::Pause } else { RateKind::Window };
            Report::Rate(Rate { model: parse(first), until, cause })
        }
        _ => effect_report(play, verb, call_id(first), rest),
    }
}

fn effect_report(play: &Scenario, verb: &str, call: CallId, rest: &[&str]) -> Report {
    let attempt = play.world().call(call).map_or(1, |call| call.attempt);
    let used = used(play, call, rest);
    match verb {
        "done" => {
            Report::Done(Done::new(call, attempt, used, Body::text(option(rest, "says").unwrap_or("ok"))))
        }
        "lost" => Report::Lost(Lost { call, attempt }),
        _ => {
            let kind = fault_kind(rest.get(1).copied().unwrap_or("server"));
            let retry_after_ms = option(rest, "after").map(millis);
            Report::Failed(Failed {
                call,
                attempt,
                fault: Fault { retry_after_ms, ..Fault::new(kind) },
                used,
            })
        }
    }
}

/// A model's answer (`cut` if its output cap ends it), with a requested tool after each `|`.
fn said(play: &Scenario, line: &str, stop: StopReason) -> Report {
    let mut parts = line.split('|').map(str::trim);
    let words: Vec<&str> = parts.next().unwrap_or_default().split_whitespace().collect();
    let call = call_id(words.get(1).copied().unwrap_or_default());
    let asks = parts.enumerate().map(|(number, part)| {
        let (tool, args) = part.split_once(' ').unwrap_or((part, "{}"));
        let (id, tool, args) = (format!("c{number}"), tool.to_owned(), args.to_owned());
        ToolAsk { id, tool, args, tokens: None, told_tokens: None }
    });
    let asks = asks.collect();
    let attempt = play.world().call(call).map_or(1, |call| call.attempt);
    let text = words.get(2..).unwrap_or_default().join(" ");
    let used = Used::Tokens(Usage { output: text.len() as u64, ..Usage::default() });
    let body = Body::text(text);
    Report::Done(Done { asks, stop, ..Done::new(call, attempt, used, body) })
}

/// A model call reports tokens, a tool its own cost; `?` means unknown.
fn used(play: &Scenario, call: CallId, rest: &[&str]) -> Used {
    if rest.contains(&"?") {
        return Used::Unknown;
    }
    let cost = rest.iter().find(|word| word.starts_with('$')).map_or(0, |word| nanos(word));
    match play.world().call(call).map(|call| (&call.work, call.stage)) {
        Some((Work::Model(work), CallStage::Running { .. })) => {
            let per_token =
                if work.model.as_str() == "cheap" { NANOS_PER_TOKEN / 10 } else { NANOS_PER_TOKEN };
            Used::Tokens(Usage { output: cost / per_token, ..Usage::default() })
        }
        _ => Used::CostNanos(cost),
    }
}

fn fault_kind(word: &str) -> FaultKind {
    match word {
        "rate_limit" => FaultKind::RateLimit,
        "server" => FaultKind::Server,
        "timeout" => FaultKind::Timeout,
        "cut" => FaultKind::Cut,
        "auth" => FaultKind::Auth,
        "invalid" => FaultKind::Invalid,
        "overloaded" => FaultKind::Overloaded,
        "out_of_credit" => FaultKind::OutOfCredit,
        "context_too_long" => FaultKind::ContextTooLong,
        "content_filter" => FaultKind::ContentFilter,
        "declined" => FaultKind::Declined,
        "stopped" => FaultKind::Stopped,
        _ => panic!("`{word}` is no kind of fault"),
    }
}

fn amounts(words: &[&str]) -> Amounts {
    words.iter().fold(Amounts::ZERO, |sum, word| match word.split_once('=') {
        Some(("time", _)) => sum,
        Some((name, amount)) => sum.with(fixture::resource(name), number(amount)),
        None => sum.with(Resource::Cost, nanos(word)),
    })
}

fn timeout(rest: &[&str]) -> Option<u64> {
    option(rest, "timeout").map(millis)
}

fn option<'a>(rest: &[&'a str], name: &str) -> Option<&'a str> {
    rest.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn nanos(word: &str) -> u64 {
    nanos_from_usd(word).unwrap_or_else(|error| panic!("{error}"))
}

fn call_id(word: &str) -> CallId {
    CallId(number(word.trim_start_matches('#')))
}

/// An answer, or an approval of more than one call: `always for this agent: git status*`, or
/// `always for this tree, hosts a.org:443, b.org:443`.
fn answer(question: CallId, text: &str) -> Answer {
    let always = [ApprovalScope::Agent, ApprovalScope::Tree].into_iter().find_map(|scope| {
        let rest = text.strip_prefix(&format!("always for {}", scope.as_str()))?;
        let pattern = match rest.strip_prefix(", hosts ") {
            Some(hosts) => SubjectPattern::Hosts(hosts.split(", ").map(parse).collect()),
            None => rest.strip_prefix(": ")?.parse().ok()?,
        };
        Some(RememberedApproval { scope, pattern })
    });
    always.map_or_else(|| Answer::new(question, text), |remember| Answer::always(question, remember))
}
