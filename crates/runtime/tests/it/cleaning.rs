//! Removing expired checkpoints, while trees run and when the journal fails.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use spinney::clock::Clock;
use spinney::{Home, Tree};
use spinney_journal::{
    Blocking, CatalogKind, CatalogRow, Cleaned, Journal, JournalFault, JournalLayer, ListedCheckpoint,
    Reading, checkpoints, rebuild,
};
use spinney_kernel::primitives::limit::CLEAN_TRIES_MAX;
use spinney_kernel::primitives::{CheckpointKind, Seq, TreeId};
use spinney_testkit::TestHome;

const DAY: u64 = 24 * 60 * 60 * 1_000;
const LOOKS: &str = "rules: [{ when: { turn: 25 }, call: [{ tool: ask_human, args: { question: Which? } }] }, { when: { turn: 26 }, say: done }, { call: [{ tool: look }] }]\ntools: { look: { say: seen } }";

/// A clock that the test sets.
#[derive(Default)]
struct Hand(AtomicU64);

impl Clock for Hand {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A journal that refuses to replace the rows of one tree, a given number of times.
struct Stubborn {
    inner: Arc<dyn Journal>,
    about: Mutex<Option<(TreeId, JournalFault)>>,
    times: AtomicUsize,
}

impl JournalLayer for Stubborn {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    fn replace_catalog(&self, tree: TreeId, at: Seq, rows: Vec<CatalogRow>) -> Reading<()> {
        let about = self.about.lock().unwrap().clone().filter(|(about, _)| *about == tree);
        if let Some((_, fault)) = about
            && self
                .times
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |times| times.checked_sub(1))
                .is_ok()
        {
            return Box::pin(std::future::ready(Err(fault)));
        }
        self.inner.replace_catalog(tree, at, rows)
    }
}

/// Two running trees that wait for a person, each with two automatic checkpoints and one made by a person.
struct Scene {
    journal: Arc<Stubborn>,
    clock: Arc<Hand>,
    home: Home,
    trees: [Tree; 2],
}

impl Scene {
    async fn new() -> Self {
        let inner = Arc::clone(TestHome::new(LOOKS).journal());
        let journal = Arc::new(Stubborn { inner, about: Mutex::default(), times: AtomicUsize::new(0) });
        let stage = TestHome::on(Arc::<Stubborn>::clone(&journal) as Arc<dyn Journal>, LOOKS);
        let clock = Arc::new(Hand(AtomicU64::new(1_700_000_000_000)));
        let home = stage.home_on(Arc::<Hand>::clone(&clock) as Arc<dyn Clock>);
        let trees = [stage.start(&home, "root turns=30").await, stage.start(&home, "root turns=30").await];
        for tree in &trees {
            tree.settled().await;
            tree.checkpoint("root".parse().unwrap(), None).await.unwrap();
        }
        Self { journal, clock, home, trees }
    }

    fn pass(&self, ms: u64) {
        self.clock.0.fetch_add(ms, Ordering::Relaxed);
    }

    fn all(&self) -> Vec<ListedCheckpoint> {
        checkpoints(self.journal.as_ref(), None).wait().unwrap()
    }

    /// Fails for the second tree, a given number of times.
    fn keep_second(&self, fault: JournalFault, times: usize) {
        *self.journal.about.lock().unwrap() = Some((self.trees[1].id(), fault));
        self.journal.times.store(times, Ordering::Relaxed);
    }
}

/// P26: expired checkpoints of running trees are removed and counted; no event and no tree name is removed, and what a
/// rebuild restores is removed again.
#[tokio::test(start_paused = true)]
async fn p26_a_home_is_cleaned_while_its_trees_run() {
    let scene = Scene::new().await;
    let (before, journal) = (scene.all(), scene.journal.as_ref());
    let (names, heads) = (journal.inner.catalog(CatalogKind::Tree, "").wait(), journal.heads(&[]).wait());
    assert_eq!((before.len(), names.as_ref().map(Vec::len)), (6, Ok(2)));
    scene.pass(DAY / 2);
    let nothing = Cleaned { removed: 0, left: 4, failed: Vec::new() };
    assert_eq!(scene.home.clean_checkpoints().await, Ok(nothing));
    assert_eq!(scene.all(), before);
    scene.pass(DAY);
    for _ in 0..2 {
        let four = Cleaned { removed: 4, left: 0, failed: Vec::new() };
        assert_eq!(scene.home.clean_checkpoints().await, Ok(four));
        let kinds: Vec<CheckpointKind> = scene.all().into_iter().map(|listed| listed.known.kind).collect();
        assert_eq!(kinds, [CheckpointKind::Manual; 2]);
        assert_eq!(
            (journal.inner.catalog(CatalogKind::Tree, "").wait(), journal.heads(&[]).wait()),
            (names.clone(), heads.clone())
        );
        for tree in &scene.trees {
            rebuild(journal, tree.id()).wait().unwrap();
        }
        assert_eq!(scene.all(), before);
    }
    for tree in &scene.trees {
        tree.cancel("root".parse().unwrap(), "enough").await.unwrap();
        tree.ended().await;
        assert!(tree.status().stopped.is_none());
    }
}

/// P26: a fault removes nothing of that tree; in the others, what was removed is counted.
#[tokio::test(start_paused = true)]
async fn p26_a_fault_while_cleaning_removes_nothing_of_that_tree() {
    let scene = Scene::new().await;
    scene.pass(2 * DAY);
    let second = scene.trees[1].id();
    let of_second = |scene: &Scene| -> Vec<ListedCheckpoint> {
        scene.all().into_iter().filter(|listed| listed.tree == second).collect()
    };
    let before = of_second(&scene);
    let fault = JournalFault::Full;
    scene.keep_second(fault.clone(), 1);
    let half = Cleaned { removed: 2, left: 2, failed: vec![(second, fault)] };
    assert_eq!(scene.home.clean_checkpoints().await, Ok(half));
    assert_eq!((of_second(&scene), scene.all().len()), (before, 4));
    let rest = Cleaned { removed: 2, left: 0, failed: Vec::new() };
    assert_eq!(scene.home.clean_checkpoints().await, Ok(rest));
}

/// P26: a tree that is written meanwhile is tried again, but not forever; the count stays correct.
#[tokio::test(start_paused = true)]
async fn p26_a_tree_that_moves_on_meanwhile_is_looked_at_again() {
    for (times, removed) in [(1, 4), (CLEAN_TRIES_MAX - 1, 4), (CLEAN_TRIES_MAX, 2)] {
        let scene = Scene::new().await;
        scene.pass(2 * DAY);
        let second = scene.trees[1].id();
        let stale = JournalFault::Stale { tree: second, expected: 1, found: 2 };
        scene.keep_second(stale.clone(), times);
        let failed = if removed == 4 { Vec::new() } else { vec![(second, stale)] };
        let cleaned = scene.home.clean_checkpoints().await;
        assert_eq!(cleaned, Ok(Cleaned { removed, left: 4 - removed, failed }), "{times}");
        assert_eq!(scene.all().len(), 6 - removed);
    }
}
