//! The moves: random actions of agents, people and the outside, sensible and absurd.

use spinney_kernel::budget::{Amounts, CacheWrites, Ceilings, Resource, Usage, Used};
use spinney_kernel::context::Frame;
use spinney_kernel::definition::{
    AnswerForm, ApprovalScope, FieldMismatch, GivenMessage, Mismatch, MismatchKind, OnLost, OnLow,
    RememberedApproval, SubjectPattern,
};
use spinney_kernel::primitives::{
    Actor, AgentId, BlobHash, BlobRef, Body, CallId, Category, Connection, ConnectionEnd, ConnectionRefusal,
    ConnectionTotals, Envelope, Fault, FaultKind, OutputPath, Running, SealKind, SourceFiles, StepId,
    StoredFile, Thought, Time, TimerId, limit,
};
use spinney_kernel::record::{
    BreakerState as Gate, Failure, FailureCode, FollowupStart, HeldBy, NoSession, OnTimeout, PlanChange,
    Question, RefusedAsk, Sources, StopReason, WaitFor, WaitNeed, Work,
};
use spinney_kernel::rules::InputKind;
use spinney_kernel::rules::report::{
    Breaker, Connections, Continued, Done, Failed, FirstToken, FollowupStarted, HeldBack, Lost, Rate,
    RateKind, Report, Session, Suspended, Timer,
};
use spinney_kernel::rules::request::{
    AddModel, Adjust, Answer, Ask, Broadcast, Cancel, Charge, Collect, Conclude, Fail, Finish, Followup,
    Hold, HoldFor, Pause, Raise, RecordConnections, Redirect, Refresh, Replan, Request, Seal, Send, Spawn,
    Unpause, Unseal, Wait, Withdraw,
};
use spinney_kernel::world::World;

use super::dice::Dice;
use super::random_definition::{MODELS, ROLES, TOOLS, budget, share};
use super::random_parts;
use super::random_tool_calls::asks;
use crate::fixture::parse;

/// The next input of a tree.
pub(super) fn next(dice: &mut Dice, world: &World, now: Time) -> InputKind {
    if let Some(halt) = world.halted()
        && dice.once_in(3)
    {
        let raise = raise(dice, halt.account.clone());
        return InputKind::Request { by: Actor::PERSON, request: Box::new(raise) };
    }
    if world.sealed().is_some() && dice.once_in(3) {
        return InputKind::Request { by: Actor::PERSON, request: Box::new(Request::Unseal(Unseal {})) };
    }
    if world.is_suspended() && dice.once_in(9) {
        let kind = SealKind::Moved { to: parse("away.tree") };
        return InputKind::Request { by: Actor::PERSON, request: Box::new(Request::Seal(Seal { kind })) };
    }
    if world.is_suspended() && dice.once_in(4) {
        return InputKind::Report(Report::Continued(Continued {}));
    }
    match dice.below(100) {
        0..35 => report_call(dice, world, now),
        35..40 => InputKind::Report(Report::Timer(Timer { timer: a_timer(dice, world) })),
        40..42 => gate(dice, now),
        42..43 => InputKind::Report(Report::Suspended(Suspended { was_pause: dice.once_in(4) })),
        // Those about hosts are rare, and end with their agents.
        _ if questions(world, true).next().is_some() && dice.once_in(3) => {
            InputKind::Request { by: Actor::PERSON, request: Box::new(answer(dice, world)) }
        }
        _ => {
            let agent = an_agent(dice, world);
            let by = if dice.once_in(8) { Actor::Agent(an_agent(dice, world)) } else { Actor::PERSON };
            let by = if dice.once_in(3) { Actor::Agent(agent.clone()) } else { by };
            InputKind::Request { by, request: Box::new(request(dice, world, agent)) }
        }
    }
}

/// A report that ends the given running call successfully.
pub(super) fn end_well(dice: &mut Dice, world: &World, id: CallId) -> Option<Report> {
    let call = world.call(id)?;
    Some(Report::Done(Done::new(id, call.attempt, used(dice, &call.work), random_parts::body(dice, ""))))
}

