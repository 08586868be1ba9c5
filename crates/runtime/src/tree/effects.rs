//! Effects: calls of models and tools as tasks. Each can be stopped, and each ends in exactly one report.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use spinney_kernel::Report;
use spinney_kernel::fault::{Fault, FaultKind};
use spinney_kernel::id::{CallId, ModelName};
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{self, Deltas, Missed, Model};
use spinney_kernel::port::tool;
use spinney_kernel::report::{Done, Failed, Used};
use tokio::sync::mpsc::Sender;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::payload::{Payload, payload};
use crate::drivers::Drivers;

/// Most reports that wait for a tree; then effects that ended wait too.
pub(super) const REPORTS_MAX: usize = 1_024;

/// What an effect brings back: the report, and bytes that are too large to stand in it.
pub(super) struct Brought {
    pub(super) report: Report,
    pub(super) blobs: Vec<Vec<u8>>,
}

/// The calls of one tree that are out.
pub(super) struct Effects {
    drivers: Arc<Drivers>,
    reports: Sender<Brought>,
    out: BTreeMap<CallId, Out>,
}

struct Out {
    stop: CancellationToken,
    task: AbortHandle,
}

/// Which attempt at which call.
#[derive(Clone, Copy)]
pub(super) struct Ticket {
    pub(super) call: CallId,
    pub(super) attempt: u32,
}

impl Effects {
    pub(super) fn new(drivers: Arc<Drivers>, reports: Sender<Brought>) -> Self {
        Self { drivers, reports, out: BTreeMap::new() }
    }

    /// How many are out.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// Starts an attempt at a model call.
    pub(super) fn call_model(&mut self, ticket: Ticket, attempt: model::Attempt) {
        let (drivers, stop) = (Arc::clone(&self.drivers), CancellationToken::new());
        let stopped = stop.clone();
        self.start(ticket.call, stop, async move {
            let name = attempt.model.clone();
            match drivers.model(&name).cloned() {
                Some(driver) => {
                    let ended = call_model(driver.as_ref(), attempt, stopped).await;
                    model_report(&drivers, &name, ticket, ended)
                }
                None => failed(ticket, missing(&format!("model `{name}`"))),
            }
        });
    }

    /// Starts an attempt at a tool call. The text that comes back is counted for `reader`.
    pub(super) fn call_tool(
        &mut self,
        ticket: Ticket,
        attempt: tool::Attempt,
        timeout_ms: u64,
        reader: ModelName,
    ) {
        let (drivers, stop) = (Arc::clone(&self.drivers), CancellationToken::new());
        let stopped = stop.clone();
        self.start(ticket.call, stop, async move {
            let name = attempt.tool.clone();
            match drivers.tool(&name).cloned() {
                Some(driver) => {
                    let calling =
                        tokio::time::timeout(Duration::from_millis(timeout_ms), driver.call(attempt));
                    let calling = calling.map(move |ended| ended.unwrap_or_else(|_| Err(late(timeout_ms))));
                    let ended = until_stopped(Box::pin(calling), stopped).await;
                    tool_report(
                        &drivers,
                        &reader,
                        ticket,
                        ended.unwrap_or_else(|| Err(stopped_with(Used::Unknown))),
                    )
                }
                None => failed(ticket, missing(&format!("tool `{name}`"))),
            }
        });
    }

    /// Tells a call to stop; it still reports.
    pub(super) fn stop(&self, call: CallId) {
        if let Some(out) = self.out.get(&call) {
            out.stop.cancel();
        }
    }

    /// A call has reported.
    pub(super) fn ended(&mut self, call: CallId) {
        self.out.remove(&call);
    }

    fn start(
        &mut self,
        call: CallId,
        stop: CancellationToken,
        work: impl Future<Output = Brought> + Send + 'static,
    ) {
        let reports = self.reports.clone();
        let task = tokio::spawn(async move {
            let brought = work.await;
            // If nobody listens the tree is gone, and its recovery settles this call.
            let _ = reports.send(brought).await;
        });
        self.out.insert(call, Out { stop, task: task.abort_handle() });
    }
}

