//! Hold and settle through the handle, compared with a chain of plain mutexes and with the original.

use std::hint::black_box;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Instant;

use spinney::Budget;
use spinney::budget::{Amounts, Limits, Resource};

use crate::measure::{at_least, at_most, better, least, least_of_both, row, time, verdict};
use crate::peer::Peer;

const COUNT: u32 = 20_000;
const PER_THREAD: u32 = 400_000;

/// Prints the table.
pub(crate) fn run(peer: Option<&Peer>) {
    for (depth, bound) in [(1, 3.0), (3, 3.0), (10, 1.0)] {
        let chain = chain(depth);
        let reference = Reference::new(depth);
        let (ours, other) =
            least_of_both(COUNT, || hold_and_settle(chain.last()), || reference.hold_and_settle());
        row(
            &format!("depth {depth}"),
            &time(ours),
            &format!("{} (mutex per level)", time(other)),
            &at_most(ours / other, bound),
        );
        if let Some(peer) = peer {
            let original = peer.figure(&format!("call_{depth}"));
            row("", "", &format!("{} (veronica)", time(original)), &better(original / ours));
        }
    }
    deep();
    snapshot();
    for threads in [2, 8] {
        parallel(threads, peer);
    }
}

/// The cost per level must not grow with the depth.
fn deep() {
    let per_level = |depth: usize| {
        let chain = chain(depth);
        least(2_000_000 / depth as u32, || hold_and_settle(chain.last())) / depth as f64
    };
    let (shallow, deep) = (per_level(100), per_level(10_000));
    row(
        "per level at depth 10,000 against 100",
        &time(deep),
        &time(shallow),
        &format!("{:.2}x (caches; linear: {})", deep / shallow, verdict(deep / shallow < 8.0)),
    );
}

/// A snapshot must not visit past calls.
fn snapshot() {
    let (few, many) = (chain(1), chain(1));
    (0..1_000_000).for_each(|_| hold_and_settle(many.last()));
    let snap = |chain: &[Budget]| drop(black_box(chain.last().map(Budget::snapshot)));
    let (few, many) = least_of_both(COUNT, || snap(&few), || snap(&many));
    row("snapshot after 1,000,000 calls against none", &time(many), &time(few), &at_most(many / few, 1.5));
}

fn parallel(threads: usize, peer: Option<&Peer>) {
    let root = chain(1);
    let start = Barrier::new(threads + 1);
    let seconds = thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                start.wait();
                (0..PER_THREAD).for_each(|_| hold_and_settle(root.last()));
            });
        }
        start.wait();
        Instant::now()
    })
    .elapsed()
    .as_secs_f64();
    let rate = f64::from(PER_THREAD) * threads as f64 / seconds;
    let original = peer.map(|peer| peer.figure(&format!("threads_{threads}")));
    row(
        &format!("{threads} threads on one root"),
        &format!("{:.2} M/s", rate / 1e6),
        &original.map_or_else(String::new, |rate| format!("{:.0} k/s (veronica)", rate / 1e3)),
        &original.map_or_else(String::new, |original| at_least(rate / original, 100.0)),
    );
}

fn chain(depth: usize) -> Vec<Budget> {
    let limits = || Limits::none().cost_nanos(1_000_000_000_000_000).tokens(1_000_000_000_000);
    let mut chain = vec![Budget::root(limits()).unwrap_or_else(|error| panic!("{error}"))];
    while chain.len() < depth {
        let child = chain.last().map(|parent| parent.child(limits()));
        chain.extend(child.map(|child| child.unwrap_or_else(|error| panic!("{error}"))));
    }
    chain
}

fn hold_and_settle(budget: Option<&Budget>) {
    let ask = Amounts::cost(200).with(Resource::Tokens, 100).with(Resource::Steps, 1);
    let used = Amounts::cost(120).with(Resource::Tokens, 60).with(Resource::Steps, 1);
    let hold = budget.map(|budget| budget.try_hold(black_box(ask)).unwrap_or_else(|error| panic!("{error}")));
    if let Some(hold) = hold {
        let _ = black_box(hold.settle(black_box(used)));
    }
}

/// The obvious implementation: a mutex per account, five integers in each.
struct Reference(Vec<Mutex<[u64; 5]>>);

impl Reference {
    fn new(depth: usize) -> Self {
        Self((0..depth).map(|_| Mutex::new([0; 5])).collect())
    }

    fn hold_and_settle(&self) {
        for amounts in [[200, 100, 1, 0, 0], [120, 60, 1, 0, 0]] {
            for level in &self.0 {
                let mut sums = level.lock().unwrap_or_else(|poisoned| panic!("{poisoned}"));
                for (sum, amount) in sums.iter_mut().zip(black_box(amounts)) {
                    *sum += amount;
                }
            }
        }
    }
}
