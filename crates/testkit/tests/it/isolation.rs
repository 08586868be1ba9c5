//! Secrets are placed everywhere in a parent, and every byte of every request of its children is searched for them.

use std::sync::Arc;

use spinney_kernel::definition::{Definition, Share};
use spinney_kernel::port::model::ModelAttempt;
use spinney_kernel::primitives::{Actor, Body, Category, Envelope, RoleName, enclose};
use spinney_kernel::record::Event;
use spinney_kernel::rules::request::{Request, Send};
use spinney_testkit::spinney::function_tool::{Answered, FunctionTool, RawCall};
use spinney_testkit::{TestHome, definition};

use crate::observed::name;
use crate::parts::image;

const FIXTURE: &str = "root $9.00 turns=20 / helper later turns=20 / deep later turns=20";

/// A parent that reads, receives messages, looks twice and spawns a child, which spawns one of its own.
const SCRIPT: &str = r#"
rules:
  - when: { agent: root, turn: 1 }
    think_ms: 1000
    say: I first SECRET-SAID-1.
    call: [ { tool: look, args: { at: SECRET-ARGS-1 } } ]
  - when: { agent: root, turn: 2 }
    say: And then SECRET-SAID-2.
    call: [ { tool: look, args: { at: SECRET-ARGS-2 } }, { tool: lose, args: {} } ]
  - when: { agent: root, turn: 3 }
    say: Now SECRET-SAID-3.
    call: [ { tool: spawn_agent, args: { agent: helper, id: h, goal: Count the files. } } ]
  - when: { agent: helper, turn: 1 }
    say: I pass it on, SECRET-CHILD.
    call: [ { tool: spawn_agent, args: { agent: deep, id: d, goal: Count one file. } } ]
  - when: { agent: deep }
    say: One, SECRET-DEEP.
  - say: done
tools:
  lose: { error: SECRET-FAILURE }
"#;

/// The tree with its secrets in prompts, goal and messages.
fn planted(share: Share) -> Definition {
    let mut planted = definition(FIXTURE);
    planted.goal = "Grow, SECRET-GOAL.".to_owned();
    for (role, prompt) in
        [("root", "You lead, SECRET-PROMPT."), ("deep", "You dig."), ("helper", "You help.")]
    {
        let turns = planted.roles.get_mut(&name::<RoleName>(role)).and_then(|role| role.turns.as_mut());
        if let Some(turns) = turns {
            turns.prompt = Body::text(prompt);
            turns.share = if role == "helper" { share } else { Share::Goal };
        }
    }
    planted
}

/// A tool whose result and image are secrets.
fn look() -> FunctionTool {
    FunctionTool::sync(|RawCall(attempt)| {
        let called = if attempt.args.contains('1') { "SECRET-SEEN-1" } else { "SECRET-SEEN-2" };
        let found = format!("found SECRET-RESULT at {}", attempt.args);
        Ok::<_, String>(Answered::new(found).with_parts([image(called)]))
    })
}

/// Runs the tree and returns every request of the child and of its own child.
async fn requests(share: Share) -> [Vec<Arc<ModelAttempt>>; 2] {
    let stage = TestHome::new(SCRIPT).with_tool("look", look());
    let home = stage.home();
    let tree = home.start(planted(share)).await.unwrap();
    for (category, text) in [(Category::Context, "SECRET-FACT"), (Category::Dialog, "SECRET-LETTER")] {
        let envelope = Envelope { category, ..Envelope::default() };
        let (parts, bytes) = enclose(vec![image(&format!("{text}-IMAGE"))]).unwrap();
        let send = Send { envelope, ..Send::plain(name("root"), Body::text(text).with_parts(parts)) };
        tree.request_with(Actor::PERSON, Request::Send(send), bytes).await.unwrap();
    }
    tree.ended().await;
    let of = |agent: &str| {
        let mut attempts = stage.model().attempts();
        attempts.retain(|attempt| attempt.origin.agent().as_str() == agent);
        attempts
    };
    let found = [of("h"), of("d")];
    assert!(found.iter().all(|attempts| !attempts.is_empty()));
    found
}

