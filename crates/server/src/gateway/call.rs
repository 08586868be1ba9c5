//! One request of a program, from its bytes to its settled end: its agent, its model, its hold, the wait, the provider's
//! response, and what the journal keeps.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use spinney::clock::{Clock as _, SystemClock};
use spinney::tree::RequestError;
use spinney_drivers::http::BodyEnd;
use spinney_drivers::wire::{Secrets, WireFault, WireFaultKind};
use spinney_kernel::budget::{Resource, Used};
use spinney_kernel::definition::Refusal;
use spinney_kernel::port::model::{AttemptError, ModelAnswer};
use spinney_kernel::primitives::{
    Actor, AgentId, Body, CallId, Enclosure, Fault, FaultKind, MediaType, ModelName, PartName, Time, enclose,
    limit,
};
use spinney_kernel::record::WaitReason;
use spinney_kernel::rules::request::{Hold, HoldFor, HoldReply};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::budget_line::budget_line;
use super::client::Client;
use super::kept_response::KeptResponse;
use super::models::{NotCallable, PricedModel};
use super::notice::Notice;
use super::pending_calls::{CallReport, CallStatus, Permit};
use super::request_body::RequestBody;
use super::retries::RetryKey;
use super::run::Run;
use super::settings::{Bodies, OnLimit};
use super::upstream::{UpstreamFault, UpstreamResponse};
use super::wait::{Waited, WaitingCall};
use super::wire::{
    AgentProgram, CallRequest, CallUpstream, Caller, GatewayError, GatewayErrorKind, ProviderApi,
    REFUSAL_BYTES_MAX, TOLD_LINE_TOKENS_MAX, ping, stream_error, usage_window,
};

/// The output cap of a request that names none.
const OUTPUT_CAP: u64 = 32_000;
/// Looking up a part takes about as long as reading so many bytes.
const LOOK_UP_BYTES: usize = 64;
/// An input is small if it takes at most this part of the free budget: a better bound would leave little more for the
/// output.
const SMALL_INPUT_DIVISOR: u64 = 8;
/// How long the tree may take to record the end of a call.
const BOOKED: Duration = Duration::from_secs(10);
/// Most bytes of a provider's error that are passed on.
const ERROR_BYTES_MAX: usize = 1024 * 1024;

/// A model call of a program.
pub(super) struct OutsideRequest {
    pub(super) call: Arc<CallRequest>,
    /// Keeps its share of the memory.
    pub(super) body: RequestBody,
    pub(super) caller: Caller,
    pub(super) url: String,
    pub(super) path: String,
    pub(super) query: Option<String>,
    /// Those that go up.
    pub(super) headers: HeaderMap,
}

/// A call that the tree knows.
struct HeldCall {
    call: CallId,
    model: ModelName,
    why: Option<WaitReason>,
    input: InputBound,
}

/// A call that may be sent.
#[derive(Clone, Copy)]
struct SentCall<'c> {
    call: CallId,
    model: &'c ModelName,
    input: InputBound,
}

/// An upper bound of a call's input tokens.
#[derive(Clone, Copy)]
struct InputBound {
    tokens: u64,
    /// Whether it rests on the provider's counter.
    is_counted: bool,
}

impl OutsideRequest {
    /// Makes the call, or says why not. Its program may be gone at any moment.
    pub(super) async fn run(self, run: Arc<Run>, client: Client) {
        run.calls_asked.fetch_add(1, Ordering::Relaxed);
        let payer = match run.agents.payer(&run.tree, &self.caller).await {
            Ok(payer) => payer,
            Err(error) => return self.refuse(&run, &error, client).await,
        };
        let agent = payer.agent.clone();
        self.run_as(&run, &agent, client).await;
        run.agents.release(payer).await;
    }

    async fn run_as(self, run: &Arc<Run>, agent: &AgentId, client: Client) {
        let retry = RetryKey::new(agent, &self.path, &self.body.bytes);
        // A retry of a call that still waits takes its place.
        let mut next = run.retries.adopt(&retry, client);
        while let Some(client) = next {
            next = self.hold_and_send(run, agent, &retry, client).await;
        }
    }

