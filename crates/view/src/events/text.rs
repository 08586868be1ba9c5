//! Each event as text. Important ones are marked; the rest is for people who want every detail.

use spinney_kernel::budget::Resource;
use spinney_kernel::context::CallPurpose;
use spinney_kernel::definition::{ApprovalScope, Graph, ModelSpec, OnLow, Refusal, SubjectPattern};
use spinney_kernel::primitives::{
    Actor, AgentId, Body, CallId, Category, CheckpointKind, CheckpointName, Envelope, Fault, Millis,
    ModelName, SealKind, ToolName, Topic, TraceParent, ValueName, grouped,
};
use spinney_kernel::record::{
    Adjusted, Attachment, Branched, BreakerState, ChildEnd, Clamped, ClockKind, Event, FollowupStart, HeldBy,
    LeftOut, ModelCall, NodeEnd, NodeStart, Outcome, PlanChange, Question, Restored, Skip, Span, Spawned,
    StartOf, StopReason, Summary, ToolCall, WaitFor, WaitNeed, WaitReason, Work,
};

use super::connections::{Connecting, connection_ended, connections_omitted};
use super::names::EventNames;
use crate::approval::ShownApproval;
use crate::spent::{Spent, output_tokens};
use crate::wording::{LINE_CHARS_MAX, counted, more, one_line, short_id};

/// An event as a sentence about the agent that it concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventText {
    /// Without the agent's name.
    pub text: String,
    /// For whom it is.
    pub weight: EventWeight,
}

/// How important an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventWeight {
    /// For everyone who follows a tree.
    Main,
    /// For people who look for something.
    Detail,
}

pub(super) fn main_line(text: String) -> EventText {
    EventText { text, weight: EventWeight::Main }
}

pub(super) fn detail(text: String) -> EventText {
    EventText { text, weight: EventWeight::Detail }
}

pub(super) fn short(text: &str) -> String {
    one_line(text, LINE_CHARS_MAX)
}

