//! Rollback: an agent's context becomes what it was at a checkpoint, and it continues from there.

use std::sync::Arc;

use spinney::bus::Watch;
use spinney::tree::{BranchOff, RequestError, verify};
use spinney::{Home, Shutdown, Tree};
use spinney_journal::{Blocking, checkpoints, find, pages};
use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::context::{Contexts, Message};
use spinney_kernel::definition::{Refusal, WindowSpec};
use spinney_kernel::primitives::{Actor, AgentId, Body, CallId, Category, CheckpointKind, Envelope, Seq};
use spinney_kernel::record::{Event, Exit, ExitKind};
use spinney_kernel::rules::request::{Refresh, Request, Rollback, RollbackReply, Send};
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, definition, settled};

use crate::name;

/// Asks a person in each turn.
const ASKS: &str = "rules: [{ call: [{ tool: ask_human, args: { question: Which? } }] }]";

fn agent(text: &str) -> AgentId {
    text.parse().unwrap()
}

fn events(stage: &TestHome, tree: &Tree) -> Vec<Event> {
    let entries = pages(stage.journal().as_ref(), tree.id(), Seq(0)).blocking().flat_map(Result::unwrap);
    entries.flat_map(|entry| entry.batch.events).collect()
}

fn contexts(stage: &TestHome, tree: &Tree) -> Contexts {
    let contexts = spinney_testkit::contexts_of(tree.id(), events(stage, tree).iter());
    assert_eq!(contexts.lacks(), None);
    contexts
}

/// An agent's context, from the journal alone.
fn texts(stage: &TestHome, tree: &Tree, who: &str) -> Vec<String> {
    let (contexts, who) = (contexts(stage, tree), agent(who));
    let read = contexts.messages(&who).unwrap().iter().map(AsRef::as_ref);
    read.chain(contexts.unread(&who)).map(shown).collect()
}

fn shown(message: &Message) -> String {
    let text: String = message.text().chars().take(80).collect();
    format!("{}: {}", message.category().as_str(), text.lines().next().unwrap_or_default())
}

/// The journal verifies, including everything that rollbacks return to.
fn check(stage: &TestHome, tree: &Tree) {
    assert!(verify(stage.journal().as_ref(), tree.id(), None).wait().unwrap().decided);
}

fn question(snapshot: &spinney::tree::TreeSnapshot) -> CallId {
    snapshot.questions[0].question
}

/// Waits until this many calls have started after an event.
async fn started(tree: &Tree, after: Seq, calls: usize) {
    let mut seen = tree.watch(Watch::after(after));
    for _ in 0..calls {
        while !matches!(seen.next_event().await.unwrap().unwrap().recorded.event, Event::CallStarted { .. }) {
        }
    }
}

async fn restart(stage: &TestHome, home: Home, tree: &Tree) -> (Home, Tree) {
    home.shutdown(Shutdown::Kill).await;
    let home = stage.home();
    let tree = home.resume(tree.id()).await.unwrap();
    (home, tree)
}

/// P23: exactly the same messages with the same texts remain, also after a restart; and the state before can be
/// restored.
#[tokio::test(start_paused = true)]
async fn p23_a_rollback_leaves_exactly_the_messages_of_then() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=9").await;
    let snapshot = settled(&tree).await;
    // Its next turn waits for the end of the pause, so nothing is running.
    tree.pause(agent("root")).await.unwrap();
    tree.answer(question(&snapshot), "blue").await.unwrap();
    let envelope = Envelope {
        topic: Some("plans.today".parse().unwrap()),
        category: Category::Context,
        ..Envelope::default()
    };
    let send = Send { envelope, ..Send::plain(agent("root"), Body::text("use less")) };
    tree.request(Actor::PERSON, Request::Send(send)).await.unwrap();
    tree.checkpoint(agent("root"), Some(name("then"))).await.unwrap();
    let then = texts(&stage, &tree, "root");
    assert_eq!(then.len(), 4);
    assert!(then[3].starts_with("context: ") && then[3].contains("plans.today"), "{then:?}");
    for text in ["one", "two", "three"] {
        tree.send(agent("root"), text).await.unwrap();
    }
    let before = texts(&stage, &tree, "root");
    assert_eq!(before.len(), 7);
    let back = tree.roll_back(&name("then"), None).await.unwrap();
    let RollbackReply { agent: who, messages, cancelled, prior } = back;
    assert_eq!((who, messages, cancelled), (agent("root"), 4, Vec::new()));
    assert_eq!(texts(&stage, &tree, "root"), then);
    let found = find(stage.journal().as_ref(), &prior).wait().unwrap().unwrap().known;
    assert_eq!((found.agent, found.kind), (agent("root"), CheckpointKind::Rollback));

    let (home, tree) = restart(&stage, home, &tree).await;
    assert_eq!(texts(&stage, &tree, "root"), then);
    tree.unpause(agent("root")).await.unwrap();
    settled(&tree).await;
    // Its model sees what it knew then.
    let last = stage.model().attempts().pop().unwrap();
    let asked: Vec<String> = last.packet.messages.iter().map(|message| shown(message)).collect();
    assert_eq!(asked, then);
    assert_eq!(last.turn, 2);
    check(&stage, &tree);

    // The rollback can be rolled back: the earlier state returns.
    tree.pause(agent("root")).await.unwrap();
    let again = tree.roll_back(&prior, None).await.unwrap();
    assert_eq!(again.messages, 7);
    assert_eq!(texts(&stage, &tree, "root"), before);
    let (_home, tree) = restart(&stage, home, &tree).await;
    assert_eq!(texts(&stage, &tree, "root"), before);
    check(&stage, &tree);
}

