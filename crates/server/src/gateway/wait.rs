//! A call that waits: for other calls to settle, for a slot, or for a person at a ceiling. Its program gets no head of a
//! response for a while, then pings; a program that closes its connection may come back for the same call.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use spinney::clock::instant;
use spinney::tree::RequestError;
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, AgentId, CallId};
use spinney_kernel::record::{Outcome, WaitReason};
use spinney_kernel::rules::request::Withdraw;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::client::Client;
use super::halted_call::HaltedCall;
use super::notice::Notice;
use super::pending_calls::{CallStatus, Expected, Permit};
use super::retries::{Offer, RetryKey};
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
    pub(super) retry: &'r RetryKey,
    /// What the reply to its request said.
    pub(super) why: Option<WaitReason>,
}

/// How a wait ended.
pub(super) enum Waited {
    /// It may be sent.
    Permit(Permit, Client),
    /// It may not.
    Over(GatewayError, Client),
    /// It is not in line any more, because its program was gone. A retry that came too late for its place is asked for
    /// again.
    Abandoned(Option<Client>),
}

/// The same before it is known whether the program came back at the last moment.
enum WaitEnd {
    Permit(Permit),
    Over(GatewayError),
    Withdrawn,
}

impl WaitEnd {
    /// A retry takes the place of its program whatever the end is: nothing else answers it.
    fn answer(self, client: Client, retry: Option<Client>) -> Waited {
        match self {
            Self::Permit(permit) => {
                let client = retry.unwrap_or(client);
                // If the program is gone, nothing is sent, so nothing is used.
                if client.is_gone() { Waited::Abandoned(None) } else { Waited::Permit(permit, client) }
            }
            Self::Over(error) => Waited::Over(error, retry.unwrap_or(client)),
            Self::Withdrawn => Waited::Abandoned(retry),
        }
    }
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
    /// When it began to wait for a person.
    halted: Option<Instant>,
}

impl WaitingCall<'_> {
    pub(super) async fn wait(&self, expected: Expected, mut client: Client) -> Waited {
        let mut offer = self.run.retries.offer(self.retry);
        let end = self.wait_until_over(expected, &mut client, &mut offer).await;
        end.answer(client, offer.take_back().await)
    }

    async fn wait_until_over(
        &self,
        expected: Expected,
        client: &mut Client,
        offer: &mut Offer<'_>,
    ) -> WaitEnd {
        let Expected { mut permit, mut status } = expected;
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
                CallStatus::Ended(outcome) => return WaitEnd::Over(self.ended(&outcome)),
            };
            patience.halted = match why {
                Some(WaitReason::Halted | WaitReason::Ceiling) => patience.halted.or_else(|| Some(instant())),
                _ => None,
            };
            let give_up = match (patience.halted, self.run.settings.on_limit) {
                // An earlier call waited in vain, so this one does not wait as long.
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
                came = &mut permit => {
                    return came.map_or_else(|_| WaitEnd::Over(internal()), WaitEnd::Permit);
                }
                changed = status.changed() => if changed.is_err() {
                    return WaitEnd::Over(internal());
                },
                _ = &mut tree_over => return WaitEnd::Over(self.run.over()),
                () = self.run.broken_off.cancelled() => return WaitEnd::Over(self.run.over()),
                Some(next) = offer.adopted(), if !is_here => {
                    *client = next;
                    patience.retry = None;
                    patience.head = instant() + times.withheld;
                }
                () = client.gone(), if is_here => {
                    patience.retry = Some(instant() + times.retry);
                    offer.make();
                }
                // No program comes back to a run that is closing.
                () = self.run.closing.cancelled(), if !is_here && !has_given_up => {
                    match self.withdraw().await {
                        Withdrawn::Done | Withdrawn::TreeOver => return WaitEnd::Withdrawn,
                        Withdrawn::NotWaiting => has_given_up = true,
                    }
                }
                () = until(patience.retry) => {
                    match self.withdraw().await {
                        Withdrawn::Done | Withdrawn::TreeOver => return WaitEnd::Withdrawn,
                        // The next round decides how to continue.
                        Withdrawn::NotWaiting => patience.retry = Some(instant() + times.retry),
                    }
                }
                () = until(give_up) => {
                    // The numbers are gone when the halt is over; a call at its own ceiling ends with them.
                    let is_alone = why == Some(WaitReason::Ceiling);
                    let halted = if is_alone { None } else { self.halted().await };
                    let was_given_up = self.run.given_up.is_set();
                    // Before the halt is over, so no other call waits as long again.
                    self.run.given_up.set(true);
                    match self.withdraw().await {
                        Withdrawn::Done => {
                            let error = match is_alone {
                                true => self.numbers(&mut status).await,
                                false => ceiling(halted.as_ref()),
                            };
                            let (agent, halt) = (self.agent.clone(), halted.map(|halted| halted.halt));
                            (self.run.on_notice)(Notice::GivenUp { agent, halt });
                            return WaitEnd::Over(error);
                        }
                        Withdrawn::TreeOver => return WaitEnd::Over(self.run.over()),
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
        match self.run.tree.request(Actor::GATEWAY, withdraw).await {
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

    /// Why a call was given up that waited alone, from its end.
    async fn numbers(&self, status: &mut watch::Receiver<CallStatus>) -> GatewayError {
        let ended = status.wait_for(|status| matches!(status, CallStatus::Ended(_)));
        let ended = timeout(NUMBERS, ended).await.ok().and_then(Result::ok).map(|status| status.clone());
        match ended {
            Some(CallStatus::Ended(outcome)) if matches!(*outcome, Outcome::Refused { .. }) => {
                self.ended(&outcome)
            }
            _ => ceiling(None),
        }
    }

    /// What everything waits for.
    async fn halted(&self) -> Option<HaltedCall> {
        // The reply to a request may be here before the event with the numbers.
        let mut halt = self.run.halt.clone();
        match timeout(NUMBERS, halt.wait_for(Option::is_some)).await {
            Ok(Ok(halt)) => halt.clone(),
            Ok(Err(_)) | Err(_) => None,
        }
    }
}

/// The error of a call that got no room. A model may read it and have a shell, so it names no command: a person has
/// that on their terminal.
fn ceiling(halted: Option<&HaltedCall>) -> GatewayError {
    let numbers = halted.map(|HaltedCall { halt, .. }| format!(" ({})", halt.short.describe(&halt.account)));
    let cap = halted
        .and_then(|halted| halted.large_cap)
        .map(|cap| format!("; its output cap of {cap} tokens is too large, and a smaller one would fit"));
    let message = format!(
        "spinney: the budget of this run does not allow this call{}; a person can raise the budget{}",
        numbers.unwrap_or_default(),
        cap.unwrap_or_default(),
    );
    GatewayError::new(GatewayErrorKind::Ceiling, message)
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

#[cfg(test)]
mod tests {
    use super::super::client::client;
    use super::*;

    /// A program that came back at the last moment gets the outcome of its call, or its call is requested again.
    #[tokio::test]
    async fn a_retry_that_comes_with_the_end_of_a_wait_is_answered() {
        let (gone, response) = client();
        drop(response);
        let (retry, _response) = client();
        let Waited::Over(_, answered) = WaitEnd::Over(internal()).answer(gone, Some(retry)) else { panic!() };
        assert!(!answered.is_gone());
        let (gone, response) = client();
        drop(response);
        let Waited::Abandoned(anew) = WaitEnd::Withdrawn.answer(gone, Some(answered)) else { panic!() };
        assert!(anew.is_some_and(|client| !client.is_gone()));
    }
}