/// Describes an event. `names` has entered it and not left it yet.
#[expect(clippy::too_many_lines, reason = "one arm for each event")]
pub fn describe(names: &EventNames, event: &Event) -> EventText {
    match event {
        Event::TreeStarted { definition, rules, trace, sources: _ } => {
            tree_started(&definition.name, *rules, *trace)
        }
        Event::AgentSpawned(spawned) => starts(spawned),
        Event::WindowSet { size, clamped, .. } => windowed(*size, *clamped),
        Event::ContextShared { from, spans, as_is, .. } => shared(from, spans, *as_is),
        Event::ThreadJoined { of, bound, .. } => reads("reads", of, *bound),
        Event::ThreadLeft { of, bound, .. } => reads("no longer reads", of, *bound),
        Event::ContextCut { left_out, shortened: Some(_), .. } => shortened(left_out),
        Event::ContextCut { left_out, summary, shortened: None, .. } => cut(left_out, *summary),
        Event::ContextRestored(restored) => back(restored),
        Event::GraphStarted { graph, .. } => graph_started(graph.as_deref()),
        Event::GraphReplanned { change, .. } => replanned(change),
        Event::NodeStarted(start) => node_started(start),
        Event::NodeEnded { name, end, .. } => node_ended(name, end),
        Event::AgentPaused { .. } => main_line("is paused".to_owned()),
        Event::AgentUnpaused { .. } => main_line("continues".to_owned()),
        Event::AgentRedirected { instruction, .. } => {
            main_line(format!("has a new instruction: {}", short(instruction)))
        }
        Event::AgentEnding { exit, .. } => {
            detail(format!("is ending, {}: what it started is being stopped", exit.as_str()))
        }
        Event::AgentEnded { exit, spent, presumed, .. } => {
            let spent = Spent { all: *spent, presumed: *presumed };
            main_line(format!("{}; spent {spent}", one_line(&exit.to_string(), 2 * LINE_CHARS_MAX)))
        }
        Event::WaitStarted { wait, .. } => main_line(waits(wait)),
        Event::QuestionAsked { call, question, .. } if question.is_after_answer => {
            main_line(format!("waits for what a person says next (question {})", call.0))
        }
        Event::QuestionAsked { call, question, .. } => asks_a_person(*call, question),
        Event::ToolAnswered { agent, ask, body, is_error, .. } => {
            let verb = if *is_error { "is refused" } else { "gets from" };
            answered(names, agent, *ask, verb, &body.text)
        }
        Event::ValueWritten { name, value, version, by, .. } => value_written(name, *version, value, by),
        Event::ValuesCleared { count } => {
            detail(format!("{} cleared", counted((*count).into(), "shared value")))
        }
        Event::Charged { amounts, note, .. } => main_line(format!("is charged {amounts:#}: {}", short(note))),
        Event::MessageSent { from, body, .. } => {
            main_line(format!("gets a message from {from}: {}{}", short(&body.text), with(body)))
        }
        Event::MessagePublished { body, envelope, .. } => published(&body.text, envelope),
        Event::CheckpointMade { name, kind, .. } => has_checkpoint(name, *kind),
        Event::TreeBranched(branched) => branched_off(branched),
        Event::TreeHalted { account, short, .. } => main_line(format!(
            "needs more budget than is left; the tree is halted: {}",
            short.describe(account)
        )),
        Event::TreeUnhalted | Event::TreeContinued => main_line("the tree continues".to_owned()),
        Event::TreeSuspended => main_line("the tree is stopped until it is resumed".to_owned()),
        Event::TreeSealed { kind, .. } => main_line(sealed(kind)),
        Event::TreeUnsealed => main_line("the tree can be resumed here".to_owned()),
        Event::LimitRaised { add, add_ms, .. } => main_line(format!("may {}", more(add, *add_ms))),
        Event::TreeAdjusted(changed) => main_line(adjusted(changed)),
        Event::ClockSet { clock, left_ms, alarm, .. } => clock_set(*clock, *left_ms, alarm.is_some()),
        Event::WrapUpStarted { .. } => {
            main_line("its time is nearly up: the next call is its last".to_owned())
        }
        Event::ApprovalRemembered { tool, scope, pattern, .. } => approval_remembered(tool, *scope, pattern),
        Event::RepeatsNoticed { tool, count, .. } => main_line(format!(
            "is warned that it called {} {count} times in a row with the same arguments and the same result",
            short(tool)
        )),
        Event::ModelAdded { model, spec } => detail(format!("model {model} may be called, {}", priced(spec))),
        Event::BreakerChanged { model, breaker } => broken(model, *breaker),
        Event::RateLimited { model, .. } => main_line(format!("model {model} is rate limited")),
        Event::CallAsked { call, agent, work } => asked(names, *call, agent, work),
        Event::CallWaiting { call, why, account, .. } => waiting(names, *call, *why, account.as_ref()),
        Event::CallStarted { call, attempt, held, .. } => {
            detail(format!("starts {}, attempt {attempt}: {held:#} held", name(names, *call)))
        }
        Event::FirstToken { call } => detail(format!("{} begins to answer", name(names, *call))),
        Event::ConnectionEnded { call, connection } => {
            connection_ended(names, &Connecting::Call(*call), connection)
        }
        Event::ConnectionsOmitted { call, totals } => {
            connections_omitted(names, &Connecting::Call(*call), totals)
        }
        Event::ProgramConnected { agent, connection } => {
            connection_ended(names, &Connecting::Program(agent), connection)
        }
        Event::ProgramConnectionsOmitted { agent, totals } => {
            connections_omitted(names, &Connecting::Program(agent), totals)
        }
        Event::SessionNamed { session, .. } => detail(format!("it is continued by its session {session}")),
        Event::FollowupStarted { of, start: FollowupStart::Session(session), .. } => {
            main_line(format!("it continues in the session {session} of {of}"))
        }
        Event::FollowupStarted { of, start: FollowupStart::Anew(why), .. } => main_line(format!(
            "it begins anew and is told what {of} was told and answered, because {}",
            why.as_str()
        )),
        Event::CallResumed { call } => {
            main_line(format!("starts {} again after a restart", name(names, *call)))
        }
        Event::CallSwitched { model, output_cap, .. } if names.keeps_model(model) => detail(format!(
            "asks model {model} for at most {output_cap} tokens out, because its budget has no room for more"
        )),
        Event::CallSwitched { model, output_cap, .. } => {
            main_line(format!("continues with model {model}, at most {output_cap} tokens out"))
        }
        Event::AttemptFailed { call, fault, spent, presumed, .. } => {
            let spent = Spent { all: *spent, presumed: *presumed };
            attempt_failed(names, *call, fault.as_ref(), &spent)
        }
        Event::CallHeldBack { call, by, .. } => held_back(names, *call, *by),
        Event::CallEnded { call, outcome, spent, presumed, .. } => {
            let mut line = ended(names, *call, outcome);
            if !presumed.is_zero() {
                line.text += &format!("; spent {}", Spent { all: *spent, presumed: *presumed });
            }
            line
        }
    }
}

