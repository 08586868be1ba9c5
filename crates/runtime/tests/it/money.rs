//! Money in whole trees: usage is paid exactly, and a lease limits the request itself.

use spinney_kernel::budget::Resource;
use spinney_kernel::primitives::FaultKind;
use spinney_kernel::record::{Event, Exit, ExitKind};
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, recorded, settled};

/// V7: failed, broken and stopped attempts pay what they used, and the rest of their hold returns.
#[tokio::test(start_paused = true)]
async fn v7_a_call_that_fails_or_is_cut_off_pays_what_it_used() {
    let stage = TestHome::new(
        r#"
rules:
  - when: { turn: 1 }
    say: half an ans
    fail: { kind: cut, times: 1 }
    usage: { input: 0, output: 30 }
    call: [{ tool: list_agents }]
  - { say: done, usage: { input: 0, output: 10 } }
"#,
    );
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5").await;
    let snapshot = settled(&tree).await;
    assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Completed));
    let paid: Vec<(Option<FaultKind>, u64)> =
        recorded(&tree).await.iter().filter_map(|recorded| paid(&recorded.event)).collect();
    // Thirty tokens of the broken attempt, thirty at the cheap model after it, ten of the answer.
    let nanos = spinney_testkit::fixture::NANOS_PER_TOKEN;
    assert_eq!(paid, [(Some(FaultKind::Cut), 30 * nanos), (None, 3 * nanos), (None, 10 * nanos)]);
    assert_eq!(snapshot.end.unwrap().spent.get(Resource::Cost), 43 * nanos);
    assert!(snapshot.agents[0].held.is_zero());
}

fn paid(event: &Event) -> Option<(Option<FaultKind>, u64)> {
    if let Event::AttemptFailed { fault, spent, .. } = event {
        return Some((fault.as_ref().map(|fault| fault.kind), spent.get(Resource::Cost)));
    }
    if let Event::CallEnded { spent, .. } = event { Some((None, spent.get(Resource::Cost))) } else { None }
}

/// L23: a child that exceeds its lease stops at its next call; its text is returned and marked, and its usage is
/// debited at every ancestor.
#[tokio::test(start_paused = true)]
async fn l23_a_child_over_its_lease_returns_what_it_has_and_pays_what_it_used() {
    let stage = TestHome::new(
        r#"
rules:
  - when: { agent: root, turn: 1 }
    say: You do it.
    call: [{ tool: spawn_agent, args: { agent: helper, goal: Help., id: h, budget: { cost_usd: 0.15 } } }]
    usage: { input: 0, output: 10 }
  - when: { agent: root }
    say: "{{ last }}"
    usage: { input: 0, output: 5 }
  - when: { agent: helper }
    say: The first half is blue.
    call: [{ tool: list_agents }]
    usage: { input: 0, output: 90 }
"#,
    );
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=5 / helper later turns=5").await;
    let snapshot = settled(&tree).await;
    let end = snapshot.end.unwrap();
    assert!(end.shown.text.starts_with("h exhausted ("), "{}", end.shown.text);
    assert!(end.shown.text.ends_with("partial result:\nThe first half is blue."), "{}", end.shown.text);
    let nanos = spinney_testkit::fixture::NANOS_PER_TOKEN;
    assert_eq!(snapshot.agents[1].spent.get(Resource::Cost), 90 * nanos);
    assert_eq!(end.spent.get(Resource::Cost), 105 * nanos);
    let exits: Vec<bool> =
        recorded(&tree).await.iter().filter_map(|recorded| exhausted(&recorded.event)).collect();
    assert_eq!(exits, [true, false]);
    // The helper's second call never started.
    assert_eq!(stage.model().model().calls(), 3);
}

fn exhausted(event: &Event) -> Option<bool> {
    if let Event::AgentEnded { exit, .. } = event {
        Some(matches!(exit, Exit::Exhausted { .. }))
    } else {
        None
    }
}

/// L25: with 150 tokens left of its lease beside the input, a model is asked for no more than that.
#[tokio::test(start_paused = true)]
async fn l25_the_request_asks_for_no_more_than_the_lease_has_left() {
    let stage = TestHome::new("rules: [{ say: short, usage: { input: 0, output: 1 } }]");
    let home = stage.home();
    let mut definition = spinney_testkit::definition("root turns=5 shrink");
    let role = definition.roles.values_mut().next().unwrap();
    role.turns.as_mut().unwrap().output_cap = Some(2_000);
    let probe = home.start(definition.clone()).await.unwrap();
    settled(&probe).await;
    let input = stage.model().attempts()[0].packet.tokens;
    assert_eq!(stage.model().attempts()[0].output_cap, 2_000);
    definition.budget.limit = definition.budget.limit.with(Resource::Tokens, input + 150);
    let tree = home.start(definition).await.unwrap();
    assert_eq!(settled(&tree).await.state, TreeState::Ended(ExitKind::Completed));
    assert_eq!(stage.model().attempts()[1].output_cap, 150);
}
