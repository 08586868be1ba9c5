//! What children use of their lease, and what returns, on the real runtime.

use spinney::Tree;
use spinney::bus::Watch;
use spinney::tree::Look;
use spinney_kernel::budget::Resource;
use spinney_kernel::record::{Event, Work};
use spinney_kernel::world::{AgentView, TreeState};
use spinney_testkit::{Stage, settled};

fn view<'a>(look: &'a Look, agent: &str) -> &'a AgentView {
    look.agents.iter().find(|view| view.agent.as_str() == agent).unwrap()
}

/// An agent's tokens: spent, lent, and still usable.
fn tokens(look: &Look, agent: &str) -> (u64, u64, Option<u64>) {
    let view = view(look, agent);
    let left = view.remaining.and_then(|left| left.of(Resource::Tokens));
    (view.spent.of(Resource::Tokens), view.lent.of(Resource::Tokens), left)
}

/// Waits until a tool of this agent is called.
async fn until_tool(tree: &Tree, of: &str) {
    let mut events = tree.watch(Watch::default());
    loop {
        let event = events.next_event().await.unwrap().unwrap().recorded.event.clone();
        if matches!(&event, Event::CallAsked { agent, work: Work::Tool(_), .. } if agent.as_str() == of) {
            return;
        }
    }
}

const LENDS: &str = "
rules:
  - when: { agent: root, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: child, id: c, goal: Help., timeout: 5s, budget: { tokens: 5000, lend: true } } } ]
    usage: { input: 10, output: 10 }
  - when: { agent: root, turn: 2 }
    call: [ { tool: ask_human, args: { question: 'And now?' } } ]
    usage: { input: 10, output: 10 }
  - when: { agent: child, turn: 1 }
    say: Half of it.
    call: [ { tool: TOOL } ]
    usage: { input: 150, output: 50 }
  - { when: { agent: child }, fail: { kind: auth } }
  - { say: done }
tools: { quick: { say: seen }, never: { hang: true } }
";

/// L24: a child with a lease of 5,000 tokens fails, times out or is cancelled after 200. Its parent is debited 200, and
/// the rest of the lease returns to the parent.
#[tokio::test(start_paused = true)]
async fn l24_a_child_that_ends_badly_has_used_what_it_used_and_returns_the_rest() {
    for (tool, is_cancelled, status, code) in [
        ("quick", false, "failed", "auth"),
        ("never", false, "failed", "timeout"),
        ("never", true, "cancelled", ""),
    ] {
        let stage = Stage::new(&LENDS.replace("TOOL", tool));
        let home = stage.home();
        let fixture = "root tokens=20000 turns=9 tools=spawn_agent,ask_human,never,quick / child later turns=9 tools=never,quick";
        let tree = stage.start(&home, fixture).await;
        if is_cancelled {
            until_tool(&tree, "c").await;
            let look = tree.look().await.unwrap();
            assert_eq!(tokens(&look, "root"), (220, 4_800, Some(14_980)), "5,000 are the child's alone");
            tree.cancel("c".parse().unwrap(), "enough").await.unwrap();
        }
        let look = settled(&tree).await;
        assert_eq!((look.state, view(&look, "c").status.to_string().as_str()), (TreeState::Waiting, status));
        assert_eq!(tokens(&look, "c"), (200, 0, None), "{tool} {code}");
        assert_eq!(tokens(&look, "root"), (240, 0, Some(19_760)), "{tool} {code}");
        let mut events = tree.watch(Watch::default());
        let exit = loop {
            let event = events.next_event().await.unwrap().unwrap().recorded.event.clone();
            if let Event::AgentEnded { agent, exit, .. } = event {
                assert_eq!(agent.as_str(), "c");
                break serde_json::to_string(&exit).unwrap();
            }
        };
        assert!(exit.contains(code), "{exit}");
    }
}

const NESTED: &str = "
rules:
  - when: { agent: root }
    call: [ { tool: spawn_agent, args: { agent: a, id: a, goal: Help., budget: { tokens: 80000 } } } ]
    usage: { input: 0, output: 0 }
  - when: { agent: a }
    call: [ { tool: spawn_agent, args: { agent: b, id: b, goal: Help., budget: { tokens: 60000 } } } ]
    usage: { input: 0, output: 0 }
  - when: { agent: b }
    call: [ { tool: spawn_agent, args: { agent: c, id: c, goal: Help., budget: { tokens: 40000, lend: LEND } } } ]
    usage: { input: 0, output: 0 }
  - when: { agent: c }
    call: [ { tool: ask_human, args: { question: 'Which?' } } ]
    usage: { input: 100, output: 50 }
";

/// L26: usage of a great-grandchild reduces what it, its parent, its grandparent and the root have left, exactly once
/// each, whether its budget was lent or not.
#[tokio::test(start_paused = true)]
async fn l26_what_is_used_below_reduces_every_view_above_exactly_once() {
    for (lend, lent) in [("false", 0), ("true", 39_850)] {
        let stage = Stage::new(&NESTED.replace("LEND", lend));
        let home = stage.home();
        let fixture = "root tokens=100000 turns=3 / a later turns=3 / b later turns=3 / c later turns=3";
        let tree = stage.start(&home, fixture).await;
        let look = settled(&tree).await;
        assert_eq!((look.state, look.agents.len()), (TreeState::Waiting, 4));
        for (agent, ceiling) in [("root", 100_000), ("a", 80_000), ("b", 60_000)] {
            let left = Some(ceiling - 150 - lent);
            assert_eq!(tokens(&look, agent), (150, lent, left), "{agent}, lent: {lend}");
        }
        assert_eq!(tokens(&look, "c"), (150, 0, Some(39_850)));
    }
}
