//! Replay: deciding a journal again, compared with only reading it: bytes, hash chain and JSON.

use std::sync::Arc;
use std::time::Instant;

use spinney_journal::{Blocking, Journal, pages};
use spinney_kernel::primitives::{Durability, Seq, TreeId};
use spinney_store::MemoryJournal;
use spinney_testkit::spinney::tree::verify;

use crate::measure::{at_most, median, row, time};
use crate::tree::{self, Plan};

const ROUNDS: usize = 15;

/// Prints the table.
pub(crate) fn run() {
    let (home, memory) = (tree::folder(), Arc::new(MemoryJournal::new()) as Arc<dyn Journal>);
    let sqlite = tree::sqlite(home.path()) as Arc<dyn Journal>;
    line("one agent, in memory", &memory, Plan::Turns(4_000));
    line("1,000 children, in memory", &memory, Plan::Children(1_000));
    line("one agent, on SQLite", &sqlite, Plan::Turns(4_000));
}

fn line(what: &str, journal: &Arc<dyn Journal>, plan: Plan) {
    let runtime = tree::runtime();
    let home = tree::home(Arc::clone(journal), plan);
    let tree = runtime.block_on(tree::run(&home, Durability::Normal)).id();
    let (mut ours, mut other, mut events) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        match verify(journal.as_ref(), tree, None).wait() {
            Ok(verified) => assert!(verified.decided),
            Err(diverged) => panic!("{diverged}"),
        }
        ours.push(start.elapsed().as_nanos() as f64);
        let start = Instant::now();
        events = read(journal.as_ref(), tree);
        other.push(start.elapsed().as_nanos() as f64);
    }
    let (ours, other) = (median(ours), median(other));
    let what = format!("{what}, {events} events");
    row(&what, &time(ours), &format!("{} (read)", time(other)), &at_most(ours / other, 2.0));
}

fn read(journal: &dyn Journal, tree: TreeId) -> usize {
    let events = pages(journal, tree, Seq(0)).blocking().map(|page| match page {
        Ok(page) => page.iter().map(|entry| entry.batch.events.len()).sum::<usize>(),
        Err(fault) => panic!("{fault}"),
    });
    events.sum()
}