    /// Returns a program that came back when its call was no longer in line.
    async fn hold_and_send(
        &self,
        run: &Arc<Run>,
        agent: &AgentId,
        retry: &RetryKey,
        client: Client,
    ) -> Option<Client> {
        let HeldCall { call, model, why, input } = match self.hold(run, agent).await {
            Ok(held) => held,
            Err(error) => {
                self.refuse(run, &error, client).await;
                return None;
            }
        };
        let expected = run.pending_calls.expect(call);
        let mut status = expected.status.clone();
        let (format, is_streamed) = (self.call.format(), self.call.is_streamed());
        let waiting = WaitingCall { run, agent, call, format, is_streamed, retry, why };
        let mut next = None;
        match waiting.wait(expected, client).await {
            Waited::Permit(permit, client) => {
                let sent = SentCall { call, model: &model, input };
                next = self.send(run, agent, sent, permit, client).await;
                // A run that ends before its tree has booked the call would book the whole hold.
                let is_booked = |status: &CallStatus| matches!(status, CallStatus::Ended(_));
                let booked = async {
                    tokio::select! {
                        biased;
                        _ = status.wait_for(is_booked) => {}
                        // A tree that stopped at a fault books no more.
                        _ = run.tree.ended() => {}
                    }
                };
                if timeout(BOOKED, booked).await.is_err() {
                    tracing::error!(tree = %run.tree.id(), %call, "the tree does not record the end of a call");
                }
            }
            Waited::Over(error, client) => self.refuse(run, &error, client).await,
            Waited::Abandoned(retry) => next = retry,
        }
        run.pending_calls.leave(call);
        next
    }

    /// Asks the tree for the call.
    async fn hold(&self, run: &Run, agent: &AgentId) -> Result<HeldCall, GatewayError> {
        let (api, wire) = (self.call.format().api(), self.call.model());
        let is_own = run.upstream.kind(api) == CallUpstream::Provider;
        let PricedModel { name, context } = match run.models.find(&run.tree, api, wire, is_own).await {
            Ok(model) => model,
            Err(NotCallable::Refused(error)) => return Err(error),
            Err(NotCallable::Unpriced(error)) => {
                if run.models.is_first_refusal(wire) {
                    (run.on_notice)(Notice::Unpriced { error: error.clone() });
                }
                return Err(error);
            }
        };
        let output_cap = self.call.output_cap(OUTPUT_CAP);
        let mut input = self.input_bound(run, agent, &name, context, output_cap).await?;
        if run.settings.tells_remaining {
            input.tokens = input.tokens.saturating_add(TOLD_LINE_TOKENS_MAX);
        }
        let (request, bytes) = match run.settings.bodies {
            Bodies::Kept => {
                let (body, secrets) = (self.body.bytes.clone(), run.kept_secrets.clone());
                off_worker(body.len(), move || kept(&secrets.hide(&body))).await?
            }
            Bodies::Dropped => (Body::default(), Vec::new()),
        };
        let (output_cap_min, writes) = (self.call.output_cap_min(), self.call.writes());
        let input_tokens = input.tokens;
        let effect = HoldFor::Outside {
            model: name.clone(),
            input_tokens,
            output_cap,
            output_cap_min,
            writes,
            request,
        };
        let hold = Hold { agent: agent.clone(), effect };
        match run.tree.request_with(Actor::GATEWAY, hold, bytes).await {
            Ok(HoldReply::Started { call }) => {
                Ok(self.held(run, HeldCall { call, model: name, why: None, input }))
            }
            Ok(HoldReply::Waiting { call, why }) => {
                Ok(self.held(run, HeldCall { call, model: name, why: Some(why), input }))
            }
            Ok(HoldReply::Refused { call, refusal }) => {
                run.pending_calls.leave(call);
                Err(refused(&refusal))
            }
            Err(RequestError::Refused(refusal)) => Err(refused(&refusal)),
            Err(RequestError::Stopped(_) | RequestError::Reply(_)) => Err(run.over()),
        }
    }

    /// Counts what is outside the bound in a call that the tree took.
    fn held(&self, run: &Run, held: HeldCall) -> HeldCall {
        for name in run.permissions.use_names(self.call.outside_bound()) {
            (run.on_notice)(Notice::OutsideBound { name });
        }
        held
    }