fn asks_a_person(call: CallId, question: &Question) -> EventText {
    let text = match &question.approves {
        Some(ask) => {
            let tool = short(&ask.tool);
            format!("may it call `{tool}`? {}", short(&ShownApproval::in_short(ask)))
        }
        None => short(&question.text),
    };
    main_line(format!("asks a person (question {}): {text}", call.0))
}

fn approval_remembered(tool: &ToolName, scope: ApprovalScope, pattern: &SubjectPattern) -> EventText {
    let what = match pattern {
        SubjectPattern::Hosts(_) => "to connect to",
        SubjectPattern::Exact(_) | SubjectPattern::Beginning(_) => "with",
    };
    let (pattern, scope) = (short(&pattern.to_string()), scope.as_str());
    main_line(format!("may call `{tool}` {what} `{pattern}` from now on, for {scope}"))
}

fn tree_started(name: &str, rules: u32, trace: Option<TraceParent>) -> EventText {
    let within = trace.map_or_else(String::new, |trace| format!(", in trace {:032x}", trace.trace_id()));
    detail(format!("tree `{}` started, by rules {rules}{within}", short(name)))
}

fn value_written(name: &ValueName, version: u64, value: &Body, by: &Actor) -> EventText {
    let text = short(&value.text);
    main_line(match by {
        Actor::Agent(_) => format!("writes shared value {name}, version {version}: {text}"),
        // The line names no agent: an input, or what someone outside wrote.
        by if *by == Actor::PERSON => format!("shared value {name} is set, version {version}: {text}"),
        by @ Actor::Outside(_) => format!("shared value {name} is set by {by}, version {version}: {text}"),
    })
}

/// What holds for the whole tree from now on.
fn adjusted(Adjusted { limit, parallel_max, on_low, timeout_ms, sources, agent: _ }: &Adjusted) -> String {
    let most = |resource: Resource| Some(format!("{:#}", resource.amount(limit.get(resource)?)));
    let mut changes: Vec<String> = Resource::ALL.into_iter().filter_map(most).collect();
    changes.extend(timeout_ms.map(|ms| format!("a timeout of {}", Millis(ms))));
    changes.extend(parallel_max.map(|calls| format!("{} at the same time", counted(calls.into(), "call"))));
    let mut text =
        if changes.is_empty() { String::new() } else { format!("may use at most {}", changes.join(", ")) };
    if let Some(on_low) = on_low {
        text += if text.is_empty() { "" } else { "; " };
        text += &match on_low {
            OnLow::Halt => "a call that does not fit waits".to_owned(),
            OnLow::Shrink => "a call that does not fit gets a smaller output cap".to_owned(),
            OnLow::Downgrade(model) => format!("a call that does not fit goes to model {model}"),
        };
    }
    if !sources.is_empty() {
        text += if text.is_empty() { "" } else { "; " };
        text += "resumes with new options";
    }
    text
}

