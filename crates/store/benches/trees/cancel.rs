//! Cancelling a thousand agents that all have a running model call: from the request to the end of the tree.

use std::sync::Arc;
use std::time::Instant;

use spinney_journal::Journal;
use spinney_kernel::primitives::Durability;
use spinney_kernel::record::ExitKind;
use spinney_kernel::world::TreeState;
use spinney_store::MemoryJournal;
use tokio::runtime::Runtime;

use crate::measure::{at_percent, median, row, time, verdict};
use crate::tree::{self, Plan, Scripted};

const AGENTS: u32 = 1_000;
const ROUNDS: usize = 100;
const MOST_NS: f64 = 100_000_000.0;

/// Prints the table.
pub(crate) fn run() {
    let runtime = tree::runtime();
    let memory = |_| cancel(&runtime, Arc::new(MemoryJournal::new()));
    line("in memory", (0..ROUNDS).map(memory).collect());
    let sqlite = |_| {
        let home = tree::folder();
        cancel(&runtime, tree::sqlite(home.path()))
    };
    line("on SQLite", (0..ROUNDS).map(sqlite).collect());
}

fn line(place: &str, times: Vec<f64>) {
    let (half, most) = (median(times.clone()), at_percent(times, 99));
    let relation = format!("at most 100 ms: {}", verdict(most < MOST_NS));
    row(
        &format!("1,000 agents {place}, p99 of {ROUNDS}"),
        &time(most),
        &format!("{} (median)", time(half)),
        &relation,
    );
}

fn cancel(runtime: &Runtime, journal: Arc<dyn Journal>) -> f64 {
    let model = Scripted::new(Plan::Stuck(AGENTS));
    let home = tree::home_with(journal, &model);
    runtime.block_on(async {
        let tree = tree::start(&home, Durability::Normal).await;
        model.stuck(AGENTS as usize).await;
        let root = match tree.snapshot().await {
            Ok(snapshot) => snapshot.agents[0].agent.clone(),
            Err(error) => panic!("{error}"),
        };
        let start = Instant::now();
        assert_eq!(tree.cancel(root, "enough").await, Ok(()));
        let status = tree.ended().await;
        let elapsed = start.elapsed().as_nanos() as f64;
        assert_eq!(status.state, TreeState::Ended(ExitKind::Cancelled), "{status:?}");
        elapsed
    })
}