fn request(dice: &mut Dice, world: &World, agent: AgentId) -> Request {
    // The end of the root ends everything, so it is rarer.
    let verbs = if agent.as_str() == "lead" && !dice.once_in(25) { 45 } else { 60 };
    match dice.below(verbs) {
        0..17 => Request::Spawn(spawn(dice, agent)),
        17 => Request::Followup(followup(dice, world, agent)),
        18..38 if dice.once_in(12) => Request::Withdraw(Withdraw { agent, call: a_call(dice, world) }),
        18..38 => {
            let tool = a_running_tool(world, &agent).filter(|_| dice.once_in(3));
            let effect = match tool {
                Some(call) => hold_of(dice, call),
                None => hold_for(dice),
            };
            Request::Hold(Hold { agent, effect })
        }
        38..39 if dice.once_in(4) => {
            let model = parse(&format!("added-{}", dice.below(5)));
            Request::AddModel(AddModel { model, spec: Box::default() })
        }
        38..39 if dice.once_in(4) => {
            let (ended, omitted) = some_connections(dice, Time::default());
            Request::RecordConnections(RecordConnections { agent, ended, omitted })
        }
        38..39 => Request::Charge(Charge { agent, amounts: some_amounts(dice), note: "bill".to_owned() }),
        39..40 if dice.once_in(4) => adjust(dice, world),
        39..40 => raise(dice, agent),
        40..42 => tell(dice, world, agent),
        42..45 => Request::Wait(Wait { wait: wait_for(dice, world, &agent), agent, timeout_ms: Some(5_000) }),
        45..47 => {
            let (asked, ms) = (question(dice), dice.between(1, 9_000));
            // Some are those of a running tool call, if there is one.
            let asking = a_running_tool(world, &agent).filter(|_| ms % 3 == 0);
            let question = asking.map_or(asked, |call| Question::of_call(call, "May it?"));
            Request::Ask(Ask { agent, question, timeout_ms: Some(ms) })
        }
        47..49 => answer(dice, world),
        49..52 => Request::Finish(Finish { agent, result: Body::text("here") }),
        52..53 => {
            let error = Failure { code: FailureCode::from_text("oops"), message: "it broke".to_owned() };
            Request::Fail(Fail { agent, error, partial: None })
        }
        53..54 if dice.once_in(4) => Request::Conclude(Conclude { agent }),
        53..54 => Request::Pause(Pause { agent }),
        54..56 => Request::Unpause(Unpause::now(agent)),
        56..57 => Request::Cancel(Cancel { agent, reason: "enough".to_owned() }),
        57..58 if is_graph(world, &agent) => replan(dice, world, agent),
        57..58 => Request::Redirect(Redirect {
            agent,
            instruction: "elsewhere".to_owned(),
            tokens: None,
            running: if dice.once_in(2) { Running::Stops } else { Running::Finishes },
        }),
        _ => raise(dice, agent),
    }
}

fn is_graph(world: &World, agent: &AgentId) -> bool {
    world.agents().find(agent).is_some_and(|ix| world.graphs().run(ix).is_some())
}

/// A change of a graph, sometimes of a step that has begun or is over.
fn replan(dice: &mut Dice, world: &World, agent: AgentId) -> Request {
    let run = world.agents().find(&agent).and_then(|ix| world.graphs().run(ix));
    let nodes = run.map_or(&[][..], |run| run.graph().nodes());
    let steps: Vec<StepId> = dice.pick(nodes).into_iter().map(|node| node.id).collect();
    let change = match dice.below(5) {
        0 => PlanChange::End,
        1 | 2 => PlanChange::Skip { steps },
        3 => PlanChange::Instruct { text: "be short".to_owned(), steps },
        _ => PlanChange::Instruct { text: "all of you".to_owned(), steps: Vec::new() },
    };
    let running = if dice.once_in(2) { Running::Stops } else { Running::Finishes };
    Request::Replan(Replan { agent, change, running })
}

fn raise(dice: &mut Dice, agent: AgentId) -> Request {
    let add_ms = if dice.once_in(3) { dice.below(8_000) } else { 0 };
    let add = if add_ms > 0 && dice.once_in(2) { Amounts::ZERO } else { some_amounts(dice) };
    Request::Raise(Raise { agent, add, add_ms })
}

