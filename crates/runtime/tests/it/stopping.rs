//! Stopping: cancel reaches the lowest level at once, no event follows the root's end, and a shutdown loses nothing.

use spinney::bus::Watch;
use spinney::clock::{Clock, SystemClock};
use spinney::{Shutdown, Tree};
use spinney_journal::Blocking;
use spinney_kernel::budget::{Amounts, Resource};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{AgentId, Running};
use spinney_kernel::record::{Event, Exit, ExitKind};
use spinney_kernel::rules::request::{Raise, Redirect};
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, recorded, settled};

/// Three levels: the root spawns three, each of those two; the lowest never answer.
const THREE_LEVELS: &str = r#"
rules:
  - when: { agent: root, turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: lead, goal: One., id: l1 } }
      - { tool: spawn_agent, args: { agent: lead, goal: Two., id: l2 } }
      - { tool: slow, args: {} }
  - when: { agent: lead, turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: worker, goal: Dig. } }
      - { tool: spawn_agent, args: { agent: worker, goal: Haul. } }
  - when: { agent: worker }
    say: Thinking about it
    hang: true
  - say: done
tools:
  slow: { hang: true }
"#;
const THREE: &str = "root $9.00 turns=5 / lead later turns=5 / worker later turns=5";

/// A tree whose agents all have a running call.
async fn busy(stage: &TestHome, home: &spinney::Home, out: usize) -> Tree {
    let tree = stage.start(home, THREE).await;
    stage.model().until_out(out).await;
    tree
}

fn root() -> AgentId {
    "root".parse().unwrap()
}

/// L30: cancelling the root stops three running levels in less than 500 ms of real time: one last event each, every
/// hold and every lease returned, and no agent left. O15 (what runs in this process): all descendants end cancelled and
/// no event follows the root's end.
#[tokio::test]
async fn l30_cancelling_the_root_stops_every_level_and_nothing_follows_its_end() {
    let lease = "budget: { cost_usd: 2, lend: true }, goal:";
    let stage = TestHome::new(&THREE_LEVELS.replace("agent: lead, goal:", &format!("agent: lead, {lease}")));
    let home = stage.home();
    let tree = busy(&stage, &home, 4).await;
    let lent = |snapshot: &spinney::tree::TreeSnapshot| snapshot.agents[0].lent.get(Resource::Cost);
    let snapshot = tree.snapshot().await.unwrap();
    assert_eq!((snapshot.agents.len(), lent(&snapshot) > 3_000_000_000), (7, true), "two leases of $2 each");
    let clock = SystemClock::new();
    let before = clock.now_ms();
    let calls = stage.model().model().calls();
    tree.cancel(root(), "enough").await.unwrap();
    tree.ended().await;
    assert!(clock.now_ms() - before < 500, "it took {} ms", clock.now_ms() - before);
    assert_eq!((stage.model().out(), stage.model().model().calls()), (0, calls));
    let snapshot = tree.snapshot().await.unwrap();
    assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Cancelled));
    assert!(snapshot.agents.iter().all(|view| view.status.to_string() == "cancelled" && view.held.is_zero()));
    assert!(snapshot.agents.iter().all(|view| view.lent.is_zero()), "every lease is returned");
    let again = home.resume(tree.id()).await.err().unwrap();
    assert!(
        matches!(again, spinney::ResumeError::Ended { .. }),
        "the home does not run it any more: {again}"
    );
    let recorded = recorded(&tree).await;
    let ends: Vec<&AgentId> = recorded.iter().filter_map(|recorded| ended(&recorded.event)).collect();
    assert_eq!(ends.len(), 7);
    assert_eq!(ends.iter().collect::<std::collections::BTreeSet<_>>().len(), 7, "each ends once");
    assert_eq!(ended(&recorded.last().unwrap().event), Some(&root()));
}

fn ended(event: &Event) -> Option<&AgentId> {
    if let Event::AgentEnded { agent, .. } = event { Some(agent) } else { None }
}

/// V6: below a parent that is cancelled, timed out, closed or halted, no new call starts, at any depth.
#[tokio::test(start_paused = true)]
async fn v6_below_a_stopped_parent_no_call_starts_at_any_depth() {
    let stage = TestHome::new(&THREE_LEVELS.replace(
        "    hang: true\n  - say",
        "    think_ms: 1000\n    call: [{ tool: slow, args: {} }]\n  - say",
    ));
    let home = stage.home();
    let tree = busy(&stage, &home, 4).await;
    tree.cancel("l1".parse().unwrap(), "not this way").await.unwrap();
    let mut events = tree.watch(Watch::default());
    let mut cancelled = false;
    let below: std::collections::BTreeSet<AgentId> = look_below(&tree, "l1").await;
    let mut after = 0;
    tree.pause(root()).await.unwrap();
    while let Some(traced) = events.next_event().await {
        let recorded = &traced.unwrap().recorded;
        cancelled |= matches!(&recorded.event, Event::AgentEnding { agent, .. } if agent.as_str() == "l1");
        if let Event::CallAsked { agent, .. } = &recorded.event {
            after += usize::from(cancelled && below.contains(agent));
        }
        if matches!(recorded.event, Event::AgentPaused { .. }) {
            break;
        }
    }
    assert_eq!((cancelled, after, below.len()), (true, 0, 2));
    home.shutdown(Shutdown::Kill).await;

    // A root that timed out, and leads that did: nothing below them is left running, and agents above them continue.
    let slow = THREE_LEVELS.replace("  slow: { hang: true }", "  slow: { think_ms: 3000, say: ok }");
    let short =
        slow.replace("goal: One.", "timeout: 2, goal: One.").replace("goal: Two.", "timeout: 2, goal: Two.");
    for (script, fixture, state) in [
        (slow, "root $9.00 turns=5 timeout=2s / lead later turns=5 / worker later turns=5", "failed"),
        (short, THREE, "completed"),
    ] {
        let stage = TestHome::new(&script);
        let home = stage.home();
        let tree = stage.start(&home, fixture).await;
        let snapshot = settled(&tree).await;
        assert_eq!(snapshot.state.as_str(), state, "{snapshot:?}");
        let below = snapshot.agents.iter().filter(|view| view.role.as_str() == "worker");
        assert!(below.into_iter().all(|view| view.status.to_string() == "cancelled"));
        assert_eq!(stage.model().out(), 0);
    }
}