    /// The most tokens that the input can have. Asks the provider to count only if a cruder bound does not fit, or if other
    /// calls wait for budget.
    async fn input_bound(
        &self,
        run: &Run,
        agent: &AgentId,
        model: &ModelName,
        context: Option<u64>,
        output_cap: u64,
    ) -> Result<InputBound, GatewayError> {
        let earlier = run.inputs.candidates(agent, self.call.model());
        let counted = Arc::clone(&self.call);
        let opaque = self.call.opaque_in(&run.opaque.lock().unwrap_or_else(PoisonError::into_inner));
        // Bytes need no counting; tokenizing takes several times as long as reading. Each part is looked up in each earlier
        // input.
        let looked_up = LOOK_UP_BYTES * self.call.part_count() * earlier.len();
        let work = if self.call.is_tokenized() { 4 * self.body.bytes.len() } else { looked_up };
        let count =
            move || (counted.input_tokens_max(context, &earlier, &opaque), counted.is_estimated(&earlier));
        let (tokens, is_counted) = off_worker(work, count).await?;
        if let Ok(tokens) = tokens
            && (!self.call.is_countable()
                || self.fits_without_count(run, agent, model, tokens, output_cap).await)
        {
            return Ok(InputBound { tokens, is_counted });
        }
        let counted =
            run.counter.count(&run.upstream, &self.call, &self.headers, self.query.as_deref()).await;
        match (tokens, counted) {
            (Err(none), None) => {
                Err(GatewayError::new(GatewayErrorKind::Refused, format!("spinney: {none}")))
            }
            (Ok(tokens), Some(counted)) if tokens <= counted => Ok(InputBound { tokens, is_counted }),
            (_, Some(tokens)) => {
                if let Some(counted) = self.call.input_of(tokens) {
                    run.inputs.set(agent, self.call.model(), counted);
                }
                Ok(InputBound { tokens, is_counted: true })
            }
            (Ok(tokens), None) => Ok(InputBound { tokens, is_counted }),
        }
    }

    /// Whether no call waits and this one fits with its whole output cap or, if caps are fitted to the free budget, has a
    /// small input.
    async fn fits_without_count(
        &self,
        run: &Run,
        agent: &AgentId,
        model: &ModelName,
        input_tokens: u64,
        output_cap: u64,
    ) -> bool {
        let (Some(budget), Some(price)) = (run.tree.free_budget(agent).await, run.models.price_of(model))
        else {
            return true;
        };
        let price = price.with_writes(self.call.writes());
        let now = Time(SystemClock::new().now_ms());
        let fits = |output_cap: u64, times: u64| {
            let cost = price.worst_case(input_tokens, output_cap, now).saturating_mul(times);
            let tokens = input_tokens.saturating_add(output_cap).saturating_mul(times);
            [(Resource::Cost, cost), (Resource::Tokens, tokens)]
                .into_iter()
                .all(|(resource, asked)| budget.free.get(resource).is_none_or(|free| asked <= free))
        };
        budget.waiting == 0 && (fits(output_cap, 1) || (budget.shrinks && fits(0, SMALL_INPUT_DIVISOR)))
    }