/// New terms for the whole tree: more or less than it has.
fn adjust(dice: &mut Dice, world: &World) -> Request {
    let root = world.agents().root().and_then(|root| world.agents().living(root));
    let mut limit = Ceilings::NONE;
    if let Some(root) = root {
        let account = world.ledger().account(root.account);
        for resource in [Resource::Cost, Resource::Tokens, Resource::Steps] {
            if dice.once_in(3) {
                let used =
                    account.spent.get(resource) + account.held.get(resource) + account.lent.get(resource);
                let spare = dice.pick(&[0, 1, 1_000, 1_000_000_000]).unwrap_or_default();
                // Sometimes less than what is used.
                limit = limit.with(resource, if dice.once_in(8) { used / 2 } else { used + spare });
            }
        }
    }
    let parallel_max = dice.once_in(3).then(|| dice.below(8) as u32);
    let on_low = if dice.once_in(2) { dice.pick(&[OnLow::Halt, OnLow::Shrink]) } else { None };
    let timeout_ms = dice.once_in(4).then(|| dice.below(20_000));
    let sources = SourceFiles::default();
    Request::Adjust(Adjust { limit, parallel_max, on_low, timeout_ms, sources })
}

/// A message, or sharing a context.
fn tell(dice: &mut Dice, world: &World, agent: AgentId) -> Request {
    match dice.below(6) {
        0 => Request::Refresh(Refresh { agent, replace: dice.once_in(2) }),
        1 => {
            let to = vec![an_agent(dice, world), an_agent(dice, world)];
            let categories = vec![dice.pick(&[Category::Context, Category::System]).unwrap_or_default()];
            Request::Broadcast(Broadcast { from: agent, to, categories })
        }
        _ => {
            // Sometimes to an agent that does not exist yet.
            let to = if dice.once_in(3) { parse(&format!("named-{}", dice.below(20))) } else { agent };
            let category = if dice.once_in(2) { Category::Context } else { Category::Dialog };
            let envelope = Envelope { category, ..Envelope::default() };
            Request::Send(Send { envelope, ..Send::plain(to, random_parts::body(dice, "hello")) })
        }
    }
}

fn given(dice: &mut Dice) -> GivenMessage {
    let category = if dice.once_in(8) { Category::System } else { Category::Context };
    let fact = format!("Fact {}.", dice.below(9));
    GivenMessage { category, body: random_parts::body(dice, &fact) }
}

fn spawn(dice: &mut Dice, parent: AgentId) -> Spawn {
    let role = if dice.once_in(30) { "nobody" } else { dice.pick(&ROLES).unwrap_or("worker") };
    let tools = dice.once_in(4).then(|| dice.pick(&TOOLS).into_iter().map(parse).collect());
    Spawn {
        parent,
        role: parse(role),
        goal: if dice.once_in(40) { String::new() } else { format!("Part {}.", dice.below(6)) },
        goal_tokens: None,
        id: dice.once_in(4).then(|| parse(&format!("named-{}", dice.below(20)))),
        model: dice.once_in(4).then(|| dice.pick(&MODELS).map(parse)).flatten(),
        tools,
        budget: if dice.once_in(2) { budget(dice, 400) } else { Default::default() },
        collect: if dice.once_in(2) { Collect::Call } else { Collect::Detached },
        share: dice.once_in(3).then(|| share(dice)),
        messages: if dice.once_in(5) { vec![given(dice)] } else { Vec::new() },
        talks: dice.once_in(8),
        frame: Frame { window: dice.once_in(5).then(|| dice.between(200, 2_000)), ..Frame::default() },
    }
}

/// Mostly for one of its own children, finished or not.
fn followup(dice: &mut Dice, world: &World, parent: AgentId) -> Followup {
    let ix = world.agents().find(&parent);
    let children = world.agents().all().filter(|child| ix.is_some() && world.agents().parent(*child) == ix);
    let children: Vec<AgentId> = children.map(|child| world.agents().id(child).clone()).collect();
    Followup {
        agent: dice.pick(&children).unwrap_or_else(|| an_agent(dice, world)),
        parent,
        task: format!("More of part {}.", dice.below(6)),
        task_tokens: None,
        budget: if dice.once_in(3) { budget(dice, 400) } else { Default::default() },
        collect: if dice.once_in(2) { Collect::Call } else { Collect::Detached },
    }
}

