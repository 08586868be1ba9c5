//! Models that interfere with related agents: contradicting waits, cancels and follow-ups of agents that are not
//! theirs, abandoned children, messages to themselves. `run_and_check.rs` checks what holds for all of these trees.

use insta::assert_snapshot;

use crate::run_and_check::Played;

const FIXTURE: &str = "root $9000.00 turns=9 / worker later turns=9 / deep later turns=9";

/// A root with a worker `a` that has a child `g`, and workers `b` and `c`.
const FAMILY: &str = r#"
  - when: { agent: root, turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: worker, id: a, goal: Lead., detach: true } }
      - { tool: spawn_agent, args: { agent: worker, id: b, goal: Wait., detach: true } }
      - { tool: spawn_agent, args: { agent: worker, id: c, goal: Hang., detach: true } }
      - { tool: pause }
  - when: { agent: worker, goal_contains: Lead, turn: 1 }
    call: [{ tool: spawn_agent, args: { agent: deep, id: g, goal: Dig., detach: true } }, { tool: pause }]
  - { when: { agent: worker, goal_contains: Hang }, hang: true }
  - { when: { agent: worker, goal_contains: Wait }, think_ms: 5000, say: waited }
  - { when: { agent: deep }, think_ms: 5000, say: dug }
"#;

/// The family, with further rules.
async fn family(rules: &str) -> Played {
    let tools = "tools: { pause: { think_ms: 100, say: paused } }";
    Played::by(&format!("rules:\n{rules}{FAMILY}  - {{ say: done }}\n{tools}\n"), FIXTURE).await
}

