//! Trees and events as text, for snapshots that people read.

use std::fmt::{self, Write};

use spinney_kernel::budget::{Amounts, Ceilings, Resource};
use spinney_kernel::definition::{ApprovalScope, SubjectPattern};
use spinney_kernel::primitives::{Actor, AgentId, Body, ConnectionTotals, Envelope, ToolName, Topic};
use spinney_kernel::record::{
    Adjusted, Clamped, ClockKind, Cut, Event, Exit, FollowupStart, ModelCall, NodeEnd, NodeStart, Outcome,
    Restored, Span, Spawned, StartOf, Summary, Work, WrapUpReason,
};
use spinney_kernel::world::{AgentView, World};

/// The tree, one agent per line, children below their parents.
pub(crate) fn tree(world: &World) -> String {
    let mut text = String::new();
    if let Some(halt) = world.halted() {
        let _ = writeln!(text, "halted: {} of {}", halt.short.resource, halt.account);
    }
    let mut views: Vec<(Vec<String>, AgentView)> = world
        .agents()
        .all()
        .map(|ix| {
            let path = world.agents().path(ix).iter().map(ToString::to_string).collect();
            (path, world.view(ix))
        })
        .collect();
    views.sort_by(|a, b| a.0.cmp(&b.0));
    for (path, view) in views {
        let indent = "  ".repeat(path.len() - 1);
        let _ = writeln!(text, "{indent}{} {}", view.agent, line(&view));
    }
    text.trim_end().to_owned()
}

fn line(view: &AgentView) -> String {
    let mut parts = vec![view.status.to_string()];
    if !view.spent.is_zero() {
        parts.push(format!("spent {}", amounts(&view.spent)));
    }
    if !view.held.is_zero() {
        parts.push(format!("held {}", amounts(&view.held)));
    }
    if !view.lent.is_zero() {
        parts.push(format!("lent {}", amounts(&view.lent)));
    }
    if !view.overrun.is_zero() {
        parts.push(format!("overrun {}", amounts(&view.overrun)));
    }
    if let Some(limit) = view.limit.filter(|limit| *limit != Ceilings::NONE) {
        parts.push(format!("of {}", limits(&limit)));
    }
    parts.join(", ")
}

fn spawned_text(spawned: &Spawned) -> String {
    let parent = spawned.parent.as_ref().map_or_else(String::new, |parent| format!(" by {parent}"));
    format!("{} spawned{parent}: {}", spawned.agent, limits(&spawned.terms.limit))
}

fn window_set(agent: &AgentId, size: u64, clamped: Option<Clamped>) -> String {
    let below = clamped.map_or_else(String::new, |clamped| format!(" below {}", clamped.parent_size));
    format!("{agent} has a window of {size}{below}")
}

fn shared(spans: &[Span], as_is: bool) -> String {
    format!("{} messages{}", places(spans), if as_is { " as its own" } else { "" })
}

fn instead(spans: &[Span]) -> String {
    match places(spans) {
        0 => String::new(),
        replaced => format!(" instead of {replaced}"),
    }
}

fn places(spans: &[Span]) -> usize {
    Span::places(spans).count()
}

fn summed(work: &Work) -> String {
    match work {
        Work::Model(ModelCall { summary: Some(covers), .. }) => {
            format!("summary of {} ", places(&covers.spans))
        }
        Work::Model(ModelCall { wrap_up: Some(wrap_up), input_tokens, output_cap, .. }) => {
            let cut = wrap_up.cut.as_ref().map_or(0, |cut| places(&cut.drop));
            let why = match &wrap_up.reason {
                WrapUpReason::MaxSteps => "max_steps".to_owned(),
                WrapUpReason::Ceiling { account, short } => format!("{} of {account}", short.resource),
                WrapUpReason::Deadline => "deadline".to_owned(),
            };
            format!("last call ({why}; {input_tokens} in without {cut} messages, {output_cap} out) ")
        }
        Work::Model(_) | Work::Tool(_) | Work::Child(_) | Work::Wait(_) | Work::Question(_) => String::new(),
    }
}

fn cut_text(agent: &AgentId, cut: &Cut, summary: Option<Summary>) -> String {
    let recorded = match summary {
        Some(Summary::By(seq)) => format!(", told by the summary in event {}", seq.0),
        Some(Summary::Not(why)) => format!(", no summary: {why:?}"),
        None => String::new(),
    };
    format!("{agent} cut: {} messages{recorded}", places(&cut.drop))
}

