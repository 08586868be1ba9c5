//! Drivers that misbehave, and rare timings: each was a bug once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spinney::function_tool::RawCall;
use spinney::{Drivers, FunctionTool, Home, Shutdown};
use spinney_journal::{Append, Appended, Blocking, ChainHash, Journal, JournalFault, JournalLayer, Shared};
use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::context::{Message, offload};
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{AttemptError, Deltas, Model, ModelAnswer, ModelAttempt};
use spinney_kernel::primitives::{Actor, BlobHash};
use spinney_kernel::record::{Event, ToolAsk};
use spinney_kernel::rules::request::{Cancel, Hold, HoldFor, Request};
use spinney_testkit::{TestHome, definition, recorded};

type ScenarioModel = dyn Fn(&ModelAttempt) -> ModelAnswer + Send + Sync;
struct Fake {
    per: u64,
    play: Box<ScenarioModel>,
    worst: Arc<Mutex<Vec<(String, u64, u64)>>>,
}

fn bytes(m: &Message) -> Vec<String> {
    match m {
        Message::System(system) => vec![system.to_string()],
        Message::Heard { text, .. } => vec![text.clone()],
        Message::Said { body, asks } => {
            let mut v = vec![body.text.clone()];
            for a in asks {
                v.extend([a.id.clone(), a.tool.clone(), a.args.clone()]);
            }
            v
        }
        Message::Result { id, tool, text, .. } => vec![id.to_string(), tool.to_string(), text.clone()],
        Message::Shared { .. }
        | Message::Note(_)
        | Message::Mismatch(_)
        | Message::Repeated(_)
        | Message::Folded(_) => {
            vec![m.text().into_owned()]
        }
    }
}

impl Model for Fake {
    fn call(&self, attempt: Arc<ModelAttempt>, _: Deltas) -> Pending<Result<ModelAnswer, AttemptError>> {
        let real: u64 = attempt.packet.messages.iter().flat_map(|m| bytes(m)).map(|t| self.tokens(&t)).sum();
        self.worst.lock().unwrap().push((attempt.origin.role.to_string(), real, attempt.packet.tokens));
        let mut answer = (self.play)(&attempt);
        answer.used = Used::Tokens(Usage { input: real, output: 1, ..Usage::default() });
        Box::pin(async move { Ok(answer) })
    }
    fn tokens(&self, text: &str) -> u64 {
        (text.len() as u64).div_ceil(self.per)
    }
}

fn say(text: &str) -> ModelAnswer {
    ModelAnswer::text(text)
}
fn ask(tool: &str, id: &str, args: &str) -> ToolAsk {
    ToolAsk {
        id: id.to_owned(),
        tool: tool.to_owned(),
        args: args.to_owned(),
        tokens: None,
        told_tokens: None,
    }
}

fn home(models: Vec<(&str, Arc<dyn Model>)>, tools: Vec<(String, FunctionTool)>) -> Home {
    home_on(Arc::clone(TestHome::new("rules: [{ say: x }]").journal()), models, tools)
}
fn home_on(
    j: Arc<dyn Journal>,
    models: Vec<(&str, Arc<dyn Model>)>,
    tools: Vec<(String, FunctionTool)>,
) -> Home {
    let mut d = Drivers::new();
    for (n, m) in models {
        d = d.with_model(n.parse().unwrap(), m);
    }
    for (n, t) in tools {
        d = d.with_tool(n.parse().unwrap(), Arc::new(t));
    }
    Home::open(j, d)
}

