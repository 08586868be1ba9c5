//! Runs a call under a budget: hold, run, settle, and return the call's own value or error.
//!
//! However a call ends, its hold ends with it. A call that ended settles at its reported usage, or else at its
//! estimate, because a failing call also costs; that is only presumed, and snapshots say so. A panic counts as an end. A
//! call whose future is dropped settles at its reported usage, or else releases its hold.

use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::task::Poll;

use spinney_kernel::budget::{Amounts, Resource};

use super::{AccountNode, Budget, BudgetHold, BudgetRefusal, Meter};
use crate::breaker::{self, CallEnd, Tripped};
use crate::sync::park_on;

/// Why a call returned no value.
///
/// It is an [`Error`](std::error::Error) for every `E` that can be displayed, including boxed errors, which are not
/// `Error` themselves. So its text includes that of `E`, and `E` is not its source.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError<E> {
    /// The call did not start.
    Refused(BudgetRefusal),
    /// The call returned this error.
    Failed(E),
    /// The call failed, and the budget refused another attempt.
    RetryRefused {
        /// The error of the last attempt.
        error: E,
        /// Why there was no further attempt.
        refusal: BudgetRefusal,
    },
}

impl<E: fmt::Display> fmt::Display for RunError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Failed(error) => write!(f, "the call failed: {error}"),
            Self::RetryRefused { error, refusal } => {
                write!(f, "the call failed: {error}; another attempt was refused: {refusal}")
            }
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for RunError<E> {}

impl<E> From<BudgetRefusal> for RunError<E> {
    fn from(refusal: BudgetRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Budget {
    /// Holds the estimate, runs the call, settles at its usage, and returns its value or error.
    ///
    /// # Errors
    /// The call's own error, or why it was refused before it started.
    pub async fn run<T, E, F, C>(&self, estimate: Amounts, call: F) -> Result<T, RunError<E>>
    where
        F: FnOnce(Meter) -> C,
        C: Future<Output = Result<T, E>>,
        E: fmt::Debug,
    {
        self.run_attempt(1, estimate, call).await
    }

    /// Runs one attempt at a call, for callers with their own retry loop: every attempt after the first also holds
    /// one of `retries`, here and at every ancestor.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_attempt<T, E, F, C>(
        &self,
        attempt: u32,
        estimate: Amounts,
        call: F,
    ) -> Result<T, RunError<E>>
    where
        F: FnOnce(Meter) -> C,
        C: Future<Output = Result<T, E>>,
        E: fmt::Debug,
    {
        let pass = Pass::ask(&self.0)?;
        let hold = self.hold(with_retry(estimate, attempt)).await?;
        let meter = Meter::new(attempt);
        let running = Running { hold: Some(hold), meter: meter.clone() };
        // The call is made inside the future, so all panics are caught in one place.
        let mut outcome = pin!(async move { call(meter).await });
        let outcome =
            poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| outcome.as_mut().poll(context))) {
                Ok(poll) => poll.map(Ok),
                Err(panic) => Poll::Ready(Err(panic)),
            })
            .await;
        running.ended();
        match outcome {
            Ok(Ok(value)) => {
                pass.succeeded();
                Ok(value)
            }
            Ok(Err(error)) => {
                pass.failed();
                if let Some(hooks) = &self.0.hooks {
                    hooks.on_error(&self.0.id, &error);
                }
                Err(RunError::Failed(error))
            }
            Err(panic) => {
                drop(pass);
                resume_unwind(panic)
            }
        }
    }

    /// Runs a call up to `attempts_max` times, at least once, until it succeeds. Every attempt holds the estimate
    /// again, and after the first one of `retries`, so one ceiling on retries at a root stops a retry storm in
    /// the whole tree. There is no pause in between; the call may add one.
    ///
    /// # Errors
    /// The last attempt's error, why the first one was refused, or both if a later one was.
    pub async fn run_with_retries<T, E, F, C>(
        &self,
        estimate: Amounts,
        attempts_max: u32,
        mut call: F,
    ) -> Result<T, RunError<E>>
    where
        F: FnMut(Meter) -> C,
        C: Future<Output = Result<T, E>>,
        E: fmt::Debug,
    {
        let mut attempt = 1;
        let mut failed = None;
        loop {
            match (self.run_attempt(attempt, estimate, &mut call).await, failed) {
                (Err(RunError::Refused(refusal)), Some(error)) => {
                    return Err(RunError::RetryRefused { error, refusal });
                }
                (Err(RunError::Failed(error)), _) if attempt < attempts_max => failed = Some(error),
                (last, _) => return last,
            }
            attempt += 1;
        }
    }

    /// [`run`](Self::run) for a call that does not await; parks this thread while it waits in line.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_blocking<T, E, F>(&self, estimate: Amounts, call: F) -> Result<T, RunError<E>>
    where
        F: FnOnce(Meter) -> Result<T, E>,
        E: fmt::Debug,
    {
        park_on(self.run(estimate, |meter| async move { call(meter) }), || self.0.time_left())
    }

    /// [`run_with_retries`](Self::run_with_retries) for a call that does not await.
    ///
    /// # Errors
    /// As [`run_with_retries`](Self::run_with_retries).
    pub fn run_with_retries_blocking<T, E, F>(
        &self,
        estimate: Amounts,
        attempts_max: u32,
        mut call: F,
    ) -> Result<T, RunError<E>>
    where
        F: FnMut(Meter) -> Result<T, E>,
        E: fmt::Debug,
    {
        let attempts = self.run_with_retries(estimate, attempts_max, |meter| std::future::ready(call(meter)));
        park_on(attempts, || self.0.time_left())
    }
}

