//! Refused spawns, and what a child with only a goal reads, on the real runtime.

use std::sync::Arc;

use spinney_kernel::context::Message;
use spinney_kernel::definition::{Allow, Definition, Refusal};
use spinney_kernel::port::model::ModelAttempt;
use spinney_kernel::primitives::{Actor, Body, limit};
use spinney_kernel::record::ExitKind;
use spinney_kernel::rules::request::{Collect, Request, Spawn};
use spinney_kernel::world::TreeState;
use spinney_testkit::{Scenario, TestHome, definition, settled};

use crate::name;

/// The tool results that a model reads: whether each is an error, and its text.
fn results(attempt: &ModelAttempt) -> Vec<(bool, String)> {
    let result = |message: &Arc<Message>| match message.as_ref() {
        Message::Result { is_error, text, .. } => Some((*is_error, text.clone())),
        _ => None,
    };
    attempt.packet.messages.iter().filter_map(result).collect()
}

/// A lead that may spawn `a` and look; `a` and `b` may also dig.
fn family() -> Definition {
    let mut family = definition(
        "root $90.00 turns=9 tools=spawn_agent,ask_human,look / a later turns=3 tools=look,dig / b later turns=3 tools=look",
    );
    family.roles.get_mut("root").unwrap().caps.spawn = Allow::only([name("a")]);
    family
}

const REFUSED: &str = "
rules:
  - when: { agent: root, turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: ghost, goal: Go. } }
      - { tool: spawn_agent, args: { agent: b, goal: Go. } }
      - { tool: spawn_agent, args: { agent: a, goal: Go., tools: [dig] } }
  - { when: { agent: root, turn: 2 }, call: [ { tool: ask_human, args: { question: 'Which?' } } ] }
  - { say: done }
tools: { look: { say: seen }, dig: { say: dug } }
";

/// L18: an unknown agent, one outside `subagents` and a tool that the parent lacks are typed refusals. The model reads
/// each as an error, no agent is spawned, and the run continues to its end.
#[tokio::test(start_paused = true)]
async fn l18_refused_spawns_reach_the_model_as_errors_and_the_run_continues() {
    let stage = TestHome::new(REFUSED);
    let home = stage.home();
    let tree = home.start(family()).await.unwrap();
    let snapshot = settled(&tree).await;
    assert_eq!((snapshot.state, snapshot.agents.len()), (TreeState::Waiting, 1));
    let read = results(&stage.model().attempts()[1]);
    assert!(read.len() == 3 && read.iter().all(|(is_error, _)| *is_error), "{read:?}");
    let texts: Vec<&str> = read.iter().map(|(_, text)| text.as_str()).collect();
    insta::assert_snapshot!(texts.join("\n"), @"
    unknown role `ghost`: choose one of `a`
    this agent may not spawn role `b`: choose one of `a`
    not allowed here: `dig`: choose one of `ask_human`, `look`, `spawn_agent`
    ");

    let spawn = |role: &str, tools: Option<Vec<&str>>| {
        let tools = tools.map(|tools| tools.into_iter().map(name).collect());
        Request::Spawn(Spawn { tools, collect: Collect::Detached, ..Scenario::spawn("root", role) })
    };
    let refused = async |request: Request| match tree.request(Actor::Agent(name("root")), request).await {
        Err(spinney::tree::RequestError::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    };
    let unknown = refused(spawn("ghost", None)).await;
    assert_eq!(unknown, Refusal::UnknownRole { role: name("ghost"), known: vec![name("a")] });
    let outside = refused(spawn("b", None)).await;
    assert_eq!(outside, Refusal::RoleNotAllowed { role: name("b"), allowed: vec![name("a")] });
    let lacking = refused(spawn("a", Some(vec!["dig"]))).await;
    assert!(
        matches!(&lacking, Refusal::ToolNotAllowed { tools, .. } if *tools == [name("dig")]),
        "{lacking:?}"
    );
    assert_eq!(tree.snapshot().await.unwrap().seq, snapshot.seq, "a refusal changes nothing");

    tree.answer(snapshot.questions[0].question, "red").await.unwrap();
    let snapshot = settled(&tree).await;
    assert_eq!((snapshot.state, snapshot.agents.len()), (TreeState::Ended(ExitKind::Completed), 1));
}

/// L42: an empty and an oversized goal are refused and spawn no agent. A child with only a goal reads exactly the
/// template: its role's prompt, its task, its tools, and the request for a summary.
#[tokio::test(start_paused = true)]
async fn l42_bad_goals_are_refused_and_a_good_one_fills_the_template() {
    let long = "x".repeat(limit::TEXT_BYTES_MAX + 1);
    let script = format!(
        "
rules:
  - when: {{ agent: root, turn: 1 }}
    call:
      - {{ tool: spawn_agent, args: {{ agent: helper, goal: '' }} }}
      - {{ tool: spawn_agent, args: {{ agent: helper, goal: '  ' }} }}
      - {{ tool: spawn_agent, args: {{ agent: helper, goal: {long} }} }}
  - {{ when: {{ agent: root, turn: 2 }}, call: [ {{ tool: spawn_agent, args: {{ agent: helper, id: h, goal: Count the files. }} }} ] }}
  - {{ say: done }}
tools: {{ look: {{ description: look at something, say: seen }} }}
"
    );
    let stage = TestHome::new(&script);
    let home = stage.home();
    let mut plan =
        definition("root turns=9 out=20000 tools=spawn_agent,look / helper later turns=3 tools=look");
    plan.models.values_mut().for_each(|model| model.output_max = None);
    plan.roles.get_mut("helper").unwrap().turns.as_mut().unwrap().prompt = Body::text("You help.");
    let tree = home.start(plan).await.unwrap();
    let snapshot = settled(&tree).await;
    assert_eq!((snapshot.state, snapshot.agents.len()), (TreeState::Ended(ExitKind::Completed), 2));
    let attempts = stage.model().attempts();
    let read = results(&attempts[1]);
    assert!(read.len() == 3 && read.iter().all(|(is_error, _)| *is_error), "{}", read.len());
    let texts: Vec<&str> = read.iter().map(|(_, text)| text.as_str()).collect();
    insta::assert_snapshot!(texts.join("\n"), @"
    the goal is empty
    the goal is empty
    the goal has 32769 bytes and the limit is 32768: shorten it or pass a reference
    ");
    let child = attempts.iter().find(|attempt| attempt.origin.agent().as_str() == "h").unwrap();
    let [first] = child.packet.messages.as_slice() else { panic!("{:?}", child.packet.messages) };
    assert_eq!(
        first.text(),
        "You help.\n\nTools you may use:\n- look: look at something\n\nWhen you are done, answer with a clear summary \
         of the result.\n\nYour task: Count the files."
    );
}
