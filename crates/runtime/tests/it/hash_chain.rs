//! A tree passes what it knows of the hash chain to its journal, so hashing delays nothing.

use std::sync::{Arc, Mutex};

use spinney::Shutdown;
use spinney_journal::{Append, Appended, Blocking, ChainHash, Journal, JournalLayer};
use spinney_kernel::primitives::Seq;
use spinney_testkit::{TestHome, settled};

/// Records what each batch says of the chain before it, and the chain after it.
struct Noting {
    inner: Arc<dyn Journal>,
    said: Mutex<Vec<Option<ChainHash>>>,
}

impl JournalLayer for Noting {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    fn append(&self, append: Append, done: Appended) {
        self.said.lock().unwrap().push(append.before);
        self.inner.append(append, done);
    }
}

/// In a sequential tree each batch follows a durable one; a resumed tree continues that way.
#[tokio::test(start_paused = true)]
async fn a_batch_says_the_hash_that_it_follows() {
    let script = "rules: [{ when: { turn: 2 }, call: [{ tool: ask_human, args: { question: Which? } }] }, { when: { turn: 4 }, say: done }, { call: [{ tool: look }] }]\ntools: { look: { think_ms: 5, say: seen } }";
    let inner = Arc::clone(TestHome::new(script).journal());
    let noting = Arc::new(Noting { inner, said: Mutex::default() });
    let stage = TestHome::on(Arc::<Noting>::clone(&noting), script);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=9").await;
    let snapshot = settled(&tree).await;
    home.shutdown(Shutdown::Kill).await;
    let again = stage.home();
    let tree = again.resume(tree.id()).await.unwrap();
    tree.answer(snapshot.questions[0].question, "blue").await.unwrap();
    settled(&tree).await;
    let entries = noting.inner.read(tree.id(), Seq(0), usize::MAX).wait().unwrap();
    let hashes = entries.iter().map(|entry| Some(entry.hash));
    let expected: Vec<Option<ChainHash>> = std::iter::once(None).chain(hashes).take(entries.len()).collect();
    assert!(entries.len() > 6, "{} batches", entries.len());
    assert_eq!(*noting.said.lock().unwrap(), expected);
}
