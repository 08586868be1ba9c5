//! The provider's own counter of input tokens. It is free but takes time, so it is used only where a cruder bound does
//! not fit, and with a short timeout. If a count was too low, the counter is not used again for that model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use spinney::clock::instant;
use tokio::time::{Instant, timeout};

use super::upstream::Upstream;
use super::wire::CallRequest;

/// How long a call waits for its count.
const COUNT_WAIT: Duration = Duration::from_secs(2);
/// How long a counter that was slow or failed is not used.
const PAUSE: Duration = Duration::from_secs(60);
/// The largest response of a counter, in bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

#[derive(Default)]
pub(super) struct Counter(Mutex<CounterState>);

#[derive(Default)]
struct CounterState {
    /// Models whose counts were too low.
    wrong: BTreeSet<String>,
    /// When the counter of each provider may be used again.
    paused_until: BTreeMap<&'static str, Instant>,
}

/// The outcome of a count.
enum Counted {
    Tokens(u64),
    /// The counter does not accept this request.
    Refused,
    /// The counter is slow, missing, or over its rate limit.
    Failed,
}

impl Counter {
    /// An upper bound of a call's input from the provider's count, if its counter answers.
    pub(super) async fn count(
        &self,
        upstream: &Upstream,
        call: &CallRequest,
        headers: &HeaderMap,
        query: Option<&str>,
    ) -> Option<u64> {
        let provider = call.format().api().price_name();
        if !self.is_on(provider, call.model()) {
            return None;
        }
        let counted = timeout(COUNT_WAIT, ask(upstream, call, headers, query)).await;
        match counted.unwrap_or(Counted::Failed) {
            Counted::Tokens(tokens) => Some(tokens),
            Counted::Refused => None,
            Counted::Failed => {
                self.state(|state| state.paused_until.insert(provider, instant() + PAUSE));
                None
            }
        }
    }

    /// Stops using the counter for a model whose count was too low. Returns false if it was off already.
    pub(super) fn switch_off(&self, model: &str) -> bool {
        self.state(|state| state.wrong.insert(model.to_owned()))
    }

    fn is_on(&self, provider: &str, model: &str) -> bool {
        self.state(|state| {
            let is_paused = state.paused_until.get(provider).is_some_and(|until| instant() < *until);
            !is_paused && !state.wrong.contains(model)
        })
    }

    fn state<T>(&self, with: impl FnOnce(&mut CounterState) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn ask(upstream: &Upstream, call: &CallRequest, headers: &HeaderMap, query: Option<&str>) -> Counted {
    let api = call.format().api();
    let Some((url, body)) = call.count_request(upstream.base_url(api), query) else {
        return Counted::Refused;
    };
    let sent = upstream.send(api, Method::POST, &url, headers.clone(), body).await;
    let Ok(mut response) = sent else { return Counted::Failed };
    match response.status() {
        StatusCode::OK => {}
        StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY => {
            return Counted::Refused;
        }
        _ => return Counted::Failed,
    }
    let mut answer: Vec<u8> = Vec::new();
    loop {
        match response.piece().await {
            Ok(Some(piece)) if answer.len() + piece.len() <= ANSWER_BYTES_MAX => {
                answer.extend_from_slice(&piece);
            }
            Ok(None) => break,
            Ok(Some(_)) | Err(_) => return Counted::Failed,
        }
    }
    call.counted_max(&answer).map_or(Counted::Failed, Counted::Tokens)
}
