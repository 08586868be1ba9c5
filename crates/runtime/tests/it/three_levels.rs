//! Three levels of real spawns: children do not see what their ancestors know, and parents see only answers. Every text
//! of every request is searched.

use spinney_journal::Blocking;
use std::sync::Arc;

use insta::assert_snapshot;
use spinney::bus::RecordedEvent;
use spinney_kernel::budget::{Amounts, Ceilings};
use spinney_kernel::context::Message;
use spinney_kernel::definition::Definition;
use spinney_kernel::port::model::ModelAttempt;
use spinney_kernel::primitives::{Actor, Body, Category, Envelope, TreeId};
use spinney_kernel::record::{Event, Outcome, ToolAsk, Work};
use spinney_kernel::rules::request::{Request, Send};
use spinney_kernel::world::World;
use spinney_testkit::{TestHome, definition, recorded};

const FIXTURE: &str = "root $90.00 turns=9 / helper later turns=9 / deep later turns=9 / last later turns=9 / sib later turns=9";

/// Each agent has its own secrets: in its prompt, its text, its arguments and its tool results (a short one, a long one
/// that is stored as a file, and a failure). Each answers with one thing that its parent should know.
const SCRIPT: &str = r#"
rules:
  - when: { agent: root, turn: 1 }
    think_ms: 1000
    say: SECRET-root-said
    call:
      - { tool: look, args: { at: SECRET-root-args } }
      - { tool: read_file, args: { path: SECRET-root-path } }
      - { tool: lose }
  - when: { agent: root, turn: 2 }
    say: SECRET-root-said-later
    call:
      - { tool: spawn_agent, args: { agent: sib, id: s, goal: Keep SECRET-sib-goal. } }
      - { tool: spawn_agent, args: { agent: sib, id: s2, goal: Keep SECRET-sib-goal., detach: true } }
      - { tool: send_message, args: { to: s2, text: SECRET-root-letter } }
      - { tool: look, args: { at: SECRET-root-args } }
  - when: { agent: root, turn: 3 }
    call:
      - { tool: spawn_agent, args: { agent: helper, id: h, goal: Count the files. } }
      - { tool: spawn_agent, args: { agent: sib, id: s3, goal: Keep SECRET-sib-goal. } }
  - when: { agent: helper, turn: 1 }
    say: SECRET-helper-said
    call: [{ tool: look, args: { at: SECRET-helper-args } }, { tool: read_file }, { tool: lose }]
  - when: { agent: helper, turn: 2 }
    call: [{ tool: spawn_agent, args: { agent: deep, id: d, goal: Count one folder. } }, { tool: list_agents }]
  - { when: { agent: helper }, say: SECRET-helper-answer }
  - when: { agent: deep, turn: 1 }
    say: SECRET-deep-said
    call: [{ tool: look, args: { at: SECRET-deep-args } }, { tool: read_file }, { tool: lose }]
  - when: { agent: deep, turn: 2 }
    call:
      - { tool: spawn_agent, args: { agent: last, id: l, goal: Count one file., detach: true } }
      - { tool: wait_agent, args: { agents: [l] } }
  - { when: { agent: deep }, say: SECRET-deep-answer }
  - when: { agent: last, turn: 1 }
    say: SECRET-last-said
    call: [{ tool: look, args: { at: SECRET-last-args } }, { tool: read_file }, { tool: list_agents }]
  - { when: { agent: last }, say: SECRET-last-answer }
  - when: { agent: sib, turn: 1 }
    say: SECRET-sib-said
    call: [{ tool: look, args: { at: SECRET-sib-args } }, { tool: read_file }]
  - { when: { agent: sib }, say: SECRET-sib-answer }
  - { say: done }
tools:
  look: { description: look at something, say: "SECRET-{{ agent }}-result" }
  read_file: { say: "SECRET-{{ agent }}-file {% for n in range(3000) %}x{% endfor %}" }
  lose: { error: "SECRET-{{ agent }}-failure" }
"#;

/// A tree whose every role has a secret in its prompt.
fn planted() -> Definition {
    let mut planted = definition(FIXTURE);
    planted.goal = "Grow, SECRET-root-goal.".to_owned();
    for (name, role) in &mut planted.roles {
        if let Some(turns) = &mut role.turns {
            turns.prompt = Body::text(format!("You are SECRET-{name}-prompt."));
            turns.output_cap = Some(300);
        }
    }
    planted
}

/// Runs the tree, and returns all requests and events.
async fn played() -> (Vec<Arc<ModelAttempt>>, Vec<RecordedEvent>) {
    let stage = TestHome::new(SCRIPT);
    let home = stage.home();
    let tree = home.start(planted()).await.unwrap();
    for (category, text) in [(Category::Context, "SECRET-root-fact"), (Category::Dialog, "SECRET-root-told")]
    {
        let envelope = Envelope { category, ..Envelope::default() };
        let send = Send { envelope, ..Send::plain("root".parse().unwrap(), Body::text(text)) };
        tree.request(Actor::PERSON, Request::Send(send)).await.unwrap();
    }
    tree.ended().await;
    (stage.model().attempts(), recorded(&tree).await)
}

