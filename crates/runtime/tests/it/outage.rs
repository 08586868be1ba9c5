//! A journal that cannot be reached for a while: trees wait for it and continue, and nothing is lost, repeated or timed out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use spinney::tree::Stopped;
use spinney::{Home, Shutdown};
use spinney_journal::{
    Append, Appended, Batch, Blocking, Head, Journal, JournalFault, JournalLayer, Reading,
};
use spinney_kernel::primitives::{Seq, TreeId};
use spinney_kernel::record::{ClockKind, ExitKind};
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, conformance, recorded, settled};

use crate::clocks::{pass, turns_of};

const SCRIPT: &str = "rules:\n  - { when: { turn: 1 }, call: [{ tool: look }, { tool: look }] }\n  - { when: { turn: 2 }, think_ms: 20, call: [{ tool: look }] }\n  - { say: done }\ntools: { look: { think_ms: 5, say: seen } }";

/// What happens to an append while the journal is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Away {
    /// It is not written.
    Unwritten,
    /// It is written, and the answer is lost.
    Written,
}

/// When a journal is away.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// The append at which it begins; the first is 1.
    at: u64,
    /// Requests that get no answer.
    requests: u64,
    how: Away,
}

/// A journal that is away for a while.
struct Remote {
    inner: Arc<dyn Journal>,
    appends: AtomicU64,
    plan: Mutex<Plan>,
}

fn away() -> JournalFault {
    JournalFault::Unavailable { reason: "the server restarts".to_owned() }
}

impl Remote {
    fn new(plan: Plan) -> Arc<Self> {
        let inner = Arc::clone(TestHome::new(SCRIPT).journal());
        Arc::new(Self { inner, appends: AtomicU64::new(0), plan: Mutex::new(plan) })
    }

    /// How the current request is lost, if it is.
    fn loses(&self) -> Option<Away> {
        let mut plan = self.plan.lock().unwrap();
        if plan.requests == 0 || self.appends.load(Ordering::SeqCst) < plan.at {
            return None;
        }
        plan.requests -= 1;
        Some(plan.how)
    }

    fn left(&self) -> u64 {
        self.plan.lock().unwrap().requests
    }

    /// It is away from now on, or can be reached again.
    fn set(&self, requests: u64) {
        *self.plan.lock().unwrap() = Plan { at: 0, requests, how: Away::Unwritten };
    }
}

impl JournalLayer for Remote {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    fn append(&self, append: Append, done: Appended) {
        self.appends.fetch_add(1, Ordering::SeqCst);
        match self.loses() {
            None => self.inner.append(append, done),
            Some(Away::Unwritten) => done(Err(away())),
            Some(Away::Written) => self.inner.append(append, Box::new(move |_| done(Err(away())))),
        }
    }

    fn head(&self, tree: TreeId) -> Reading<Option<Head>> {
        // Before the first append it is asked whether the tree exists.
        match self.appends.load(Ordering::SeqCst) {
            0 => self.inner.head(tree),
            _ => match self.loses() {
                None => self.inner.head(tree),
                Some(_) => Box::pin(std::future::ready(Err(away()))),
            },
        }
    }
}

/// Runs a tree to its end; returns the words of its events.
async fn run(stage: &TestHome, home: &Home) -> (TreeId, Vec<&'static str>) {
    let tree = stage.start(home, "root turns=9").await;
    let end = tree.ended().await;
    assert_eq!((end.stopped, end.unavailable), (None, None));
    assert_eq!(end.state, TreeState::Ended(ExitKind::Completed));
    let words = recorded(&tree).await.iter().map(|recorded| recorded.event.as_str()).collect();
    (tree.id(), words)
}

fn batches(journal: &dyn Journal, tree: TreeId) -> Vec<Batch> {
    let entries = journal.read(tree, Seq(0), usize::MAX).wait().unwrap();
    entries.into_iter().map(|entry| entry.batch).collect()
}