    /// Sends the call, passes the response on, and reports its end to the tree. Returns the program if the call is to be
    /// asked for again, because a usage window was used up.
    async fn send(
        &self,
        run: &Run,
        agent: &AgentId,
        SentCall { call, model, input }: SentCall<'_>,
        permit: Permit,
        mut client: Client,
    ) -> Option<Client> {
        let Permit { output_cap, mut end } = permit;
        let asked = self.call.output_cap(OUTPUT_CAP);
        if output_cap < asked && run.capped.fetch_add(1, Ordering::Relaxed) == 0 {
            (run.on_notice)(Notice::Capped { agent: agent.clone(), asked, granted: output_cap });
        }
        let line = self.line_of(run, agent).await;
        let body = match line {
            Some(line) => self.call.body_telling(output_cap, &line),
            None => self.call.body(output_cap),
        };
        let body = match body {
            Ok(body) => body,
            Err(small) => {
                let error = GatewayError::new(GatewayErrorKind::Ceiling, format!("spinney: {small}"));
                report(end, Err(unsent(&small.to_string())));
                self.refuse(run, &error, client).await;
                return None;
            }
        };
        if !run.pending_calls.sent(call, &end) {
            self.refuse(run, &run.over(), client).await;
            return None;
        }
        let api = self.call.format().api();
        let sending = run.upstream.send(api, Method::POST, &self.url, self.headers.clone(), body);
        let sent = tokio::select! {
            biased;
            () = stopped(run, &mut end) => None,
            sent = sending => Some(sent),
            () = self.ping(run, &client) => None,
        };
        let Some(sent) = sent else {
            self.refuse(run, &run.over(), client).await;
            return None;
        };
        match sent {
            Err(fault) => {
                let error = fault.error();
                report(end, Err(fault.missed()));
                self.refuse(run, &error, client).await;
            }
            Ok(mut response) => {
                if let Some(until) = self.used_up_until(run, &mut response).await {
                    // Before the call ends: nothing of this model starts in between.
                    run.tree.limit_model(model, until).await;
                    (run.on_notice)(Notice::UsageWindow { model: model.clone(), until });
                    report(end, Err(used_up()));
                    return Some(client);
                }
                let ended = self.pass_on(run, response, &mut client, &mut end).await;
                let Some((result, how)) = ended else {
                    // The tree has ended the call; its program learns it.
                    self.refuse(run, &run.over(), client).await;
                    return None;
                };
                if let Ok(answer) = &result {
                    self.check_count(run, input, &answer.used);
                    if let Some(counted) = self.call.counted_input(&answer.used) {
                        run.inputs.set(agent, self.call.model(), counted);
                    }
                }
                report(end, result);
                match how {
                    Passed::Whole => client.end().await,
                    Passed::Broken(error) if client.has_begun() && self.call.is_streamed() => {
                        client.end_with(error.event(self.call.format())).await;
                    }
                    // Dropping the client cuts the response.
                    Passed::Broken(_) => drop(client),
                }
            }
        }
        None
    }

    /// Until when the provider takes no calls of this account, if it refused this one for that and calls may wait.
    async fn used_up_until(&self, run: &Run, response: &mut UpstreamResponse) -> Option<Time> {
        let (status, may_wait) = (response.status(), matches!(run.settings.on_limit, OnLimit::Wait(_)));
        if status != StatusCode::TOO_MANY_REQUESTS || !may_wait {
            return None;
        }
        let body = response.read_ahead(REFUSAL_BYTES_MAX).await;
        let now = Time(SystemClock::new().now_ms());
        let least = run.settings.waiting.window_min.as_millis();
        usage_window(status, response.headers(), &body, now, u64::try_from(least).unwrap_or(u64::MAX))
    }

    /// What its agent is told of the budget, if the user wants that and there is a ceiling.
    async fn line_of(&self, run: &Run, agent: &AgentId) -> Option<String> {
        if !run.settings.tells_remaining {
            return None;
        }
        Some(budget_line(&run.tree.free_budget(agent).await?.scarcest?))
    }

    /// A counter that returned too low a count once is not used again for that model.
    fn check_count(&self, run: &Run, input: InputBound, used: &Used) {
        let Used::Tokens(usage) = used else { return };
        let (counted, used) = (input.tokens, usage.input_tokens());
        if input.is_counted && used > counted && run.counter.switch_off(self.call.model()) {
            run.inputs.forget_estimates(self.call.model());
            let model = self.call.model().to_owned();
            (run.on_notice)(Notice::CountedTooLow { model, counted, used });
        }
    }

    /// Keeps a program patient that has the head of its response already, until the provider answers.
    async fn ping(&self, run: &Run, client: &Client) {
        if !client.has_begun() {
            return std::future::pending().await;
        }
        loop {
            sleep(run.settings.waiting.ping).await;
            client.offer(Bytes::from_static(ping(self.call.format())));
        }
    }

