//! Hooks around the calls of trees: what they see, what they can stop, and that they cannot harm a tree.

use spinney_journal::Blocking;
use std::sync::{Arc, Mutex, mpsc};

use spinney::function_tool::RawCall;
use spinney::hooks::{Calling, Returned, Target, TreeHooks};
use spinney::tree::verify;
use spinney::{FunctionTool, Home, Shutdown};
use spinney_kernel::budget::{Amounts, Resource, ResourceSet};
use spinney_kernel::context::Message;
use spinney_kernel::definition::{Definition, Tags};
use spinney_kernel::primitives::{Fault, Running};
use spinney_kernel::record::{Event, Exit, ExitKind, Failure, FailureCode, Outcome};
use spinney_kernel::rules::request::Redirect;
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, definition, recorded, settled};

/// What a hook says.
type Verdict = Result<(), String>;

/// What a hook does with each callback; the default is nothing.
#[derive(Default)]
struct Does {
    before_call: Option<fn(&Calling) -> Verdict>,
    before_charge: Option<fn(&Calling, &Amounts) -> Verdict>,
    after: Option<fn()>,
}

/// Records its callbacks.
#[derive(Default)]
struct Spy {
    seen: Mutex<Vec<String>>,
    charged: Mutex<Vec<Amounts>>,
    calls: Mutex<Vec<Calling>>,
    does: Does,
}

impl Spy {
    fn doing(does: Does) -> Arc<Self> {
        Arc::new(Self { does, ..Self::default() })
    }