/// Everything that a model can read in one request: each message with its facts and calls, and each tool with its
/// description and schema.
fn texts(attempt: &ModelAttempt) -> Vec<String> {
    let mut texts = vec![attempt.origin.goal.to_string(), format!("{:?}", attempt.packet)];
    for message in attempt.packet.messages.iter() {
        texts.push(message.text().into_owned());
        texts.extend(message.facts().map(ToString::to_string));
        if let Message::Said { asks, .. } = message.as_ref() {
            texts.extend(asks.iter().flat_map(|ask| [ask.id.clone(), ask.tool.clone(), ask.args.clone()]));
        }
    }
    for tool in attempt.packet.tools.iter() {
        texts.extend([tool.name.to_string(), tool.description.clone(), tool.schema.clone()]);
    }
    texts
}

/// Every secret in all requests of an agent, each once.
fn secrets(attempts: &[Arc<ModelAttempt>], agent: &str) -> String {
    let own: Vec<_> = attempts.iter().filter(|a| a.origin.agent().as_str() == agent).collect();
    assert!(own.len() > 1, "{agent} was asked {} times", own.len());
    let all = own.iter().flat_map(|attempt| texts(attempt)).collect::<Vec<_>>().join("\n");
    let word = |at: usize| -> String {
        all[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect()
    };
    let mut found: Vec<String> = all.match_indices("SECRET-").map(|(at, _)| word(at)).collect();
    found.sort();
    found.dedup();
    found.iter().map(|secret| secret.trim_start_matches("SECRET-")).collect::<Vec<_>>().join(" ")
}

/// L2: over three levels an agent reads nothing of its parent, siblings or ancestors except its goal; upwards, it reads
/// only the answers of its children, and nothing of its grandchildren.
#[tokio::test(start_paused = true)]
async fn l2_over_three_levels_only_goals_go_down_and_only_answers_come_up() {
    let (attempts, _) = played().await;
    assert_snapshot!(secrets(&attempts, "h"), @"deep-answer helper-args helper-failure helper-file helper-prompt helper-result helper-said");
    assert_snapshot!(secrets(&attempts, "d"), @"deep-args deep-failure deep-file deep-prompt deep-result deep-said last-answer");
    assert_snapshot!(secrets(&attempts, "l"), @"last-args last-file last-prompt last-result last-said");
    assert_snapshot!(secrets(&attempts, "s"), @"sib-args sib-file sib-goal sib-prompt sib-result sib-said");
    assert_eq!(secrets(&attempts, "s3"), secrets(&attempts, "s"));
    assert_snapshot!(secrets(&attempts, "s2"), @"root-letter sib-args sib-file sib-goal sib-prompt sib-result sib-said");
    assert_snapshot!(secrets(&attempts, "root"), @"helper-answer root-args root-fact root-failure root-file root-goal root-letter root-path root-prompt root-result root-said root-said-later root-told sib-answer sib-goal");
}

fn said(message: &Message) -> Option<&[ToolAsk]> {
    if let Message::Said { asks, .. } = message { Some(asks) } else { None }
}

fn result(message: &Message) -> Option<(&str, &str)> {
    if let Message::Result { id, text, .. } = message { Some((id, text)) } else { None }
}

/// The last text of an agent's model.
fn answer(recorded: &[RecordedEvent], agent: &str) -> String {
    let (mut calls, mut said) = (Vec::new(), None);
    for recorded in recorded {
        if let Event::CallAsked { call, agent: by, .. } = &recorded.event
            && by.as_str() == agent
        {
            calls.push(*call);
        }
        if let Event::CallEnded { call, outcome: Outcome::Done { body, .. }, .. } = &recorded.event
            && calls.contains(call)
        {
            said = Some(body.text.clone());
        }
    }
    said.unwrap_or_else(|| panic!("{agent} said nothing"))
}

/// What an agent and everything below it used, according to its end.
fn spent(recorded: &[RecordedEvent], agent: &str) -> Amounts {
    let ended = |recorded: &RecordedEvent| {
        let Event::AgentEnded { agent: who, spent, .. } = &recorded.event else { return None };
        (who.as_str() == agent).then_some(*spent)
    };
    recorded.iter().find_map(ended).unwrap_or_else(|| panic!("{agent} has not ended"))
}

/// The root's ledger just before each of its turns, from the events alone.
fn left_before_turns(recorded: &[RecordedEvent], seed: TreeId) -> Vec<Ceilings> {
    let (mut world, mut left) = (World::new(seed), Vec::new());
    for recorded in recorded {
        if let Event::CallAsked { agent, work: Work::Model(_), .. } = &recorded.event
            && agent.as_str() == "root"
        {
            left.extend(world.directory().next().and_then(|root| root.remaining));
        }
        world.apply(&recorded.event);
    }
    left
}

/// L27: the result of a spawn is the child's last answer, byte for byte and under the id of the call; two spawns in one
/// turn are one message with two calls, and two result messages.
#[tokio::test(start_paused = true)]
async fn l27_the_result_of_a_spawn_is_the_answer_of_the_child_under_the_same_id() {
    let script = r#"
rules:
  - when: { agent: root, turn: 1 }
    say: Both at once.
    call:
      - { tool: spawn_agent, id: first-one, args: { agent: helper, id: slow, goal: Slowly. } }
      - { tool: spawn_agent, id: and/another, args: { agent: helper, id: fast, goal: Fast. } }
  - when: { agent: helper, turn: 1 }
    say: Not this.
    call: [{ tool: list_agents }]
  - { when: { agent: helper, goal_contains: Slowly }, think_ms: 500, say: "  Grüße,\n\n«seven»\t " }
  - { when: { agent: helper }, say: '{"rings": 7}' }
  - { say: done }
"#;
    let stage = TestHome::new(script);
    let home = stage.home();
    let tree = stage.start(&home, FIXTURE).await;
    tree.ended().await;
    let recorded = recorded(&tree).await;
    let last = stage.model().attempts().pop().unwrap();
    let messages: Vec<&Message> = last.packet.messages.iter().map(AsRef::as_ref).collect();
    let [_, spoke, one, other] = messages.as_slice() else { panic!("{messages:#?}") };
    let ids: Vec<&str> = said(spoke).unwrap().iter().map(|ask| ask.id.as_str()).collect();
    assert_eq!(ids, ["first-one", "and/another"]);
    let (slow, fast) = (answer(&recorded, "slow"), answer(&recorded, "fast"));
    assert_eq!((slow.as_str(), fast.as_str()), ("  Grüße,\n\n«seven»\t ", r#"{"rings": 7}"#));
    assert_eq!(result(one), Some(("first-one", slow.as_str())));
    assert_eq!(result(other), Some(("and/another", fast.as_str())));
}

/// L21: each result of a turn shows what is left when it is read, and a child's result shows what the child used: for a
/// child that was waited for, a detached one, and plain tools.
#[tokio::test(start_paused = true)]
async fn l21_every_result_says_what_was_used_and_what_is_left() {
    let script = r#"
rules:
  - when: { agent: root, turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: helper, id: a, goal: Count. } }
      - { tool: spawn_agent, args: { agent: helper, id: b, goal: Count far more than that., detach: true } }
      - { tool: spawn_agent, args: { agent: helper, id: c, goal: Count slowly., detach: true } }
      - { tool: look }
      - { tool: no_such_tool }
  - { when: { agent: root, turn: 2 }, call: [{ tool: wait_agent, args: { agents: [c] } }, { tool: look }] }
  - { when: { agent: helper, turn: 1 }, say: one, call: [{ tool: look }, { tool: spawn_agent, args: { agent: deep, goal: Dig. } }] }
  - { when: { agent: helper, goal_contains: slowly }, think_ms: 5000, say: three }
  - { say: done }
tools: { look: { think_ms: 1, say: seen } }
"#;
    let stage = TestHome::new(script);
    let home = stage.home();
    let tree = stage.start(&home, "root $90.00 tokens=500000 steps=50 tool_calls=40 retries=9 turns=9 / helper later turns=9 / deep later turns=9").await;
    tree.ended().await;
    let (recorded, head) = (recorded(&tree).await, stage.journal().head(tree.id()).wait().unwrap().unwrap());
    let left = left_before_turns(&recorded, head.seed);
    let spent = |agent| spent(&recorded, agent);
    let turns: Vec<_> = stage.model().attempts().into_iter().filter(|a| a.origin.depth() == 0).collect();
    assert_eq!((turns.len(), left.len()), (3, 3));
    let mut lines = Vec::new();
    for (turn, before, left) in [(&turns[1], &turns[0], left[1]), (&turns[2], &turns[1], left[2])] {
        for message in turn.packet.messages.iter().skip(before.packet.messages.len()) {
            if said(message).is_some() {
                continue;
            }
            let facts = message.facts().unwrap_or_else(|| panic!("nothing is told behind {message:?}"));
            assert_eq!(facts.left, Some(left), "{message:?}");
            let child = ["a", "b", "c"].into_iter().find(|child| facts.used == Some(spent(child)));
            assert!(facts.used.is_none() || child.is_some(), "{facts:?}");
            lines.push(format!(
                "{} <{}> {}",
                turn.turn,
                child.unwrap_or("-"),
                message.text().replace('\n', " | ")
            ));
        }
    }
    assert_snapshot!(lines.join("\n"), @"
    2 <a> done
    2 <-> spawned b
    2 <-> spawned c
    2 <-> seen
    2 <-> unknown tool `no_such_tool`: choose one of `spawn_agent`, `wait_agent`, `send_message`, `followup_task`, `list_agents`, `cancel_agent`, `ask_human`, `read_context`, `write_context`, `list_context`, `run_pipeline`, `wait_message`, `delegate_to_agent`, `hand_back`, `look`
    3 <c> three
    3 <-> seen
    3 <b> done
    ");
    assert!(spent("a") != spent("b") && spent("a") != spent("c") && spent("b") != spent("c"));
}