/// A clock that starts or stops.
fn clock_set(clock: ClockKind, left_ms: u64, runs: bool) -> EventText {
    let left = Millis(left_ms);
    match (clock, runs) {
        (ClockKind::Timeout, true) => detail(format!("has {left} left until its timeout")),
        (ClockKind::Timeout, false) => detail(format!("has {left} left until its timeout, which is stopped")),
        (ClockKind::Active, true) => detail(format!("has {left} of active time left, and is working")),
        (ClockKind::Active, false) => detail(format!("has {left} of active time left, and is waiting")),
    }
}

fn held_back(names: &EventNames, call: CallId, by: HeldBy) -> EventText {
    let name = name(names, call);
    match by {
        HeldBy::Breaker => main_line(format!("does not call {name}: its provider failed too often")),
        HeldBy::Provider | HeldBy::ModelRate | HeldBy::RoleRate | HeldBy::TreeRate => {
            detail(format!("does not call {name} yet: {by} is used up"))
        }
    }
}

fn starts(spawned: &Spawned) -> EventText {
    let role = if spawned.role.as_str() == spawned.agent.as_str() { "" } else { spawned.role.as_str() };
    let how = match (spawned.attachment, role) {
        (Attachment::Detached, _) => format!("starts, detached, as {}", spawned.role),
        (Attachment::Root | Attachment::Disowned | Attachment::Step { .. } | Attachment::Call { .. }, "") => {
            "starts".to_owned()
        }
        (
            Attachment::Root | Attachment::Disowned | Attachment::Step { .. } | Attachment::Call { .. },
            role,
        ) => {
            format!("starts as {role}")
        }
    };
    main_line(format!("{how}: {}", short(&spawned.goal)))
}

fn graph_started(graph: Option<&Graph>) -> EventText {
    let steps = graph.map(|graph| counted(graph.steps().count() as u64, "step"));
    main_line(format!("runs a pipeline{}", steps.map(|steps| format!(" of {steps}")).unwrap_or_default()))
}

fn replanned(change: &PlanChange) -> EventText {
    let named = || change.steps().iter().map(|step| short(step.as_str())).collect::<Vec<_>>().join(", ");
    main_line(match change {
        PlanChange::Instruct { text, steps } if steps.is_empty() => {
            format!("its steps to come have a new instruction: {}", short(text))
        }
        PlanChange::Instruct { text, .. } => format!("{} has a new instruction: {}", named(), short(text)),
        PlanChange::Skip { .. } => format!("a person skips {}", named()),
        PlanChange::End => "a person ends the pipeline with what is done".to_owned(),
    })
}

fn node_started(start: &NodeStart) -> EventText {
    let name = short(&start.name);
    match (start.of, start.attempt) {
        (StartOf::Undo, _) => main_line(format!("undoes {name}")),
        (StartOf::Node | StartOf::Item, _) if !start.waits_for.is_empty() => {
            let values: Vec<String> = start.waits_for.iter().map(|value| format!("shared.{value}")).collect();
            main_line(format!("{name} waits for {}", short(&values.join(", "))))
        }
        (StartOf::Node | StartOf::Item, 0) => detail(format!("begins {name}")),
        (StartOf::Node | StartOf::Item, attempt) => {
            main_line(format!("tries {name} again (attempt {})", attempt + 1))
        }
    }
}