/// Every secret in some requests, each once. An agent that is shown an image can read it by name and by hash; no other
/// agent can, not even by asking.
async fn leaked(attempts: &[Arc<ModelAttempt>]) -> Vec<String> {
    let mut all = format!("{attempts:?}");
    for called in ["SECRET-FACT-IMAGE", "SECRET-LETTER-IMAGE", "SECRET-SEEN-1", "SECRET-SEEN-2"] {
        let part = image(called).part().unwrap();
        let is_named = all.contains(part.blob().hash.as_str());
        assert_eq!(is_named, all.contains(called));
        let mut is_read = false;
        for attempt in attempts {
            let bytes = attempt.bytes(&part).await.map(|bytes| String::from_utf8(bytes).unwrap());
            is_read |= bytes.is_ok();
            all += &format!("\n{}", bytes.unwrap_or_default());
        }
        assert_eq!(is_read, is_named, "{called}");
    }
    let mut found: Vec<String> = all
        .match_indices("SECRET-")
        .map(|(at, _)| all[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect())
        .collect();
    found.sort();
    found.dedup();
    found
}

/// L2: a child with only a goal sees nothing of its parent, in no request and at no depth.
#[tokio::test(start_paused = true)]
async fn l2_no_secret_of_a_parent_is_in_any_request_of_a_child() {
    let [child, deep] = requests(Share::Goal).await;
    // Its own texts, and its own child's answer, are its own.
    assert_eq!(leaked(&child).await, ["SECRET-CHILD", "SECRET-DEEP"]);
    assert_eq!(leaked(&deep).await, [""; 0]);
}

/// L2, P12: a briefed child sees its parent's context messages, and nothing that the parent said, received or got as a
/// result. Its own child sees none of it.
#[tokio::test(start_paused = true)]
async fn l2_a_briefing_lets_nothing_through_but_task_and_context() {
    let [child, deep] = requests(Share::Briefing).await;
    let recorded =
        ["SECRET-CHILD", "SECRET-DEEP", "SECRET-FACT", "SECRET-FACT-IMAGE", "SECRET-GOAL", "SECRET-PROMPT"];
    assert_eq!(leaked(&child).await, recorded);
    assert_eq!(leaked(&deep).await, [""; 0]);
}

/// L2: a child that reads its parent's thread sees the parent's context messages, and nothing else.
#[tokio::test(start_paused = true)]
async fn l2_a_thread_lets_nothing_through_but_context() {
    let [child, deep] = requests(Share::Thread).await;
    assert_eq!(leaked(&child).await, ["SECRET-CHILD", "SECRET-DEEP", "SECRET-FACT", "SECRET-FACT-IMAGE"]);
    assert_eq!(leaked(&deep).await, [""; 0]);
}

/// L2: a forked child sees exactly the turns that it was given, whole.
#[tokio::test(start_paused = true)]
async fn l2_a_fork_lets_through_the_turns_that_were_named() {
    let [child, deep] = requests(Share::Fork(1)).await;
    let leaked = leaked(&child).await;
    let recorded = [
        "SECRET-ARGS-2",
        "SECRET-CHILD",
        "SECRET-DEEP",
        "SECRET-FAILURE",
        "SECRET-RESULT",
        "SECRET-SAID-2",
        "SECRET-SEEN-2",
    ];
    for secret in recorded {
        assert!(leaked.iter().any(|found| found == secret), "{secret} is missing in {leaked:?}");
    }
    for secret in
        ["SECRET-SAID-1", "SECRET-ARGS-1", "SECRET-SEEN-1", "SECRET-SAID-3", "SECRET-GOAL", "SECRET-PROMPT"]
    {
        assert!(!leaked.iter().any(|found| found == secret), "{secret} leaked: {leaked:?}");
    }
    assert_eq!(self::leaked(&deep).await, [""; 0]);
}

/// L3, L42 (template): a child with a goal reads the pinned text: its role, its tools, its task, and nothing else.
#[tokio::test(start_paused = true)]
async fn l3_the_prompt_of_a_child_is_the_pinned_text() {
    let [child, _] = requests(Share::Goal).await;
    let first = child.first().map(|attempt| attempt.packet.messages[0].text().into_owned());
    insta::assert_snapshot!(first.unwrap_or_default(), @"
    You help.

    Tools you may use:
    - spawn_agent: give one self-contained task to a new agent, which knows nothing but its goal, and get its answer back here
    - wait_agent: get the answers of agents that you detached, in the order in which you spawned them: of all, of any, of the first few that complete, or as soon as most of them agree
    - send_message: tell an agent something while it runs, without waiting
    - followup_task: ask an agent of yours that has completed for one more thing, and get the answer back here
    - list_agents: see every agent of this tree: its id, role, parent, depth and state
    - cancel_agent: stop an agent below you and everything below it, if its answer is no longer needed
    - ask_human: ask a person and wait for the answer, where neither you nor another agent can decide
    - read_context: read a value that agents of this tree share, with its version and author
    - write_context: store a JSON value under a key, for all agents of this tree
    - list_context: see which values agents of this tree share: key, version, size and author
    - run_pipeline: run several steps in order or at the same time, where outputs of some are inputs of others, and get {succeeded, failed, outputs, trace_id} back here
    - wait_message: wait until an agent writes to you, and read it
    - delegate_to_agent: hand the conversation with the person over to a new agent, which knows what was said and talks to the person itself, until it hands back
    - hand_back: end your part of the conversation: the agent that handed it to you continues, and reads your message
    - look: 
    - lose: 

    When you are done, answer with a clear summary of the result.

    Your task: Count the files.
    ");
}

/// P17: a tool that a child does not have is refused, the refusal is in the journal, and the child continues.
#[tokio::test(start_paused = true)]
async fn p17_a_tool_that_was_not_given_is_refused_and_recorded() {
    let stage = TestHome::new(
        r#"
rules:
  - when: { agent: root, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: helper, id: h, goal: Look., tools: [look] } } ]
  - when: { agent: helper, turn: 1 }
    call: [ { tool: change, args: {} } ]
  - say: done
tools: { look: { say: found }, change: { say: changed } }
"#,
    );
    let tree = stage.start(&stage.home(), FIXTURE).await;
    tree.ended().await;
    let refused = spinney_testkit::recorded(&tree).await.into_iter().find_map(|recorded| {
        if let Event::ToolAnswered { agent, body, is_error: true, .. } = recorded.event {
            Some((agent, body.text))
        } else {
            None
        }
    });
    let (agent, text) = refused.unwrap();
    assert_eq!(agent.as_str(), "h");
    insta::assert_snapshot!(text, @"not allowed here: `change`: choose one of `look`");
}