/// A model call that a running tool asks for.
fn hold_of(dice: &mut Dice, call: CallId) -> HoldFor {
    HoldFor::OfTool { call, request: Body::text("What is it?"), output_cap: dice.below(120) }
}

fn hold_for(dice: &mut Dice) -> HoldFor {
    if dice.once_in(4) {
        return HoldFor::Tool {
            tool: parse(dice.pick(&TOOLS).unwrap_or("read")),
            args: String::new(),
            cost_nanos_max: if dice.once_in(2) { dice.below(50_000) } else { 0 },
            lost: if dice.once_in(2) { OnLost::Repeatable } else { OnLost::Presumed },
        };
    }
    if dice.once_in(5) {
        return HoldFor::Outside {
            model: parse(dice.pick(&MODELS).unwrap_or("m")),
            input_tokens: dice.below(80),
            // Some ask for far more than is left, as programs do.
            output_cap: if dice.once_in(2) { dice.below(40_000) } else { dice.below(120) },
            output_cap_min: if dice.once_in(4) { 1_025 } else { 0 },
            writes: dice.pick(&WRITES).unwrap_or_default(),
            request: Body::default(),
        };
    }
    HoldFor::Model {
        model: dice.once_in(4).then(|| dice.pick(&MODELS).map(parse)).flatten(),
        input_tokens: if dice.once_in(50) { u64::MAX / 2 } else { dice.below(80) },
        output_cap: dice.once_in(2).then(|| dice.below(120)),
    }
}

/// Sometimes more than a call may have.
fn connections(dice: &mut Dice, call: CallId, attempt: u32, now: Time) -> Connections {
    let (ended, omitted) = some_connections(dice, now);
    Connections { call, attempt, ended, omitted }
}

fn some_connections(dice: &mut Dice, now: Time) -> (Vec<Connection>, ConnectionTotals) {
    let ends = [
        ConnectionEnd::Closed,
        ConnectionEnd::Unresolved,
        ConnectionEnd::Refused(ConnectionRefusal::NotGranted),
    ];
    let count = if dice.once_in(50) { u64::from(limit::CALL_CONNECTIONS_MAX) } else { dice.below(3) };
    let ended = (0..count).map(|_| Connection {
        host: "a.example.org".to_owned(),
        port: 443,
        address: None,
        started: now,
        duration_ms: dice.below(1_000),
        sent_bytes: dice.below(10_000),
        received_bytes: dice.below(10_000),
        end: dice.pick(&ends).unwrap_or(ConnectionEnd::Broken),
    });
    let ended = ended.collect();
    (ended, ConnectionTotals { count: dice.below(2), ..ConnectionTotals::default() })
}

fn report_call(dice: &mut Dice, world: &World, now: Time) -> InputKind {
    let running: Vec<CallId> =
        world.calls().all().filter(|(_, call)| call.is_running()).map(|(id, _)| id).collect();
    let id = dice.pick(&running).unwrap_or_else(|| CallId(dice.below(200)));
    let Some(call) = world.call(id) else {
        let used = Used::Unknown;
        return InputKind::Report(Report::Done(Done::new(id, 1, used, Body::default())));
    };
    let text = said(dice);
    // Sometimes an attempt that ended long ago reports again.
    let attempt = if dice.once_in(20) { call.attempt.saturating_sub(1) } else { call.attempt };
    if world.leads(id) && dice.once_in(2) {
        return InputKind::Report(Report::FirstToken(FirstToken { call: id, attempt }));
    }
    if matches!(call.work, Work::Model(_)) && dice.once_in(24) {
        let limits =
            [HeldBy::Breaker, HeldBy::Provider, HeldBy::ModelRate, HeldBy::RoleRate, HeldBy::TreeRate];
        let by = dice.pick(&limits).unwrap_or(HeldBy::Breaker);
        let most_ms = if dice.once_in(9) { 5_000_000 } else { 3_000 };
        let until = now.after_ms(dice.below(most_ms));
        return InputKind::Report(Report::HeldBack(HeldBack { call: id, attempt, by, until }));
    }
    if call.work.is_program() && dice.once_in(3) {
        let sessions = ["a", "b"].map(parse);
        let session = dice.pick(&sessions).unwrap_or_else(|| parse("c"));
        return InputKind::Report(Report::Session(Session { call: id, attempt, session }));
    }
    if call.work.is_program() && dice.once_in(6) {
        let of = world.agents().id(call.agent).clone();
        let start = FollowupStart::Anew(NoSession::Gone);
        return InputKind::Report(Report::FollowupStarted(FollowupStarted { call: id, attempt, of, start }));
    }
    if matches!(call.work, Work::Tool(_)) && dice.once_in(6) {
        return InputKind::Report(Report::Connections(connections(dice, id, attempt, now)));
    }
    InputKind::Report(match dice.below(20) {
        0..12 => Report::Done(Done {
            call: id,
            attempt,
            used: used(dice, &call.work),
            body: random_parts::body(dice, &text).with_thought(thought(dice)),
            asks: asks(dice, world, call),
            refused: if dice.once_in(20) { vec![refused_ask(dice)] } else { Vec::new() },
            is_error: false,
            mismatch: dice.once_in(6).then(|| Box::new(mismatch(dice))),
            stop: dice.pick(&STOPS).filter(|_| dice.once_in(4)).unwrap_or_default(),
            files: files(dice),
            removed: removed(dice),
            exit: None,
        }),
        12..18 => {
            Report::Failed(Failed { call: id, attempt, fault: fault(dice), used: used(dice, &call.work) })
        }
        _ => Report::Lost(Lost { call: id, attempt }),
    })
}