    fn note(&self, call: &Calling, what: &str) {
        let path: Vec<&str> = call.origin.path.iter().map(|id| id.as_str()).collect();
        let place = format!("{} #{}.{} {}", path.join("/"), call.call.0, call.attempt, call.target.name());
        self.seen.lock().unwrap().push(format!("{what} {place}"));
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

impl TreeHooks for Spy {
    fn before_call(&self, call: &Calling) -> Result<(), String> {
        self.note(call, "call");
        self.calls.lock().unwrap().push(call.clone());
        self.does.before_call.map_or(Ok(()), |does| does(call))
    }

    fn before_charge(&self, call: &Calling, actual: &Amounts) -> Result<(), String> {
        self.note(call, "charge");
        self.charged.lock().unwrap().push(*actual);
        self.does.before_charge.map_or(Ok(()), |does| does(call, actual))
    }

    fn on_error(&self, call: &Calling, fault: &Fault) {
        self.note(call, &format!("error {}", fault.kind.as_str()));
        self.does.after.into_iter().for_each(|does| does());
    }

    fn on_result(&self, call: &Calling, result: &Returned) {
        self.note(call, &format!("result {:?}", result.text()));
        self.does.after.into_iter().for_each(|does| does());
    }
}

const SCRIPT: &str = r#"
rules:
  - when: { agent: root, turn: 1 }
    say: Looking.
    call: [{ tool: look, args: { at: trees } }]
  - say: "seen: {{ last }}"
tools:
  look: { say: "three {{ args.at }}" }
"#;

/// A home whose calls pass through these hooks.
fn home(stage: &TestHome, hooks: &Arc<Spy>) -> Home {
    stage.home().with_hooks(Arc::<Spy>::clone(hooks))
}

fn tagged(fixture: &str) -> Definition {
    Definition { tags: Arc::new(tags()), ..definition(fixture) }
}

fn tags() -> Tags {
    [("customer".to_owned(), "acme".to_owned())].into()
}

/// The tool's result in the model's last request.
fn last_result(stage: &TestHome) -> (String, bool) {
    let last = stage.model().attempts().pop().unwrap();
    match last.packet.messages.last().unwrap().as_ref() {
        Message::Result { text, is_error, .. } => (text.clone(), *is_error),
        other @ (Message::System(_)
        | Message::Heard { .. }
        | Message::Said { .. }
        | Message::Shared { .. }
        | Message::Note(_)
        | Message::Mismatch(_)
        | Message::Repeated(_)
        | Message::Folded(_)) => panic!("{other:?}"),
    }
}

/// What was charged for a call.
fn spent(event: &Event) -> Option<Amounts> {
    if let Event::CallEnded { spent, .. } = event { Some(spent.only(ResourceSet::MEASURED)) } else { None }
}

/// A hook sees each call before it starts and after it has ended, with the agent, the hold and the tags; the charge it
/// sees is what the journal books.
#[tokio::test(start_paused = true)]
async fn hooks_are_shown_every_call_before_it_leaves_and_before_it_is_booked() {
    let (stage, spy) = (TestHome::new(SCRIPT), Arc::new(Spy::default()));
    let home = home(&stage, &spy);
    let tree = home.start(tagged("root $9.00 turns=5")).await.unwrap();
    tree.ended().await;
    assert_eq!(
        spy.seen(),
        [
            "call root #1.1 m",
            "charge root #1.1 m",
            "result \"Looking.\" root #1.1 m",
            "call root #2.1 look",
            "charge root #2.1 look",
            "result \"three trees\" root #2.1 look",
            "call root #3.1 m",
            "charge root #3.1 m",
            "result \"seen: three trees\" root #3.1 m",
        ]
    );
    let recorded = recorded(&tree).await;
    let held: Vec<Amounts> = recorded
        .iter()
        .filter_map(
            |recorded| if let Event::CallStarted { held, .. } = &recorded.event { Some(*held) } else { None },
        )
        .collect();
    let spent: Vec<Amounts> = recorded.iter().filter_map(|recorded| spent(&recorded.event)).collect();
    assert_eq!(*spy.charged.lock().unwrap(), spent);
    assert!(spent[0].get(Resource::Cost) > 0);
    let calls = spy.calls.lock().unwrap();
    assert_eq!(calls.iter().map(|call| call.held).collect::<Vec<_>>(), held);
    assert!(calls.iter().all(|call| *call.tags == tags() && call.origin.tree == tree.id()));
    assert_eq!(calls[1].target, Target::Tool("look".parse().unwrap()));
    assert_eq!(calls[0].key, stage.model().attempts()[0].key);
}

/// A refused tool is not called and costs nothing, and its agent reads why.
#[tokio::test(start_paused = true)]
async fn a_tool_that_a_hook_refuses_is_not_called_and_its_agent_reads_why() {
    let refuse = |call: &Calling| match &call.target {
        Target::Tool(_) => Err("not on a Sunday".to_owned()),
        Target::Model(_) => Ok(()),
    };
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    let tool = FunctionTool::sync(move |_: RawCall| {
        *counted.lock().unwrap() += 1;
        Ok::<_, String>("looked")
    })
    .cost_nanos_max(500);
    let stage = TestHome::new(SCRIPT).with_tool("look", tool);
    let spy = Spy::doing(Does { before_call: Some(refuse), ..Does::default() });
    let home = home(&stage, &spy);
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    assert_eq!(settled(&tree).await.state, TreeState::Ended(ExitKind::Completed));
    assert_eq!(*calls.lock().unwrap(), 0);
    assert_eq!(
        last_result(&stage),
        ("failed (invalid): refused by a hook: not on a Sunday".to_owned(), true)
    );
    let seen: Vec<String> = spy.seen().into_iter().filter(|seen| seen.ends_with("look")).collect();
    assert_eq!(seen, ["call root #2.1 look"], "it is only asked about");
    let ended = recorded(&tree).await.into_iter().find_map(|recorded| {
        let Event::CallEnded { call, outcome: Outcome::Failed { fault }, spent, .. } = recorded.event else {
            return None;
        };
        Some((call, fault, spent))
    });
    let (call, fault, spent) = ended.unwrap();
    assert_eq!((call.0, fault.message.as_str()), (2, "refused by a hook: not on a Sunday"));
    // The request itself counts, so an agent that repeats it forever reaches a ceiling.
    assert_eq!(spent, Amounts::ZERO.with(Resource::ToolCalls, 1));
    assert!(tree.snapshot().await.unwrap().agents[0].held.is_zero());
}

/// A refused model is not called, and neither is a fallback; nothing is spent, and the agent fails with the reason.
#[tokio::test(start_paused = true)]
async fn a_model_that_a_hook_refuses_is_not_called_and_its_agent_fails_with_why() {
    let (stage, spy) = (
        TestHome::new(SCRIPT),
        Spy::doing(Does { before_call: Some(|_| Err("no models today".to_owned())), ..Does::default() }),
    );
    let home = home(&stage, &spy);
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    let snapshot = settled(&tree).await;
    let error = Failure {
        code: FailureCode::from_text("model_stopped"),
        message: "the model call failed: refused by a hook: no models today".to_owned(),
    };
    assert_eq!(snapshot.end.unwrap().exit, Exit::Failed { error });
    assert_eq!((stage.model().model().calls(), snapshot.agents[0].spent), (0, Amounts::ZERO));
    assert_eq!(spy.seen(), ["call root #1.1 m"]);
}

/// A refused charge is booked anyway. The agent fails with the reason before it acts on the result, and its parent is
/// notified.
#[tokio::test(start_paused = true)]
async fn a_charge_that_a_hook_refuses_is_booked_and_fails_the_agent_before_it_acts() {
    let script = r#"
rules:
  - when: { agent: root, turn: 1 }
    call: [{ tool: spawn_agent, args: { agent: helper, goal: Look around. } }]
  - when: { agent: helper }
    say: Looking.
    call: [{ tool: look, args: { at: trees } }]
  - say: "{{ last }}"
tools: { look: { say: seen } }
"#;
    let refuse = |call: &Calling, actual: &Amounts| {
        if call.origin.depth() == 1 {
            Err(format!("{} tokens are enough", actual.get(Resource::Tokens)))
        } else {
            Ok(())
        }
    };
    let (stage, spy) =
        (TestHome::new(script), Spy::doing(Does { before_charge: Some(refuse), ..Does::default() }));
    let home = home(&stage, &spy);
    let tree = stage.start(&home, "root $9.00 turns=5 / helper later turns=5").await;
    let snapshot = settled(&tree).await;
    let refused = spy.charged.lock().unwrap()[1];
    let words = format!(
        "a hook refused a charge, which is booked anyway: {} tokens are enough",
        refused.get(Resource::Tokens)
    );
    let text = snapshot.end.unwrap().shown.text;
    assert!(text.contains("charge_refused") && text.contains(&words), "{text}");
    let helper = &snapshot.agents[1];
    assert_eq!(helper.spent.only(ResourceSet::MEASURED), refused);
    assert!(refused.get(Resource::Cost) > 0 && helper.held.is_zero());
    assert!(!spy.seen().iter().any(|seen| seen.ends_with("look")), "it acts no more");
    assert_eq!(helper.status.to_string(), "failed");
}

/// A fault is shown for each failed attempt; a tool's own error is a result.
#[tokio::test(start_paused = true)]
async fn errors_are_shown_once_for_each_attempt() {
    let script = r#"
rules:
  - { when: { turn: 1 }, fail: { kind: rate_limit, times: 1, retry_after_ms: 50 }, call: [{ tool: look }] }
  - { when: { turn: 2 }, call: [{ tool: slow }] }
  - { say: done }
tools:
  look: { error: nothing there }
"#;
    let slow =
        FunctionTool::new(|_: RawCall| std::future::pending::<Result<String, String>>()).timeout_ms(20);
    let (stage, spy) = (TestHome::new(script).with_tool("slow", slow), Arc::new(Spy::default()));
    let home = home(&stage, &spy);
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    tree.ended().await;
    let ends: Vec<String> = spy
        .seen()
        .into_iter()
        .filter(|seen| seen.starts_with("error") || seen.starts_with("result"))
        .collect();
    assert_eq!(
        ends,
        [
            "error rate_limit root #1.1 m",
            "result \"\" root #1.2 m",
            "result \"nothing there\" root #2.1 look",
            "result \"\" root #3.1 m",
            "error timeout root #4.1 slow",
            "result \"done\" root #5.1 m",
        ]
    );
}

/// A hook that panics counts as failed: it refuses the call or fails the agent; one that only observes changes nothing.
#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_is_an_error_and_hurts_no_tree() {
    let cases = [
        (
            Does { before_call: Some(|_| panic!("at once")), ..Does::default() },
            "model_stopped",
            "before_call",
        ),
        (
            Does { before_charge: Some(|_, _| panic!("late")), ..Does::default() },
            "charge_refused",
            "before_charge",
        ),
    ];
    for (does, code, hook) in cases {
        let (stage, spy) = (TestHome::new(SCRIPT), Spy::doing(does));
        let home = home(&stage, &spy);
        let tree = stage.start(&home, "root $9.00 turns=5").await;
        let end = settled(&tree).await.end.unwrap();
        let Exit::Failed { error } = end.exit else { panic!("{end:?}") };
        assert_eq!(error.code, code);
        assert!(error.message.ends_with(&format!("the hook {hook} panicked")), "{}", error.message);
    }
    let (stage, spy) =
        (TestHome::new(SCRIPT), Spy::doing(Does { after: Some(|| panic!("looking")), ..Does::default() }));
    let home = home(&stage, &spy);
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    assert_eq!(settled(&tree).await.end.unwrap().shown.text, "seen: three trees");
}

/// A driver's panic is shown as an error.
#[tokio::test(start_paused = true)]
async fn a_driver_that_panics_is_shown_as_an_error() {
    let tool = FunctionTool::sync(|_: RawCall| -> Result<String, String> { panic!("in the tool") });
    let (stage, spy) = (TestHome::new(SCRIPT).with_tool("look", tool), Arc::new(Spy::default()));
    let home = home(&stage, &spy);
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    tree.ended().await;
    assert!(spy.seen().contains(&"error invalid root #2.1 look".to_owned()));
    assert_eq!(last_result(&stage), ("failed (invalid): the driver panicked".to_owned(), true));
}

/// Blocks until it is released, on its own thread.
struct Door {
    entered: tokio::sync::mpsc::Sender<&'static str>,
    open: Mutex<mpsc::Receiver<()>>,
    at: &'static str,
    verdict: Result<(), String>,
}

impl Door {
    fn wait(&self, at: &'static str) -> Result<(), String> {
        if at == self.at {
            let _ = self.entered.try_send(at);
            let _ = self.open.lock().unwrap().recv();
            return self.verdict.clone();
        }
        Ok(())
    }
}

impl TreeHooks for Door {
    fn before_call(&self, _: &Calling) -> Result<(), String> {
        self.wait("call")
    }