/// P25: another agent gets a checkpoint's context only if that is requested.
#[tokio::test(start_paused = true)]
async fn p25_a_checkpoint_goes_into_another_agent_only_when_asked() {
    let script = "rules: [{ when: { agent: root, turn: 1 }, call: [{ tool: spawn_agent, args: { agent: a, goal: One., id: a } }, { tool: spawn_agent, args: { agent: b, goal: Two., id: b } }] }, { call: [{ tool: ask_human, args: { question: \"{{ goal }}\" } }] }]";
    let stage = TestHome::new(script);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=9 / a later turns=9\nroot / b later turns=9").await;
    settled(&tree).await;
    tree.send(agent("a"), "only for a").await.unwrap();
    tree.checkpoint(agent("a"), Some(name("then"))).await.unwrap();
    let other = texts(&stage, &tree, "b");
    let back = tree.roll_back(&name("then"), None).await.unwrap();
    assert_eq!(back.agent, agent("a"));
    assert_eq!(texts(&stage, &tree, "b"), other);
    settled(&tree).await;

    let back = tree.roll_back(&name("then"), Some(agent("b"))).await.unwrap();
    assert_eq!(back.agent, agent("b"));
    settled(&tree).await;
    let known = texts(&stage, &tree, "b");
    assert!(known.iter().any(|text| text.contains("only for a")), "{known:?}");
    // Its own system message and goal stay.
    let first = contexts(&stage, &tree).messages(&agent("b")).unwrap()[0].text().into_owned();
    assert!(first.contains("Two.") && !first.contains("One."), "{first}");
    check(&stage, &tree);
    let (_home, tree) = restart(&stage, home, &tree).await;
    assert_eq!(texts(&stage, &tree, "b")[..known.len()], known);
}

/// Messages that a full window had dropped return with their texts.
#[tokio::test(start_paused = true)]
async fn what_a_window_let_go_comes_back() {
    let words = "word ".repeat(80);
    let script = format!(
        "rules: [{{ when: {{ turn: 3 }}, call: [{{ tool: ask_human, args: {{ question: Which? }} }}] }}, {{ when: {{ turn: 14 }}, call: [{{ tool: ask_human, args: {{ question: Which? }} }}] }}, {{ when: {{ turn: 15 }}, call: [{{ tool: ask_human, args: {{ question: Again? }} }}] }}, {{ call: [{{ tool: look }}] }}]\ntools: {{ look: {{ say: \"{words}\" }} }}"
    );
    let stage = TestHome::new(&script);
    let home = stage.home();
    let mut definition = definition("root turns=30 tools=look,ask_human");
    let turns = definition.roles.values_mut().next().unwrap().turns.as_mut().unwrap();
    turns.window = Some(WindowSpec { size: Some(1_400), ..WindowSpec::default() });
    let tree = home.start(definition).await.unwrap();
    let snapshot = settled(&tree).await;
    tree.checkpoint(agent("root"), Some(name("then"))).await.unwrap();
    let then = texts(&stage, &tree, "root");
    tree.answer(question(&snapshot), "blue").await.unwrap();
    settled(&tree).await;
    let all = events(&stage, &tree);
    assert!(all.iter().filter(|event| matches!(event, Event::ContextCut { .. })).count() > 1);
    tree.roll_back(&name("then"), None).await.unwrap();
    settled(&tree).await;
    let attempts = stage.model().attempts();
    let (fourth, last) = (&attempts[3], attempts.last().unwrap());
    assert_eq!((fourth.turn, last.turn), (4, 15));
    let (answered, asked) = (&fourth.packet.messages, &last.packet.messages);
    // Everything except the missing answer is the same, to the letter.
    let behind = then.len();
    assert_eq!(asked[..behind], answered[..behind]);
    assert_eq!(asked.len(), behind + 1);
    let Message::Result { text, is_error: true, .. } = asked[behind].as_ref() else { panic!("{asked:?}") };
    assert!(text.contains("rolled back"), "{text}");
    check(&stage, &tree);
    let (_home, tree) = restart(&stage, home, &tree).await;
    assert_eq!(texts(&stage, &tree, "root")[..behind], then);
}