    /// Passes a response on as it arrives. None if the tree ended the call meanwhile.
    async fn pass_on(
        &self,
        run: &Run,
        mut response: UpstreamResponse,
        client: &mut Client,
        end: &mut oneshot::Sender<CallReport>,
    ) -> Option<(CallReport, Passed)> {
        let (status, format) = (response.status(), self.call.format());
        let secrets = run.upstream.secrets();
        let mut reader = self.call.reader(status, response.headers(), secrets.clone());
        // Errors are passed on as a whole: one that comes after our own head becomes an event of the stream.
        let (is_error, is_begun_by_us) = (!status.is_success(), client.has_begun());
        client.begin(status, run.upstream.headers_down(response.headers()));
        let keeps = run.settings.bodies == Bodies::Kept && !is_error;
        let mut kept = keeps.then(|| KeptResponse::new(run.responses.clone()));
        let mut error_body: Vec<u8> = Vec::new();
        let mut stopped = pin!(stopped(run, end));
        let fault = loop {
            let piece = tokio::select! {
                piece = response.pieces() => piece,
                () = &mut stopped => return None,
            };
            match piece {
                Ok(Some(bytes)) => {
                    if let Some(kept) = &mut kept {
                        kept.push(&bytes);
                    }
                    let forward = reader.feed(bytes).bytes;
                    if is_error {
                        let room = ERROR_BYTES_MAX.saturating_sub(error_body.len());
                        error_body.extend_from_slice(&forward[..forward.len().min(room)]);
                    } else {
                        client.send(forward).await;
                    }
                }
                Ok(None) => break None,
                Err(fault) => break Some(fault),
            }
        };
        let body_end = fault.as_ref().map_or(BodyEnd::Clean, |fault| {
            BodyEnd::Broken(WireFault::new(WireFaultKind::Cut, fault.message.clone()))
        });
        let ended = reader.finish(body_end);
        if let Some(message) =
            ended.other.filter(|_| !run.has_met_another_answer.swap(true, Ordering::Relaxed))
        {
            (run.on_notice)(Notice::OtherAnswer { message });
        }
        if is_error {
            let body = without_keys(secrets, &error_body);
            let bytes = if is_begun_by_us { stream_error(format, status.as_u16(), &body) } else { body };
            client.send(bytes).await;
        } else {
            client.send(ended.rest).await;
        }
        if let Ok(ModelAnswer { used: Used::Tokens(usage), .. }) = &ended.result {
            let mut opaque = run.opaque.lock().unwrap_or_else(PoisonError::into_inner);
            opaque.add(&ended.opaque, usage.output_tokens());
        }
        let mut result = ended.result;
        if let (Ok(answer), Some(kept)) = (&mut result, kept) {
            let secrets = run.kept_secrets.clone();
            let text = off_worker(kept.len(), move || kept.into_text(&secrets)).await;
            answer.text = text.unwrap_or_else(|error| error.message);
        }
        let how = fault.map_or(Passed::Whole, |fault| Passed::Broken(fault.error()));
        Some((result, how))
    }

    /// Answers the program with our own error, in its format and as the state of the response requires.
    async fn refuse(&self, run: &Run, error: &GatewayError, client: Client) {
        run.refusals.add(error);
        if client.has_begun() && self.call.is_streamed() {
            client.end_with(error.event(self.call.format())).await;
        } else {
            // One that has begun is cut.
            client.reply(error.reply(self.call.format().api(), self.caller.program));
        }
    }
}

/// How a response was passed on.
enum Passed {
    Whole,
    Broken(GatewayError),
}

impl UpstreamFault {
    fn error(&self) -> GatewayError {
        let kind = if self.may_be_billed { GatewayErrorKind::Broken } else { GatewayErrorKind::Unreachable };
        GatewayError::new(kind, format!("spinney: the provider did not answer: {}", self.message))
    }

    fn missed(&self) -> AttemptError {
        let used = if self.may_be_billed { Used::Unknown } else { Used::NOTHING };
        AttemptError { fault: Fault { message: self.message.clone(), ..Fault::new(FaultKind::Server) }, used }
    }
}

/// Waits until the tree ends the call, or the run breaks it off.
async fn stopped(run: &Run, end: &mut oneshot::Sender<CallReport>) {
    // A separate token: it is looked at with each piece of a response, and calls would contend for a shared one.
    let broken_off = run.broken_off.child_token();
    tokio::select! {
        () = end.closed() => {}
        () = broken_off.cancelled() => {}
    }
}

