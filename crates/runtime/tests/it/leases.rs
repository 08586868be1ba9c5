//! What children use of their lease, and what returns, on the real runtime.

use std::collections::BTreeMap;
use std::sync::Arc;

use spinney::Tree;
use spinney::bus::Watch;
use spinney::tree::TreeSnapshot;
use spinney_kernel::budget::{Amounts, Resource};
use spinney_kernel::port::model::ModelAttempt;
use spinney_kernel::primitives::Seq;
use spinney_kernel::record::{Event, Work};
use spinney_kernel::world::{AgentView, TreeState};
use spinney_testkit::{TestHome, definition, settled};

fn view<'a>(snapshot: &'a TreeSnapshot, agent: &str) -> &'a AgentView {
    snapshot.agents.iter().find(|view| view.agent.as_str() == agent).unwrap()
}

/// An agent's tokens: spent, lent, and still usable.
fn tokens(snapshot: &TreeSnapshot, agent: &str) -> (u64, u64, Option<u64>) {
    let view = view(snapshot, agent);
    let left = view.remaining.and_then(|left| left.get(Resource::Tokens));
    (view.spent.get(Resource::Tokens), view.lent.get(Resource::Tokens), left)
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
        let stage = TestHome::new(&LENDS.replace("TOOL", tool));
        let home = stage.home();
        let fixture = "root tokens=20000 turns=9 tools=spawn_agent,ask_human,never,quick / child later turns=9 tools=never,quick";
        let tree = stage.start(&home, fixture).await;
        if is_cancelled {
            until_tool(&tree, "c").await;
            let snapshot = tree.snapshot().await.unwrap();
            assert_eq!(tokens(&snapshot, "root"), (220, 4_800, Some(14_980)), "5,000 are the child's alone");
            tree.cancel("c".parse().unwrap(), "enough").await.unwrap();
        }
        let snapshot = settled(&tree).await;
        assert_eq!(
            (snapshot.state, view(&snapshot, "c").status.to_string().as_str()),
            (TreeState::Waiting, status)
        );
        assert_eq!(tokens(&snapshot, "c"), (200, 0, None), "{tool} {code}");
        assert_eq!(tokens(&snapshot, "root"), (240, 0, Some(19_760)), "{tool} {code}");
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

/// A chain of four agents. The last one uses a tool, an attempt that fails, and a turn, then waits for a person, and ends
/// after another turn; the others use nothing but their turns.
const NESTED: &str = "
lost: presumed
rules:
  - when: { agent: root, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: a, id: a, goal: Help., budget: { cost_usd: 8, tokens: 80000, steps: 18, tool_calls: 18, retries: 18 } } } ]
    usage: { input: 1, output: 2 }
  - when: { agent: a, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: b, id: b, goal: Help., budget: { cost_usd: 6, tokens: 60000, steps: 16, tool_calls: 16, retries: 16 } } } ]
    usage: { input: 3, output: 4 }
  - when: { agent: b, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: c, id: c, goal: Help., budget: { cost_usd: 4, tokens: 40000, steps: 14, tool_calls: 14, retries: 14, lend: LEND } } } ]
    usage: { input: 5, output: 6 }
  - when: { agent: c, turn: 1 }
    fail: { kind: cut, times: 1 }
    say: I look.
    call: [ { tool: look } ]
    usage: { input: 100, output: 50 }
  - when: { agent: c, turn: 2 }
    call: [ { tool: ask_human, args: { question: 'Which?' } } ]
    usage: { input: 200, output: 7 }
  - { say: done, usage: { input: 11, output: 13 } }
tools: { look: { say: seen } }
";

const CHAIN: [&str; 4] = ["root", "a", "b", "c"];

