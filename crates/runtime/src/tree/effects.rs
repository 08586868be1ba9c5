//! Effects: calls of models and tools as tasks. Each can be stopped, and each ends in exactly one report.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use spinney_journal::Journal;
use spinney_kernel::budget::Used;
use spinney_kernel::context::{Contexts, Origin, SharedText};
use spinney_kernel::definition::Builtin;
use spinney_kernel::port::blobs::{BlobReader, missed};
use spinney_kernel::port::model::{AttemptError, DeltaKind, Deltas, Model};
use spinney_kernel::port::{ModelHandle, Pending, PersonHandle, model, tool};
use spinney_kernel::primitives::{
    AgentId, CallId, Fault, FaultKind, Millis, ModelName, Part, SessionId, WrittenFile, limit,
};
use spinney_kernel::record::{FollowupStart, ToolAsk};
use spinney_kernel::rules::report::{Done, Failed, Report};
use spinney_kernel::world::World;
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::Tree;
use super::asked_model::AskedModel;
use super::connections::CallConnections;
use super::hooked::{Ended, Verdict, Veto};
use super::live_text::LiveText;
use super::payload::{Payload, returned_with, said};
use super::person::CallPerson;
use super::prepared::{ModelStart, Preparing, ProgramToRun, ToolStart};
use super::program::{ProgramRun, ProgramRunner, ProgramSessions};
use super::redacted::redacted;
use crate::bus::Hub;
use crate::call_limits::{CallLimits, CallPass, NotYet, Sending};
use crate::clock::Clock;
use crate::drivers::Drivers;
use crate::hooks::{Returned, TreeHooks};
use crate::output_schema;

/// Capacity of the report channel; beyond it, ended effects wait as well.
pub(super) const REPORTS_MAX: usize = 1_024;

/// Capacity to keep for running calls.
const OUT_KEPT: usize = 16;

/// The result of an effect.
#[expect(clippy::large_enum_variant, reason = "there is one for each effect, and it is moved once")]
pub(super) enum EffectResult {
    /// How it ended, and blobs that are too large for the report. Exactly once.
    Report(Report, Vec<Vec<u8>>),
    /// The answer of a call that others wait for began to arrive.
    FirstToken(Ticket),
    /// Connections of a running tool have ended.
    Connections(CallId),
    /// A program named the session that it is continued by.
    Session(Ticket, SessionId),
    /// A program with a follow-up of this agent begins.
    FollowupStarted(Ticket, AgentId, FollowupStart),
    /// A hook refused the charge: before the report, or after it if the call was stopped meanwhile.
    Veto(Veto),
}

/// The running calls of one tree.
pub(super) struct Effects {
    /// To ask for running tools.
    pub(super) tree: Tree,
    pub(super) drivers: Drivers,
    pub(super) hooks: Option<Arc<dyn TreeHooks>>,
    /// Shared by all trees of the home.
    pub(super) limits: Arc<CallLimits>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) reports: Sender<EffectResult>,
    /// By call. The newest usually end first, so a queue moves little.
    pub(super) out: VecDeque<Out>,
    pub(super) hub: Arc<Hub>,
    pub(super) blobs: BlobReader,
    pub(super) programs: Option<Programs>,
}

/// Who runs programs that are agents, and the tree that they are agents of.
pub(super) struct Programs {
    pub(super) runner: Arc<dyn ProgramRunner>,
    pub(super) tree: Tree,
}

pub(super) struct Out {
    call: CallId,
    /// `None` once it was told to stop.
    stop: Option<oneshot::Sender<()>>,
    task: AbortHandle,
    /// Those of a tool.
    connections: Option<Arc<CallConnections>>,
}

/// Signals once that a call must stop.
pub(super) type Stop = oneshot::Receiver<()>;

#[derive(Clone, Copy)]
pub(super) struct Ticket {
    pub(super) call: CallId,
    pub(super) attempt: u32,
}

