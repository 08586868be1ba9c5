//! Many concurrent trees on one journal: the cost of a batch, compared with rows written in transactions of a thousand.

use std::sync::Arc;
use std::time::Instant;

use spinney_kernel::primitives::Durability;
use spinney_testkit::spinney::Home;

use crate::measure::{median, paired, row, time, verdict};
use crate::raw::Raw;
use crate::tree::{self, Plan};

const ROUNDS: usize = 15;
const TREES: usize = 100;
/// About four WAL checkpoints, so each round has its share of them.
const RAW_TRANSACTIONS: usize = 20;
const RAW_ROWS: usize = 1_000;

/// Prints the table.
pub(crate) fn run() {
    let (ours, raw, share) = many_trees();
    let relation = format!("{share:.0} % of the rate (at least 25 %: {})", verdict(share >= 25.0));
    row("100 trees at once, per batch", &time(ours), &format!("{} (bare, batched)", time(raw)), &relation);
}

/// Nanoseconds per batch of a hundred concurrent trees, per row of bare inserts in transactions of 1,000, and our share
/// of that rate. Each round compares the two at one moment.
fn many_trees() -> (f64, f64, f64) {
    let runtime = tree::runtime();
    let home = tree::folder();
    let turns = 100;
    let spinney = Arc::new(tree::home(tree::sqlite(home.path()), Plan::Turns(turns)));
    let mut raw = Raw::new(Durability::Normal);
    let batches = TREES as f64 * f64::from(2 * turns + 2);
    let (mut ours, mut other) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        runtime.block_on(run_all(&spinney, Durability::Normal));
        ours.push(start.elapsed().as_nanos() as f64 / batches);
        let start = Instant::now();
        raw.batched(RAW_TRANSACTIONS, RAW_ROWS);
        other.push(start.elapsed().as_nanos() as f64 / (RAW_TRANSACTIONS * RAW_ROWS) as f64);
    }
    let share = 100.0 * paired(&other, &ours);
    (median(ours), median(other), share)
}

/// A hundred concurrent trees, to their ends.
pub(crate) async fn run_all(spinney: &Arc<Home>, durability: Durability) {
    let one = async |spinney: Arc<Home>, durability| tree::start(&spinney, durability).await.ended().await;
    let all: Vec<_> = (0..TREES).map(|_| tokio::spawn(one(Arc::clone(spinney), durability))).collect();
    for tree in all {
        tree.await.unwrap_or_else(|error| panic!("{error}"));
    }
}