/// Running calls are stopped, and their late results reach no context.
#[tokio::test(start_paused = true)]
async fn what_runs_is_stopped_and_never_lands() {
    let script = "rules: [{ when: { turn: 1 }, call: [{ tool: ask_human, args: { question: Which? } }] }, { when: { turn: 2 }, call: [{ tool: slow }, { tool: slow }] }, { when: { turn: 3 }, call: [{ tool: ask_human, args: { question: Again? } }] }, { think_ms: 60000, say: too late }]\ntools: { slow: { think_ms: 30000, say: too late } }";
    let stage = TestHome::new(script);
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=9").await;
    let snapshot = settled(&tree).await;
    tree.checkpoint(agent("root"), Some(name("then"))).await.unwrap();
    let then = texts(&stage, &tree, "root");
    tree.answer(question(&snapshot), "blue").await.unwrap();
    // Two tools are running.
    started(&tree, snapshot.seq, 3).await;
    tree.checkpoint(agent("root"), Some(name("tools"))).await.unwrap();
    let tools = texts(&stage, &tree, "root");
    tree.roll_back(&name("then"), None).await.unwrap();
    let snapshot = settled(&tree).await;
    let known = texts(&stage, &tree, "root");
    assert_eq!(known[..then.len()], then);
    assert_eq!(
        known.len(),
        then.len() + 2,
        "the question that never was answered, and what it says now: {known:?}"
    );
    assert!(!known.iter().any(|text| text.contains("too late")), "{known:?}");
    assert_eq!(stage.model().attempts().last().unwrap().turn, 3);

    // A model is running: it takes a minute, and is not waited for.
    tree.answer(question(&snapshot), "green").await.unwrap();
    started(&tree, snapshot.seq, 1).await;
    let seq = tree.status().seq;
    tree.roll_back(&name("tools"), None).await.unwrap();
    started(&tree, seq, 1).await;
    let known = texts(&stage, &tree, "root");
    assert_eq!(known[..tools.len()], tools);
    let unanswered = known[tools.len()..].iter().filter(|text| text.contains("rolled back")).count();
    assert_eq!((unanswered, known.len()), (2, tools.len() + 2), "{known:?}");
    let spent = tree.snapshot().await.unwrap().agents[0].spent;
    assert_eq!(spent.get(Resource::Steps), 3, "turns stay taken and money stays spent");
    check(&stage, &tree);
    // A restart resumes it there.
    let (_home, tree) = restart(&stage, home, &tree).await;
    assert_eq!(texts(&stage, &tree, "root"), known);
    check(&stage, &tree);
}