#[tokio::test(start_paused = true)]
async fn waits_for_what_is_no_child_come_back_as_advice() {
    let played = family(
        r#"
  - when: { agent: root, turn: 2 }
    call:
      - { tool: wait_agent, args: { agents: [root] } }
      - { tool: wait_agent, args: { agents: [g] } }
      - { tool: wait_agent, args: { agents: [ghost] } }
      - { tool: wait_agent, args: { agents: [b, ghost] } }
      - { tool: wait_agent, args: { agents: [] } }
      - { tool: wait_agent, args: { agents: [b], need: { first: 0 } } }
      - { tool: wait_agent, args: { agents: [b], need: few } }
      - { tool: wait_agent, args: { agents: [b, b, b, b, b, b] } }
      - { tool: cancel_agent, args: { agent: c, reason: enough } }
  - when: { agent: worker, goal_contains: Lead, turn: 2 }
    call:
      - { tool: wait_agent, args: { agents: [a] } }
      - { tool: wait_agent, args: { agents: [root] } }
      - { tool: wait_agent, args: { agents: [b] } }
"#,
    )
    .await;
    assert_snapshot!(played.sum(), @"completed, 10 model calls, 5 agents");
    assert_snapshot!(played.results("root"), @"
     1_1 spawned a
     1_2 spawned b
     1_3 spawned c
     1_4 paused
    !2_1 `root` is not a child of `root`: name one of your own children
    !2_2 `g` is not a child of `root`: name one of your own children
    !2_3 unknown agent `ghost`: the tree's events name every agent
    !2_4 unknown agent `ghost`: the tree's events name every agent
    !2_5 nothing to wait for: name at least one child, or wait for messages
    !2_6 nothing to wait for: name at least one child, or wait for messages
    !2_7 bad arguments for `wait_agent`: unknown variant `few`, expected one of `all`, `any`, `first`, `majority` at line 1 column 28; write one JSON object with the fields it takes
    !2_8 children: 6 is above the limit 5: use fewer
     2_9 done
    ");
    assert_snapshot!(played.results("a"), @"
     1_1 spawned g
     1_2 paused
    !2_1 `a` is not a child of `a`: name one of your own children
    !2_2 `root` is not a child of `a`: name one of your own children
    !2_3 `b` is not a child of `a`: name one of your own children
    ");
}

/// Several waits for the same children all end, and so does one for more than exist.
#[tokio::test(start_paused = true)]
async fn waits_that_contradict_each_other_all_end() {
    let played = family(
        r#"
  - when: { agent: root, turn: 2 }
    call:
      - { tool: cancel_agent, args: { agent: c, reason: enough } }
      - { tool: wait_agent, args: { agents: [c] } }
      - { tool: wait_agent, args: { agents: [a, b], need: { first: 5 } } }
      - { tool: wait_agent, args: { agents: [a], need: majority } }
      - { tool: wait_agent, args: { agents: [b, b] } }
      - { tool: wait_agent, args: { agents: [b, c], need: any } }
      - { tool: wait_agent, args: { agents: [b], timeout: 1s } }
  - when: { agent: root, turn: 3 }
    call:
      - { tool: wait_agent, args: { agents: [a, b, c] } }
      - { tool: wait_agent, args: { agents: [a, b, c] } }
"#,
    )
    .await;
    assert_snapshot!(played.sum(), @"completed, 9 model calls, 5 agents");
    assert_snapshot!(played.results("root"), @"
     1_1 spawned a
     1_2 spawned b
     1_3 spawned c
     1_4 paused
     2_1 done
    !2_2 c cancelled (enough)
     2_3 2 of 2 ended; fewer completed than you asked for |  | [a completed] | a completed, as you know |  | [b completed, used $0.002, 2843 tokens, 1 step] | waited
     2_4 1 of 1 ended; more than half agree |  | done
     2_5 b completed, as you know
    !2_6 1 of 2 ended; still working: b; wait again, or cancel the agents you no longer need |  | [c cancelled] | c cancelled, as you know
    !2_7 partial, time is up: 0 of 1 ended; still working: b; wait again, or cancel the agents you no longer need
     3_1 [a completed] | a completed, as you know |  | [b completed] | b completed, as you know |  | [c cancelled] | c cancelled, as you know
     3_2 [a completed] | a completed, as you know |  | [b completed] | b completed, as you know |  | [c cancelled] | c cancelled, as you know
    ");
}

#[tokio::test(start_paused = true)]
async fn no_agent_cancels_itself_a_sibling_or_an_ancestor() {
    let played = family(
        r#"
  - when: { agent: root, turn: 2 }
    call:
      - { tool: cancel_agent, args: { agent: root, reason: tired } }
      - { tool: cancel_agent, args: { agent: ghost } }
      - { tool: cancel_agent, args: { agent: c } }
      - { tool: cancel_agent, args: { agent: c } }
      - { tool: wait_agent, args: { agents: [a, b] } }
  - when: { agent: worker, goal_contains: Lead, turn: 2 }
    call:
      - { tool: cancel_agent, args: { agent: a } }
      - { tool: cancel_agent, args: { agent: root } }
      - { tool: cancel_agent, args: { agent: b } }
      - { tool: wait_agent, args: { agents: [g] } }
"#,
    )
    .await;
    assert_snapshot!(played.sum(), @"completed, 9 model calls, 5 agents");
    assert_snapshot!(played.results("root"), @"
     1_1 spawned a
     1_2 spawned b
     1_3 spawned c
     1_4 paused
    !2_1 `root` may not do this to `root`: an agent acts for itself, and signals only its descendants
    !2_2 unknown agent `ghost`: the tree's events name every agent
     2_3 done
    !2_4 agent `c` is ending and takes no more work: spawn another one
     2_5 [a completed, used $0.033, 12698 tokens, 4 steps, 1 tool call] | done |  | [b completed, used $0.002, 2843 tokens, 1 step] | waited
    ");
    assert_snapshot!(played.results("a"), @"
     1_1 spawned g
     1_2 paused
    !2_1 `a` may not do this to `a`: an agent acts for itself, and signals only its descendants
    !2_2 `a` may not do this to `root`: an agent acts for itself, and signals only its descendants
    !2_3 `a` may not do this to `b`: an agent acts for itself, and signals only its descendants
     2_4 dug
    ");
}

#[tokio::test(start_paused = true)]
async fn a_followup_of_what_cannot_have_one_comes_back_as_advice() {
    let played = family(
        r#"
  - when: { agent: root, turn: 2 }
    call:
      - { tool: followup_task, args: { agent: root, task: More. } }
      - { tool: followup_task, args: { agent: g, task: More. } }
      - { tool: followup_task, args: { agent: ghost, task: More. } }
      - { tool: followup_task, args: { agent: b, task: More. } }
      - { tool: cancel_agent, args: { agent: c } }
      - { tool: followup_task, args: { agent: c, task: More. } }
      - { tool: wait_agent, args: { agents: [a, b] } }
  - when: { agent: root, turn: 3 }
    call:
      - { tool: followup_task, args: { agent: c, task: More. } }
      - { tool: followup_task, args: { agent: b, task: "" } }
  - when: { agent: worker, goal_contains: Lead, turn: 2 }
    call:
      - { tool: followup_task, args: { agent: a, task: More. } }
      - { tool: followup_task, args: { agent: root, task: More. } }
      - { tool: followup_task, args: { agent: b, task: More. } }
"#,
    )
    .await;
    assert_snapshot!(played.sum(), @"completed, 10 model calls, 5 agents");
    assert_snapshot!(played.results("root"), @"
     1_1 spawned a
     1_2 spawned b
     1_3 spawned c
     1_4 paused
    !2_1 `root` is not a child of `root`: name one of your own children
    !2_2 `g` is not a child of `root`: name one of your own children
    !2_3 unknown agent `ghost`: the tree's events name every agent
    !2_4 `b` is still at work: send it a message, or wait for it
     2_5 done
    !2_6 `c` is still at work: send it a message, or wait for it
     2_7 [a completed, used $0.038, 12184 tokens, 3 steps, 1 tool call] | done |  | [b completed, used $0.002, 2843 tokens, 1 step] | waited
    !3_1 `c` is cancelled, and its context is gone: spawn another agent with everything it needs to know
    !3_2 the goal is empty
    ");
    assert_snapshot!(played.results("a"), @"
     1_1 spawned g
     1_2 paused
    !2_1 `a` is not a child of `a`: name one of your own children
    !2_2 `root` is not a child of `a`: name one of your own children
    !2_3 `b` is not a child of `a`: name one of your own children
    ");
}

/// Detached children without a waiter end with their parent, at every level.
#[tokio::test(start_paused = true)]
async fn children_left_behind_are_cancelled_with_their_parent() {
    let played = family("").await;
    assert_snapshot!(played.sum(), @"completed, 7 model calls, 5 agents");
    let ends = ["root", "a", "b", "c", "g"].map(|agent| played.word(agent));
    assert_eq!(ends, ["completed", "cancelled", "cancelled", "cancelled", "cancelled"]);
    let born = played.spawned().count();
    let ended = played
        .recorded
        .iter()
        .filter(|recorded| matches!(recorded.event, spinney_kernel::record::Event::AgentEnded { .. }))
        .count();
    assert_eq!((born, ended), (5, 5));
}

/// An agent that writes to itself reads it in its next turn; one that never stops ends at its turn limit.
#[tokio::test(start_paused = true)]
async fn messages_to_itself_end_at_the_limit_of_turns() {
    let script = r#"
rules:
  - { call: [{ tool: send_message, args: { to: root, text: "note {{ turn }}" } }] }
"#;
    let played = Played::by(script, "root $9000.00 turns=6").await;
    assert_snapshot!(played.sum(), @"failed (max_steps), 6 model calls, 1 agents");
    let last = played.attempts.last().unwrap();
    let notes: Vec<String> = last
        .packet
        .messages
        .iter()
        .map(|message| message.text().into_owned())
        .filter(|text| text.starts_with("note "))
        .collect();
    assert_eq!(notes, ["note 1", "note 2", "note 3", "note 4", "note 5"]);
}

/// A message to an agent that has ended, or never existed, changes nothing for others.
#[tokio::test(start_paused = true)]
async fn messages_to_unknown_agents_return_advice() {
    let played = family(
        r#"
  - when: { agent: root, turn: 2 }
    call:
      - { tool: cancel_agent, args: { agent: c } }
      - { tool: send_message, args: { to: c, text: Still there? } }
      - { tool: send_message, args: { to: ghost, text: Boo. } }
      - { tool: send_message, args: { to: b, text: "" } }
"#,
    )
    .await;
    assert_snapshot!(played.sum(), @"completed, 10 model calls, 5 agents");
    assert_snapshot!(played.results("root"), @"
     1_1 spawned a
     1_2 spawned b
     1_3 spawned c
     1_4 paused
     2_1 done
    !2_2 agent `c` is ending and takes no more work: spawn another one
     2_3 no agent has the id `ghost` yet: it will read the message when it is spawned
    !2_4 the message is empty
    ");
}