fn again(start: &NodeStart) -> String {
    let of = match start.of {
        StartOf::Node => "",
        StartOf::Item => "an item of ",
        StartOf::Undo => "to undo ",
    };
    if start.attempt == 0 { of.to_owned() } else { format!("attempt {} at {of}", start.attempt + 1) }
}

fn waiting(start: &NodeStart) -> String {
    let names: Vec<String> = start.waits_for.iter().map(|name| format!("shared.{name}")).collect();
    if names.is_empty() { String::new() } else { format!(", which waits for {}", names.join(", ")) }
}

fn node_end(end: &NodeEnd) -> String {
    match end {
        NodeEnd::Succeeded { winner: Some(winner), .. } => format!("succeeded by member {winner}"),
        NodeEnd::Failed { error, retried } => {
            format!("failed ({}){}", error.code, if *retried { ", again" } else { "" })
        }
        NodeEnd::Skipped { why } => format!("skipped ({why:?})"),
        NodeEnd::Succeeded { .. } | NodeEnd::Cancelled => end.as_str().to_owned(),
    }
}

/// One event, as short as possible.
#[expect(clippy::too_many_lines, reason = "one arm for each event")]
pub(crate) fn event(event: &Event) -> String {
    match event {
        Event::TreeStarted { rules, definition, .. } => {
            format!("tree started: {} (rules {rules})", definition.name)
        }
        Event::AgentSpawned(spawned) => spawned_text(spawned),
        Event::WindowSet { agent, size, clamped, .. } => window_set(agent, *size, *clamped),
        Event::ContextShared { from, to, spans, as_is, replaces } => {
            format!("{to} told {} of {from}{}", shared(spans, *as_is), instead(replaces))
        }
        Event::ThreadJoined { agent, of, bound } => thread(agent, "reads", of, *bound),
        Event::ThreadLeft { agent, of, bound } => thread(agent, "left", of, *bound),
        Event::ContextCut { agent, cut, shortened: Some(shortened), .. } => {
            let (call, tokens) = (shortened.call, shortened.input_tokens);
            format!("{agent} cut: {} messages, {call} has {tokens} in", places(&cut.drop))
        }
        Event::ContextCut { agent, cut, summary, shortened: None, .. } => cut_text(agent, cut, *summary),
        Event::ContextRestored(restored) => restored_text(restored),
        Event::GraphReplanned { agent, change, .. } => format!("{agent} is replanned: {change:?}"),
        Event::GraphStarted { agent, .. } => format!("{agent} runs a graph"),
        Event::NodeStarted(start) => {
            format!("{} begins {}{}{}", start.graph, again(start), start.name, waiting(start))
        }
        Event::NodeEnded { graph, name, end, .. } => format!("{graph} ends {name}: {}", node_end(end)),
        Event::AgentPaused { agent } => format!("{agent} paused"),
        Event::AgentUnpaused { agent } => format!("{agent} unpaused"),
        Event::AgentRedirected { agent, instruction, .. } => format!("{agent} redirected: {instruction}"),
        Event::AgentEnding { agent, exit, .. } => format!("{agent} ending: {}", exit_text(exit)),
        Event::AgentEnded { agent, exit, spent, .. } => {
            format!("{agent} ended: {}, spent {}", exit_text(exit), amounts(spent))
        }
        Event::CallAsked { call, agent, work } => format!("{call} {}asked by {agent}", summed(work)),
        Event::WaitStarted { call, agent, .. } => format!("{call} {agent} waits"),
        Event::QuestionAsked { call, agent, question, .. } => {
            format!("{call} {agent} asks: {}", question.text)
        }
        Event::CallWaiting { call, why, account, alarm } => {
            let of = account.as_ref().map_or_else(String::new, |account| format!(" of {account}"));
            let until = alarm.map_or_else(String::new, |alarm| format!(" until {}", alarm.at.0));
            format!("{call} waiting: {why}{of}{until}")
        }
        Event::CallStarted { call, attempt, held, .. } => {
            let again = if *attempt > 1 { format!(" again ({attempt})") } else { String::new() };
            format!("{call} started{again}: held {}", amounts(held))
        }
        Event::FirstToken { call } => format!("{call} first token"),
        Event::CallResumed { call } => format!("{call} resumed"),
        Event::CallSwitched { call, model, output_cap } => {
            format!("{call} switched: {model}, cap {output_cap}")
        }
        Event::AttemptFailed { call, fault, spent, overrun, presumed } => {
            let what = fault.as_ref().map_or_else(|| "lost".to_owned(), |fault| format!("{:?}", fault.kind));
            format!("{call} attempt failed: {what}, spent {}", settled(spent, overrun, presumed))
        }
        Event::ConnectionEnded { call, connection } => format!("{call} connection to {connection}"),
        Event::SessionNamed { call, session } => format!("{call} is session {session}"),
        Event::ConnectionsOmitted { call, totals } => more_connections(call, totals),
        Event::ProgramConnected { agent, connection } => format!("{agent} connection to {connection}"),
        Event::ProgramConnectionsOmitted { agent, totals } => more_connections(agent, totals),
        Event::FollowupStarted { call, of, start } => match start {
            FollowupStart::Session(session) => format!("{call} continues {of} in session {session}"),
            FollowupStart::Anew(why) => format!("{call} continues {of} anew: {why:?}"),
        },
        Event::CallHeldBack { call, by, until } => format!("{call} held back by {by} until {}", until.0),
        Event::CallEnded { call, outcome, spent, overrun, presumed, .. } => {
            format!("{call} ended: {}, spent {}", outcome_text(outcome), settled(spent, overrun, presumed))
        }
        Event::ToolAnswered { agent, ask, body, is_error, .. } => {
            let how = if *is_error { "error" } else { "answer" };
            format!("{agent} tool {ask} {how}: {}", body.text)
        }
        Event::ValueWritten { name, value, by, version, .. } => {
            format!("value {name} version {version} by {by}: {}", value.text)
        }
        Event::ValuesCleared { count } => format!("{count} shared values cleared"),
        Event::Charged { agent, amounts: charged, .. } => format!("{agent} charged {}", amounts(charged)),
        Event::MessageSent { from, to, body, .. } => message(from, to, body),
        Event::MessagePublished { from, body, envelope } => published(from, &body.text, envelope),
        Event::CheckpointMade { agent, name, kind, .. } => {
            format!("{agent} checkpoint {name}, {}", kind.as_str())
        }
        Event::TreeBranched(branched) => {
            format!("tree branched after event {}: {}", branched.at.0, limits(&branched.terms.limit))
        }
        Event::TreeHalted { account, short, .. } => format!("tree halted: {} of {account}", short.resource),
        Event::TreeUnhalted => "tree unhalted".to_owned(),
        Event::TreeSuspended => "tree suspended".to_owned(),
        Event::TreeContinued => "tree continued".to_owned(),
        Event::LimitRaised { agent, add, add_ms: 0 } => format!("{agent} raised by {}", amounts(add)),
        Event::LimitRaised { agent, add, add_ms } => {
            format!("{agent} raised by {} and {add_ms}ms", amounts(add))
        }
        Event::TreeAdjusted(changed) => adjusted(changed),
        Event::TreeSealed { kind, .. } => format!("sealed {kind:?}"),
        Event::TreeUnsealed => "unsealed".to_owned(),
        Event::ClockSet { agent, clock, left_ms, alarm, .. } => {
            let (clock, runs) = (clock_word(*clock), if alarm.is_some() { "runs" } else { "stands" });
            format!("{agent}'s {clock} {runs}: {left_ms}ms left")
        }
        Event::WrapUpStarted { agent, stops } => {
            format!("{agent} wraps up{}", if *stops { ", what it waits for is stopped" } else { "" })
        }
        Event::ApprovalRemembered { agent, tool, scope, pattern } => always(agent, tool, *scope, pattern),
        Event::RepeatsNoticed { agent, tool, count, count_max } => {
            format!("{agent} told: {tool} {count} times in a row, the end is at {count_max}")
        }
        Event::ModelAdded { model, .. } => format!("model {model} added"),
        Event::BreakerChanged { model, breaker } => format!("breaker of {model}: {breaker:?}"),
        Event::RateLimited { model, until } => format!("{model} limited until {}", until.0),
    }
}