/// Sometimes one that is not there.
fn refused_ask(dice: &mut Dice) -> RefusedAsk {
    RefusedAsk { place: dice.below(3) as u32, reason: "its schema is invalid".to_owned() }
}

fn answer(dice: &mut Dice, world: &World) -> Request {
    let question = a_question(dice, world).unwrap_or_else(|| a_call(dice, world));
    let text = if dice.once_in(3) { "no" } else { "yes" };
    let always = always(dice, world, question).filter(|_| dice.once_in(2));
    Request::Answer(
        always.map_or_else(|| Answer::new(question, text), |remember| Answer::always(question, remember)),
    )
}

/// Mostly one of the open questions, first those about hosts.
fn a_question(dice: &mut Dice, world: &World) -> Option<CallId> {
    let about_hosts: Vec<CallId> = questions(world, true).collect();
    let open = if about_hosts.is_empty() { questions(world, false).collect() } else { about_hosts };
    dice.pick(&open).filter(|_| !dice.once_in(4))
}

/// The open questions, or only those about hosts.
fn questions(world: &World, about_hosts: bool) -> impl Iterator<Item = CallId> {
    world.calls().all().filter_map(move |(id, call)| match &call.work {
        Work::Question(question) if !about_hosts || !question.network.is_denied() => Some(id),
        _ => None,
    })
}

/// An approval of more than one call: what is offered, or sometimes something else.
fn always(dice: &mut Dice, world: &World, question: CallId) -> Option<RememberedApproval> {
    let Work::Question(question) = &world.call(question)?.work else { return None };
    question.approves.as_ref()?;
    let scope = dice.pick(&[ApprovalScope::Agent, ApprovalScope::Tree])?;
    let other = SubjectPattern::Beginning(String::new());
    let offered = question.offered(world.definition()).filter(|_| !dice.once_in(5));
    Some(RememberedApproval { scope, pattern: offered.unwrap_or(other) })
}

/// Sometimes files, a few of them larger than an agent may write.
fn files(dice: &mut Dice) -> Vec<StoredFile> {
    let count = if dice.once_in(4) { dice.between(1, 3) } else { 0 };
    let file = |dice: &mut Dice| {
        let path = output_path(dice);
        let bytes = if dice.once_in(9) { 900_000 } else { dice.below(5_000) };
        StoredFile { path, blob: BlobRef { hash: BlobHash::digest(&bytes.to_le_bytes()), bytes } }
    };
    (0..count).map(|_| file(dice)).collect()
}

/// Sometimes files that a tool removed, whether they were there or not.
fn removed(dice: &mut Dice) -> Vec<OutputPath> {
    if dice.once_in(6) { vec![output_path(dice)] } else { Vec::new() }
}

