//! Whole trees: a home, a scripted model, tools, a journal.

use spinney_journal::Blocking;
use std::sync::Arc;

use spinney::tree::{Stored, stored};
use spinney_kernel::context::Message;
use spinney_kernel::primitives::limit;
use spinney_kernel::record::{Event, ExitKind};
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, recorded, settled};

const SCRIPT: &str = r#"
rules:
  - when: { agent: root, turn: 1 }
    say: Splitting the work.
    call:
      - { tool: spawn_agent, args: { agent: helper, goal: Count the files., id: h } }
      - { tool: search, args: { query: trees } }
  - when: { agent: root }
    say: "I was told: {{ last }}"
  - when: { agent: helper }
    think_ms: 50
    say: There are seven.
tools:
  search: { description: search the web, say: "three results for {{ args.query }}" }
"#;

#[tokio::test(start_paused = true)]
async fn a_tree_runs_to_its_answer() {
    let stage = TestHome::new(SCRIPT);
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=20 / helper later turns=3").await;
    let status = tree.ended().await;
    assert_eq!(status.state, TreeState::Ended(ExitKind::Completed));
    assert_eq!(tree.snapshot().await.unwrap().end.unwrap().shown.text, "I was told: three results for trees");
    let recorded = recorded(&tree).await;
    let places: Vec<u64> = recorded.iter().map(|recorded| recorded.seq.0).collect();
    assert_eq!(places, (1..=status.seq.0).collect::<Vec<_>>());
    assert!(matches!(recorded.last().unwrap().event, Event::AgentEnded { .. }));
    assert_eq!(stage.model().model().calls(), 3);
}

/// Results are in request order, whichever came first: the same packet in every run.
#[tokio::test(start_paused = true)]
async fn results_are_read_in_the_order_they_were_asked_for() {
    let stage = TestHome::new(SCRIPT);
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=20 / helper later turns=3").await;
    tree.ended().await;
    let last = stage.model().attempts().pop().unwrap();
    let results: Vec<String> = last.packet.messages.iter().filter_map(|message| result(message)).collect();
    assert_eq!(results, ["spawn_agent: There are seven.", "search: three results for trees"]);
}

fn result(message: &Message) -> Option<String> {
    match message {
        Message::Result { tool, text, .. } => Some(format!("{tool}: {text}")),
        Message::System(_)
        | Message::Heard { .. }
        | Message::Said { .. }
        | Message::Shared { .. }
        | Message::Note(_)
        | Message::Mismatch(_)
        | Message::Repeated(_)
        | Message::Folded(_) => None,
    }
}

/// L11: the twenty-first turn is not made, and the error names the limit.
#[tokio::test(start_paused = true)]
async fn l11_the_turn_after_the_last_one_is_a_typed_error_and_is_not_made() {
    let stage = TestHome::new("rules: [{ say: Again., call: [{ tool: list_agents }] }]");
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=20").await;
    let snapshot = settled(&tree).await;
    let end = snapshot.end.unwrap();
    let spinney_kernel::record::Exit::Failed { error } = &end.exit else { panic!("{end:?}") };
    assert_eq!(error.code, "max_steps");
    assert!(error.message.contains("20 turns"), "{}", error.message);
    assert_eq!(stage.model().model().calls(), 20);
    assert_eq!(limit::TURNS_MAX, 100);
}

/// L28: an unknown tool and malformed arguments are error results, and the run continues to its end.
#[tokio::test(start_paused = true)]
async fn l28_what_the_model_got_wrong_comes_back_as_an_error_result() {
    let stage = TestHome::new(
        r#"
rules:
  - when: { turn: 1 }
    say: Trying.
    call:
      - { tool: no_such_tool, args: {} }
      - { tool: spawn_agent, args: '{"agent": "hel' }
      - { tool: send_message, args: { to: No body, text: hello } }
  - say: Without then.
"#,
    );
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=20").await;
    let snapshot = settled(&tree).await;
    assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Completed));
    let last = stage.model().attempts().pop().unwrap();
    let errors = last.packet.messages.iter().filter(|message| is_error(message)).count();
    assert_eq!(errors, 3);
}