impl Effects {
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    pub(super) fn preparing<'a>(&'a self, world: &'a World, contexts: &'a Contexts) -> Preparing<'a> {
        let (hooks, workspaces) = (self.hooks.as_ref(), self.drivers.workspaces());
        Preparing { world, contexts, blobs: &self.blobs, hooks, workspaces }
    }

    /// Asks the limits that all trees share whether a model call may be sent. A model without a driver has none.
    pub(super) fn admit(&self, start: &ModelStart) -> Result<Option<Box<CallPass>>, NotYet> {
        let ModelStart { ticket, attempt, input_tokens, rates, is_of_program, .. } = start;
        if *is_of_program {
            return Ok(None);
        }
        let Some(driver) = self.drivers.model(&attempt.model) else { return Ok(None) };
        let sending = Sending {
            tree: self.tree.id(),
            call: ticket.call,
            role: &attempt.origin.role,
            model: &attempt.model,
            input_tokens: *input_tokens,
            output_tokens: attempt.output_cap,
            rates: *rates,
        };
        // Boxed because a task is moved several times before it runs.
        self.limits.admit(&sending, driver, &self.clock).map(|pass| Some(Box::new(pass)))
    }

    pub(super) fn call_model(&mut self, start: ModelStart, pass: Option<Box<CallPass>>) {
        let ModelStart { ticket, attempt, hooked, leads, is_of_program, .. } = start;
        let of_program =
            self.programs.as_ref().filter(|_| is_of_program).map(|programs| programs.runner.model());
        let Ticket { call, attempt: number } = ticket;
        tracing::debug!(target: "spinney::effect", tree = %attempt.origin.tree, %call, attempt = number, model = %attempt.model, "call started");
        // A task is moved several times before it runs, so it carries little.
        let (drivers, attempt) = (self.drivers.clone(), Arc::new(attempt));
        let (stop, mut stopped) = oneshot::channel();
        let first = leads.then(|| self.reports.clone());
        let live = Arc::new(self.live_text(ticket, &attempt.origin));
        let listeners = Listeners { ticket, live, first };
        self.start(ticket, stop, None, async move {
            let Some(driver) = of_program.as_ref().or_else(|| drivers.model(&attempt.model)) else {
                return (failed(ticket, missing(&format!("model `{}`", attempt.model))), Verdict::Fine);
            };
            let called = Arc::clone(&attempt);
            let Some(hooked) = hooked else {
                let ended = call_model(driver.as_ref(), called, &mut stopped, listeners, pass).await;
                let expected = Expected::answer(&attempt);
                return (report(&drivers, ticket, ended.map(Returned::Model), expected), Verdict::Fine);
            };
            let call = async |stop: &mut Stop| {
                call_model(driver.as_ref(), called, stop, listeners, pass).await.map(Returned::Model)
            };
            // Boxed because most homes have no hooks.
            let (ended, verdict) = Box::pin(hooked.between(&mut stopped, call)).await;
            let expected = Expected::answer(&attempt);
            (report(&drivers, ticket, ended, expected), verdict)
        });
    }

    pub(super) fn call_tool(&mut self, start: ToolStart) {
        let ToolStart { ticket, mut attempt, model, timeout_ms, shown_bytes, program, hooked } = start;
        let live = Arc::new(self.live_text(ticket, &attempt.origin));
        attempt.watchers = watchers(&live);
        let connections = CallConnections::new(ticket, Arc::clone(&self.clock), self.reports.clone());
        attempt.connections = connections.log();
        let agent = attempt.origin.agent().clone();
        let (tree, call) = (self.tree.clone(), ticket.call);
        attempt.model =
            ModelHandle::new(AskedModel { tree: tree.clone(), agent: agent.clone(), model, call });
        attempt.person = PersonHandle::new(CallPerson { tree, agent, call });
        let expected = Expected::Output { shown_bytes };
        let Ticket { call, attempt: number } = ticket;
        tracing::debug!(target: "spinney::effect", tree = %attempt.origin.tree, %call, attempt = number, tool = %attempt.tool, "call started");
        let drivers = self.drivers.clone();
        let called = match program {
            Some(program) => self.program(program, ticket, attempt),
            None => tool_of(&drivers, attempt),
        };
        let (stop, mut stopped) = oneshot::channel();
        self.start(ticket, stop, Some(connections), async move {
            let called = match called {
                Ok(called) => called,
                Err(missing) => return (failed(ticket, missing), Verdict::Fine),
            };
            let Some(hooked) = hooked else {
                let ended = call_tool(called, timeout_ms, &mut stopped, &live).await;
                return (report(&drivers, ticket, ended.map(Returned::Tool), expected), Verdict::Fine);
            };
            let call =
                async |stop: &mut Stop| call_tool(called, timeout_ms, stop, &live).await.map(Returned::Tool);
            let (ended, verdict) = Box::pin(hooked.between(&mut stopped, call)).await;
            (report(&drivers, ticket, ended, expected), verdict)
        });
    }

    /// The program of an agent.
    fn program(
        &self,
        program: ProgramToRun,
        ticket: Ticket,
        attempt: tool::ToolAttempt,
    ) -> Result<ToolWork, AttemptError> {
        let Some((programs, starter)) = self.programs.as_ref().zip(self.drivers.program_starter()) else {
            return Err(missing("programs"));
        };
        let sessions = ProgramSessions::new(ticket, self.reports.clone());
        let run = ProgramRun::new(programs.tree.clone(), (program, sessions), attempt, Arc::clone(starter));
        Ok(programs.runner.run(run))
    }

    fn live_text(&self, ticket: Ticket, origin: &Arc<Origin>) -> LiveText {
        LiveText::new(ticket, Arc::clone(origin), Arc::clone(&self.hub), self.drivers.redactor().cloned())
    }

    /// Tells a call to stop; it still reports.
    pub(super) fn stop(&mut self, call: CallId) {
        if let Ok(at) = self.find(call)
            && let Some(stop) = self.out.get_mut(at).and_then(|out| out.stop.take())
        {
            // If the receiver is gone, it has ended.
            let _ = stop.send(());
        }
    }

    /// Removes a call that has ended, and reports the connections that are not recorded yet.
    pub(super) fn ended(&mut self, call: CallId) -> Option<Report> {
        let removed = self.find(call).ok().and_then(|at| self.out.remove(at));
        // Free the memory of a large burst.
        if self.out.is_empty() && self.out.capacity() > OUT_KEPT {
            self.out.shrink_to(OUT_KEPT);
        }
        removed?.connections?.finish()
    }

    /// The connections of a running call that have ended since the last report.
    pub(super) fn connections(&self, call: CallId) -> Option<Report> {
        self.out[self.find(call).ok()?].connections.as_ref()?.take()
    }

    /// The index of a call, or where to insert it.
    fn find(&self, call: CallId) -> Result<usize, usize> {
        match self.out.front() {
            Some(first) if first.call == call => Ok(0),
            Some(_) => self.out.binary_search_by_key(&call, |out| out.call),
            None => Err(0),
        }
    }

    fn start(
        &mut self,
        ticket: Ticket,
        stop: oneshot::Sender<()>,
        connections: Option<Arc<CallConnections>>,
        work: impl Future<Output = (EffectResult, Verdict)> + Send + 'static,
    ) {
        let reports = self.reports.clone();
        let task = tokio::spawn(async move {
            // The panic affects only this call.
            let (brought, verdict) = AssertUnwindSafe(work)
                .catch_unwind()
                .await
                .unwrap_or_else(|_| (failed(ticket, panicked()), Verdict::Fine));
            // Without a receiver the tree is gone, and its recovery settles this call.
            match verdict {
                Verdict::Fine => drop(reports.send(brought).await),
                Verdict::Refused(veto) => {
                    // Sent first, so the agent does not act on the result.
                    let _ = reports.send(EffectResult::Veto(veto)).await;
                    let _ = reports.send(brought).await;
                }
                Verdict::Later(looking) => {
                    let _ = reports.send(brought).await;
                    if let Ok(Some(veto)) = looking.await {
                        let _ = reports.send(EffectResult::Veto(veto)).await;
                    }
                }
            }
        });
        let out = Out { call: ticket.call, stop: Some(stop), task: task.abort_handle(), connections };
        match self.find(ticket.call) {
            Ok(at) => self.out[at] = out,
            Err(at) => self.out.insert(at, out),
        }
    }
}

