//! How long one poll of a tree's task takes while a hundred durable trees run: shows anything that blocks a worker.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use spinney_kernel::primitives::Durability;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::many;
use crate::measure::{row, time, verdict};
use crate::tree::{self, Plan};

const ROUNDS: usize = 5;
const BOUND_NS: f64 = 1_000_000.0;

/// Prints the table.
pub(crate) fn run() {
    let polls = Polls::default();
    let runtime = tree::runtime();
    let home = tree::folder();
    let spinney = Arc::new(tree::home(tree::sqlite(home.path()), Plan::Turns(100)));
    // Only this table measures polls: a subscriber costs time.
    let subscriber = polls.clone();
    runtime.block_on(async {
        tracing::subscriber::set_global_default(subscriber).unwrap_or_else(|error| panic!("{error}"));
        for _ in 0..ROUNDS {
            many::run_all(&spinney, Durability::Normal).await;
        }
    });
    let mut took = polls.took.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(!took.is_empty(), "the tree's task has no span");
    took.sort_by(f64::total_cmp);
    let at = |per_mille: usize| took[(took.len() * per_mille).div_ceil(1_000) - 1];
    let relation = format!("below 1 ms: {}", verdict(at(999) < BOUND_NS));
    let what = format!("{} polls of 100 trees, p50", took.len());
    row(&what, &time(at(500)), "", "");
    row("the same, p99.9", &time(at(999)), "", &relation);
    row("the same, the longest", &time(at(1_000)), "", "");
}

/// A subscriber that measures the time between entering and leaving the span of a tree's task.
#[derive(Clone, Default)]
struct Polls {
    took: Arc<Mutex<Vec<f64>>>,
}

thread_local! {
    static ENTERED: Cell<Option<Instant>> = const { Cell::new(None) };
}

impl Subscriber for Polls {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target() == "spinney::tree"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn enter(&self, _: &Id) {
        ENTERED.set(Some(Instant::now()));
    }

    fn exit(&self, _: &Id) {
        if let Some(entered) = ENTERED.take() {
            let mut took = self.took.lock().unwrap_or_else(PoisonError::into_inner);
            took.push(entered.elapsed().as_nanos() as f64);
        }
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
}
