//! Replay: a journal verifies, or the first difference is named.

use spinney_kernel::world::TreeState;
use std::sync::Arc;

use spinney::tree::{Diverged, Verified, verify};
use spinney_journal::{Blocking, ChainHash, Entry, Head, Journal, JournalFault, JournalLayer, Reading};
use spinney_kernel::primitives::{BlobRef, Category, Seq, TokenCount, TreeId};
use spinney_kernel::record::{Event, Restored};
use spinney_kernel::rules::InputKind;
use spinney_kernel::rules::request::Request;
use spinney_store::{Access, SqliteJournal};
use spinney_testkit::TestHome;

const SCRIPT: &str = r#"
rules:
  - when: { agent: root, turn: 1 }
    say: Splitting the work.
    call:
      - { tool: spawn_agent, args: { agent: helper, goal: Count the oaks., id: h } }
      - { tool: search, args: { query: trees } }
  - when: { agent: helper }
    say: Seventy seven oaks.
  - say: "I was told: {{ last }}"
tools:
  search: { description: search the web, say: "three results for {{ args.query }}" }
"#;

/// Runs the tree on a journal; returns its id and final hash.
async fn run(journal: Arc<dyn Journal>) -> (TreeId, ChainHash, u64) {
    let stage = TestHome::on(journal, SCRIPT);
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=20 / helper later turns=3").await;
    let status = tree.ended().await;
    (tree.id(), status.hash.unwrap(), stage.model().model().calls())
}

/// A journal whose reader sees something else than what was written.
struct Changed<F> {
    inner: Arc<dyn Journal>,
    change: F,
    head: fn(&mut Head),
    blobs: fn(Vec<u8>) -> Option<Vec<u8>>,
}

impl<F> Changed<F> {
    fn new(inner: Arc<dyn Journal>, change: F) -> Self {
        Self { inner, change, head: |_| {}, blobs: Some }
    }
}

impl<F: Fn(&mut Vec<Entry>) + Send + Sync> JournalLayer for Changed<F> {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    fn read(&self, tree: TreeId, after: Seq, batches_max: usize) -> Reading<Vec<Entry>> {
        let mut read = self.inner.read(tree, after, batches_max).wait();
        read.iter_mut().for_each(&self.change);
        Box::pin(std::future::ready(read))
    }

    fn head(&self, tree: TreeId) -> Reading<Option<Head>> {
        let mut head = self.inner.head(tree).wait();
        head.iter_mut().flatten().for_each(self.head);
        Box::pin(std::future::ready(head))
    }

    fn blob(&self, blob: &BlobRef) -> Reading<Option<Vec<u8>>> {
        let found = self.inner.blob(blob).wait().map(|bytes| bytes.and_then(self.blobs));
        Box::pin(std::future::ready(found))
    }
}

/// X8: a whole tree replays offline to its hash, and calls no model and no tool; the first different decision is named
/// by its position; a truncated journal is detected by its hash.
#[tokio::test(start_paused = true)]
async fn x8_a_replay_gives_the_same_hash_or_names_the_first_difference() {
    let inner = Arc::clone(TestHome::new(SCRIPT).journal());
    let (tree, hash, calls) = run(Arc::clone(&inner)).await;
    let Verified { hash: again, decided, snapshot, .. } =
        verify(inner.as_ref(), tree, Some(hash)).wait().unwrap();
    assert!(decided && again == Some(hash) && calls == 3);
    assert_eq!(snapshot.end.unwrap().shown.text, "I was told: three results for trees");

    // The journal claims that the helper had another goal.
    let forge = |entries: &mut Vec<Entry>| {
        for event in entries.iter_mut().flat_map(|entry| &mut entry.batch.events) {
            if let Event::AgentSpawned(spawned) = event
                && spawned.parent.is_some()
            {
                spawned.goal = "Cut the oaks.".to_owned();
            }
        }
    };
    let forged = Changed::new(Arc::clone(&inner), forge);
    let entries = inner.read(tree, Seq(0), 99).wait().unwrap();
    let is_child = |event: &Event| matches!(event, Event::AgentSpawned(spawned) if spawned.parent.is_some());
    let place = entries.iter().flat_map(|entry| &entry.batch.events).position(is_child).unwrap() as u64 + 1;
    match verify(&forged, tree, None).wait() {
        Err(Diverged::Event { seq, stored, decided }) => {
            assert_eq!(seq, place);
            assert!(stored.contains("Cut the oaks.") && decided.contains("Count the oaks."));
        }
        other => panic!("{other:?}"),
    }

    let last = entries.last().unwrap().after;
    let cut = move |entries: &mut Vec<Entry>| entries.retain(|entry| entry.after != last);
    let cut = Changed::new(inner, cut);
    let found = verify(&cut, tree, None).wait().unwrap_err();
    assert!(matches!(found, Diverged::OtherEnd { seq, .. } if seq == last.0), "{found}");
}

