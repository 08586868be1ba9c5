//! The bus: the cost of publishing beside watchers of something else, the throughput of deltas, and the cost of watchers
//! for the trees they watch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use spinney_kernel::budget::Used;
use spinney_kernel::port::model::{AttemptError, DeltaKind, Deltas, Model};
use spinney_kernel::port::{Pending, model};
use spinney_kernel::primitives::{Actor, Durability, Envelope, Topic};
use spinney_store::MemoryJournal;
use spinney_testkit::spinney::Tree;
use spinney_testkit::spinney::bus::{Note, Watch, WatchItem, Watcher, reply};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

use crate::measure::{at_most, median, row, time, verdict};
use crate::tree::{self, Plan, Scripted};

const ROUNDS: usize = 7;
const NOTES: u32 = 2_000;
const OTHER_WATCHERS: usize = 50_000;
const DELTAS: usize = 500_000;
const WATCHERS: usize = 10;
const ASKS: usize = 10_000;

/// Prints the table.
pub(crate) fn run() {
    beside_many();
    deltas();
    requests();
    for (think, pace) in [(Duration::from_millis(10), "10 ms a call"), (Duration::ZERO, "no time a call")] {
        let (with, without) = watched_trees(think);
        let what = format!("100 trees, 1,000 watchers, {pace}");
        let relation = if think.is_zero() {
            "both cores are busy without them".to_owned()
        } else {
            at_most(with / without, 1.1)
        };
        row(&what, &time(with), &format!("{} (none)", time(without)), &relation);
    }
}

fn topic(text: &str) -> Topic {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn note(about: &str) -> Note {
    let envelope = Envelope { topic: Some(topic(about)), ..Envelope::default() };
    Note { to: None, envelope, text: "x".repeat(tree::STEP_BYTES) }
}

/// A tree whose only agent never answers.
async fn still() -> (spinney_testkit::spinney::Home, Tree) {
    let home = tree::home(Arc::new(MemoryJournal::new()), Plan::Still);
    let tree = tree::start(&home, Durability::Normal).await;
    (home, tree)
}

async fn publish(tree: &Tree) -> f64 {
    let start = Instant::now();
    for _ in 0..NOTES {
        let published = tree.publish(Actor::PERSON, note("news")).await;
        assert_eq!(published, Ok(true));
    }
    start.elapsed().as_nanos() as f64 / f64::from(NOTES)
}

/// The cost of a publish with this many watchers of something else, and with none.
fn beside_many() {
    let runtime = tree::runtime();
    let (mut with, mut without) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        let ((_quiet_home, quiet), (_loud_home, loud)) = (still().await, still().await);
        let others: Vec<JoinHandle<()>> =
            (0..OTHER_WATCHERS).map(|number| tokio::spawn(drain(watch(&loud, number)))).collect();
        while loud.watchers().1 < OTHER_WATCHERS {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for _ in 0..ROUNDS {
            without.push(publish(&quiet).await);
            with.push(publish(&loud).await);
        }
        others.iter().for_each(JoinHandle::abort);
    });
    let (with, without) = (median(with), median(without));
    row(
        "a note beside 50,000 unrelated watchers",
        &time(with),
        &format!("{} (none)", time(without)),
        &at_most(with / without, 1.5),
    );
}

/// Half of them watch another topic, half another agent.
fn watch(tree: &Tree, number: usize) -> Watcher {
    let watch = if number.is_multiple_of(2) {
        Watch { topic: Some(topic(&format!("other.{number}"))), ..Watch::default() }
    } else {
        let agent = format!("other-{number}").parse().unwrap_or_else(|error| panic!("{error}"));
        Watch { agent: Some(agent), ..Watch::default() }
    };
    tree.watch(watch)
}

async fn drain(mut watcher: Watcher) {
    while let Some(Ok(_)) = watcher.next().await {}
}

/// A model that streams very much in very small chunks.
struct Talker;

/// How many chunks it sends before it yields.
const BREATH: usize = 256;

impl Model for Talker {
    fn call(
        &self,
        _: Arc<model::ModelAttempt>,
        deltas: Deltas,
    ) -> Pending<Result<model::ModelAnswer, AttemptError>> {
        Box::pin(async move {
            for number in 0..DELTAS {
                deltas(DeltaKind::Text, "word ");
                if number.is_multiple_of(BREATH) {
                    tokio::task::yield_now().await;
                }
            }
            Ok(model::ModelAnswer::text("done").with_used(Used::NOTHING))
        })
    }
}

/// Deltas to ten watchers, and the same through a bare tokio channel.
fn deltas() {
    let (mut ours, mut bare, mut seen) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let (took, count) = through_a_tree();
        ours.push(took);
        seen = count;
        bare.push(through_a_channel());
    }
    let (ours, bare) = (median(ours), median(bare));
    let rate = 1_000.0 / ours;
    let relation = format!(
        "{rate:.2} M/s, {:.1}x (at least 1 M/s or at most 3x: {})",
        ours / bare,
        verdict(rate >= 1.0 || ours / bare <= 3.0)
    );
    row("a delta to 10 watchers", &time(ours), &format!("{} (bare broadcast)", time(bare)), &relation);
    row("of 500,000 deltas a watcher took", &seen.to_string(), "", "the rest was dropped and counted");
}