pub(super) fn blob_reader(journal: Arc<dyn Journal>) -> BlobReader {
    BlobReader::new(move |blob, name| {
        let (read, name) = (journal.blob(blob), name.to_owned());
        Box::pin(async move {
            match read.await {
                Ok(Some(bytes)) => Ok(bytes),
                Ok(None) => Err(missed(&name, "has no bytes in this home")),
                Err(fault) => Err(missed(&name, &format!("cannot be read: {fault}"))),
            }
        })
    })
}

impl Drop for Effects {
    /// Nothing outlives its tree.
    fn drop(&mut self) {
        self.out.iter().for_each(|out| out.task.abort());
        self.limits.forget(self.tree.id());
    }
}

/// Who receives an answer while it arrives.
struct Listeners {
    ticket: Ticket,
    live: Arc<LiveText>,
    /// Who learns that the answer has begun, if a call may wait for that.
    first: Option<Sender<EffectResult>>,
}

async fn call_model(
    driver: &dyn Model,
    attempt: Arc<model::ModelAttempt>,
    stop: &mut Stop,
    Listeners { ticket, live, first }: Listeners,
    pass: Option<Box<CallPass>>,
) -> Result<model::ModelAnswer, AttemptError> {
    let deltas: Deltas = {
        let live = Arc::clone(&live);
        Arc::new(move |kind: DeltaKind, text: &str| {
            let is_first = live.add(kind, text);
            if let Some(first) = first.as_ref().filter(|_| is_first) {
                // If this is lost, the others start when this call ends.
                let _ = first.try_send(EffectResult::FirstToken(ticket));
            }
        })
    };
    let ended = until_stopped(driver.call(Arc::clone(&attempt), deltas), stop).await;
    live.end();
    if let (Some(pass), Some(ended)) = (pass, &ended) {
        pass.end(ended);
    }
    match ended {
        Some(Ok(answer)) => joined(answer, &attempt).await,
        Some(Err(missed)) => Err(missed),
        None => Err(stopped_with(driver.used_when_stopped(&attempt, &live.text()))),
    }
}