/// Children spawned later are cancelled with all below them, without notice; earlier ones stay, and their results are
/// read.
#[tokio::test(start_paused = true)]
async fn later_children_go_and_earlier_ones_stay() {
    let script = "rules: [{ when: { agent: root, turn: 1 }, call: [{ tool: spawn_agent, args: { agent: old, goal: One., id: early, detach: true } }, { tool: ask_human, args: { question: Which? } }] }, { when: { agent: root, turn: 2 }, call: [{ tool: spawn_agent, args: { agent: new, goal: Two., id: late } }, { tool: spawn_agent, args: { agent: old, goal: Three., id: later, detach: true } }] }, { when: { agent: root, turn: 3 }, call: [{ tool: wait_agent, args: { agents: [early] } }] }, { when: { agent: root }, say: \"{{ last }}\" }, { when: { agent: new, turn: 1 }, call: [{ tool: spawn_agent, args: { agent: old, goal: Four., id: below } }] }, { when: { agent: old }, call: [{ tool: ask_human, args: { question: \"{{ goal }}\" } }] }]";
    let stage = TestHome::new(script);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=9 / old later turns=9\nroot / new later turns=9").await;
    let snapshot = settled(&tree).await;
    tree.checkpoint(agent("root"), Some(name("then"))).await.unwrap();
    let then = texts(&stage, &tree, "root");
    let asked = snapshot.questions.iter().find(|question| question.text == "Which?").unwrap().question;
    tree.answer(asked, "blue").await.unwrap();
    settled(&tree).await;
    let back = tree.roll_back(&name("then"), None).await.unwrap();
    let mut cancelled = back.cancelled.clone();
    cancelled.sort();
    assert_eq!(cancelled, [agent("late"), agent("later")]);
    let snapshot = settled(&tree).await;
    let state =
        |who: &str| snapshot.agents.iter().find(|view| view.agent == agent(who)).unwrap().status.to_string();
    assert_eq!([state("late"), state("later"), state("below")], ["cancelled"; 3]);
    assert!(!state("early").contains("cancelled"), "{}", state("early"));
    let known = texts(&stage, &tree, "root");
    assert_eq!(known[..then.len()], then);
    // The unanswered question and its new text: nothing about children that it does not know.
    assert_eq!(known.len(), then.len() + 2, "{known:?}");
    let all = events(&stage, &tree);
    let is_gone = |event: &Event| {
        let Event::AgentEnded { agent: who, exit: Exit::Cancelled { reason }, .. } = event else {
            return false;
        };
        *who == agent("late") && reason == "`root` was rolled back"
    };
    assert!(all.iter().any(is_gone));
    check(&stage, &tree);
    let (_home, tree) = restart(&stage, home, &tree).await;
    // The result of the child that stayed is read.
    let snapshot = settled(&tree).await;
    let asked = snapshot.questions.iter().find(|question| question.text == "One.").unwrap().question;
    tree.answer(asked, "seven").await.unwrap();
    let early = settled(&tree).await;
    assert_eq!(early.questions.len(), 1, "it asks again");
    tree.cancel(agent("early"), "enough").await.unwrap();
    tree.ended().await;
    let end = tree.snapshot().await.unwrap().end.unwrap();
    assert!(end.shown.text.contains("early cancelled"), "{}", end.shown.text);
}

/// An attached child that existed at the checkpoint still answers the call that spawned it.
#[tokio::test(start_paused = true)]
async fn a_child_that_is_waited_for_stays_so() {
    let script = "rules: [{ when: { agent: root, turn: 1 }, call: [{ tool: spawn_agent, args: { agent: old, goal: One., id: early } }, { tool: slow }] }, { when: { agent: root }, say: \"{{ last }}\" }, { when: { agent: old, turn: 1 }, call: [{ tool: ask_human, args: { question: One? } }] }, { say: seven }]\ntools: { slow: { think_ms: 30, say: at last } }";
    let stage = TestHome::new(script);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=9 / old later turns=9").await;
    let mut seen = tree.watch(Watch::default());
    while !matches!(seen.next_event().await.unwrap().unwrap().recorded.event, Event::QuestionAsked { .. }) {}
    tree.checkpoint(agent("root"), Some(name("then"))).await.unwrap();
    let snapshot = settled(&tree).await;
    let back = tree.roll_back(&name("then"), None).await.unwrap();
    assert_eq!(back.cancelled, Vec::<AgentId>::new());
    tree.answer(question(&snapshot), "blue").await.unwrap();
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
    let last = stage.model().attempts().pop().unwrap();
    let results: Vec<(bool, String)> = last
        .packet
        .messages
        .iter()
        .filter_map(|message| {
            let Message::Result { text, is_error, .. } = message.as_ref() else { return None };
            Some((*is_error, text.chars().take(6).collect()))
        })
        .collect();
    // The tool had returned, but after the checkpoint.
    assert_eq!(results, [(false, "seven".to_owned()), (true, "the ou".to_owned())]);
    check(&stage, &tree);
}