/// Runs something that takes longer the more bytes there are, and not on a worker if there are many.
pub(super) async fn off_worker<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, GatewayError> {
    // Reading that much takes about as long as waking another thread.
    const ON_WORKER_BYTES_MAX: usize = 128 * 1024;
    if bytes <= ON_WORKER_BYTES_MAX {
        return Ok(work());
    }
    let lost = |_| GatewayError::new(GatewayErrorKind::Internal, "spinney: the gateway lost this call");
    tokio::task::spawn_blocking(work).await.map_err(lost)
}

/// Passes a request on that costs nothing.
pub(super) async fn pass(
    run: &Run,
    api: ProviderApi,
    method: Method,
    url: &str,
    headers: HeaderMap,
    body: RequestBody,
    mut client: Client,
) {
    let sending = run.upstream.send(api, method, url, headers, body.bytes.clone());
    let sent = tokio::select! {
        sent = sending => sent,
        () = client.gone() => return,
        () = run.broken_off.cancelled() => return,
    };
    let mut response = match sent {
        Ok(response) => response,
        Err(fault) => {
            return client.reply(fault.error().reply(api, AgentProgram::Other));
        }
    };
    let is_error = !response.status().is_success();
    client.begin(response.status(), run.upstream.headers_down(response.headers()));
    let mut error_body: Vec<u8> = Vec::new();
    loop {
        let piece = tokio::select! {
            piece = response.piece() => piece,
            () = client.gone() => return,
            () = run.broken_off.cancelled() => return,
        };
        match piece {
            Ok(Some(bytes)) if is_error => {
                let room = ERROR_BYTES_MAX.saturating_sub(error_body.len());
                error_body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Ok(Some(bytes)) => client.send(bytes).await,
            Ok(None) => {
                // The key may be in two pieces.
                client.send(without_keys(run.upstream.secrets(), &error_body)).await;
                return client.end().await;
            }
            Err(_) => return,
        }
    }
}

/// Tells the tree how a call ended. If the tree has already ended it, the report is ignored.
fn report(end: oneshot::Sender<CallReport>, result: CallReport) {
    let _ = end.send(result);
}

/// The provider refused the call, so nothing was used.
fn used_up() -> AttemptError {
    let message = "a usage window of the account is used up".to_owned();
    AttemptError { fault: Fault { message, ..Fault::new(FaultKind::RateLimit) }, used: Used::NOTHING }
}

fn unsent(message: &str) -> AttemptError {
    AttemptError {
        fault: Fault { message: message.to_owned(), ..Fault::new(FaultKind::Invalid) },
        used: Used::NOTHING,
    }
}

/// A provider's error without keys, which some repeat in it.
fn without_keys(secrets: &Secrets, body: &[u8]) -> Bytes {
    let is_cut = body.len() == ERROR_BYTES_MAX;
    let clean = if is_cut { secrets.hide_cut(body) } else { secrets.hide(body) };
    Bytes::from(clean.into_owned())
}

/// A request as files of the journal. One that is larger than what a message may have is not kept.
fn kept(body: &[u8]) -> (Body, Vec<Vec<u8>>) {
    let dropped = || (Body::text(format!("{} bytes, too large to keep", body.len())), Vec::new());
    let (Ok(media), Ok(size)) =
        ("application/json".parse::<MediaType>(), usize::try_from(limit::PART_BYTES_MAX))
    else {
        return dropped();
    };
    let part = |(at, bytes): (usize, &[u8])| {
        let name = format!("request-{}.json", at + 1).parse::<PartName>().ok()?;
        Some(Enclosure::new(media.clone(), name, bytes.to_vec()))
    };
    let parts: Option<Vec<Enclosure>> = body.chunks(size).enumerate().map(part).collect();
    match parts.map(enclose) {
        Some(Ok((parts, bytes))) => (Body::default().with_parts(parts), bytes),
        Some(Err(_)) | None => dropped(),
    }
}

fn refused(refusal: &Refusal) -> GatewayError {
    let kind = match refusal {
        _ if refusal.shortfall().is_some() => GatewayErrorKind::Ceiling,
        Refusal::TreeEnded | Refusal::AgentEnded { .. } | Refusal::DeadlinePassed { .. } => {
            GatewayErrorKind::Ended
        }
        _ => GatewayErrorKind::Refused,
    };
    GatewayError::new(kind, format!("spinney: {refusal}"))
}