/// The answer, appended to the cut one if it continues that.
async fn joined(
    mut answer: model::ModelAnswer,
    attempt: &model::ModelAttempt,
) -> Result<model::ModelAnswer, AttemptError> {
    let Some(cut) = attempt.cut_answer() else { return Ok(answer) };
    match cut.await {
        Ok(cut) => answer.text.insert_str(0, &String::from_utf8_lossy(&cut)),
        Err(missed) => return Err(AttemptError { used: answer.used, ..missed }),
    }
    Ok(answer)
}

/// Shows what a tool prints to the watchers of deltas.
fn watchers(live: &Arc<LiveText>) -> tool::OutputWatchers {
    let live = Arc::clone(live);
    tool::OutputWatchers::new(move |text| {
        live.add(DeltaKind::Output, text);
    })
}

type ToolWork = Pending<Result<tool::ToolAnswer, AttemptError>>;

fn tool_of(drivers: &Drivers, attempt: tool::ToolAttempt) -> Result<ToolWork, AttemptError> {
    match drivers.tool(&attempt.tool) {
        Some(driver) => Ok(driver.call(attempt)),
        None => Err(missing(&format!("tool `{}`", attempt.tool))),
    }
}

async fn call_tool(
    work: ToolWork,
    timeout_ms: u64,
    stop: &mut Stop,
    live: &LiveText,
) -> Result<tool::ToolAnswer, AttemptError> {
    let timed = tokio::time::timeout(Duration::from_millis(timeout_ms), work);
    let ended = until_stopped(timed, stop).await;
    live.end();
    match ended {
        Some(Ok(ended)) => ended.and_then(with_files_that_fit),
        Some(Err(_)) => Err(late(timeout_ms)),
        None => Err(stopped_with(Used::Unknown)),
    }
}