fn message(from: &Actor, to: &AgentId, body: &Body) -> String {
    format!("message from {from} to {to}: {}", body.text)
}

fn more_connections(of: &impl fmt::Display, totals: &ConnectionTotals) -> String {
    format!("{of} {} more connections, {} of them refused", totals.count, totals.refused)
}

fn published(from: &Actor, text: &str, envelope: &Envelope) -> String {
    let topic = envelope.topic.as_ref().map_or("", Topic::as_str);
    format!("message from {from} about {topic}: {text}")
}

/// The outcome of a call.
fn settled(spent: &Amounts, overrun: &Amounts, presumed: &Amounts) -> String {
    let part = |name: &str, part: &Amounts| match part.is_zero() {
        true => String::new(),
        false => format!(", {name} {}", amounts(part)),
    };
    format!("{}{}{}", amounts(spent), part("overrun", overrun), part("presumed", presumed))
}

fn exit_text(exit: &Exit) -> String {
    match exit {
        Exit::Completed => "completed".to_owned(),
        Exit::Exhausted { account, short } => format!("exhausted ({} of {account})", short.resource),
        Exit::Failed { error } => format!("failed ({})", error.code),
        Exit::Cancelled { reason } => format!("cancelled ({reason})"),
    }
}

fn outcome_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done { .. } => "done".to_owned(),
        Outcome::Failed { fault } => format!("failed ({:?})", fault.kind),
        Outcome::Lost => "lost".to_owned(),
        Outcome::Cancelled => "cancelled".to_owned(),
        Outcome::Refused { refusal } => format!("refused ({refusal})"),
        Outcome::Approved => "approved".to_owned(),
        Outcome::Answered { answer, is_default: false } => format!("answered {}", answer.text),
        Outcome::Answered { answer, is_default: true } => format!("answered by default {}", answer.text),
        Outcome::Children { ended } => {
            let ended: Vec<String> = ended.iter().map(|end| format!("{} {}", end.agent, end.state)).collect();
            format!("children {}", ended.join(", "))
        }
        Outcome::Message { seq } => format!("message {}", seq.0),
        Outcome::NobodyLeft => "nobody left".to_owned(),
        Outcome::Expired { ended } => format!("expired, {} ended", ended.len()),
    }
}