/// A tree that is not running is rolled back in its journal, continues when it is resumed, and can be branched.
#[tokio::test(start_paused = true)]
async fn a_tree_that_is_not_running_is_rolled_back_in_place() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=9").await;
    let snapshot = settled(&tree).await;
    tree.checkpoint(agent("root"), Some(name("then"))).await.unwrap();
    let then = texts(&stage, &tree, "root");
    tree.answer(question(&snapshot), "blue").await.unwrap();
    settled(&tree).await;
    home.shutdown(Shutdown::Stop).await;
    let home = stage.home();
    let at = find(stage.journal().as_ref(), &name("then")).wait().unwrap().unwrap().known.seq;
    let request = Rollback::to(agent("root"), at, None);
    let Ok(RollbackReply { messages: 3, prior, .. }) = home.apply(tree.id(), request).await else { panic!() };
    let tree = home.resume(tree.id()).await.unwrap();
    settled(&tree).await;
    assert_eq!(texts(&stage, &tree, "root")[..then.len()], then);
    check(&stage, &tree);
    let at = find(stage.journal().as_ref(), &prior).wait().unwrap().unwrap().known.seq;
    let budget = Ceilings::NONE.with(Resource::Steps, 5);
    let branch = home.draw_id();
    home.branch(branch, BranchOff { from: tree.id(), at, agent: agent("root"), budget }).await.unwrap();
    let other = home.resume(branch).await.unwrap();
    settled(&other).await;
    assert_eq!(texts(&stage, &other, "root").len(), 4);
    // A branch of a rolled-back tree knows the same, and can be rolled back itself.
    let name = other.checkpoint(agent("root"), None).await.unwrap();
    other.roll_back(&name, None).await.unwrap();
    settled(&other).await;
    check(&stage, &other);
    let listed = checkpoints(stage.journal().as_ref(), Some(&agent("root"))).wait().unwrap();
    let of_branch = listed.iter().filter(|listed| listed.tree == branch);
    assert_eq!(of_branch.filter(|listed| listed.known.kind == CheckpointKind::Rollback).count(), 1);
}

/// Each rollback reads what earlier ones returned to: many in a row cost as much as one.
#[tokio::test(start_paused = true)]
async fn many_rollbacks_in_a_row_are_read_back_in_one_go() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=200").await;
    let snapshot = settled(&tree).await;
    tree.answer(question(&snapshot), "blue").await.unwrap();
    settled(&tree).await;
    let mut to = tree.checkpoint(agent("root"), None).await.unwrap();
    for _ in 0..40 {
        tree.send(agent("root"), "more").await.unwrap();
        to = tree.roll_back(&to, None).await.unwrap().prior;
        settled(&tree).await;
    }
    let known = texts(&stage, &tree, "root");
    check(&stage, &tree);
    let (_home, tree) = restart(&stage, home, &tree).await;
    assert_eq!(texts(&stage, &tree, "root"), known);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_rolled_back_is_refused_with_advice() {
    let stage = TestHome::new(
        "rules: [{ when: { agent: root, turn: 1 }, call: [{ tool: ask_human, args: { question: Which? } }] }, { say: done }]",
    );
    let home = stage.home();
    let (one, two) = (stage.start(&home, "root turns=2").await, stage.start(&home, "root turns=2").await);
    let snapshot = settled(&one).await;
    settled(&two).await;
    one.checkpoint(agent("root"), Some(name("then"))).await.unwrap();
    let refused = |refusal| Err(RequestError::Refused(refusal));
    let elsewhere = Refusal::CheckpointElsewhere { name: name("then"), tree: one.id() };
    assert_eq!(two.roll_back(&name("then"), None).await, refused(elsewhere));
    assert_eq!(
        one.roll_back(&name("now"), None).await,
        refused(Refusal::NoSuchCheckpoint { name: name("now") })
    );
    let unknown = Refusal::UnknownAgent { agent: agent("nobody") };
    assert_eq!(one.roll_back(&name("then"), Some(agent("nobody"))).await, refused(unknown));
    let ask = async |by: Actor, rollback: Rollback| one.request(by, rollback).await;
    // An event that is not a checkpoint, and one that does not exist yet.
    for at in [1, 2, 9_999] {
        let none = Refusal::NoCheckpoint { agent: agent("root"), at };
        assert_eq!(
            ask(Actor::PERSON, Rollback::to(agent("root"), Seq(at), None)).await,
            Err(RequestError::Refused(none))
        );
    }
    let at = find(stage.journal().as_ref(), &name("then")).wait().unwrap().unwrap().known.seq;
    let by_itself = ask(Actor::Agent(agent("root")), Rollback::to(agent("root"), at, None)).await;
    assert!(matches!(by_itself, Err(RequestError::Refused(Refusal::PersonOnly { .. }))), "{by_itself:?}");
    // The refusals changed nothing.
    assert_eq!(one.status().seq, at);
    // The past that a caller supplies is not trusted, but read again.
    let mut forged = Rollback::to(agent("root"), at, None);
    forged.prior = Some(name("forged"));
    let Ok(RollbackReply { prior, .. }) = ask(Actor::PERSON, forged).await else { panic!() };
    assert_ne!(prior, name("forged"));
    assert_eq!(one.ended().await.state, TreeState::Ended(ExitKind::Completed));
    let over = one.roll_back(&name("then"), None).await;
    let Err(RequestError::Refused(refusal)) = over else { panic!("{over:?}") };
    assert!(refusal.to_string().contains("ended"), "{refusal}");
    let _ = snapshot;
    let all: Vec<Arc<_>> = stage.model().attempts();
    assert_eq!(all.iter().filter(|attempt| attempt.origin.tree == one.id()).count(), 2);
}