/// What each agent of the chain and everything below it used, added up from the events alone.
async fn booked(tree: &Tree, until: Seq) -> [Amounts; 4] {
    let mut owners = BTreeMap::new();
    let mut sums = [Amounts::ZERO; 4];
    let mut events = tree.watch(Watch::default());
    loop {
        let recorded = events.next_event().await.unwrap().unwrap().recorded.clone();
        match &recorded.event {
            Event::CallAsked { call, agent, .. } => drop(owners.insert(*call, agent.to_string())),
            Event::AttemptFailed { call, spent, .. } | Event::CallEnded { call, spent, .. } => {
                let place = owners.get(call).and_then(|owner| CHAIN.iter().position(|name| name == owner));
                for sum in &mut sums[..=place.unwrap_or_default()] {
                    *sum = sum.plus(spent);
                }
            }
            _ => {}
        }
        if recorded.seq == until {
            return sums;
        }
    }
}

/// L26: what a great-grandchild uses of any resource, in turns, tools and failed attempts, shows exactly once in the
/// view of each agent above it, while it lives and after its end, whether its budget was lent or not; and what each
/// agent reads that it has left is less by exactly that.
#[tokio::test(start_paused = true)]
async fn l26_what_is_used_below_reduces_every_view_above_exactly_once() {
    for lends in [false, true] {
        let stage = TestHome::new(&NESTED.replace("LEND", &lends.to_string()));
        let home = stage.home();
        let root = "root $10.00 tokens=100000 steps=20 tool_calls=20 retries=20 turns=3";
        let fixture = format!("{root} / a later turns=3 / b later turns=3 / c later turns=5");
        let mut definition = definition(&fixture);
        definition.models.values_mut().for_each(|model| model.fallback.clear());
        let tree = home.start(definition).await.unwrap();
        let snapshot = settled(&tree).await;
        assert_eq!((snapshot.state, snapshot.agents.len()), (TreeState::Waiting, 4));
        let (sums, limits) =
            (booked(&tree, snapshot.seq).await, CHAIN.map(|agent| view(&snapshot, agent).limit.unwrap()));
        for resource in Resource::ALL {
            assert!(sums[3].get(resource) > 0, "nothing was used of {resource}");
            for (place, agent) in CHAIN.iter().enumerate() {
                let (view, used) = (view(&snapshot, agent), sums[place].get(resource));
                assert_eq!(view.spent.get(resource), used, "{resource} of {agent}, lent: {lends}");
                // What was lent and is not used yet is not there for those above.
                let ceiling = view.limit.unwrap().get(resource).unwrap();
                let lent = if lends && *agent != "c" {
                    let c = snapshot.agents.iter().find(|view| view.agent.as_str() == "c").unwrap();
                    c.limit.unwrap().get(resource).unwrap() - sums[3].get(resource)
                } else {
                    0
                };
                assert_eq!(view.lent.get(resource), lent, "{resource} lent by {agent}");
                let left = view.remaining.unwrap().get(resource);
                assert_eq!(left, Some(ceiling - used - lent), "{resource} left for {agent}, lent: {lends}");
            }
        }
        tree.answer(snapshot.questions[0].question, "this").await.unwrap();
        let snapshot = settled(&tree).await;
        let sums = booked(&tree, snapshot.seq).await;
        for (place, agent) in CHAIN.iter().enumerate() {
            assert_eq!(view(&snapshot, agent).spent, sums[place], "{agent} at the end, lent: {lends}");
        }
        // What the parents read with the result of their child: what it used, and what they had left before their last
        // turn.
        let attempts = stage.model().attempts();
        let turn = Amounts::cost(13_000_000).with(Resource::Tokens, 24).with(Resource::Steps, 1);
        for (parent, child) in [(2, 3), (1, 2), (0, 1)] {
            let is_own = |attempt: &&Arc<ModelAttempt>| attempt.origin.agent().as_str() == CHAIN[parent];
            let last = attempts.iter().rfind(is_own).unwrap();
            let facts =
                last.packet.messages.iter().rev().find_map(|message| message.facts().copied()).unwrap();
            assert_eq!(facts.used, Some(sums[child]), "{} by {}", CHAIN[child], CHAIN[parent]);
            for resource in Resource::ALL {
                let used = sums[parent].get(resource) - turn.get(resource);
                let left = limits[parent].get(resource).map(|limit| limit - used);
                assert_eq!(facts.left.unwrap().get(resource), left, "{resource} of {}", CHAIN[parent]);
            }
        }
    }
}