fn with_retry(estimate: Amounts, attempt: u32) -> Amounts {
    let retries = estimate.get(Resource::Retries);
    if attempt > 1 { estimate.with(Resource::Retries, retries.saturating_add(1)) } else { estimate }
}

/// A running call. Dropping it means that the caller is gone.
struct Running {
    hold: Option<BudgetHold>,
    meter: Meter,
}

impl Running {
    fn ended(mut self) {
        if let Some(mut hold) = self.hold.take() {
            match self.meter.end(hold.amounts()) {
                Some(used) => {
                    hold.book(&used);
                }
                None => hold.book_presumed(),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut hold) = self.hold.take()
            && let Some(used) = self.meter.end(hold.amounts())
        {
            hold.book(&used);
        }
    }
}

/// Permission to pass the account's breaker, if it has one. Dropping it frees the slot without a result.
struct Pass<'a>(Option<(&'a AccountNode, breaker::Pass)>);

impl<'a> Pass<'a> {
    fn ask(place: &'a AccountNode) -> Result<Self, BudgetRefusal> {
        let Some(breaker) = &place.breaker else { return Ok(Self(None)) };
        let now_ms = place.tree.clock.now_ms();
        let admitted = breaker.lock().admit(now_ms);
        admitted.map(|pass| Self(Some((place, pass)))).map_err(|tripped| match tripped {
            Tripped::Open { until_ms } => {
                BudgetRefusal::BreakerOpen { account: place.id.clone(), until_ms, left_ms: until_ms - now_ms }
            }
            Tripped::Probing => BudgetRefusal::BreakerProbing { account: place.id.clone() },
        })
    }

    fn succeeded(mut self) {
        self.end(|_| CallEnd::Succeeded);
    }

    fn failed(mut self) {
        self.end(|place| CallEnd::Failed { now_ms: place.tree.clock.now_ms() });
    }

    fn end(&mut self, how: impl FnOnce(&AccountNode) -> CallEnd) {
        if let Some((place, pass)) = self.0.take()
            && let Some(breaker) = &place.breaker
        {
            let how = how(place);
            breaker.lock().end(pass, how);
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.end(|_| CallEnd::Unsaid);
    }
}