async fn look_below(tree: &Tree, parent: &str) -> std::collections::BTreeSet<AgentId> {
    let snapshot = tree.snapshot().await.unwrap();
    let below = |view: &&spinney_kernel::world::AgentView| {
        view.parent.as_ref().is_some_and(|id| id.as_str() == parent)
    };
    snapshot.agents.iter().filter(below).map(|view| view.agent.clone()).collect()
}

/// V6 (halted), X3: the root's ceiling stops all agents; after a raise the tree continues to its answer.
#[tokio::test(start_paused = true)]
async fn x3_a_halted_tree_starts_nothing_until_its_ceiling_is_raised() {
    let stage = TestHome::new(
        "rules: [{ when: { turn: 4 }, say: done }, { say: more, call: [{ tool: list_agents }], usage: { input: 0, output: 100 } }]",
    );
    let home = stage.home();
    let tree = stage.start(&home, "root $0.25 turns=9").await;
    let snapshot = settled(&tree).await;
    assert_eq!((snapshot.state, stage.model().model().calls()), (TreeState::Halted, 2));
    let add = Amounts::ZERO.with(Resource::Cost, 1_000_000_000);
    tree.raise(Raise { agent: root(), add, add_ms: 0 }).await.unwrap();
    let snapshot = settled(&tree).await;
    assert_eq!((snapshot.state, stage.model().model().calls()), (TreeState::Ended(ExitKind::Completed), 4));
}

#[tokio::test(start_paused = true)]
async fn a_redirect_stops_what_runs_and_the_new_instruction_is_read() {
    let stage = TestHome::new(
        "rules:\n  - { when: { last_contains: instead }, say: 'as you wish: {{ last }}' }\n  - { say: thinking, hang: true }",
    );
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    stage.model().until_out(1).await;
    let redirect = Redirect {
        agent: root(),
        instruction: "Do this instead.".to_owned(),
        tokens: None,
        running: Running::Stops,
    };
    tree.redirect(redirect).await.unwrap();
    let end = settled(&tree).await.end.unwrap();
    assert_eq!(end.shown.text, "as you wish: Do this instead.");
}

#[tokio::test(start_paused = true)]
async fn a_drain_lets_every_tree_come_to_its_end() {
    let stage = TestHome::new("rules: [{ think_ms: 900, say: done }]");
    let home = stage.home();
    let tree = stage.start(&home, "root turns=5").await;
    home.shutdown(Shutdown::Drain).await;
    assert_eq!(tree.status().state, TreeState::Ended(ExitKind::Completed));
    let error = home.start(spinney_testkit::definition("root turns=5")).await.err().unwrap();
    assert_eq!(error, spinney::StartError::Shutdown);
    let refused = tree.cancel(root(), "late").await.unwrap_err();
    assert_eq!(refused, spinney::tree::RequestError::Refused(Refusal::TreeEnded));
}

/// A stop lets running calls end and starts nothing; resumed, the tree continues as if nothing had happened.
#[tokio::test(start_paused = true)]
async fn a_stop_lets_running_calls_end_and_nothing_is_paid_twice() {
    let stage = TestHome::new(
        "rules: [{ when: { turn: 3 }, say: done }, { think_ms: 100, say: more, call: [{ tool: list_agents }] }]\nlost: presumed",
    );
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=9").await;
    home.shutdown(Shutdown::Stop).await;
    let status = tree.status();
    assert_eq!(status.stopped, Some(spinney::tree::Stopped::Shutdown));
    assert_eq!((stage.model().out(), stage.model().model().calls()), (0, 1));
    assert_eq!(stage.journal().head(tree.id()).wait().unwrap().unwrap().state, TreeState::Suspended);
    let home = stage.home();
    let tree = home.resume(tree.id()).await.unwrap();
    let snapshot = settled(&tree).await;
    assert_eq!((snapshot.state, stage.model().model().calls()), (TreeState::Ended(ExitKind::Completed), 3));
    let spent: u64 = recorded(&tree).await.iter().map(|recorded| cost(&recorded.event)).sum();
    assert_eq!(snapshot.end.unwrap().spent.get(Resource::Cost), spent);
}

fn cost(event: &Event) -> u64 {
    if let Event::CallEnded { spent, .. } | Event::AttemptFailed { spent, .. } = event {
        spent.get(Resource::Cost)
    } else {
        0
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_timed_out_says_so_and_keeps_what_it_said() {
    let stage = TestHome::new(
        "rules: [{ when: { turn: 1 }, say: half of it, call: [{ tool: list_agents }] }, { hang: true }]",
    );
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=9 timeout=2s").await;
    let end = settled(&tree).await.end.unwrap();
    let Exit::Failed { error } = &end.exit else { panic!("{end:?}") };
    assert_eq!((error.code.as_str(), end.shown.text.as_str()), ("timeout", "half of it"));
}