/// Nanoseconds per delta until every watcher has seen the end, and how many one of them took.
fn through_a_tree() -> (f64, u64) {
    let runtime = tree::runtime();
    runtime.block_on(async {
        let home = tree::home_with(Arc::new(MemoryJournal::new()), &Arc::new(Talker));
        let start = Instant::now();
        let tree = tree::start(&home, Durability::Normal).await;
        let watchers: Vec<_> = (0..WATCHERS)
            .map(|_| {
                let mut watcher = tree.watch(Watch { deltas: true, ..Watch::default() });
                tokio::spawn(async move {
                    while let Some(Ok(_)) = watcher.next().await {}
                    watcher.count().deltas
                })
            })
            .collect();
        let mut seen = 0;
        for watcher in watchers {
            seen = watcher.await.unwrap_or_default();
        }
        (start.elapsed().as_nanos() as f64 / DELTAS as f64, seen)
    })
}

fn through_a_channel() -> f64 {
    let runtime = tree::runtime();
    runtime.block_on(async {
        let start = Instant::now();
        let sender = broadcast::Sender::<Arc<String>>::new(4_096);
        let watchers: Vec<_> = (0..WATCHERS)
            .map(|_| {
                let mut receiver = sender.subscribe();
                tokio::spawn(async move {
                    while !matches!(receiver.recv().await, Err(broadcast::error::RecvError::Closed)) {}
                })
            })
            .collect();
        let talker = tokio::spawn(async move {
            for number in 0..DELTAS {
                let _ = sender.send(Arc::new("word ".to_owned()));
                if number.is_multiple_of(BREATH) {
                    tokio::task::yield_now().await;
                }
            }
        });
        let _ = talker.await;
        for watcher in watchers {
            let _ = watcher.await;
        }
        start.elapsed().as_nanos() as f64 / DELTAS as f64
    })
}

/// A model that takes some time, and calls a tool in each of its turns.
struct Thinker(Arc<Scripted>, Duration);

impl Model for Thinker {
    fn call(
        &self,
        attempt: Arc<model::ModelAttempt>,
        deltas: Deltas,
    ) -> Pending<Result<model::ModelAnswer, AttemptError>> {
        let (answer, think) = (self.0.call(attempt, deltas), self.1);
        Box::pin(async move {
            if !think.is_zero() {
                tokio::time::sleep(think).await;
            }
            answer.await
        })
    }
}

/// The time of a hundred trees of fifty turns with ten watchers each, some of which stall, and with none.
fn watched_trees(think: Duration) -> (f64, f64) {
    let runtime = tree::runtime();
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        without.push(runtime.block_on(hundred(think, 0)));
        with.push(runtime.block_on(hundred(think, WATCHERS)));
    }
    (median(with), median(without))
}

async fn hundred(think: Duration, watchers: usize) -> f64 {
    let model = Arc::new(Thinker(Scripted::new(Plan::Turns(50)), think));
    let home = tree::home_with(Arc::new(MemoryJournal::new()), &model);
    let start = Instant::now();
    let mut trees = Vec::new();
    for _ in 0..100 {
        let tree = tree::start(&home, Durability::Normal).await;
        for number in 0..watchers {
            tokio::spawn(some(tree.watch(Watch { deltas: true, ..a_tenth(number) }), number));
        }
        trees.push(tree);
    }
    for tree in &trees {
        tree.ended().await;
    }
    start.elapsed().as_nanos() as f64
}

/// Of ten watchers two want everything, and the others one thing each.
fn a_tenth(number: usize) -> Watch {
    let topic = ["tool", "model", "agent", "tree"][number % 4];
    if number < 2 { Watch::default() } else { Watch { topic: Some(self::topic(topic)), ..Watch::default() } }
}

/// Takes what comes; one in five stalls after a while, and stays subscribed.
async fn some(mut watcher: Watcher, number: usize) {
    let mut taken = 0;
    while let Some(Ok(_)) = watcher.next().await {
        taken += 1;
        if number.is_multiple_of(5) && taken > 20 {
            std::future::pending::<()>().await;
        }
    }
}

/// Requests with replies, and what they leave behind.
fn requests() {
    let runtime = tree::runtime();
    let (took, left) = runtime.block_on(async {
        let (_home, tree) = still().await;
        let before = tree.watchers();
        let server = tokio::spawn(serve(tree.clone()));
        while tree.watchers().1 == before.1 {
            tokio::task::yield_now().await;
        }
        let start = Instant::now();
        for _ in 0..ASKS {
            let answered = tree.call(Actor::PERSON, note("ask"), Duration::from_secs(60)).await;
            assert!(answered.is_ok(), "{answered:?}");
        }
        let took = start.elapsed().as_nanos() as f64 / ASKS as f64;
        server.abort();
        let _ = server.await;
        (took, tree.watchers() == before)
    });
    row(
        "a request and its reply, of 10,000",
        &time(took),
        "",
        &format!("nothing left behind: {}", verdict(left)),
    );
}

async fn serve(tree: Tree) {
    let mut watcher =
        tree.watch(Watch { after: tree.status().seq, topic: Some(topic("ask")), ..Watch::default() });
    while let Some(Ok(WatchItem::Event(asked))) = watcher.next().await {
        if let Some(note) = reply(&asked, "here") {
            let _ = tree.publish(Actor::PERSON, note).await;
        }
    }
}
