//! Watching from the past: a watcher that starts within the hub's memory reads no journal, a page is read once for all
//! that wait for it, and whatever becomes of them, no watcher misses anything or hangs.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use spinney::Tree;
use spinney::bus::{Note, Overflow, Watch, WatchFault, WatchItem, Watcher};
use spinney_journal::{Entry, Journal, JournalFault, JournalLayer, Reading};
use spinney_kernel::primitives::{Actor, Envelope, Seq, TreeId};
use spinney_testkit::{TestHome, settled};
use tokio::sync::watch;

use crate::watching::WAITING;
use crate::watching_by_many::Dice;

/// A journal whose reads are counted, block while it is shut, and fail a given number of times.
struct Gate {
    inner: Arc<dyn Journal>,
    reads: AtomicUsize,
    faults: AtomicUsize,
    shut: watch::Sender<bool>,
}

impl Gate {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: Arc::clone(TestHome::new(WAITING).journal()),
            reads: AtomicUsize::new(0),
            faults: AtomicUsize::new(0),
            shut: watch::Sender::new(false),
        })
    }

    fn shut(&self) {
        self.shut.send_replace(true);
    }

    fn open(&self) {
        self.shut.send_replace(false);
    }

    fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }
}

impl JournalLayer for Gate {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    fn read(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<Entry>> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        let (mut shut, read) = (self.shut.subscribe(), self.inner.read(tree, after, batches_max));
        let fails = |left: usize| left.checked_sub(1);
        let fault = self.faults.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails).is_ok();
        Box::pin(async move {
            shut.wait_for(|is_shut| !is_shut).await.unwrap();
            if fault { Err(JournalFault::Full) } else { read.await }
        })
    }
}

/// A tree that waits for a person, with this many published messages.
async fn noted(gate: &Arc<Gate>, notes: usize) -> Tree {
    let stage = TestHome::on(Arc::<Gate>::clone(gate), WAITING);
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=9").await;
    settled(&tree).await;
    publish(&tree, notes).await;
    std::mem::forget(home);
    tree
}

async fn publish(tree: &Tree, notes: usize) {
    for number in 0..notes {
        let topic = ["left", "right"][number % 2].parse().unwrap();
        let envelope = Envelope { topic: Some(topic), ..Envelope::default() };
        let note = Note { to: None, envelope, text: number.to_string() };
        assert_eq!(tree.publish(Actor::PERSON, note).await, Ok(true));
    }
}

/// What a watcher sees up to an event, which it wants.
async fn until(watcher: &mut Watcher, end: Seq) -> Vec<u64> {
    let mut seen = Vec::new();
    while seen.last() != Some(&end.0) {
        match watcher.next().await {
            Some(Ok(WatchItem::Event(traced))) => seen.push(traced.recorded.seq.0),
            other => panic!("{other:?}"),
        }
    }
    seen
}

fn after(seq: u64) -> Watch {
    Watch { after: Seq(seq), ..Watch::default() }
}

