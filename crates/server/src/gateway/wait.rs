//! A call that waits: for other calls to settle, for a slot, or for a person at a ceiling. Its program gets no head of a
//! response for a while, then pings; a program that closes its connection may come back for the same call.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use spinney::clock::instant;
use spinney::tree::RequestError;
use spinney_kernel::definition::Refusal;
use spinney_kernel::record::{Outcome, Why};
use spinney_kernel::rules::request::Withdraw;
use spinney_kernel::words::{AgentId, By, CallId};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::client::Client;
use super::halted_call::HaltedCall;
use super::notice::Notice;
use super::pending_calls::{CallStatus, Expected, Permit};
use super::retries::RetryKey;
use super::run::Run;
use super::settings::OnLimit;
use super::wire::{CallFormat, GatewayError, GatewayErrorKind, ping};

/// How long the numbers of a halt may take to arrive.
const NUMBERS: Duration = Duration::from_secs(1);

/// A call in line.
pub(super) struct WaitingCall<'r> {
    pub(super) run: &'r Arc<Run>,
    pub(super) agent: &'r AgentId,
    pub(super) call: CallId,
    pub(super) format: CallFormat,
    pub(super) is_streamed: bool,
    pub(super) retry: RetryKey,
    /// What the reply to its request said.
    pub(super) why: Option<Why>,
}

/// How a wait ended.
pub(super) enum Waited {
    /// It may be sent.
    Permit(Permit, Client),
    /// It may not.
    Over(GatewayError, Client),
    /// Its program is gone.
    Abandoned,
}

/// What became of a call that was taken out of the line.
enum Withdrawn {
    Done,
    /// It has started or ended meanwhile.
    NotWaiting,
    /// The tree has ended or is no longer run: nothing starts the call or ends it.
    TreeOver,
}

/// What the program gets while its call waits.
struct Patience {
    /// When the head of a stream is sent, if it was not.
    head: Instant,
    ping: Instant,
    /// When a call is given up whose program is gone.
    retry: Option<Instant>,
    /// Since when it waits for a person.
    halted: Option<Instant>,
}