fn node_ended(name: &str, end: &NodeEnd) -> EventText {
    let name = short(name);
    match end {
        NodeEnd::Succeeded { .. } => detail(format!("{name} succeeded")),
        NodeEnd::Failed { error, retried: false } => {
            main_line(format!("{name} failed ({}: {})", error.code, short(&error.message)))
        }
        NodeEnd::Failed { error, retried: true } => {
            main_line(format!("{name} failed and is tried again ({}: {})", error.code, short(&error.message)))
        }
        NodeEnd::Skipped { why: Skip::When } => {
            main_line(format!("{name} is skipped: its condition does not hold"))
        }
        NodeEnd::Skipped { why: Skip::Missing(input) } => {
            main_line(format!("{name} is skipped: its input {} has no value", short(input)))
        }
        NodeEnd::Skipped { why: Skip::NoCase } => main_line(format!("{name} is skipped: no case fits")),
        NodeEnd::Skipped { why: Skip::Person } => {
            main_line(format!("{name} is skipped: a person does not want it"))
        }
        NodeEnd::Cancelled => detail(format!("{name} was cancelled")),
    }
}

fn broken(model: &ModelName, breaker: BreakerState) -> EventText {
    main_line(match breaker {
        BreakerState::Open => format!("model {model} fails too often and is not called for a while"),
        BreakerState::Closed => format!("model {model} is tried again"),
    })
}

fn published(text: &str, envelope: &Envelope) -> EventText {
    let topic = envelope.topic.as_ref().map_or("", Topic::as_str);
    main_line(format!("publishes on {topic}: {}", short(text)))
}

fn windowed(size: u64, clamped: Option<Clamped>) -> EventText {
    let size = counted(size, "token");
    match clamped {
        Some(clamped) => {
            let above = counted(clamped.parent_size, "token");
            main_line(format!("has a window of {size}, its parent one of {above}"))
        }
        None => detail(format!("has a window of {size}")),
    }
}

fn shared(from: &AgentId, spans: &[Span], as_is: bool) -> EventText {
    let messages = counted(Span::places(spans).count() as u64, "message");
    main_line(format!("{} {messages} of {from}", if as_is { "continues from" } else { "receives" }))
}

/// Whether it reads a thread, and the thread's bound.
fn reads(verb: &str, of: &AgentId, bound: Option<u64>) -> EventText {
    let bound = bound.map(|tokens| format!("; at most {} of it in a packet", counted(tokens, "token")));
    detail(format!("{verb} what {of} learns{}", bound.unwrap_or_default()))
}

/// A list with commas and a final `and`.
fn listed(words: &[&str]) -> String {
    match words {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        [] | [..] => words.concat(),
    }
}

/// `2 messages of dialog, 300 tokens`.
fn left(left_out: &[(Category, LeftOut)]) -> String {
    let messages = left_out.iter().map(|(_, left)| u64::from(left.messages)).sum();
    let tokens = left_out.iter().map(|(_, left)| left.tokens).sum();
    let words: Vec<&str> = left_out.iter().map(|(category, _)| category.as_str()).collect();
    format!("{} of {}, {}", counted(messages, "message"), listed(&words), counted(tokens, "token"))
}

fn shortened(left_out: &[(Category, LeftOut)]) -> EventText {
    main_line(format!("sends its model less, because the packet was too long: leaves out {}", left(left_out)))
}

fn cut(left_out: &[(Category, LeftOut)], summary: Option<Summary>) -> EventText {
    main_line(match left_out {
        [] => "has more images than its window may hold: the oldest become placeholders".to_owned(),
        left_out => {
            let told = match summary {
                Some(Summary::By(seq)) => format!("; summarised in event {}", seq.0),
                Some(Summary::Not(why)) => {
                    format!("; listed in lines, without a summary: {}", why.describe())
                }
                None => String::new(),
            };
            format!("has a full window: leaves out {}{told}", left(left_out))
        }
    })
}