/// Polls once, like a `select!` that another branch wins.
fn glance<T>(future: impl Future<Output = T>) -> Option<T> {
    future.now_or_never()
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_starts_in_the_recent_events_reads_no_journal() {
    let gate = Gate::new();
    let tree = noted(&gate, 300).await;
    let end = tree.status().seq;
    let mut first = tree.watch(after(0));
    let whole: Vec<u64> = (1..=end.0).collect();
    assert_eq!(until(&mut first, end).await, whole);
    let reads = gate.reads();
    for place in 0..end.0 {
        let mut watcher = tree.watch(after(place));
        // Even a watcher that must not wait has everything.
        let at_once = glance(watcher.next());
        assert!(
            matches!(at_once, Some(Some(Ok(WatchItem::Event(traced)))) if traced.recorded.seq.0 == place + 1)
        );
        if place + 1 < end.0 {
            assert_eq!(until(&mut watcher, end).await, whole[place as usize + 1..]);
        }
    }
    let right = Watch { topic: Some("right".parse().unwrap()), ..Watch::default() };
    assert_eq!(until(&mut tree.watch(right), end).await.len(), 150);
    // The same for a watcher with a small queue, and for events to come.
    let mut narrow = tree.watch(Watch { room: Some(3), overflow: Overflow::Disconnect, ..after(0) });
    publish(&tree, 20).await;
    let end = tree.status().seq;
    assert_eq!(until(&mut narrow, end).await, (1..=end.0).collect::<Vec<u64>>());
    assert_eq!(gate.reads(), reads);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_starts_before_the_recent_events_reads_the_journal() {
    let gate = Gate::new();
    let tree = noted(&gate, 100).await;
    let mut first = tree.watch(after(0));
    until(&mut first, tree.status().seq).await;
    publish(&tree, 1_500).await;
    let end = tree.status().seq;
    let reads = gate.reads();
    let mut recent = tree.watch(after(end.0 - 500));
    assert_eq!(until(&mut recent, end).await, (end.0 - 499..=end.0).collect::<Vec<u64>>());
    assert_eq!(gate.reads(), reads);
    let mut old = tree.watch(after(7));
    assert_eq!(until(&mut old, end).await, (8..=end.0).collect::<Vec<u64>>());
    assert!(gate.reads() > reads);
    // The first one fell behind meanwhile, and all three are live by now.
    until(&mut first, end).await;
    let reads = gate.reads();
    publish(&tree, 1).await;
    for watcher in [&mut first, &mut recent, &mut old] {
        assert_eq!(until(watcher, Seq(end.0 + 1)).await, [end.0 + 1]);
    }
    assert_eq!(gate.reads(), reads);
}

#[tokio::test(start_paused = true)]
async fn one_page_is_read_for_all_who_wait_for_it() {
    let gate = Gate::new();
    let tree = noted(&gate, 100).await;
    let end = tree.status().seq;
    let reads = gate.reads();
    let mut watchers: Vec<Watcher> = (0..100).map(|place| tree.watch(after(place))).collect();
    let seen = watchers.iter_mut().map(|watcher| until(watcher, end));
    for (place, seen) in futures::future::join_all(seen).await.into_iter().enumerate() {
        assert_eq!(seen, (place as u64 + 1..=end.0).collect::<Vec<u64>>());
    }
    assert_eq!(gate.reads(), reads + 1);
}

/// The watcher that asked for a page may be dropped or never polled again: the others get it.
#[tokio::test(start_paused = true)]
async fn a_page_is_read_even_if_its_caller_is_dropped() {
    for is_dropped in [true, false] {
        let gate = Gate::new();
        let tree = noted(&gate, 100).await;
        let end = tree.status().seq;
        gate.shut();
        let (mut asks, mut waits) = (tree.watch(after(0)), tree.watch(after(0)));
        let mut asking = Box::pin(asks.next());
        assert!(glance(&mut asking).is_none());
        assert!(glance(waits.next()).is_none());
        if is_dropped {
            drop(asking);
            drop(asks);
            gate.open();
            assert_eq!(until(&mut waits, end).await.len() as u64, end.0);
        } else {
            gate.open();
            assert_eq!(until(&mut waits, end).await.len() as u64, end.0);
            // It continues where it stopped.
            assert!(
                matches!(asking.await, Some(Ok(WatchItem::Event(traced))) if traced.recorded.seq == Seq(1))
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_cannot_be_read_is_tried_again_by_the_next() {
    let gate = Gate::new();
    let tree = noted(&gate, 100).await;
    let end = tree.status().seq;
    gate.shut();
    gate.faults.store(1, Ordering::SeqCst);
    let (mut first, mut second) = (tree.watch(after(0)), tree.watch(after(0)));
    let both = async { tokio::join!(first.next(), until(&mut second, end)) };
    let mut both = Box::pin(both);
    assert!(glance(&mut both).is_none());
    gate.open();
    let (failed, seen) = both.await;
    assert_eq!(failed, Some(Err(WatchFault::Journal(JournalFault::Full))));
    assert_eq!(seen.len() as u64, end.0);
    assert_eq!(first.next().await, None);
}

/// Nothing of an ended tree is kept without watchers; a later watcher still sees everything.
#[tokio::test(start_paused = true)]
async fn an_ended_tree_can_still_be_watched() {
    let gate = Gate::new();
    let tree = noted(&gate, 10).await;
    tree.cancel("root".parse().unwrap(), "enough").await.unwrap();
    tree.ended().await;
    let end = tree.status().seq;
    for _ in 0..3 {
        let mut watchers = [tree.watch(after(0)), tree.watch(after(0))];
        for watcher in &mut watchers {
            assert_eq!(until(watcher, end).await.len() as u64, end.0);
            assert_eq!(watcher.next().await, None);
        }
    }
    assert_eq!(tree.watchers(), (0, 0));
}

/// Follows a tree from a random event with random patience until it ends, and returns what it saw.
async fn follow(tree: Tree, watch: Watch, mut dice: Dice) -> Vec<u64> {
    let mut seen = Vec::new();
    let mut watcher = tree.watch(watch.clone());
    loop {
        let next = match dice.below(4) {
            0 => glance(watcher.next()),
            _ => Some(watcher.next().await),
        };
        match next {
            Some(Some(Ok(WatchItem::Event(traced)))) => seen.push(traced.recorded.seq.0),
            Some(Some(Ok(WatchItem::Delta(_) | WatchItem::Missed(_)))) => {}
            Some(Some(Err(WatchFault::TooSlow { seen }))) => {
                watcher = tree.watch(Watch { after: seen, ..watch.clone() });
            }
            Some(Some(Err(fault @ WatchFault::Journal(_)))) => panic!("{fault}"),
            Some(None) => return seen,
            None => tokio::task::yield_now().await,
        }
        for _ in 0..dice.below(8).saturating_sub(5) {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn watchers_that_begin_anywhere_see_exactly_the_journal() {
    for seed in 0..8 {
        let mut dice = Dice(seed);
        let gate = Gate::new();
        let tree = noted(&gate, dice.below(700) as usize).await;
        let mut watchers = Vec::new();
        for _ in 0..30 {
            publish(&tree, dice.below(60) as usize).await;
            let place = dice.below(tree.status().seq.0 + 5);
            let topic = ["left", "right", "agent"].get(dice.below(5) as usize);
            let watch = Watch {
                topic: topic.map(|topic| topic.parse().unwrap()),
                deltas: dice.below(2) == 0,
                room: [None, Some(1), Some(5), Some(100)][dice.below(4) as usize],
                overflow: [Overflow::DropDeltas, Overflow::Disconnect][dice.below(2) as usize],
                ..after(place)
            };
            let own = Dice(dice.below(u64::from(u32::MAX)));
            watchers.push((watch.clone(), tokio::spawn(follow(tree.clone(), watch, own))));
        }
        tree.cancel("root".parse().unwrap(), "enough").await.unwrap();
        let mut whole = Vec::new();
        let mut all = tree.watch(Watch::default());
        while let Some(next) = all.next().await {
            let Ok(WatchItem::Event(traced)) = next else { panic!("{next:?}") };
            whole.push(traced);
        }
        assert!(whole.iter().map(|traced| traced.recorded.seq.0).eq(1..=tree.status().seq.0));
        drop(all);
        for (watch, watcher) in watchers {
            let wanted = whole.iter().filter(|traced| {
                let topic = watch.topic.as_ref().is_none_or(|topic| topic.covers(&traced.context.topic));
                topic && traced.recorded.seq > watch.after
            });
            let wanted: Vec<u64> = wanted.map(|traced| traced.recorded.seq.0).collect();
            assert_eq!(watcher.await.unwrap(), wanted, "seed {seed}: {watch:?}");
        }
        assert_eq!(tree.watchers(), (0, 0));
    }
}