/// More files than one batch can hold are a fault of the tool: the journal would lack them.
fn with_files_that_fit(answer: tool::ToolAnswer) -> Result<tool::ToolAnswer, AttemptError> {
    let bytes = answer.files.iter().fold(0, |sum: usize, file| sum.saturating_add(file.bytes.len()));
    let (files_max, bytes_max) = (limit::CALL_FILES_MAX, limit::BLOB_BYTES_MAX);
    let (files, removed) = (answer.files.len(), answer.removed.len());
    if files.max(removed) <= files_max && bytes <= bytes_max {
        return Ok(answer);
    }
    let message = format!(
        "the tool wrote {files} files with {bytes} bytes and removed {removed} in one call, the limit is {files_max} files and {bytes_max} bytes"
    );
    Err(AttemptError { fault: Fault { message, ..Fault::new(FaultKind::Invalid) }, used: answer.used })
}

/// A driver that panics has failed. Its message stays out of the journal: the panic hook has reported it, and it may
/// contain anything.
pub(super) fn panicked() -> AttemptError {
    let message = "the driver panicked".to_owned();
    AttemptError { fault: Fault { message, ..Fault::new(FaultKind::Invalid) }, used: Used::Unknown }
}

/// The result of `work`, unless it is stopped first.
pub(super) async fn until_stopped<T>(work: impl Future<Output = T>, stop: &mut Stop) -> Option<T> {
    let can_hear = !stop.is_terminated();
    tokio::select! {
        biased;
        ended = work => Some(ended),
        // A dropped sender is not a stop.
        Ok(()) = stop, if can_hear => None,
    }
}

pub(super) fn stopped_with(used: Used) -> AttemptError {
    AttemptError { fault: Fault::new(FaultKind::Stopped), used }
}

fn late(timeout_ms: u64) -> AttemptError {
    let message = format!("no end after {}", Millis(timeout_ms));
    AttemptError { fault: Fault { message, ..Fault::new(FaultKind::Timeout) }, used: Used::Unknown }
}

fn missing(what: &str) -> AttemptError {
    let message = format!("no driver for {what}: register one under that name");
    AttemptError { fault: Fault { message, ..Fault::new(FaultKind::Invalid) }, used: Used::NOTHING }
}

fn failed(Ticket { call, attempt }: Ticket, AttemptError { mut fault, used }: AttemptError) -> EffectResult {
    fault.message.truncate(fault.message.floor_char_boundary(limit::NOTE_BYTES_MAX));
    EffectResult::Report(Report::Failed(Failed { call, attempt, fault, used }), Vec::new())
}

/// What is known about the result in advance.
#[derive(Clone, Copy)]
enum Expected<'a> {
    /// A model's answer, and its schema.
    Answer { model: &'a ModelName, schema: Option<&'a str> },
    /// A tool's output, and how many bytes of it are shown whole if the tool sets that.
    Output { shown_bytes: Option<u32> },
}

impl<'a> Expected<'a> {
    fn answer(attempt: &'a model::ModelAttempt) -> Self {
        Self::Answer { model: &attempt.model, schema: attempt.output_schema.as_deref() }
    }
}