    fn before_charge(&self, _: &Calling, _: &Amounts) -> Result<(), String> {
        self.wait("charge")
    }
}

/// A slow hook does not block its tree: a cancel does not wait for it, the call ends and its hold returns.
#[tokio::test(start_paused = true)]
async fn a_cancelled_call_releases_its_hold_although_a_hook_still_thinks() {
    for (at, calls) in [("call", 0), ("charge", 1)] {
        let (entered, mut enters) = tokio::sync::mpsc::channel(1);
        let (open, opened) = mpsc::sync_channel(1);
        let door =
            Arc::new(Door { entered, open: Mutex::new(opened), at, verdict: Err("too late".to_owned()) });
        let stage = TestHome::new(SCRIPT);
        let home = stage.home().with_hooks(door);
        let tree = stage.start(&home, "root $9.00 turns=5").await;
        assert_eq!(enters.recv().await, Some(at));
        assert!(!tree.snapshot().await.unwrap().agents[0].held.is_zero());
        tree.cancel("root".parse().unwrap(), "enough").await.unwrap();
        let snapshot = settled(&tree).await;
        assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Cancelled), "{at}");
        assert!(snapshot.agents[0].held.is_zero() && stage.model().model().calls() == calls, "{at}");
        assert_eq!(snapshot.agents[0].spent.get(Resource::Cost) > 0, at == "charge", "{at}");
        open.send(()).unwrap();
    }
}

