//! Turns in memory: whether a late one costs as much as an early one, compared with peers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use spinney_kernel::budget::Used;
use spinney_kernel::definition::RateLimit;
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{AttemptError, Deltas, Model, ModelAnswer, ModelAttempt};
use spinney_kernel::primitives::Durability;
use spinney_store::MemoryJournal;

use crate::OPENAI_PACKAGES;
use crate::measure::{at_most, better, median, row, time};
use crate::peer::{self, Script};
use crate::tree::{self, Plan, Scripted};

const ROUNDS: usize = 25;
/// Turns that are timed together.
const SPAN: usize = 100;
const LATE: usize = 1_500;
/// What asking the limits may add to a call.
const LIMITS_NANOS_MAX: f64 = 2_000.0;

const OPENAI: Script =
    Script { home: "openai-agents", packages: OPENAI_PACKAGES, path: "benches/trees/openai_turns.py" };

/// Prints the table.
pub(crate) fn run() {
    let (early, late) = early_and_late();
    let ratio = at_most(late / early, 1.2);
    row("a turn, 1,500-1,600 against 1-100", &time(late), &time(early), &ratio);
    let (free, limited) = with_and_without_rates();
    let added = limited - free;
    let verdict = if added <= LIMITS_NANOS_MAX { "holds" } else { "MISSED" };
    row(
        "a turn with rates of model, role and tree",
        &time(limited),
        &format!("{} (without)", time(free)),
        &format!("{added:.0} ns more (at most 2 µs: {verdict})"),
    );
    let openai = peer::measure(&OPENAI);
    for turns in [100, 400] {
        let ours = per_turn(turns);
        let (other, relation) = match &openai {
            Ok(peer) => {
                let other = peer.figure(&format!("turn_{turns}"));
                (format!("{} (OpenAI Agents SDK)", time(other)), better(other / ours))
            }
            Err(why) => ("OpenAI Agents SDK".to_owned(), format!("not measured: {why}")),
        };
        row(&format!("a turn of a tree of {turns}"), &time(ours), &other, &relation);
    }
}

/// Nanoseconds per turn at the beginning of a tree and late in it, the minimum of many trees. A median would not do: on a
/// busy machine the first turns fit into a fresh time slice and only the late ones are interrupted.
fn early_and_late() -> (f64, f64) {
    let runtime = tree::runtime();
    let (mut early, mut late) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        let model = Arc::new(Timed::new((LATE + SPAN) as u32));
        let home = tree::home_with(Arc::new(MemoryJournal::new()), &model);
        runtime.block_on(tree::run(&home, Durability::Normal));
        early = early.min(model.per_turn(0));
        late = late.min(model.per_turn(LATE));
    }
    (early, late)
}

/// Nanoseconds per turn without rates and with three of them that are never reached, in turns.
fn with_and_without_rates() -> (f64, f64) {
    let runtime = tree::runtime();
    let one = |rate: RateLimit| {
        let home = tree::home(Arc::new(MemoryJournal::new()), Plan::Turns(400));
        let start = Instant::now();
        runtime.block_on(tree::run_with(&home, |definition| {
            definition.limits.rate = rate;
            definition.models.values_mut().for_each(|model| model.rate = rate);
            definition.roles.values_mut().for_each(|role| role.rate = rate);
        }));
        start.elapsed().as_nanos() as f64 / 400.0
    };
    let most = Some(1_000_000_000);
    let rate = RateLimit { requests_per_min: most, tokens_per_min: Some(1_000_000_000_000) };
    let rounds: Vec<(f64, f64)> = (0..4 * ROUNDS).map(|_| (one(RateLimit::NONE), one(rate))).collect();
    (
        median(rounds.iter().map(|round| round.0).collect()),
        median(rounds.iter().map(|round| round.1).collect()),
    )
}

/// Nanoseconds per turn of a whole tree.
fn per_turn(turns: u32) -> f64 {
    let runtime = tree::runtime();
    let one = |_| {
        let home = tree::home(Arc::new(MemoryJournal::new()), Plan::Turns(turns));
        let start = Instant::now();
        runtime.block_on(tree::run(&home, Durability::Normal));
        start.elapsed().as_nanos() as f64 / f64::from(turns)
    };
    median((0..ROUNDS).map(one).collect())
}

/// A model that records when it was called.
struct Timed {
    inner: Arc<Scripted>,
    calls: Mutex<Vec<Instant>>,
}

impl Timed {
    fn new(turns: u32) -> Self {
        Self {
            inner: Scripted::new(Plan::Turns(turns)),
            calls: Mutex::new(Vec::with_capacity(turns as usize + 1)),
        }
    }

    /// Nanoseconds per turn of those after this many.
    fn per_turn(&self, after: usize) -> f64 {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls[after + SPAN].duration_since(calls[after]).as_nanos() as f64 / SPAN as f64
    }
}

impl Model for Timed {
    fn call(&self, attempt: Arc<ModelAttempt>, deltas: Deltas) -> Pending<Result<ModelAnswer, AttemptError>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
        self.inner.call(attempt, deltas)
    }

    fn tokens(&self, text: &str) -> u64 {
        self.inner.tokens(text)
    }

    fn estimate(&self, text: &str) -> Option<u64> {
        self.inner.estimate(text)
    }

    fn used_when_stopped(&self, attempt: &ModelAttempt, said: &str) -> Used {
        self.inner.used_when_stopped(attempt, said)
    }
}