fn output_path(dice: &mut Dice) -> OutputPath {
    parse(dice.pick(&["plan.md", "notes/a.md", "notes/b.md", "data/1.csv"]).unwrap_or("plan.md"))
}

/// Sometimes a model's reasoning.
fn thought(dice: &mut Dice) -> Option<Thought> {
    let blob = |number: u64| BlobRef { hash: BlobHash::digest(&number.to_le_bytes()), bytes: 8 };
    dice.once_in(5).then(|| Thought {
        model: parse("nobody"),
        continuation: Some(blob(dice.below(9))),
        reasoning: dice.once_in(2).then(|| blob(9)),
        tokens: dice.below(40),
    })
}

/// A mismatch, with a short or a long explanation.
fn mismatch(dice: &mut Dice) -> Mismatch {
    let kinds = [MismatchKind::NotJson, MismatchKind::Value, MismatchKind::TooMuch, MismatchKind::Schema];
    let kind = dice.pick(&kinds).unwrap_or(MismatchKind::Value);
    let wrong = FieldMismatch { path: "/a".repeat(dice.below(100) as usize), expected: said(dice) };
    Mismatch { kind, wrong: vec![wrong; dice.below(5) as usize], more: dice.below(3) as u32 }
}

/// Empty, short, or larger than a window.
fn said(dice: &mut Dice) -> String {
    match dice.below(4) {
        0 => String::new(),
        1 => "so far ".repeat(dice.between(1, 150) as usize),
        _ => "here".to_owned(),
    }
}

/// Mostly within the hold, sometimes beyond, sometimes unknown.
fn used(dice: &mut Dice, work: &Work) -> Used {
    if dice.once_in(8) {
        return Used::Unknown;
    }
    match work {
        Work::Model(work) => {
            let cap = if dice.once_in(6) { work.output_cap * 6 + 50 } else { work.output_cap };
            // A provider whose tokens are estimated reports anything up to the bound.
            let input = match work.estimate {
                Some(_) => dice.below(work.input_tokens + 1),
                None => work.input_tokens,
            };
            let cached = dice.below(input + 1);
            let written = dice.below(input - cached + 1);
            let (minutes, hour) = match work.writes() {
                CacheWrites::None => (0, 0),
                CacheWrites::Minutes => (written, 0),
                CacheWrites::Hour => (written / 2, written - written / 2),
            };
            let (output, reasoning) = (dice.below(cap / 2 + 1), dice.below(cap / 2 + 1));
            Used::Tokens(Usage {
                input: input - cached - minutes - hour,
                cached_input: cached,
                cache_write: minutes,
                cache_write_1h: hour,
                output,
                reasoning,
                ..Usage::default()
            })
        }
        Work::Tool(work) => Used::CostNanos(dice.below(work.cost_nanos_max + 1)),
        Work::Child(_) | Work::Wait(_) | Work::Question(_) => Used::Unknown,
    }
}

/// Which cache writes a request can cause.
const WRITES: [CacheWrites; 3] = [CacheWrites::None, CacheWrites::Minutes, CacheWrites::Hour];

/// Why a model may stop.
const STOPS: [StopReason; 6] = [
    StopReason::ToolCalls,
    StopReason::OutputCap,
    StopReason::OutputCap,
    StopReason::ContentFilter,
    StopReason::Refusal,
    StopReason::Other,
];

fn fault(dice: &mut Dice) -> Fault {
    let kinds = [
        FaultKind::RateLimit,
        FaultKind::Server,
        FaultKind::Timeout,
        FaultKind::Cut,
        FaultKind::Auth,
        FaultKind::Invalid,
        FaultKind::Overloaded,
        FaultKind::OutOfCredit,
        FaultKind::ContextTooLong,
        FaultKind::ContentFilter,
        FaultKind::Declined,
        FaultKind::Stopped,
    ];
    let kind = dice.pick(&kinds).unwrap_or(FaultKind::Server);
    Fault { retry_after_ms: dice.once_in(3).then(|| dice.below(900_000)), ..Fault::new(kind) }
}