fn back(restored: &Restored) -> EventText {
    let Restored { agent, from, at, prior, cancelled, .. } = restored;
    let whose = if agent == from { "its".to_owned() } else { format!("`{from}`'s") };
    let without = match cancelled.len() {
        0 => String::new(),
        children => format!(
            ", without {}",
            if children == 1 { "a child".to_owned() } else { format!("{children} children") }
        ),
    };
    main_line(format!(
        "is rolled back to {whose} context at event {}{without}; its context before is `{prior}`",
        at.0
    ))
}

fn has_checkpoint(name: &CheckpointName, kind: CheckpointKind) -> EventText {
    let line = format!("has a checkpoint: {name}, {}", kind.as_str());
    if kind == CheckpointKind::Automatic { detail(line) } else { main_line(line) }
}

fn branched_off(Branched { from, at, continuation, .. }: &Branched) -> EventText {
    let (from, at) = (short_id(*from), at.0);
    if continuation.is_some() {
        return main_line(format!("continues tree {from}, which had ended, with the rest of its budget"));
    }
    main_line(format!("branched off tree {from} after event {at}: what ran there does not run here"))
}

fn asked(names: &EventNames, call: CallId, agent: &AgentId, work: &Work) -> EventText {
    match work {
        Work::Tool(tool) => main_line(calls(names, agent, tool)),
        Work::Model(model) => detail(format!(
            "asks model {}{} (call {}): {} in, at most {} out",
            model.model,
            match (&model.summary, &model.wrap_up) {
                _ if work.of_tool().is_some() => " for a tool",
                (Some(_), _) => " for a summary",
                (None, Some(_)) => " for the last time",
                (None, None) => "",
            },
            call.0,
            expected(model),
            model.output_cap
        )),
        Work::Child(_) | Work::Wait(_) | Work::Question(_) => detail(format!("call {} is open", call.0)),
    }
}

/// The input of a model call: the bound, and the estimate if that is another number.
fn expected(model: &ModelCall) -> String {
    let most = counted(model.input_tokens, "token");
    match model.estimate {
        Some(estimate) => format!("at most {most}, probably {}", grouped(estimate)),
        None => most,
    }
}

/// What a model call used of what was held for it, so counts can be judged.
pub fn settled(names: &EventNames, event: &Event) -> Option<String> {
    let Event::CallEnded { call, spent, input_tokens: Some(input), .. } = event else { return None };
    let [held, used] = [names.held(*call)?, spent].map(|amounts| amounts.get(Resource::Tokens));
    let [most, all, input, output] = [held, used, *input, output_tokens(spent, *input)].map(grouped);
    Some(format!("[{most} tokens held, {all} used: {input} in, {output} out]"))
}

fn attempt_failed(names: &EventNames, call: CallId, fault: Option<&Fault>, spent: &Spent) -> EventText {
    let name = name(names, call);
    main_line(match fault {
        Some(fault) => format!("tried {name}, which failed{}; spent {spent}", why(fault)),
        None => format!("lost its call to {name} with its process; spent {spent}"),
    })
}

fn waits(wait: &WaitFor) -> String {
    match wait {
        WaitFor::Message => "waits for a message".to_owned(),
        WaitFor::Children { agents, need, .. } => {
            let names: Vec<&str> = agents.iter().map(AgentId::as_str).collect();
            let any = match need {
                WaitNeed::All => String::new(),
                WaitNeed::Any => "any of ".to_owned(),
                WaitNeed::First(count) => format!("the first {count} of "),
                WaitNeed::Majority => "most to agree of ".to_owned(),
            };
            short(&format!("waits for {any}{}", names.join(", ")))
        }
    }
}

fn answered(names: &EventNames, agent: &AgentId, ask: u32, verb: &str, text: &str) -> EventText {
    let tool = names.ask(agent, ask).map_or_else(|| "a tool".to_owned(), |ask| short(&ask.tool));
    main_line(format!("{verb} {tool}: {}", short(text)))
}