fn report(drivers: &Drivers, ticket: Ticket, ended: Ended, expected: Expected<'_>) -> EffectResult {
    let ended = match drivers.journal_redactor() {
        Some(redactor) => redacted(redactor, ended),
        None => ended,
    };
    match (ended, expected) {
        (Ok(Returned::Model(answer)), Expected::Answer { model, schema }) => {
            model_report(drivers, ticket, answer, model, schema)
        }
        (Ok(Returned::Tool(answer)), Expected::Output { shown_bytes }) => {
            tool_report(drivers, ticket, answer, shown_bytes)
        }
        (Ok(Returned::Model(_) | Returned::Tool(_)), _) => {
            unreachable!("a call returns what its kind returns")
        }
        (Err(missed), _) => failed(ticket, missed),
    }
}

fn model_report(
    drivers: &Drivers,
    ticket: Ticket,
    answer: model::ModelAnswer,
    model: &ModelName,
    schema: Option<&str>,
) -> EffectResult {
    let model::ModelAnswer { mut text, reasoning, continuation, mut asks, used, stop, .. } = answer;
    let mut mismatch = None;
    // A turn with tool calls is not an answer.
    if let Some(schema) = schema.filter(|_| asks.is_empty()) {
        match output_schema::fit(schema, &text) {
            Ok(bare) if bare.len() == text.len() => {}
            Ok(bare) => text = bare.to_owned(),
            Err(found) => mismatch = Some(Box::new(found)),
        }
    }
    bound(&mut asks);
    for ask in &mut asks {
        ask.count(&|text| drivers.tokens(text));
    }
    let refused = output_schema::refused(&asks);
    let payload = said(text, |text| drivers.tokens(text));
    let Payload { body, mut blobs } = payload.with_thought(model, &reasoning, continuation, used);
    blobs.extend(asks.iter().filter_map(long_value));
    let Ticket { call, attempt } = ticket;
    let done = Done { asks, refused, mismatch, stop, ..Done::new(call, attempt, used, body) };
    EffectResult::Report(Report::Done(done), blobs)
}

/// The bytes of a long value that a tool call will share. The kernel refers to them by their hash.
fn long_value(ask: &ToolAsk) -> Option<Vec<u8>> {
    // White space is all that its JSON can lose.
    let is_long = ask.tool == Builtin::WriteContext.as_str() && ask.args.len() > limit::TEXT_BYTES_MAX;
    is_long.then(|| SharedText::in_args(&ask.args)).flatten()?.blob()
}

/// Cuts tool calls to the journal's limits. The kernel refuses arguments that are too long or cut.
fn bound(asks: &mut Vec<ToolAsk>) {
    asks.truncate(limit::ASKS_MAX);
    let mut room = limit::ASKS_BYTES_MAX;
    for ask in asks {
        ask.id.truncate(ask.id.floor_char_boundary(limit::NAME_BYTES_MAX));
        ask.tool.truncate(ask.tool.floor_char_boundary(limit::NAME_BYTES_MAX));
        let builtin = Builtin::ALL.into_iter().find(|builtin| builtin.as_str() == ask.tool);
        let most = room.min(builtin.map_or(limit::ARGS_BYTES_MAX, Builtin::args_bytes_max) + 1);
        ask.args.truncate(ask.args.floor_char_boundary(most));
        room -= ask.args.len();
    }
}

fn tool_report(
    drivers: &Drivers,
    ticket: Ticket,
    answer: tool::ToolAnswer,
    shown_bytes: Option<u32>,
) -> EffectResult {
    let tool::ToolAnswer { text, is_error, parts, files, removed, exit, used, .. } = answer;
    let count = |part: &mut Part, bytes: &[u8]| drivers.count_part(part, bytes);
    let Payload { body, mut blobs } =
        returned_with(text, parts, shown_bytes, |text| drivers.tokens(text), count);
    let Ticket { call, attempt } = ticket;
    let named = files.iter().map(WrittenFile::stored).collect();
    blobs.extend(files.into_iter().map(|file| file.bytes));
    let done = Done { is_error, files: named, removed, exit, ..Done::new(call, attempt, used, body) };
    EffectResult::Report(Report::Done(done), blobs)
}