/// `$0.20 tokens=200 steps=1`, or `nothing`.
fn adjusted(adjusted: &Adjusted) -> String {
    let Adjusted { agent, limit, parallel_max, on_low, timeout_ms, sources } = adjusted;
    let mut changed = vec![limits(limit)];
    changed.extend(parallel_max.map(|parallel| format!("parallel={parallel}")));
    changed.extend(on_low.as_ref().map(|on_low| format!("on_low={on_low:?}")));
    changed.extend(timeout_ms.map(|ms| format!("timeout={ms}ms")));
    changed.extend(sources.iter().map(|file| format!("source={}", file.name)));
    format!("{agent} adjusted: {}", changed.join(" "))
}

fn amounts(amounts: &Amounts) -> String {
    let shown: Vec<String> = Resource::ALL
        .into_iter()
        .filter(|resource| amounts.get(*resource) > 0)
        .map(|resource| one(resource, amounts.get(resource)))
        .collect();
    if shown.is_empty() { "nothing".to_owned() } else { shown.join(" ") }
}

fn limits(limits: &Ceilings) -> String {
    let shown: Vec<String> = Resource::ALL
        .into_iter()
        .filter_map(|resource| limits.get(resource).map(|amount| one(resource, amount)))
        .collect();
    if shown.is_empty() { "no ceiling".to_owned() } else { shown.join(" ") }
}

fn one(resource: Resource, amount: u64) -> String {
    match resource {
        Resource::Cost => resource.show(amount),
        Resource::Tokens | Resource::Steps | Resource::ToolCalls | Resource::Retries => {
            format!("{resource}={amount}")
        }
    }
}

fn thread(agent: &AgentId, verb: &str, of: &AgentId, bound: Option<u64>) -> String {
    let bound = bound.map_or_else(String::new, |tokens| format!(", at most {tokens} tokens"));
    format!("{agent} {verb} thread of {of}{bound}")
}

fn restored_text(restored: &Restored) -> String {
    let Restored { agent, from, at, standing, unanswered, stays, cancelled, .. } = restored;
    let messages = standing.window.headers.len();
    format!(
        "{agent} is what {from} was at {}: {messages} messages, {} unanswered, {} calls stay, {} children go",
        at.0,
        unanswered.len(),
        stays.len(),
        cancelled.len()
    )
}

const fn clock_word(clock: ClockKind) -> &'static str {
    match clock {
        ClockKind::Timeout => "timeout",
        ClockKind::Active => "active time",
    }
}

fn always(agent: &AgentId, tool: &ToolName, scope: ApprovalScope, pattern: &SubjectPattern) -> String {
    format!("{agent} may always call {tool} with {pattern}, for {}", scope.as_str())
}