/// S10: what a child has when its turns are used up reaches its parent as a partial result, and the next child from
/// there.
#[tokio::test(start_paused = true)]
async fn s10_partial_output_is_handed_on() {
    let stage = TestHome::new(
        r#"
rules:
  - when: { agent: root, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: helper, id: first, goal: Write ten lines. } } ]
  - when: { agent: root, turn: 2 }
    call: [ { tool: spawn_agent, args: { agent: deep, id: second, goal: "Go on from: {{ last }}" } } ]
  - when: { agent: helper }
    say: Line one and two.
    call: [ { tool: look, args: {} } ]
  - when: { agent: deep }
    say: All ten lines.
  - say: done
tools: { look: { say: found } }
"#,
    );
    let mut plan = definition(FIXTURE);
    let helper = plan.roles.get_mut(&name::<RoleName>("helper")).and_then(|role| role.turns.as_mut());
    helper.unwrap().turns_max = 2;
    let tree = stage.home().start(plan).await.unwrap();
    tree.ended().await;
    let attempts = stage.model().attempts();
    let second = attempts.iter().find(|attempt| attempt.origin.agent().as_str() == "second").unwrap();
    insta::assert_snapshot!(second.origin.goal, @"
    Go on from: first failed (max_steps: no answer after 2 turns, the most allowed: raise `limits.max_steps`, or ask for less); partial result:
    Line one and two.
    ");
}