fn is_error(message: &Arc<Message>) -> bool {
    matches!(message.as_ref(), Message::Result { is_error: true, .. })
}

/// L29: a model that calls tools forever ends at its limit with a typed error, whatever the tools are.
#[tokio::test(start_paused = true)]
async fn l29_a_model_that_calls_tools_for_ever_ends_at_the_iteration_limit() {
    let stage = TestHome::new(
        "rules: [{ say: Again., call: [{ tool: look, args: {} }, { tool: nothing, args: {} }] }]\ntools: { look: { say: nothing new, think_ms: 10 } }",
    );
    let home = stage.home();
    let tree = stage.start(&home, "root turns=7").await;
    let snapshot = settled(&tree).await;
    assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Failed));
    assert_eq!(stage.model().model().calls(), 7);
    assert_eq!(snapshot.agents[0].spent.get(spinney_kernel::budget::Resource::ToolCalls), 7);
}

/// L41: the directory lists every agent with role, parent, state and depth, and only those of its own tree.
#[tokio::test(start_paused = true)]
async fn l41_the_directory_lists_every_agent_of_its_own_tree_only() {
    let stage = TestHome::new(SCRIPT);
    let home = stage.home();
    let fixture = "root $9.00 turns=20 / helper later turns=3";
    let (one, other) = (stage.start(&home, fixture).await, stage.start(&home, fixture).await);
    let looks = [settled(&one).await, settled(&other).await];
    for snapshot in looks {
        let lines: Vec<String> = snapshot
            .agents
            .iter()
            .map(|view| {
                format!("{} {} {:?} {} {}", view.agent, view.role, view.parent, view.status, view.depth)
            })
            .collect();
        assert_eq!(lines, ["root root None completed 0", "h helper Some(\"root\") completed 1"]);
    }
    let stage = TestHome::new(
        "rules:\n  - { when: { turn: 1 }, say: Who?, call: [{ tool: list_agents }] }\n  - { say: '{{ last }}' }",
    );
    let home = stage.home();
    let tree = stage.start(&home, "root turns=3").await;
    let end = settled(&tree).await.end.unwrap();
    assert_eq!(end.shown.text, "root role=root parent=- depth=0 idle\n");
}

/// X12: with one slot for the whole tree, four levels of waiting parents still complete.
#[tokio::test(start_paused = true)]
async fn x12_parents_that_wait_hold_no_slot_at_any_depth() {
    let stage = TestHome::new(
        r#"
rules:
  - when: { agent: root, turn: 1 }
    call: [{ tool: spawn_agent, args: { agent: a, goal: Go. } }, { tool: spawn_agent, args: { agent: a, goal: On. } }]
  - when: { agent: a, turn: 1 }
    call: [{ tool: spawn_agent, args: { agent: b, goal: Go. } }, { tool: spawn_agent, args: { agent: b, goal: On. } }]
  - when: { agent: b, turn: 1 }
    call: [{ tool: spawn_agent, args: { agent: c, goal: Go. } }]
  - { think_ms: 5, say: done }
"#,
    );
    let home = stage.home();
    let mut definition =
        spinney_testkit::definition("root turns=5 / a later turns=5 / b later turns=5 / c later turns=5");
    definition.limits.parallel_max = 1;
    let tree = home.start(definition).await.unwrap();
    let snapshot = settled(&tree).await;
    assert_eq!((snapshot.state, snapshot.agents.len()), (TreeState::Ended(ExitKind::Completed), 11));
}

/// A tree read back from its journal looks as it did when it ended, and nothing is called for it.
#[tokio::test(start_paused = true)]
async fn a_stored_tree_looks_as_it_did_at_its_end() {
    let stage = TestHome::new("rules: [{ say: done }]");
    let tree = stage.start(&stage.home(), "root turns=3").await;
    let status = tree.ended().await;
    let stored = stored(stage.journal().as_ref(), tree.id()).wait().unwrap();
    assert_eq!(stored, Stored { snapshot: tree.snapshot().await.unwrap(), hash: status.hash.unwrap() });
    assert_eq!(stage.model().model().calls(), 1);
}
