//! Who asked: what homes, trees, hooks and the runtime itself record.

use std::sync::Arc;

use spinney::bus::recorded_events;
use spinney::hooks::{Calling, TreeHooks};
use spinney::tree::BranchOff;
use spinney::{Home, Shutdown, StartOptions};
use spinney_journal::{Journal, Shared, pages};
use spinney_kernel::budget::{Amounts, Ceilings, Resource};
use spinney_kernel::primitives::{Actor, Body, OutsiderKind, Seq, TraceParent, TreeId};
use spinney_kernel::record::Event;
use spinney_kernel::rules::InputKind;
use spinney_kernel::rules::request::{Pause, Send, Unpause};
use spinney_testkit::{TestHome, definition};

const ASKS: &str =
    "rules: [{ when: { turn: 1 }, call: [{ tool: ask_human, args: { question: Which? } }] }, { say: done }]";
const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn root() -> spinney_kernel::primitives::AgentId {
    "root".parse().unwrap()
}

fn named(kind: OutsiderKind, name: &str) -> Actor {
    Actor::named(kind, name.parse().unwrap())
}

/// Who made each request of a tree, in order.
fn asked(journal: &dyn Journal, tree: TreeId) -> Vec<Actor> {
    let entries = pages(journal, tree, Seq(0)).blocking().flat_map(Result::unwrap);
    let by = |what| match what {
        InputKind::Request { by, .. } => Some(by),
        InputKind::Report(_) => None,
    };
    entries.filter_map(|entry| by(entry.batch.input.what)).collect()
}

/// A program that embeds the runtime is a program, unless it says for whom it asks.
#[tokio::test(start_paused = true)]
async fn requests_through_the_library_are_a_programs_unless_it_names_an_actor() {
    let (stage, ana) = (TestHome::new(ASKS), named(OutsiderKind::Person, "ana"));
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5").await;
    tree.pause(root()).await.unwrap();
    let for_ana = tree.clone().with_actor(ana.clone());
    for_ana.unpause(root()).await.unwrap();
    for_ana.send(root(), "Hello.").await.unwrap();
    tree.request(Actor::REMOTE, Send::plain(root(), Body::text("Hello."))).await.unwrap();
    home.shutdown(Shutdown::Stop).await;
    let home = stage.home();
    home.apply(tree.id(), Pause { agent: root() }).await.unwrap();
    let home = stage.home().with_actor(ana.clone());
    home.apply(tree.id(), Unpause::now(root())).await.unwrap();
    let resumed = home.resume(tree.id()).await.unwrap();
    resumed.cancel(root(), "enough").await.unwrap();
    let journal = stage.journal().as_ref();
    let program = Actor::PROGRAM;
    let expected = [&program, &program, &ana, &ana, &Actor::REMOTE, &program, &ana, &ana].map(Actor::clone);
    assert_eq!(asked(journal, tree.id()), expected);
    let from =
        |event: &Event| if let Event::MessageSent { from, .. } = event { Some(from.clone()) } else { None };
    let entries = pages(journal, tree.id(), Seq(0)).blocking().flat_map(Result::unwrap);
    let recorded: Vec<_> = entries.flat_map(recorded_events).collect();
    let senders: Vec<_> = recorded.iter().filter_map(|recorded| from(&recorded.event)).collect();
    assert_eq!(senders, [ana.clone(), Actor::REMOTE]);
    // Each event says who asked for it; reports have no actor.
    let actor =
        |word: &str| recorded.iter().find(|recorded| recorded.event.as_str() == word).unwrap().actor.clone();
    assert_eq!(actor("tree_started"), Some(Actor::PROGRAM));
    assert_eq!(actor("agent_unpaused"), Some(ana));
    assert_eq!(actor("question_asked"), None);
}

struct NoCharges;

impl TreeHooks for NoCharges {
    fn before_charge(&self, _: &Calling, _: &Amounts) -> Result<(), String> {
        Err("enough".to_owned())
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_an_agent_is_recorded_as_a_hook() {
    let stage = TestHome::new("rules: [{ say: done }]");
    let home = stage.home().with_hooks(Arc::new(NoCharges));
    let tree = stage.start(&home, "root turns=5").await;
    tree.ended().await;
    assert_eq!(asked(stage.journal().as_ref(), tree.id()), [Actor::PROGRAM, Actor::HOOK]);
}

/// What the home itself writes to the root of a branch is the runtime's, whichever actor uses the home.
#[tokio::test(start_paused = true)]
async fn the_note_about_a_removed_origin_is_the_runtimes() {
    let stage = TestHome::new(ASKS);
    let home = stage.home().with_actor(Actor::PERSON);
    let tree = stage.start(&home, "root turns=5").await;
    tree.settled().await;
    home.shutdown(Shutdown::Stop).await;
    let at = pages(stage.journal().as_ref(), tree.id(), Seq(0))
        .blocking()
        .flat_map(Result::unwrap)
        .last()
        .unwrap()
        .end();
    let (branch, budget) = (home.draw_id(), Ceilings::NONE.with(Resource::Cost, 1_000_000_000));
    home.branch(branch, BranchOff { from: tree.id(), at, agent: root(), budget }).await.unwrap();
    assert!(home.remove(tree.id(), Shared::HandOver).await.unwrap().iter().all(|orphan| orphan.notified));
    let all = asked(stage.journal().as_ref(), branch);
    assert_eq!(all.last(), Some(&Actor::RUNTIME), "{all:?}");
    assert!(all[..all.len() - 1].iter().all(|by| *by == Actor::PERSON), "{all:?}");
}

async fn started(home: &Home, stage: &TestHome, trace: Option<TraceParent>) -> Event {
    let options = StartOptions::default().with_trace(trace);
    let tree = home.start_with(definition("root turns=5"), options).await.unwrap();
    let first = stage.journal().read(tree.id(), Seq(0), 1).await.unwrap().remove(0);
    first.batch.events.into_iter().next().unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_trace_of_the_caller_is_in_the_first_event() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let trace: TraceParent = TRACE.parse().unwrap();
    let event = started(&home, &stage, Some(trace)).await;
    assert_eq!(serde_json::to_value(&event).unwrap()["trace"], TRACE);
    assert!(matches!(event, Event::TreeStarted { trace: Some(found), .. } if found == trace));
    let event = started(&home, &stage, None).await;
    assert_eq!(serde_json::to_value(&event).unwrap().get("trace"), None);
}