/// X8: a moved or renamed head and a missing large text are also detected: a replay shows only what was written.
#[tokio::test(start_paused = true)]
async fn x8_a_changed_head_and_a_missing_blob_are_found() {
    let script = format!("rules: [{{ say: {} }}]", "ab ".repeat(20_000));
    let inner = Arc::clone(TestHome::new(&script).journal());
    let stage = TestHome::on(Arc::clone(&inner), &script);
    let mut definition = spinney_testkit::definition("root turns=3");
    definition.roles.values_mut().for_each(|role| role.turns.as_mut().unwrap().output_cap = Some(100_000));
    let tree = stage.home().start(definition).await.unwrap();
    tree.ended().await;
    let id = tree.id();
    assert!(verify(inner.as_ref(), id, None).wait().is_ok());
    let unchanged = || Changed::new(Arc::clone(&inner), |_: &mut Vec<Entry>| {});
    let heads: [fn(&mut Head); 3] = [
        |head| head.seq = Seq(head.seq.0 + 300),
        |head| head.seq = Seq(head.seq.0 - 1),
        |head| head.state = TreeState::Running,
    ];
    for head in heads {
        let found = verify(&Changed { head, ..unchanged() }, id, None).wait().unwrap_err();
        assert!(matches!(found, Diverged::Head { .. }), "{found}");
    }
    let found = verify(&Changed { blobs: |_| None, ..unchanged() }, id, None).wait().unwrap_err();
    assert!(matches!(found, Diverged::Blob { what: "missing", .. }), "{found}");
}

/// X8: a changed word in the file itself is detected, and the last valid event is named.
#[tokio::test]
async fn x8_a_word_changed_in_the_file_is_found_by_the_chain() {
    let folder = tempfile::tempdir().unwrap();
    let (tree, ..) = run(Arc::new(SqliteJournal::open(folder.path(), Access::Write).unwrap())).await;
    // The home and its journal are closed by now, and their WAL file is gone.
    let mut changed = 0;
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let (word, other) = (b"Seventy seven oaks.", b"Seventy eight oaks.");
        let places: Vec<usize> = bytes
            .windows(word.len())
            .enumerate()
            .filter(|(_, found)| found == word)
            .map(|(at, _)| at)
            .collect();
        for at in places {
            bytes[at..at + word.len()].copy_from_slice(other);
            changed += 1;
        }
        std::fs::write(&path, bytes).unwrap();
    }
    assert!(changed > 0, "the word is not in the file");
    let journal = SqliteJournal::open(folder.path(), Access::ReadOnly).unwrap();
    let found = verify(&journal, tree, None).wait().unwrap_err();
    assert!(matches!(found, Diverged::Journal(JournalFault::Damaged { after, .. }) if after > 1), "{found}");
}

/// A change to a rollback, and the error when its tree is resumed then.
type Forgery = (fn(&mut Restored), &'static str);

/// A rollback with another past, or to an event that is not a checkpoint, is detected, although its input is unchanged.
#[tokio::test(start_paused = true)]
async fn a_rollback_to_what_never_was_is_found() {
    let script = "rules: [{ call: [{ tool: ask_human, args: { question: Which? } }] }]";
    let inner = Arc::clone(TestHome::new(script).journal());
    let stage = TestHome::on(Arc::clone(&inner), script);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=9").await;
    tree.settled().await;
    let root: spinney_kernel::primitives::AgentId = "root".parse().unwrap();
    let then = tree.checkpoint(root.clone(), None).await.unwrap();
    tree.send(root, "more").await.unwrap();
    tree.roll_back(&then, None).await.unwrap();
    tree.settled().await;
    home.shutdown(spinney::Shutdown::Stop).await;
    let id = tree.id();
    assert!(verify(inner.as_ref(), id, None).wait().unwrap().decided);
    let forgeries: [Forgery; 3] = [
        (|restored| restored.standing.said_tokens = TokenCount::exact(1_000_000), "resumed"),
        (|restored| restored.standing.window.headers[1].category = Category::Output, "does not match"),
        (|restored| restored.at = Seq(restored.at.0 - 1), "does not match"),
    ];
    for (forge, on_resume) in forgeries {
        let forged = Changed::new(Arc::clone(&inner), move |entries: &mut Vec<Entry>| {
            for batch in entries.iter_mut().map(|entry| &mut entry.batch) {
                let Some(Event::ContextRestored(restored)) = batch.events.first_mut() else { continue };
                forge(restored);
                let InputKind::Request { request, .. } = &mut batch.input.what else { panic!() };
                let Request::Rollback(rollback) = request.as_mut() else { panic!() };
                rollback.standing = Some(Box::new(restored.standing.clone()));
                rollback.at = restored.at;
            }
        });
        let found = verify(&forged, id, None).wait().unwrap_err().to_string();
        assert!(found.contains("does not match"), "{found}");
        // Resuming detects what does not match the texts, and stops there.
        let resumed = TestHome::on(Arc::new(forged), script).home().resume(id).await;
        let said = resumed.map_or_else(|error| error.to_string(), |_| "resumed".to_owned());
        assert!(said.contains(on_resume), "{said}");
    }
}
