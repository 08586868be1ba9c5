//! Plays a row through a gateway and a tree, with a provider that bills what the row says, and compares the bill with what
//! was held and booked.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::join_all;
use serde_json::Value;
use spinney::bus::Watch;
use spinney_kernel::budget::Resource;
use spinney_kernel::definition::OnLow;
use spinney_kernel::primitives::{CallId, Seq};
use spinney_kernel::record::Event;
use spinney_server::gateway::{Bodies, ExecBudget, ModelRules, OnLimit};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::bill::Billed;
use super::row::{Fate, ForgedCall, Reply, ReplyEnd, Row, UP_TO_CAP, usage, whole};
use crate::provider::{Format, Got, Provider, script};
use crate::run::{TestRun, settings};

/// What a server writes that finds no output cap.
const UNCAPPED_TOKENS: u64 = 1_000_000;

/// A row that is played.
struct Played {
    row: Row,
    /// The request that is on its way.
    current: AtomicUsize,
    /// What was billed, by request.
    bills: Mutex<Vec<(usize, u128)>>,
}

/// The row that the provider plays.
type PlayedRow = Arc<Mutex<Option<Arc<Played>>>>;

/// What the journal says about a call.
#[derive(Clone, Copy, Debug)]
struct Booked {
    held: u64,
    /// None while it runs.
    spent: Option<u64>,
}

/// Plays rows one after the other in one run. Returns what is wrong with each.
pub(super) async fn play(rows: Vec<Row>) -> Vec<Result<(), String>> {
    let (Some(first), mut results) = (rows.first(), Vec::new()) else { return Vec::new() };
    let stage = PlayedRow::default();
    let provider = provider(&stage).await;
    let run = start(&provider, first).await;
    for row in rows {
        let name = row.name();
        let played = Arc::new(Played { row, current: AtomicUsize::new(0), bills: Mutex::default() });
        *stage.lock().unwrap() = Some(Arc::clone(&played));
        let result = played.play(&run).await;
        results.push(result.map_err(|wrong| format!("{name}: {wrong}")));
    }
    results
}

impl Fate {
    fn check(self, was_sent: bool, status: u16, text: &str) -> Result<(), String> {
        match (self, was_sent) {
            (Self::Sent, false) => Err(format!("was refused: {status} {text}")),
            (Self::Refused, true) => Err("was sent".to_owned()),
            (Self::Refused, false) if !(400..500).contains(&status) => {
                Err(format!("was refused with status {status}: {text}"))
            }
            (Self::Sent, true) | (Self::Refused, false) => Ok(()),
        }
    }
}

async fn start(provider: &Provider, row: &Row) -> TestRun {
    let mut settings = settings(provider);
    let servers = &mut settings.servers;
    for server in [&mut servers.anthropic, &mut servers.open_ai, &mut servers.gemini] {
        server.kind = Some(row.upstream);
    }
    settings.models = ModelRules { prices_of: vec![row.prices_of.to_owned()], ..ModelRules::default() };
    settings.on_limit = OnLimit::Stop;
    settings.bodies = Bodies::Dropped;
    let (cost_nanos, on_low) = (Some(row.ceiling), OnLow::Shrink);
    let budget = ExecBudget { cost_nanos, on_low, ..ExecBudget::default() };
    TestRun::start_with(settings, &budget).await
}

async fn send(run: &TestRun, row: &Row, call: &ForgedCall) -> (u16, String) {
    let query = if row.query.is_empty() { String::new() } else { format!("?{}", row.query) };
    let mut post = run.post_to(row.format, &format!("{}{query}", row.path()), call.body.clone());
    for (name, value) in &row.headers {
        post = post.header(*name, value);
    }
    match post.send().await {
        Ok(response) => (response.status().as_u16(), response.text().await.unwrap_or_default()),
        Err(error) => (0, error.to_string()),
    }
}

async fn provider(stage: &PlayedRow) -> Provider {
    let stage = Arc::clone(stage);
    Provider::start(script(move |got, stream| {
        let played = stage.lock().unwrap().clone().unwrap();
        async move {
            let reply = match got.path().split('?').next().unwrap_or_default() {
                path if path == played.row.path() => played.answer(&got),
                _ => played.row.counter.clone().unwrap_or_else(|| Reply::status(404, "{}")),
            };
            write_reply(stream, reply).await;
        }
    }))
    .await
}

