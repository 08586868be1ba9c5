//! Whole trees: a home, a scripted model, tools, a journal.

use spinney::tree::Told;
use spinney_kernel::Event;
use spinney_kernel::id::Seq;
use spinney_kernel::world::TreeState;
use spinney_testkit::Stage;

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
    say: There are seven.
tools:
  search: { description: search the web, say: "three results for {{ args.query }}" }
"#;

#[tokio::test(start_paused = true)]
async fn a_tree_runs_to_its_answer() {
    let stage = Stage::new(SCRIPT);
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=20 / helper later turns=3").await;
    let status = tree.ended().await;
    assert_eq!(status.state, TreeState::Ended("completed"));
    let look = tree.look().await.unwrap();
    assert_eq!(look.end.unwrap().shown.text, "I was told: three results for trees");
    let mut events = tree.events(Seq(0));
    let mut told: Vec<Told> = Vec::new();
    while let Some(next) = events.next().await {
        told.push(next.unwrap());
    }
    let places: Vec<u64> = told.iter().map(|told| told.seq.0).collect();
    assert_eq!(places, (1..=status.seq.0).collect::<Vec<_>>());
    assert!(matches!(told.last().unwrap().event, Event::AgentEnded { .. }));
    assert_eq!(stage.model().calls(), 3);
}