struct Panics;
impl Model for Panics {
    fn call(&self, _: Arc<ModelAttempt>, _: Deltas) -> Pending<Result<ModelAnswer, AttemptError>> {
        panic!("at once")
    }
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_panics_before_its_future_still_reports() {
    let p: Arc<dyn Model> = Arc::new(Panics);
    let home = home(vec![("m", p.clone()), ("cheap", p.clone()), ("free", p)], vec![]);
    let tree = home.start(definition("root turns=5")).await.unwrap();
    let end = tokio::time::timeout(Duration::from_secs(3600), tree.ended()).await;
    assert!(end.is_ok(), "the tree hangs: {:?}", tree.snapshot().await.unwrap().agents[0].status);
}

#[tokio::test(start_paused = true)]
async fn a_home_whose_driver_panicked_can_be_stopped() {
    let p: Arc<dyn Model> = Arc::new(Panics);
    let home = home(vec![("m", p.clone()), ("cheap", p.clone()), ("free", p)], vec![]);
    home.start(definition("root turns=5")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(
        tokio::time::timeout(Duration::from_secs(3600), home.shutdown(Shutdown::Stop)).await.is_ok(),
        "stop hangs"
    );
}

#[tokio::test(start_paused = true)]
async fn a_childs_answer_is_counted_for_its_reader() {
    let worst = Arc::new(Mutex::new(vec![]));
    let play = || -> Box<ScenarioModel> {
        Box::new(|a| {
            if a.origin.role.as_str() == "root" && a.turn == 1 {
                say("").with_asks(vec![ask(
                    "spawn_agent",
                    "1",
                    r#"{"agent":"helper","goal":"g","model":"cheap"}"#,
                )])
            } else {
                say(&"x".repeat(4000))
            }
        })
    };
    let coarse: Arc<dyn Model> = Arc::new(Fake { per: 8, play: play(), worst: worst.clone() });
    let fine: Arc<dyn Model> = Arc::new(Fake { per: 1, play: play(), worst: worst.clone() });
    let home = home(vec![("m", fine.clone()), ("cheap", coarse), ("free", fine)], vec![]);
    let tree = home.start(definition("root turns=5 / helper later turns=5")).await.unwrap();
    tree.ended().await;
    let over: Vec<_> = recorded(&tree)
        .await
        .into_iter()
        .filter_map(|t| if let Event::CallEnded { overrun, .. } = t.event { Some(overrun) } else { None })
        .filter(|overrun| !overrun.is_zero())
        .collect();
    let bad: Vec<_> = worst.lock().unwrap().iter().filter(|(_, real, held)| real > held).cloned().collect();
    assert!(bad.is_empty(), "(role, real, held): {bad:?}; overruns {over:?}");
}

#[tokio::test(start_paused = true)]
async fn the_id_and_name_in_a_result_are_counted() {
    let worst = Arc::new(Mutex::new(vec![]));
    let name = "t".repeat(100);
    let n = name.clone();
    let play: Box<ScenarioModel> = Box::new(move |a| {
        if a.turn < 3 {
            say("").with_asks((0..20).map(|i| ask(&n, &format!("{i:0>60}"), "{}")).collect())
        } else {
            say("done")
        }
    });
    let m: Arc<dyn Model> = Arc::new(Fake { per: 1, play, worst: worst.clone() });
    let tool = FunctionTool::sync(|_: RawCall| Ok::<_, String>(""));
    let home = home(vec![("m", m.clone()), ("cheap", m.clone()), ("free", m)], vec![(name, tool)]);
    let tree = home.start(definition("root turns=5")).await.unwrap();
    tree.ended().await;
    let all = worst.lock().unwrap().clone();
    let bad: Vec<_> = all.iter().filter(|(_, real, held)| real > held).cloned().collect();
    assert!(bad.is_empty() && all.len() == 3, "(role, real, held): {bad:?} of {all:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_within_every_bound_of_the_kernel_does_not_stop_the_tree() {
    let worst = Arc::new(Mutex::new(vec![]));
    let play: Box<ScenarioModel> = Box::new(move |a| {
        if a.turn == 1 {
            let args = format!("{{\"a\":\"{}\"}}", "x".repeat(250 * 1024));
            say("").with_asks((0..300).map(|i| ask("nothing", &format!("{i}"), &args)).collect())
        } else {
            say("done")
        }
    });
    let m: Arc<dyn Model> = Arc::new(Fake { per: 1, play, worst });
    let home = home(vec![("m", m.clone()), ("cheap", m.clone()), ("free", m)], vec![]);
    let tree = home.start(definition("root turns=5")).await.unwrap();
    let end = tree.ended().await;
    assert_eq!(end.stopped, None);
}

#[tokio::test(start_paused = true)]
async fn a_long_fault_message_does_not_stop_the_tree() {
    struct Long;
    impl Model for Long {
        fn call(&self, _: Arc<ModelAttempt>, _: Deltas) -> Pending<Result<ModelAnswer, AttemptError>> {
            use spinney_kernel::primitives::{Fault, FaultKind};
            Box::pin(async {
                Err(AttemptError {
                    fault: Fault { message: "x".repeat(70 << 20), ..Fault::new(FaultKind::Invalid) },
                    used: Used::NOTHING,
                })
            })
        }
    }
    let m: Arc<dyn Model> = Arc::new(Long);
    let home = home(vec![("m", m.clone()), ("cheap", m.clone()), ("free", m)], vec![]);
    let tree = home.start(definition("root turns=5")).await.unwrap();
    let end = tree.ended().await;
    assert_eq!(end.stopped, None);
}

/// A journal that confirms every second batch before the previous one, as SQLite may.
struct Swapped {
    inner: Arc<dyn Journal>,
    kept: Mutex<Option<(Appended, Result<ChainHash, JournalFault>)>>,
    from: AtomicU64,
}
impl JournalLayer for Swapped {
    fn inner(&self) -> &dyn Journal {
        &*self.inner
    }

    fn append(&self, append: Append, done: Appended) {
        let at = self.from.fetch_add(1, Ordering::Relaxed);
        let end = Arc::new(Mutex::new(None));
        let e = end.clone();
        self.inner.append(append, Box::new(move |r| *e.lock().unwrap() = Some(r)));
        let r = end.lock().unwrap().take().unwrap();
        // Batch 1 is kept until batch 2 was confirmed.
        let before = self.kept.lock().unwrap().take();
        if at == 1 {
            *self.kept.lock().unwrap() = Some((done, r));
            return;
        }
        done(r);
        if let Some((d, r)) = before {
            d(r);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn confirmations_out_of_order_do_not_stop_a_tree() {
    let inner: Arc<dyn Journal> = Arc::clone(TestHome::new("rules: [{ say: x }]").journal());
    let journal = Arc::new(Swapped { inner, kept: Mutex::new(None), from: AtomicU64::new(0) });
    let stage = TestHome::on(
        journal,
        "rules: [{ when: { turn: 1 }, think_ms: 50, say: more, call: [{ tool: list_agents }] }, { say: done }]",
    );
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5").await;
    // Batch 1 is a message, confirmed only together with batch 2, the model's answer.
    let t = tree.clone();
    let sent = tokio::spawn(async move { t.send("root".parse().unwrap(), "hello").await });
    let end = tokio::time::timeout(Duration::from_secs(3600), tree.ended()).await;
    assert!(
        end.is_ok(),
        "hangs at {:?}, journal at {:?}",
        tree.status().seq,
        stage.journal().head(tree.id()).wait().unwrap().unwrap().seq
    );
    sent.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_cancel_is_resumed() {
    let inner: Arc<dyn Journal> = Arc::clone(TestHome::new("rules: [{ say: x }]").journal());
    let stage = TestHome::on(inner.clone(), "rules: [{ hang: true }]");
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    stage.model().until_out(1).await;
    home.shutdown(Shutdown::Kill).await;
    // The disk has room for one of the two batches that a cancel writes.
    let full = Arc::new(super::failing_journal::Full::new(inner.clone(), 1));
    let other = TestHome::on(full, "rules: [{ hang: true }]");
    let cancel = Request::Cancel(Cancel { agent: "root".parse().unwrap(), reason: String::new() });
    let applied = other.home().apply(tree.id(), cancel).await;
    assert!(applied.is_err());
    let head = inner.head(tree.id()).wait().unwrap().unwrap();
    let resumed = stage.home().recover().await.unwrap();
    assert_eq!(resumed.len(), 1, "nobody takes it up: its head says {:?} at {:?}", head.state, head.seq);
}

#[tokio::test(start_paused = true)]
async fn a_call_from_outside_costs_a_turn_agent_no_result() {
    let stage = TestHome::new(
        "rules: [{ when: { turn: 1 }, call: [{ tool: slow, args: {} }] }, { say: done }]\ntools: { slow: { think_ms: 500, say: the result } }",
    );
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let hold = Request::Hold(Hold {
        agent: "root".parse().unwrap(),
        effect: HoldFor::Model { model: None, input_tokens: 0, output_cap: None },
    });
    let r = tree.request(Actor::PERSON, hold).await;
    tree.ended().await;
    let last = stage.model().attempts();
    let seen: Vec<String> = last
        .iter()
        .map(|a| {
            format!(
                "turn {} tokens {} {:?}",
                a.turn,
                a.packet.tokens,
                a.packet.messages.iter().skip(1).collect::<Vec<_>>()
            )
        })
        .collect();
    assert!(seen.last().unwrap().contains("the result"), "{r:?}\n{seen:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_counter_gone_mad_is_no_panic() {
    struct Mad;
    impl Model for Mad {
        fn call(&self, _: Arc<ModelAttempt>, _: Deltas) -> Pending<Result<ModelAnswer, AttemptError>> {
            Box::pin(async { Ok(say("x")) })
        }
        fn tokens(&self, _: &str) -> u64 {
            u64::MAX
        }
    }
    let m: Arc<dyn Model> = Arc::new(Mad);
    let home = home(vec![("m", m.clone()), ("cheap", m.clone()), ("free", m)], vec![]);
    let tree = home.start(definition("root turns=5")).await.unwrap();
    tree.ended().await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_does_not_wait_for_a_paused_tree() {
    let stage = TestHome::new("rules: [{ think_ms: 50, say: more, call: [{ tool: list_agents }] }]");
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5").await;
    tree.pause("root".parse().unwrap()).await.unwrap();
    assert!(
        tokio::time::timeout(Duration::from_secs(36000), home.shutdown(Shutdown::Drain)).await.is_ok(),
        "drain hangs"
    );
}

#[tokio::test(start_paused = true)]
async fn after_its_deadline_no_tool_of_an_agent_starts() {
    let calls = Arc::new(AtomicU64::new(0));
    let c = calls.clone();
    let tool = FunctionTool::new(move |_: RawCall| {
        c.fetch_add(1, Ordering::Relaxed);
        std::future::pending::<Result<String, String>>()
    })
    .repeatable()
    .timeout_ms(10_000_000);
    let stage =
        TestHome::new("rules: [{ when: { turn: 1 }, call: [{ tool: slow, args: {} }] }, { say: done }]")
            .with_tool("slow", tool);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5 wall=2s").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    home.shutdown(Shutdown::Kill).await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    let tree = stage.home().resume(tree.id()).await.unwrap();
    tree.ended().await;
    assert_eq!(calls.load(Ordering::Relaxed), 1, "started again 98 s after the deadline");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_is_resumed_once() {
    let stage = TestHome::new(
        "rules: [{ when: { turn: 1 }, call: [{ tool: ask_human, args: { question: Eh? } }] }, { say: done }]",
    );
    let mut twice = 0;
    for _ in 0..200 {
        let home = stage.home();
        let tree = home.start(definition("root turns=5")).await.unwrap();
        tree.settled().await;
        home.shutdown(Shutdown::Stop).await;
        let home = Arc::new(stage.home());
        let go = || {
            let (h, id) = (home.clone(), tree.id());
            tokio::spawn(async move { h.resume(id).await.is_ok() })
        };
        let (a, b) = (go(), go());
        twice += usize::from(a.await.unwrap() && b.await.unwrap());
        home.shutdown(Shutdown::Kill).await;
        stage.journal().remove(tree.id(), Shared::Refuse).wait().unwrap();
    }
    assert_eq!(twice, 0, "resumed twice at once, of 200");
}

#[tokio::test(start_paused = true)]
async fn a_model_knows_that_what_it_reads_is_only_a_preview() {
    let tool = FunctionTool::sync(|_: RawCall| Ok::<_, String>("x".repeat(40_000)));
    let stage =
        TestHome::new("rules: [{ when: { turn: 1 }, call: [{ tool: big, args: {} }] }, { say: done }]")
            .with_tool("big", tool);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5").await;
    tree.ended().await;
    let last = stage.model().attempts().pop().unwrap();
    let Message::Result { text, .. } = last.packet.messages.last().unwrap().as_ref() else { panic!() };
    let x = |count: usize| "x".repeat(count);
    let file = offload::name(&BlobHash::digest(x(40_000).as_bytes()));
    let words = format!("[38464 of 40000 bytes left out; the whole is in offload/{file}]");
    assert_eq!(text, &format!("{}\n{words}\n{}", x(1_024), x(512)));
}