/// A rollback returns no turns: an agent that has used all of them is not rolled back, because it would end.
#[tokio::test(start_paused = true)]
async fn a_rollback_is_no_way_around_the_last_turn() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let tree = stage.start(&home, "root turns=2").await;
    let snapshot = settled(&tree).await;
    tree.checkpoint(agent("root"), Some(name("then"))).await.unwrap();
    tree.answer(question(&snapshot), "blue").await.unwrap();
    settled(&tree).await;
    let seq = tree.status().seq;
    let refusal = Refusal::RollbackTurns { agent: agent("root"), turns_max: 2 };
    assert_eq!(tree.roll_back(&name("then"), None).await, Err(RequestError::Refused(refusal)));
    assert_eq!(tree.status().seq, seq);
}

/// P13: refreshed twice, a child has each new item once. With replace, a refresh removes what its parent no longer
/// knows, and nothing else: not what the parent still knows, nor what other agents sent the child, nor its dialog.
#[tokio::test(start_paused = true)]
async fn p13_a_refresh_with_replace_removes_what_the_parent_lost() {
    let stage = TestHome::new(
        r#"
rules:
  - when: { agent: root, turn: 1 }
    call: [{ tool: spawn_agent, args: { agent: child, id: c, goal: Wait., share: briefing, detach: true } }, { tool: ask_human, args: { question: "Which?" } }]
  - call: [{ tool: ask_human, args: { question: "Which?" } }]
"#,
    );
    let home = stage.home();
    let tree = stage.start(&home, "root turns=9 / child later turns=9").await;
    settled(&tree).await;
    let send = async |to: &str, text: &str| {
        let envelope = Envelope { category: Category::Context, ..Envelope::default() };
        let send = Send { envelope, ..Send::plain(agent(to), Body::text(text)) };
        tree.request(Actor::PERSON, Request::Send(send)).await.unwrap();
    };
    let refresh = async |replace| {
        let refresh = Refresh { agent: agent("c"), replace };
        tree.request(Actor::PERSON, Request::Refresh(refresh)).await.unwrap();
    };
    send("root", "FACT-1 holds.").await;
    tree.checkpoint(agent("root"), Some(name("then"))).await.unwrap();
    send("root", "FACT-2 was wrong.").await;
    send("c", "FACT-3 is the child's own.").await;
    tree.send(agent("c"), "DIALOG-1 with the child.").await.unwrap();
    refresh(false).await;
    refresh(false).await;
    let knows = |fact: &str| {
        let known = contexts(&stage, &tree);
        let packet = known.packet(&agent("c"), 0).unwrap();
        let read = packet.messages.iter().map(AsRef::as_ref);
        read.chain(known.unread(&agent("c"))).filter(|message| message.text().contains(fact)).count()
    };
    let all = ["FACT-1", "FACT-2", "FACT-3", "DIALOG-1"];
    assert_eq!(all.map(knows), [1, 1, 1, 1]);
    tree.roll_back(&name("then"), None).await.unwrap();
    refresh(false).await;
    assert_eq!(knows("FACT-2"), 1, "without replace nothing is taken away");
    refresh(true).await;
    assert_eq!(all.map(knows), [1, 0, 1, 1]);
}