fn calls(names: &EventNames, agent: &AgentId, call: &ToolCall) -> String {
    if call.is_program {
        return "starts its program".to_owned();
    }
    let asked = call.ask.and_then(|ask| names.ask(agent, ask));
    let args = asked.map_or(call.args.as_str(), |ask| ask.args.as_str());
    let hosts = match call.network.is_denied() {
        true => String::new(),
        false => format!(", and may connect to {}", short(&call.network.to_string())),
    };
    format!("calls {} {}{hosts}", call.tool, short(args))
}

fn waiting(names: &EventNames, call: CallId, why: WaitReason, account: Option<&AgentId>) -> EventText {
    let name = name(names, call);
    match why {
        WaitReason::Budget { ask } => {
            let whose = account.map(|account| format!(" of `{account}`")).unwrap_or_default();
            main_line(format!("waits for {ask:#} of the budget{whose} to call {name}"))
        }
        WaitReason::Rate => main_line(match names.held_by(call) {
            Some(by @ (HeldBy::ModelRate | HeldBy::RoleRate | HeldBy::TreeRate)) => {
                format!("waits to call {name}: {by} is used up")
            }
            Some(HeldBy::Provider | HeldBy::Breaker) | None => {
                format!("waits until {name} accepts calls again")
            }
        }),
        WaitReason::Breaker => main_line(format!("waits until the provider of {name} is tried again")),
        WaitReason::Cache => detail(format!("waits until the shared prompt of {name} is cached")),
        WaitReason::Backoff => main_line(format!("retries {name} in a moment")),
        WaitReason::Ceiling => {
            let whose = account.map(|account| format!("`{account}`")).unwrap_or_default();
            main_line(format!("waits at the ceiling of {whose} to call {name}, until it is raised"))
        }
        WaitReason::Slot
        | WaitReason::Paused
        | WaitReason::Suspended
        | WaitReason::Halted
        | WaitReason::Children
        | WaitReason::Message
        | WaitReason::Person => detail(format!("waits with {name}: {why}")),
    }
}

pub(super) fn name(names: &EventNames, call: CallId) -> String {
    match names.calls.find(call).map(|open| &open.purpose) {
        Some(CallPurpose::Turn(model) | CallPurpose::LastTurn(model) | CallPurpose::Outside(model)) => {
            format!("model {model}")
        }
        Some(CallPurpose::Summary(model)) => format!("model {model} for a summary"),
        Some(CallPurpose::Tool(tool)) => tool.to_string(),
        Some(CallPurpose::Child | CallPurpose::Wait(_) | CallPurpose::Question) | None => {
            format!("call {}", call.0)
        }
    }
}

fn cut_text(stop: StopReason) -> &'static str {
    if stop == StopReason::OutputCap { ", cut at the output cap" } else { "" }
}

fn priced(spec: &ModelSpec) -> &'static str {
    if spec.price.is_some() { "and its price is known" } else { "and has no price" }
}

fn sealed(kind: &SealKind) -> String {
    match kind {
        SealKind::Moved { to } => format!("the tree moves to `{to}`, and does nothing more here"),
        SealKind::Copy => "this is a copy, which can only be read and branched".to_owned(),
    }
}

fn why(fault: &Fault) -> String {
    let words = if fault.message.is_empty() { String::new() } else { format!(": {}", short(&fault.message)) };
    format!(" ({}){words}", fault.kind.as_str())
}

