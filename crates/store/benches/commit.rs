//! `cargo bench -p spinney-store`: the cost of an append, compared with a bare insert into the same kind of file in the
//! same run. Absolute times mean little on a busy machine, so nothing here fails on a time.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench prints and reads the clock")]
#![expect(clippy::float_arithmetic, reason = "ratios are for people; no money is counted here")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot run has nothing else to say")]

use spinney_kernel::world::TreeState;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use rusqlite::{Connection, params};
use spinney_journal::{Append, Batch, Epoch, Journal};
use spinney_kernel::primitives::{Durability, Seq, TreeId};
use spinney_store::{Access, SqliteJournal};
use spinney_testkit::conformance;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

const ROUNDS: usize = 15;
const STEPS: usize = 400;
const TREES: usize = 100;

fn main() {
    // `cargo test --benches` only checks that it starts.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    println!("one tree, one step after the other: a step           median       p99   ratio of medians");
    for (durability, bound) in [(Durability::Normal, 4.0), (Durability::Full, 2.0)] {
        let mut raw = Raw::new(durability);
        let (mut waiting, mut awaiting) = (Ours::new(durability), Ours::new(durability));
        let [raw, waiting, awaiting] =
            in_turns([&mut || raw.one_by_one(), &mut || waiting.wait_each(), &mut || {
                awaiting.await_each(&runtime)
            }]);
        let name = format!("{durability:?}").to_lowercase();
        line(&format!("{name}: bare insert"), &raw, None);
        line(&format!("{name}: append, thread waits"), &waiting, Some((&raw, bound)));
        line(&format!("{name}: append, task awaits"), &awaiting, Some((&raw, bound)));
    }
    println!("\n{TREES} trees at once, {} batches: a batch", TREES * 10);
    let mut raw = Raw::new(Durability::Normal);
    let (mut ours, mut tasks) = (Ours::new(Durability::Normal), Ours::new(Durability::Normal));
    let [raw, ours, tasks] =
        in_turns([&mut || raw.all_at_once(), &mut || ours.pipelined(), &mut || tasks.tasks(&runtime)]);
    line("normal: bare inserts, one transaction", &raw, None);
    line("normal: appends, one thread sends all", &ours, Some((&raw, f64::INFINITY)));
    line("normal: appends, a task per tree awaits each", &tasks, Some((&raw, f64::INFINITY)));
}

/// Nanoseconds per operation, in order.
struct Times(Vec<f64>);

impl Times {
    fn at(&self, percent: usize) -> f64 {
        self.0[self.0.len() * percent / 100]
    }
}

/// Measures several things in turns, so noise affects all alike.
fn in_turns<const N: usize>(mut runs: [&mut dyn FnMut() -> Vec<f64>; N]) -> [Times; N] {
    let mut times = [const { Times(Vec::new()) }; N];
    for _ in 0..ROUNDS {
        for (run, times) in runs.iter_mut().zip(&mut times) {
            times.0.extend(run());
        }
    }
    for times in &mut times {
        times.0.sort_by(f64::total_cmp);
    }
    times
}

/// Runs something and returns the nanoseconds.
fn timed(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_nanos() as f64
}

/// Runs all of it and returns the nanoseconds per batch.
fn timed_all(run: impl FnOnce()) -> Vec<f64> {
    vec![timed(run) / (TREES * 10) as f64]
}

fn line(what: &str, times: &Times, against: Option<(&Times, f64)>) {
    let ratio = against.map(|(other, bound)| {
        let ratio = times.at(50) / other.at(50);
        let bound_text = if bound.is_finite() { format!(" (at most {bound}x)") } else { String::new() };
        format!("{ratio:.2}x{bound_text}{}", if ratio <= bound { "" } else { " MISSED" })
    });
    let (median, p99) = (times.at(50) / 1_000.0, times.at(99) / 1_000.0);
    println!("{what:<48} {median:>8.1} µs {p99:>6.0} µs   {}", ratio.unwrap_or_default());
}

/// The events of one step.
fn batch() -> Batch {
    conformance::batches().swap_remove(3)
}

/// The minimum that any store must do: a row in a table like ours.
struct Raw {
    connection: Connection,
    body: String,
    next: i64,
    _home: TempDir,
}