impl WaitingCall<'_> {
    pub(super) async fn wait(&self, expected: Expected, client: Client) -> Waited {
        let waited = self.wait_until_over(expected, client).await;
        self.run.retries.keep(&self.retry);
        waited
    }

    async fn wait_until_over(&self, expected: Expected, mut client: Client) -> Waited {
        let Expected { mut permit, mut status } = expected;
        let (adopt, mut adopted) = mpsc::channel(1);
        let times = &self.run.settings.waiting;
        let since = instant();
        let mut patience = Patience { head: since + times.withheld, ping: since, retry: None, halted: None };
        let mut has_given_up = false;
        // A tree that stops at a fault of its journal records no end of its calls.
        let mut tree_over = std::pin::pin!(self.run.tree.ended());
        loop {
            let now = status.borrow_and_update().clone();
            let why = match now {
                CallStatus::Asked => self.why,
                CallStatus::Waiting(why) => Some(why),
                CallStatus::Started => None,
                CallStatus::Ended(outcome) => return Waited::Over(self.ended(&outcome), client),
            };
            patience.halted = match why {
                Some(Why::Halted) => patience.halted.or_else(|| Some(instant())),
                _ => None,
            };
            let give_up = match (patience.halted, self.run.settings.on_limit) {
                // Nobody came for an earlier call, so this one does not wait as long again.
                (Some(since), OnLimit::Wait(_)) if self.run.given_up.is_set() => Some(since),
                (Some(since), OnLimit::Wait(most)) => Some(since + most),
                (Some(since), OnLimit::Stop) => Some(since),
                (None, _) => None,
            }
            .filter(|_| !has_given_up);
            let is_here = patience.retry.is_none();
            let begins = self.is_streamed && is_here && !client.has_begun();
            tokio::select! {
                biased;
                came = &mut permit => return match came {
                    Ok(permit) if is_here && !client.is_gone() => Waited::Permit(permit, client),
                    // Nothing was sent, so nothing was used.
                    Ok(_) => Waited::Abandoned,
                    Err(_) => Waited::Over(internal(), client),
                },
                changed = status.changed() => if changed.is_err() {
                    return Waited::Over(internal(), client);
                },
                _ = &mut tree_over => return Waited::Over(self.run.over(), client),
                () = self.run.broken_off.cancelled() => return Waited::Over(self.run.over(), client),
                Some(next) = adopted.recv(), if !is_here => {
                    client = next;
                    patience.retry = None;
                    patience.head = instant() + times.withheld;
                }
                () = client.gone(), if is_here => {
                    patience.retry = Some(instant() + times.retry);
                    self.run.retries.offer(&self.retry, adopt.clone());
                }
                // Nobody comes back to a run that closes.
                () = self.run.closing.cancelled(), if !is_here && !has_given_up => {
                    match self.withdraw().await {
                        Withdrawn::Done | Withdrawn::TreeOver => return Waited::Abandoned,
                        Withdrawn::NotWaiting => has_given_up = true,
                    }
                }
                () = until(patience.retry) => {
                    match self.withdraw().await {
                        Withdrawn::Done | Withdrawn::TreeOver => return Waited::Abandoned,
                        // The next round knows how it goes on.
                        Withdrawn::NotWaiting => patience.retry = Some(instant() + times.retry),
                    }
                }
                () = until(give_up) => {
                    // The text has the numbers, so it is made before the halt is over.
                    let error = self.ceiling().await;
                    let was_given_up = self.run.given_up.is_set();
                    // Before the halt is over, so that nobody reads that the run goes on.
                    self.run.given_up.set(true);
                    match self.withdraw().await {
                        Withdrawn::Done => {
                            (self.run.on_notice)(Notice::GivenUp { agent: self.agent.clone() });
                            return Waited::Over(error, client);
                        }
                        Withdrawn::TreeOver => return Waited::Over(self.run.over(), client),
                        Withdrawn::NotWaiting => {
                            self.run.given_up.set(was_given_up);
                            has_given_up = true;
                        }
                    }
                }
                () = sleep_until(patience.head), if begins => {
                    client.begin(StatusCode::OK, stream_headers());
                    patience.ping = instant();
                }
                () = sleep_until(patience.ping), if client.has_begun() && is_here => {
                    client.offer(Bytes::from_static(ping(self.format)));
                    patience.ping = instant() + times.ping;
                }
            }
        }
    }

    /// Takes the call out of the line.
    async fn withdraw(&self) -> Withdrawn {
        let withdraw = Withdraw { agent: self.agent.clone(), call: self.call };
        match self.run.tree.request(By::Person, withdraw).await {
            Ok(_) => Withdrawn::Done,
            Err(RequestError::Refused(Refusal::TreeEnded) | RequestError::Stopped(_)) => Withdrawn::TreeOver,
            Err(RequestError::Refused(_) | RequestError::Reply(_)) => Withdrawn::NotWaiting,
        }
    }

    fn ended(&self, outcome: &Outcome) -> GatewayError {
        match outcome {
            Outcome::Refused { refusal } if refusal.shortfall().is_some() => {
                GatewayError::new(GatewayErrorKind::Ceiling, format!("spinney: {refusal}"))
            }
            Outcome::Refused { refusal } => {
                GatewayError::new(GatewayErrorKind::Refused, format!("spinney: {refusal}"))
            }
            _ => self.run.over(),
        }
    }

    /// The error of a call that nobody made room for.
    async fn ceiling(&self) -> GatewayError {
        // The reply to a request may be here before the event with the numbers.
        let mut halt = self.run.halt.clone();
        let halt = match timeout(NUMBERS, halt.wait_for(Option::is_some)).await {
            Ok(Ok(halt)) => halt.clone(),
            Ok(Err(_)) | Err(_) => None,
        };
        let message = match halt {
            Some(HaltedCall { halt, large_cap }) => {
                let command = self.run.settings.raise_hint.command(&halt.account, &halt.short);
                let shrink = large_cap.map(|cap| {
                    format!(", or start runs with `--on-low shrink`: its output cap of {cap} tokens is too large, and a smaller one would fit")
                });
                format!(
                    "spinney: the budget of this run does not allow this call ({}); raise it with `{command}` and try again{}",
                    halt.short.describe(&halt.account),
                    shrink.unwrap_or_default()
                )
            }
            None => "spinney: the budget of this run does not allow this call".to_owned(),
        };
        GatewayError::new(GatewayErrorKind::Ceiling, message)
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn internal() -> GatewayError {
    GatewayError::new(GatewayErrorKind::Internal, "spinney: the gateway lost this call")
}

fn stream_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers
}