fn gate(dice: &mut Dice, now: Time) -> InputKind {
    let model = parse(dice.pick(&MODELS).unwrap_or("big"));
    InputKind::Report(match dice.below(4) {
        0 => Report::Breaker(Breaker { model, breaker: Gate::Open }),
        1 | 2 => Report::Breaker(Breaker { model, breaker: Gate::Closed }),
        _ => Report::Rate(Rate { model, until: now.after_ms(dice.below(3_000)), cause: RateKind::Pause }),
    })
}

fn a_running_tool(world: &World, agent: &AgentId) -> Option<CallId> {
    let is_its = |call: &spinney_kernel::world::Call| {
        world.agents().id(call.agent) == agent && call.is_running() && matches!(call.work, Work::Tool(_))
    };
    world.calls().all().find(|(_, call)| is_its(call)).map(|(id, _)| id)
}

fn question(dice: &mut Dice) -> Question {
    let on_timeout = match dice.below(3) {
        0 => OnTimeout::Fail,
        1 => OnTimeout::answer("fine"),
        _ => OnTimeout::Cancel,
    };
    // A `no` is refused then.
    let choices = ["yes", "fine"].map(str::to_owned).to_vec();
    let form = if dice.once_in(4) { AnswerForm::Choices(choices) } else { AnswerForm::Text };
    Question::new("May I?", on_timeout).in_form(form)
}

fn wait_for(dice: &mut Dice, world: &World, agent: &AgentId) -> WaitFor {
    let children: Vec<AgentId> = match world.agents().find(agent) {
        Some(ix) => world.agents().children(ix).map(|child| world.agents().id(child).clone()).collect(),
        None => Vec::new(),
    };
    match dice.pick(&children) {
        Some(child) if !dice.once_in(4) => {
            let agents = if dice.once_in(2) { children } else { vec![child] };
            let need = match dice.below(4) {
                0 => WaitNeed::All,
                1 => WaitNeed::Any,
                2 => WaitNeed::First(1 + dice.below(3) as u32),
                _ => WaitNeed::Majority,
            };
            let sources = if dice.once_in(4) { Sources::Listed } else { Sources::LeftOut };
            WaitFor::Children { agents, need, sources }
        }
        _ if dice.once_in(5) => WaitFor::Children {
            agents: vec![an_agent(dice, world)],
            need: WaitNeed::All,
            sources: Sources::LeftOut,
        },
        _ => WaitFor::Message,
    }
}

fn some_amounts(dice: &mut Dice) -> Amounts {
    let amounts = Amounts::cost(dice.below(100_000)).with(Resource::Tokens, dice.below(100));
    if dice.once_in(20) {
        amounts.with(Resource::Cost, u64::MAX)
    } else {
        amounts.with(Resource::Steps, dice.below(3))
    }
}

/// The id of the root.
pub(super) fn root(world: &World) -> AgentId {
    world.agents().root().map_or_else(|| parse("lead"), |root| world.agents().id(root).clone())
}

/// Mostly a living agent; sometimes one that ended or never existed.
pub(super) fn an_agent(dice: &mut Dice, world: &World) -> AgentId {
    let all: Vec<AgentId> = world.agents().all().map(|ix| world.agents().id(ix).clone()).collect();
    let living: Vec<AgentId> = world
        .agents()
        .all()
        .filter(|ix| world.agents().living(*ix).is_some())
        .map(|ix| world.agents().id(ix).clone())
        .collect();
    let picked = if dice.once_in(12) { dice.pick(&all) } else { dice.pick(&living) };
    if dice.once_in(60) { parse("nobody-here") } else { picked.unwrap_or_else(|| root(world)) }
}

fn a_call(dice: &mut Dice, world: &World) -> CallId {
    let open: Vec<CallId> = world.calls().all().map(|(id, _)| id).collect();
    dice.pick(&open).unwrap_or_else(|| CallId(dice.below(50)))
}

fn a_timer(dice: &mut Dice, world: &World) -> TimerId {
    // Mostly the earliest, as a process fires them; a late one comes after later ones.
    if let Some(first) = world.alarms().min_by_key(|alarm| alarm.at).filter(|_| !dice.once_in(6)) {
        return first.timer;
    }
    let pending: Vec<TimerId> = world.alarms().map(|alarm| alarm.timer).collect();
    dice.pick(&pending).unwrap_or_else(|| TimerId::after(dice.below(50)))
}