impl Raw {
    fn new(durability: Durability) -> Self {
        let home = tempfile::tempdir().unwrap();
        let connection = Connection::open(home.path().join("raw.sqlite3")).unwrap();
        let level = if durability == Durability::Full { "FULL" } else { "NORMAL" };
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.pragma_update(None, "synchronous", level).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE batches (key INTEGER PRIMARY KEY, hash BLOB NOT NULL, body TEXT NOT NULL)",
            )
            .unwrap();
        let body = serde_json::to_string(&batch()).unwrap();
        Self { connection, body, next: 0, _home: home }
    }

    fn insert(&mut self) {
        let sql = "INSERT INTO batches (key, hash, body) VALUES (?1, ?2, ?3)";
        let mut row = self.connection.prepare_cached(sql).unwrap();
        row.execute(params![self.next, [7_u8; 32], self.body]).unwrap();
        self.next += 1;
    }

    fn one_by_one(&mut self) -> Vec<f64> {
        (0..STEPS).map(|_| timed(|| self.insert())).collect()
    }

    fn all_at_once(&mut self) -> Vec<f64> {
        timed_all(|| {
            self.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
            (0..TREES * 10).for_each(|_| self.insert());
            self.connection.execute_batch("COMMIT").unwrap();
        })
    }
}

/// A journal, and the position of each of its trees.
struct Ours {
    journal: Arc<SqliteJournal>,
    durability: Durability,
    batch: Batch,
    ends: Vec<u64>,
    _home: TempDir,
}

impl Ours {
    fn new(durability: Durability) -> Self {
        let home = tempfile::tempdir().unwrap();
        let journal = Arc::new(SqliteJournal::open(home.path(), Access::Write).unwrap());
        Self { journal, durability, batch: batch(), ends: vec![0; TREES], _home: home }
    }

    fn next(&mut self, tree: usize) -> Append {
        let after = self.ends[tree];
        self.ends[tree] += self.batch.events.len() as u64;
        let tree = TreeId::new((tree as u128).to_be_bytes());
        let (blobs, catalog) = (Arc::default(), Vec::new());
        let (durability, batch) = (self.durability, self.batch.clone().encode().unwrap());
        Append {
            tree,
            epoch: Epoch::FIRST,
            after: Seq(after),
            base: None,
            seed: None,
            before: None,
            batch,
            blobs,
            catalog,
            state: TreeState::Running,
            durability,
        }
    }

    fn wait_each(&mut self) -> Vec<f64> {
        let appends: Vec<Append> = (0..STEPS).map(|_| self.next(0)).collect();
        let wait = |append| assert!(conformance::append(self.journal.as_ref(), append).is_ok());
        appends.into_iter().map(|append| timed(|| wait(append))).collect()
    }

    fn await_each(&mut self, runtime: &Runtime) -> Vec<f64> {
        let appends: Vec<Append> = (0..STEPS).map(|_| self.next(0)).collect();
        let task = runtime.spawn(await_all(Arc::clone(&self.journal), appends));
        runtime.block_on(task).unwrap()
    }

    fn pipelined(&mut self) -> Vec<f64> {
        let appends: Vec<Append> = (0..TREES * 10).map(|number| self.next(number % TREES)).collect();
        let (answer, answers) = sync_channel(TREES * 10);
        timed_all(|| {
            for append in appends {
                let answer = answer.clone();
                self.journal.append(append, Box::new(move |end| answer.send(end).unwrap()));
            }
            drop(answer);
            answers.iter().for_each(|end| assert!(end.is_ok()));
        })
    }

    /// As a runtime does it: each tree has a task that waits for one append before the next.
    fn tasks(&mut self, runtime: &Runtime) -> Vec<f64> {
        let appends: Vec<Vec<Append>> =
            (0..TREES).map(|tree| (0..10).map(|_| self.next(tree)).collect()).collect();
        timed_all(|| {
            let start = |appends| runtime.spawn(await_all(Arc::clone(&self.journal), appends));
            let tasks: Vec<_> = appends.into_iter().map(start).collect();
            tasks.into_iter().for_each(|task| drop(runtime.block_on(task).unwrap()));
        })
    }
}

/// One after the other; returns the nanoseconds of each.
async fn await_all(journal: Arc<SqliteJournal>, appends: Vec<Append>) -> Vec<f64> {
    let mut times = Vec::with_capacity(appends.len());
    for append in appends {
        let start = Instant::now();
        let (answer, answered) = oneshot::channel();
        journal.append(append, Box::new(move |end| drop(answer.send(end))));
        answered.await.unwrap().unwrap();
        times.push(start.elapsed().as_nanos() as f64);
    }
    times
}