impl Drop for Effects {
    /// Nothing outlives its tree.
    fn drop(&mut self) {
        self.out.values().for_each(|out| out.task.abort());
    }
}

async fn call_model(
    driver: &dyn Model,
    attempt: model::Attempt,
    stop: CancellationToken,
) -> Result<model::Answer, Missed> {
    let attempt = Arc::new(attempt);
    let said = Arc::new(Mutex::new(String::new()));
    let deltas: Deltas = {
        let said = Arc::clone(&said);
        Arc::new(move |text: &str| said.lock().unwrap_or_else(PoisonError::into_inner).push_str(text))
    };
    match until_stopped(driver.call(Arc::clone(&attempt), deltas), stop).await {
        Some(ended) => ended,
        None => {
            let said = said.lock().unwrap_or_else(PoisonError::into_inner);
            Err(stopped_with(driver.used_when_stopped(&attempt, &said)))
        }
    }
}

/// What a driver brings, unless it is stopped first. A driver that panics has failed, and nobody else.
async fn until_stopped<T>(
    work: Pending<Result<T, Missed>>,
    stop: CancellationToken,
) -> Option<Result<T, Missed>> {
    let mut work = AssertUnwindSafe(work).catch_unwind();
    let ended = tokio::select! {
        biased;
        ended = &mut work => ended,
        () = stop.cancelled() => return None,
    };
    Some(ended.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<&str>().map(ToString::to_string);
        let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        let message = format!("the driver panicked: {words}");
        Err(Missed { fault: Fault { message, ..Fault::of(FaultKind::Invalid) }, used: Used::Unknown })
    }))
}

fn stopped_with(used: Used) -> Missed {
    Missed { fault: Fault::of(FaultKind::Stopped), used }
}

fn late(timeout_ms: u64) -> Missed {
    let message = format!("no end after {timeout_ms} ms");
    Missed { fault: Fault { message, ..Fault::of(FaultKind::Timeout) }, used: Used::Unknown }
}

fn missing(what: &str) -> Missed {
    let message = format!("no driver for {what}: register one under that name");
    Missed { fault: Fault { message, ..Fault::of(FaultKind::Invalid) }, used: Used::NOTHING }
}

fn failed(Ticket { call, attempt }: Ticket, Missed { fault, used }: Missed) -> Brought {
    Brought { report: Report::Failed(Failed { call, attempt, fault, used }), blobs: Vec::new() }
}

fn model_report(
    drivers: &Drivers,
    model: &ModelName,
    ticket: Ticket,
    ended: Result<model::Answer, Missed>,
) -> Brought {
    let model::Answer { text, mut asks, used } = match ended {
        Ok(answer) => answer,
        Err(missed) => return failed(ticket, missed),
    };
    for ask in &mut asks {
        let tokens = |text: &str| drivers.tokens(model, text);
        ask.tokens = Some(tokens(&ask.id) + tokens(&ask.tool) + tokens(&ask.args));
    }
    let Payload { body, blobs } = payload(text, |text| drivers.tokens(model, text));
    let Ticket { call, attempt } = ticket;
    let report = Report::Done(Done { call, attempt, used, body, asks, is_error: false });
    Brought { report, blobs }
}

fn tool_report(
    drivers: &Drivers,
    reader: &ModelName,
    ticket: Ticket,
    ended: Result<tool::Answer, Missed>,
) -> Brought {
    let tool::Answer { text, is_error, used } = match ended {
        Ok(answer) => answer,
        Err(missed) => return failed(ticket, missed),
    };
    let Payload { body, blobs } = payload(text, |text| drivers.tokens(reader, text));
    let Ticket { call, attempt } = ticket;
    let report = Report::Done(Done { call, attempt, used, body, asks: Vec::new(), is_error });
    Brought { report, blobs }
}