impl Played {
    async fn play(&self, run: &TestRun) -> Result<(), String> {
        let (row, since) = (&self.row, run.snapshot().await.seq);
        if row.is_parallel {
            join_all(row.calls.iter().map(|call| send(run, row, call))).await;
            if self.bills.lock().unwrap().len() < row.calls.len() {
                return Err("not all calls were sent".to_owned());
            }
        } else {
            for (at, call) in row.calls.iter().enumerate() {
                self.current.store(at, Ordering::Release);
                let (status, text) = send(run, row, call).await;
                let was_sent = self.bills.lock().unwrap().iter().any(|(sent, _)| *sent == at);
                call.fate.check(was_sent, status, &text).map_err(|wrong| format!("call {at} {wrong}"))?;
            }
        }
        self.check(run, since).await
    }

    /// Compares each bill with its hold and its booking, and what is spent and held with the ceiling, after every event.
    async fn check(&self, run: &TestRun, since: Seq) -> Result<(), String> {
        let mut bills = self.bills.lock().unwrap().clone();
        bills.sort_by_key(|(at, _)| *at);
        let ceiling = self.row.ceiling;
        let mut calls: BTreeMap<CallId, Booked> = BTreeMap::new();
        let mut events = run.tree.watch(Watch::after(since));
        while calls.values().filter(|call| call.spent.is_some()).count() < bills.len() {
            match events.next_event().await.unwrap().unwrap().recorded.event.clone() {
                Event::CallStarted { call, held, .. } => {
                    calls.insert(call, Booked { held: held.get(Resource::Cost), spent: None });
                }
                Event::CallEnded { call, spent, .. } => {
                    if let Some(call) = calls.get_mut(&call) {
                        call.spent = Some(spent.get(Resource::Cost));
                    }
                }
                _ => {}
            }
            let taken: u64 = calls.values().map(|call| call.spent.unwrap_or(call.held)).sum();
            if taken > ceiling {
                return Err(format!("{taken} spent and held of {ceiling}"));
            }
        }
        for ((at, bill), Booked { held, spent }) in bills.into_iter().zip(calls.into_values()) {
            let spent = spent.unwrap_or_default();
            let held = if self.row.has_lying_counter { spent } else { held };
            for (amount, what) in [(spent, "booked"), (held, "held")] {
                if u128::from(amount) * 1_000_000 < bill {
                    return Err(format!("call {at}: {amount} {what}, {} billed", bill / 1_000_000));
                }
            }
        }
        let root = &run.snapshot().await.agents[0];
        let taken = root.spent.get(Resource::Cost) + root.held.get(Resource::Cost);
        if taken > ceiling { Err(format!("{taken} spent and held of {ceiling}")) } else { Ok(()) }
    }

    fn answer(&self, got: &Got) -> Reply {
        let (row, at) = (&self.row, self.current.load(Ordering::Acquire));
        let ForgedCall { bill, answer, .. } = &row.calls[at];
        let output = if bill.output == UP_TO_CAP { row.cap(got) } else { bill.output };
        let bill = Billed { output, ..*bill };
        self.bills.lock().unwrap().push((at, bill.cost(row.prices_of, &row.model)));
        match answer {
            Some(answer) => answer(&bill),
            None => honest(row.format, &bill),
        }
    }
}

impl Row {
    /// The cap that the server reads in what it got.
    fn cap(&self, got: &Got) -> u64 {
        let body: Value = serde_json::from_slice(&got.body).unwrap();
        let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
        let caps = self.cap_names.iter().filter_map(|name| number(body.pointer(&format!("/{name}"))?));
        caps.into_iter().next().unwrap_or(UNCAPPED_TOKENS)
    }
}

fn honest(format: Format, billed: &Billed) -> Reply {
    Reply::json(&whole(format, &usage(format, billed)))
}

async fn write_reply(mut stream: TcpStream, Reply { status, media, body, end }: Reply) {
    if end == ReplyEnd::Silent {
        return std::future::pending().await;
    }
    let length = body.len() + usize::from(end == ReplyEnd::Cut);
    let head = format!(
        "HTTP/1.1 {status} Status\r\ncontent-type: {media}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body.as_bytes()).await;
    let _ = stream.shutdown().await;
}