/// O19, X2 (a journal that is away): at every append, shorter or longer, written or not. The tree ends as it would have,
/// each call is made once, and the journal replays.
#[tokio::test(start_paused = true)]
async fn a_tree_waits_for_its_journal_wherever_it_was() {
    let whole = TestHome::new(SCRIPT);
    let (id, expected) = run(&whole, &whole.home()).await;
    let (calls, appends) =
        (whole.model().attempts().len(), batches(whole.journal().as_ref(), id).len() as u64);
    assert!(appends > 5, "{appends}");
    for how in [Away::Unwritten, Away::Written] {
        for plan in (1..=appends).flat_map(|at| [1, 2, 7].map(|requests| Plan { at, requests, how })) {
            let remote = Remote::new(plan);
            let stage = TestHome::on(Arc::<Remote>::clone(&remote), SCRIPT);
            let (id, events) = run(&stage, &stage.home()).await;
            assert_eq!(events, expected, "{plan:?}");
            assert_eq!((stage.model().attempts().len(), remote.left()), (calls, 0), "{plan:?}");
            assert!(spinney::tree::verify(remote.as_ref(), id, None).wait().unwrap().decided, "{plan:?}");
        }
    }
}

/// The clocks of a tree stand still while its journal is away, except those by the wall.
#[tokio::test(start_paused = true)]
async fn no_time_passes_while_the_journal_is_away() {
    let looking = "rules: [{ when: { turn: 1 }, think_ms: 500, call: [{ tool: look }] }, { think_ms: 500, say: done }]\ntools: { look: { think_ms: 5, say: seen } }";
    for (fixture, end) in [("timeout=2s", ExitKind::Completed), ("wall=2s", ExitKind::Failed)] {
        let remote = Remote::new(Plan { at: 2, requests: u64::MAX, how: Away::Unwritten });
        let stage = TestHome::on(Arc::<Remote>::clone(&remote), looking);
        let tree = stage.start(&stage.home(), &format!("root turns=9 {fixture}")).await;
        pass(60_000).await;
        assert_eq!(tree.status().unavailable, Some(away()), "{fixture}");
        assert!(tree.status().stopped.is_none());
        remote.set(0);
        let status = tree.ended().await;
        assert_eq!(status.state, TreeState::Ended(end), "{fixture}");
        assert_eq!(status.unavailable, None, "{fixture}");
        if fixture == "timeout=2s" {
            let clock = turns_of(&recorded(&tree).await, "root", ClockKind::Timeout);
            assert!(clock.iter().all(|(left_ms, _)| *left_ms >= 1_000), "{clock:?}");
        }
    }
}

/// A tree whose journal is away can be stopped. What was not written never left, and the next process does it.
#[tokio::test(start_paused = true)]
async fn a_tree_is_stopped_while_its_journal_is_away() {
    let remote = Remote::new(Plan { at: 3, requests: u64::MAX, how: Away::Unwritten });
    let stage = TestHome::on(Arc::<Remote>::clone(&remote), SCRIPT);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=9").await;
    pass(10_000).await;
    assert_eq!(tree.status().unavailable, Some(away()));
    home.shutdown(Shutdown::Stop).await;
    assert_eq!(tree.ended().await.stopped, Some(Stopped::Shutdown));
    remote.set(0);
    let again = stage.home().resume(tree.id()).await.unwrap();
    assert_eq!(again.ended().await.state, TreeState::Ended(ExitKind::Completed));
    assert!(spinney::tree::verify(remote.as_ref(), tree.id(), None).wait().unwrap().decided);
}

/// If another writer used the time, the tree stops: it has the tree now.
#[tokio::test(start_paused = true)]
async fn a_tree_that_another_writer_took_meanwhile_stops() {
    let asking = "rules: [{ call: [{ tool: ask_human, args: { question: Which? } }] }]";
    let remote = Remote::new(Plan { at: 1, requests: 0, how: Away::Unwritten });
    let stage = TestHome::on(Arc::<Remote>::clone(&remote), asking);
    let tree = stage.start(&stage.home(), "root turns=9").await;
    let snapshot = settled(&tree).await;
    remote.set(u64::MAX);
    let (question, answering) = (snapshot.questions[0].question, tree.clone());
    let answered = tokio::spawn(async move { answering.answer(question, "blue").await });
    pass(1_000).await;
    let at = tree.status().seq;
    let batch = batches(remote.inner.as_ref(), tree.id()).swap_remove(0);
    conformance::append(remote.inner.as_ref(), conformance::append_for(tree.id(), at, &batch)).unwrap();
    remote.set(0);
    let stopped = tree.ended().await.stopped;
    assert!(matches!(stopped, Some(Stopped::Journal(JournalFault::Stale { .. }))), "{stopped:?}");
    assert!(answered.await.unwrap().is_err());
}