/// The verdict on a call that was stopped meanwhile still counts if its agent lives on.
#[tokio::test(start_paused = true)]
async fn a_late_verdict_on_a_stopped_call_still_fails_its_agent() {
    let (entered, mut enters) = tokio::sync::mpsc::channel(1);
    let (open, opened) = mpsc::sync_channel(1);
    let verdict = Err("too dear".to_owned());
    let door = Arc::new(Door { entered, open: Mutex::new(opened), at: "charge", verdict });
    let stage = TestHome::new(SCRIPT);
    let home = stage.home().with_hooks(door);
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    assert_eq!(enters.recv().await, Some("charge"));
    let redirect = Redirect {
        agent: "root".parse().unwrap(),
        instruction: "Do something else.".to_owned(),
        tokens: None,
        running: Running::Stops,
    };
    tree.redirect(redirect).await.unwrap();
    open.send(()).unwrap();
    let end = settled(&tree).await.end.unwrap();
    let Exit::Failed { error } = end.exit else { panic!("{end:?}") };
    assert_eq!(error.code, "charge_refused");
    drop(open);
}

/// Neither a replay nor resuming a tree whose calls have ended runs a hook.
#[tokio::test(start_paused = true)]
async fn replay_and_recovery_of_what_ended_run_no_hook() {
    let script = r#"
rules:
  - { when: { turn: 1 }, call: [{ tool: look, args: { at: trees } }] }
  - { when: { turn: 2 }, call: [{ tool: ask_human, args: { question: Really? } }] }
  - { say: done }
tools: { look: { say: seen } }
"#;
    let (stage, spy) = (TestHome::new(script), Arc::new(Spy::default()));
    let home_of = || home(&stage, &spy);
    let first = home_of();
    let tree = stage.start(&first, "root $9.00 turns=5").await;
    let question = settled(&tree).await.questions[0].question;
    assert_eq!(spy.seen().len(), 9);
    first.shutdown(Shutdown::Kill).await;
    verify(stage.journal().as_ref(), tree.id(), None).wait().unwrap();
    let second = home_of();
    let tree = second.resume(tree.id()).await.unwrap();
    tree.settled().await;
    assert_eq!(spy.seen(), Vec::<String>::new());
    tree.answer(question, "Yes.").await.unwrap();
    tree.ended().await;
    assert_eq!(spy.seen(), ["call root #5.1 m", "charge root #5.1 m", "result \"done\" root #5.1 m"]);
    verify(stage.journal().as_ref(), tree.id(), None).wait().unwrap();
    assert_eq!(spy.seen(), Vec::<String>::new());
}

/// A call that is started again after a crash passes its hooks again, with the same key.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_started_again_is_asked_about_again() {
    let (stage, spy) = (TestHome::new("rules: [{ hang: true }]"), Arc::new(Spy::default()));
    let first = home(&stage, &spy);
    let tree = stage.start(&first, "root $9.00 turns=5").await;
    stage.model().until_out(1).await;
    first.shutdown(Shutdown::Kill).await;
    let second = home(&stage, &spy);
    let tree = second.resume(tree.id()).await.unwrap();
    stage.model().until_out(1).await;
    assert_eq!(spy.seen(), ["call root #1.1 m", "call root #1.1 m"]);
    let keys: Vec<String> = spy.calls.lock().unwrap().iter().map(|call| call.key.clone()).collect();
    assert_eq!(keys[0], keys[1]);
    tree.cancel("root".parse().unwrap(), "enough").await.unwrap();
    tree.ended().await;
    assert_eq!(settled(&tree).await.state, TreeState::Ended(ExitKind::Cancelled));
}
