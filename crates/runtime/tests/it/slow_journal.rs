//! A slow journal: a decision that is rolled back before it was durable is never executed, and a tree that is read
//! slowly blocks no other.

use std::sync::{Arc, Mutex};

use futures::FutureExt;
use spinney::{ResumeError, Shutdown};
use spinney_journal::{Append, Appended, Blocking, Entry, Journal, JournalLayer, Reading};
use spinney_kernel::primitives::{AgentId, CheckpointName, Seq, TreeId};
use spinney_testkit::{TestHome, settled};
use tokio::sync::watch;

/// Holds appends back until they are released.
struct Slow {
    inner: Arc<dyn Journal>,
    kept: Mutex<Option<Vec<(Append, Appended)>>>,
}

impl Slow {
    fn hold(&self) {
        *self.kept.lock().unwrap() = Some(Vec::new());
    }

    fn release(&self) {
        let kept = self.kept.lock().unwrap().take();
        kept.into_iter().flatten().for_each(|(append, done)| self.inner.append(append, done));
    }

    /// Waits until this many batches are held back.
    async fn until(&self, batches: usize) {
        while self.kept.lock().unwrap().as_ref().is_none_or(|kept| kept.len() < batches) {
            tokio::task::yield_now().await;
        }
    }
}

impl JournalLayer for Slow {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    fn append(&self, append: Append, done: Appended) {
        match self.kept.lock().unwrap().as_mut() {
            Some(kept) => kept.push((append, done)),
            None => self.inner.append(append, done),
        }
    }
}

/// A model call that was decided, and rolled back before it could start, is not made: it would see another context than
/// the one it holds budget for.
#[tokio::test(start_paused = true)]
async fn a_call_that_was_rolled_back_before_it_left_is_not_made() {
    let script = "rules: [{ call: [{ tool: ask_human, args: { question: Which? } }] }]";
    let inner = Arc::clone(TestHome::new(script).journal());
    let slow = Arc::new(Slow { inner, kept: Mutex::new(None) });
    let stage = TestHome::on(Arc::<Slow>::clone(&slow), script);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=9").await;
    let snapshot = settled(&tree).await;
    let (root, then): (AgentId, CheckpointName) = ("root".parse().unwrap(), "then".parse().unwrap());
    tree.checkpoint(root, Some(then.clone())).await.unwrap();
    slow.hold();
    let (question, answering) = (snapshot.questions[0].question, tree.clone());
    let answered = tokio::spawn(async move { answering.answer(question, "blue").await });
    slow.until(1).await;
    let (rolling, to) = (tree.clone(), then.clone());
    let rolled = tokio::spawn(async move { rolling.roll_back(&to, None).await });
    // The automatic checkpoint, and the rollback.
    slow.until(3).await;
    slow.release();
    answered.await.unwrap().unwrap();
    assert_eq!(rolled.await.unwrap().unwrap().messages, 3);
    settled(&tree).await;
    let keys: Vec<String> = stage.model().attempts().iter().map(|attempt| attempt.key.clone()).collect();
    let calls: Vec<&str> = keys.iter().map(|key| key.split_once('/').unwrap().1).collect();
    // The second turn was requested by call 3, which was rolled back, and is taken by call 4.
    assert_eq!(calls, ["1/1", "4/1"]);
    assert!(spinney::tree::verify(slow.as_ref(), tree.id(), None).wait().unwrap().decided);
}

/// Reads one tree only when it is released.
struct Stuck {
    inner: Arc<dyn Journal>,
    tree: TreeId,
    free: watch::Sender<bool>,
}

impl JournalLayer for Stuck {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    fn read(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<Entry>> {
        let (read, mut free) = (self.inner.read(tree, after, batches_max), self.free.subscribe());
        let is_stuck = tree == self.tree;
        Box::pin(async move {
            if is_stuck {
                free.wait_for(|free| *free).await.unwrap();
            }
            read.await
        })
    }
}

/// G20 (resuming): a tree whose journal takes long to read does not delay resuming, starting or listing others.
#[tokio::test(start_paused = true)]
async fn a_tree_that_is_read_back_slowly_holds_up_no_other() {
    let script = "rules: [{ call: [{ tool: ask_human, args: { question: Which? } }] }]";
    let first = TestHome::new(script);
    let home = first.home();
    let (slow, fast) = (first.start(&home, "root turns=9").await, first.start(&home, "root turns=9").await);
    settled(&slow).await;
    settled(&fast).await;
    home.shutdown(Shutdown::Stop).await;
    let (inner, free) = (Arc::clone(first.journal()), watch::Sender::new(false));
    let stuck = Arc::new(Stuck { inner, tree: slow.id(), free });
    let stage = TestHome::on(Arc::<Stuck>::clone(&stuck), script);
    let home = stage.home();
    let mut resuming = Box::pin(home.resume(slow.id()));
    assert!((&mut resuming).now_or_never().is_none());
    assert_eq!(home.resume(fast.id()).await.unwrap().id(), fast.id());
    stage.start(&home, "root turns=9").await;
    // A second caller waits for the same tree, and gets it running.
    let mut again = Box::pin(home.resume(slow.id()));
    assert!((&mut again).now_or_never().is_none());
    stuck.free.send_replace(true);
    assert_eq!(resuming.await.unwrap().id(), slow.id());
    assert_eq!(again.await.err(), Some(ResumeError::Running { tree: slow.id() }));
}
