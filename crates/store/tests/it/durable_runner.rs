//! A runner of a hundred durable trees: no worker of the async runtime waits for the disk.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::Connection;
use spinney_journal::Shared;
use spinney_kernel::definition::Definition;
use spinney_kernel::primitives::{CallId, Durability, Seq};
use spinney_kernel::record::ExitKind;
use spinney_kernel::world::TreeState;
use spinney_testkit::spinney::{Home, Shutdown, Tree};
use spinney_testkit::{TestHome, recorded, settled};
use tokio::runtime::Builder;
use tokio::time::sleep;

use super::{file, open};

const TREES: usize = 100;
const WORKERS: usize = 4;

/// Trees that write more than fits into an event and a file, ask a person, read the file, and end.
fn stage(folder: &Path) -> TestHome {
    let long = "A long text. ".repeat(3_500);
    let script = format!(
        "rules:
  - {{ when: {{ turn: 1 }}, say: '{long}', call: [{{ tool: write_file, args: {{ path: outputs/a/b.md, text: Kept. }} }}] }}
  - {{ when: {{ turn: 2 }}, call: [{{ tool: ask_human, args: {{ question: Well? }} }}] }}
  - {{ when: {{ turn: 3 }}, call: [{{ tool: list_files }}, {{ tool: read_file, args: {{ path: outputs/a/b.md }} }}] }}
  - {{ say: done }}"
    );
    TestHome::on(Arc::new(open(folder)), &script).with_files(folder)
}

fn definition() -> Definition {
    Definition { durability: Durability::Full, ..spinney_testkit::definition("root turns=9 out=100000") }
}

/// Runs all of these on the workers.
async fn all<T: Send + 'static>(
    futures: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let tasks: Vec<_> = futures.into_iter().map(tokio::spawn).collect();
    let mut done = Vec::new();
    for task in tasks {
        done.push(task.await.unwrap());
    }
    done
}

/// Starts the trees, until each of them waits for a person.
async fn started(home: &Arc<Home>) -> Vec<(Tree, CallId)> {
    let start = |_| {
        let home = Arc::clone(home);
        async move { waiting(home.start(definition()).await.unwrap()).await }
    };
    all((0..TREES).map(start)).await
}

async fn waiting(tree: Tree) -> (Tree, CallId) {
    let question = settled(&tree).await.questions[0].question;
    (tree, question)
}

async fn answered((tree, question): (Tree, CallId)) -> TreeState {
    tree.answer(question, "well").await.unwrap();
    tree.ended().await.state
}

/// The only worker of a runtime continues while the disk is stalled: what needs nothing to be written is done, and
/// nothing leaves that is not durable.
async fn the_only_worker_goes_on_while_the_disk_stands_still() {
    let folder = tempfile::tempdir().unwrap();
    let stage = stage(folder.path());
    let home = Arc::new(stage.home());
    let trees = started(&home).await;
    // While another connection holds the lock, nothing can be written to the file.
    let disk = Connection::open(file(folder.path())).unwrap();
    disk.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (busy, quiet) = trees.split_at(TREES / 2);
    let answers: Vec<_> = busy.iter().cloned().map(|tree| tokio::spawn(answered(tree))).collect();
    for _ in 0..3 {
        for (tree, _) in quiet {
            assert_eq!(tree.snapshot().await.unwrap().state, TreeState::Waiting);
        }
        for (tree, _) in &trees {
            assert!(!stage.journal().read(tree.id(), Seq(0), usize::MAX).await.unwrap().is_empty());
        }
        sleep(Duration::from_millis(1)).await;
    }
    assert!(answers.iter().all(|answer| !answer.is_finished()), "an answer is known that was not written");
    disk.execute_batch("ROLLBACK").unwrap();
    for answer in answers {
        assert_eq!(answer.await.unwrap(), TreeState::Ended(ExitKind::Completed));
    }
    home.shutdown(Shutdown::Stop).await;
}

/// What a thread or process has read and written so far.
#[derive(Debug)]
struct Io {
    read_bytes: u64,
    reads: u64,
    written_bytes: u64,
    writes: u64,
}

impl Io {
    fn in_folder(folder: &Path) -> Self {
        let counts = std::fs::read_to_string(folder.join("io")).unwrap();
        let count = |name: &str| {
            counts.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse().unwrap()
        };
        Self {
            read_bytes: count("rchar:"),
            reads: count("syscr:"),
            written_bytes: count("wchar:"),
            writes: count("syscw:"),
        }
    }
}

thread_local! {
    static IS_KNOWN: Cell<bool> = const { Cell::new(false) };
}

/// Runs trees from their start to their removal, stops and resumes them in between, and counts what the workers read
/// and write meanwhile: eight bytes for each time that one wakes another, and nothing of any file.
fn no_worker_reads_or_writes_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let stage = stage(folder.path());
    let workers: Arc<Mutex<BTreeSet<PathBuf>>> = Arc::default();
    let found = Arc::clone(&workers);
    let mut builder = Builder::new_multi_thread();
    // Only workers park.
    let runtime = builder.worker_threads(WORKERS).enable_all().on_thread_park(move || {
        if !IS_KNOWN.replace(true) {
            let thread = std::fs::read_link("/proc/thread-self").unwrap();
            found.lock().unwrap().insert(Path::new("/proc").join(thread));
        }
    });
    let runtime = runtime.build().unwrap();
    let written = Io::in_folder(Path::new("/proc/self")).written_bytes;
    runtime.block_on(async {
        let home = Arc::new(stage.home());
        let trees = started(&home).await;
        all([async move { home.shutdown(Shutdown::Stop).await }]).await;
        let home = Arc::new(stage.home());
        let resumed = trees.into_iter().map(|(tree, _)| {
            let home = Arc::clone(&home);
            async move { waiting(home.resume(tree.id()).await.unwrap()).await }
        });
        let ended = all(resumed).await.into_iter().map(|(tree, question)| {
            let home = Arc::clone(&home);
            async move {
                assert_eq!(answered((tree.clone(), question)).await, TreeState::Ended(ExitKind::Completed));
                assert!(recorded(&tree).await.len() > 10);
                home.remove(tree.id(), Shared::Refuse).await.unwrap();
            }
        });
        all(ended).await;
        while workers.lock().unwrap().len() < WORKERS {
            tokio::task::yield_now().await;
        }
        // Once in a process, the C library's allocator reads which processors there are.
        let processors = std::fs::read("/sys/devices/system/cpu/online").map_or(0, |list| list.len() as u64);
        for worker in workers.lock().unwrap().iter() {
            let io = Io::in_folder(worker);
            let is_allocators = io.reads > 0 && io.read_bytes == 8 * (io.reads - 1) + processors;
            assert!(io.read_bytes == 8 * io.reads || is_allocators, "{io:?}");
            assert_eq!(io.written_bytes, 8 * io.writes, "{io:?}");
        }
    });
    let written = Io::in_folder(Path::new("/proc/self")).written_bytes - written;
    assert!(written > 40_000 * TREES as u64, "the journal was written by others: {written}");
}

/// G20: a hundred durable trees on one journal. Neither a disk that stands still nor one that works is waited for by a
/// worker of the async runtime, whatever the trees do.
#[test]
fn g20_no_worker_is_ever_blocked_by_the_disk_of_a_hundred_durable_trees() {
    let only = Builder::new_current_thread().enable_all().build().unwrap();
    only.block_on(the_only_worker_goes_on_while_the_disk_stands_still());
    if cfg!(target_os = "linux") {
        no_worker_reads_or_writes_a_file();
    }
}