fn ended(names: &EventNames, call: CallId, outcome: &Outcome) -> EventText {
    let name = name(names, call);
    match outcome {
        Outcome::Done { body, mismatch: Some(mismatch), .. } => main_line(format!(
            "answers, and the answer does not match its schema ({}): {}",
            short(&mismatch.describe()),
            short(&body.text)
        )),
        Outcome::Done { body, asks, is_error, mismatch: None, stop, files: _, removed: _, exit: _ } => {
            match (names.calls.find(call).map(|open| &open.purpose), body.text.trim().is_empty()) {
                (Some(CallPurpose::Tool(_)), _) if *is_error => {
                    main_line(format!("gets an error from {name}: {}", returned(body)))
                }
                (Some(CallPurpose::Tool(_)), _) => {
                    main_line(format!("gets from {name}: {}{}", returned(body), with(body)))
                }
                (Some(CallPurpose::Summary(_)), _) => {
                    main_line(format!("writes a summary: {}", short(&body.text)))
                }
                (Some(CallPurpose::Turn(_) | CallPurpose::LastTurn(_)), true) => {
                    detail(format!("requests {}", counted(asks.len() as u64, "tool")))
                }
                (Some(CallPurpose::Turn(_) | CallPurpose::LastTurn(_)), false)
                    if asks.is_empty() && *stop == StopReason::OutputCap =>
                {
                    main_line(format!("answers, cut at its output cap: {}", short(&body.text)))
                }
                (Some(CallPurpose::Turn(_) | CallPurpose::LastTurn(_)), false) if asks.is_empty() => {
                    main_line(format!("answers: {}", short(&body.text)))
                }
                (Some(CallPurpose::Turn(_) | CallPurpose::LastTurn(_)), false) => {
                    main_line(format!("says: {}", short(&body.text)))
                }
                (Some(CallPurpose::Outside(_)), _) => {
                    main_line(format!("{name} answered{}", cut_text(*stop)))
                }
                (Some(CallPurpose::Child | CallPurpose::Wait(_) | CallPurpose::Question) | None, _) => {
                    detail(format!("{name} is done"))
                }
            }
        }
        Outcome::Failed { fault } => main_line(format!("gives up on {name}{}", why(fault))),
        Outcome::Lost => {
            main_line(format!("lost its call to {name} with its process: it is unknown whether it happened"))
        }
        Outcome::Cancelled => detail(format!("no longer needs {name}")),
        Outcome::Approved => main_line("is approved by a person".to_owned()),
        Outcome::Refused {
            refusal: refusal @ (Refusal::NotApproved { .. } | Refusal::ApprovalExpired { .. }),
        } => main_line(format!("may not: {}", short(&refusal.to_string()))),
        Outcome::Refused { refusal } => {
            main_line(format!("may not call {name}: {}", short(&refusal.to_string())))
        }
        Outcome::Answered { answer, is_default: false } => {
            main_line(format!("has an answer from a person: {}", short(&answer.text)))
        }
        Outcome::Answered { answer, is_default: true } => main_line(format!(
            "got no answer from a person in time and uses the default: {}",
            short(&answer.text)
        )),
        Outcome::Children { ended } => {
            let text = format!("has the results of {}", agents_of(ended));
            // A single child has just reported its own end.
            if ended.len() > 1 { main_line(text) } else { detail(text) }
        }
        Outcome::Message { .. } => detail("reads its message".to_owned()),
        Outcome::NobodyLeft => main_line("gets no message, because every agent waits".to_owned()),
        Outcome::Expired { ended } if ended.is_empty() => main_line("waited too long".to_owned()),
        Outcome::Expired { ended } => {
            main_line(format!("waited too long and continues with {}", agents_of(ended)))
        }
    }
}

/// The names of its images and files.
fn with(body: &Body) -> String {
    let parts: Vec<String> =
        body.parts().iter().map(|part| format!("{} {}", part.kind().as_str(), part.name())).collect();
    if parts.is_empty() { String::new() } else { format!(" (with {})", parts.join(", ")) }
}

/// A tool's output, cut to its beginning.
fn returned(body: &Body) -> String {
    body.ends().map_or_else(|| short(&body.text), |(head, _)| short(&format!("{head} …")))
}

fn agents_of(ended: &[ChildEnd]) -> String {
    let names: Vec<String> = ended.iter().map(|end| format!("{} ({})", end.agent, end.state)).collect();
    short(&names.join(", "))
}
