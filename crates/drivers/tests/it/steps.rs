//! What a step looks like, for each kind of thing an agent can do.

use std::collections::BTreeSet;

use insta::assert_snapshot;
use serde_json::Value;
use spinney_drivers::workspace::Step;
use spinney_kernel::primitives::{BlobHash, Enclosure, IdError};
use spinney_testkit::spinney::Shutdown;
use spinney_testkit::spinney::function_tool::{Answered, FunctionTool, RawCall};
use spinney_testkit::{TestHome, definition};

use crate::Ran;

/// A step as its file shows it.
fn shown(step: &Step) -> String {
    String::from_utf8(step.bytes()).unwrap_or_else(|error| panic!("{error}"))
}

/// Name, success, observation and error of each step.
fn briefly(steps: &[Step]) -> String {
    let line = |step: &Step| {
        let args = Value::Object(step.minimal_args.clone());
        let ended = if step.success { "ok" } else { "no" };
        let error = step.error.as_deref().unwrap_or("-");
        format!("{} {} {args} {ended}: {} | {error}", step.id, step.tool_name, step.observation)
    };
    steps.iter().map(line).collect::<Vec<_>>().join("\n")
}

const FAMILY: &str = r#"
rules:
  - when: { agent: root, turn: 1 }
    say: I look it up first.
    call: [ { tool: search, args: { query: trees } } ]
  - when: { agent: root, turn: 2 }
    call: [ { tool: spawn_agent, args: { agent: helper, id: h, goal: "Count every tree of the wood behind the house, twice, and say how many." } } ]
  - when: { agent: root }
    say: Seven.
  - when: { agent: helper }
    think_ms: 50
    say: There are seven.
tools:
  search: { think_ms: 20, say: "three results for {{ args.query }}" }
"#;

#[tokio::test(start_paused = true)]
async fn a_tool_call_that_went_well_is_a_step() {
    let ran = Ran::play(&TestHome::new(FAMILY), "root $9.00 turns=20 / helper later turns=3").await;
    assert_snapshot!(shown(&ran.all_steps()["root"][0]), @r#"
    {
      "id": "step_001",
      "tool_name": "search",
      "minimal_args": {
        "query": "trees"
      },
      "observation": "three results for trees",
      "success": true,
      "timestamp_ms": 1700000000020,
      "outcome_ref": null,
      "error": null,
      "metadata": {
        "tree": "018bcfe56800910abeeb8da1658eec67",
        "path": "root",
        "thread": "018bcfe56800910abeeb8da1658eec67",
        "seq": 8,
        "call": 2,
        "took_ms": 20,
        "spent": {
          "tool_calls": 1
        },
        "said": "I look it up first."
      }
    }
    "#);
}

/// L4: a spawn is exactly one new step of the parent.
#[tokio::test(start_paused = true)]
async fn l4_a_spawn_is_exactly_one_step_of_the_parent() {
    let ran = Ran::play(&TestHome::new(FAMILY), "root $9.00 turns=20 / helper later turns=3").await;
    let steps = &ran.all_steps()["root"];
    assert_snapshot!(briefly(steps), @r#"
    step_001 search {"query":"trees"} ok: three results for trees | -
    step_002 agent:spawn {"child_id":"h"} ok: Spawned h with goal: Count every tree of the wood behind the house, twi... | -
    step_003 agent:answer {"model":"m"} ok: Seven. | -
    "#);
    assert_snapshot!(shown(&steps[1]), @r#"
    {
      "id": "step_002",
      "tool_name": "agent:spawn",
      "minimal_args": {
        "child_id": "h"
      },
      "observation": "Spawned h with goal: Count every tree of the wood behind the house, twi...",
      "success": true,
      "timestamp_ms": 1700000000020,
      "outcome_ref": null,
      "error": null,
      "metadata": {
        "tree": "018bcfe56800910abeeb8da1658eec67",
        "path": "root",
        "thread": "018bcfe56800910abeeb8da1658eec67",
        "seq": 12,
        "call": 4
      }
    }
    "#);
}

/// L4: so is a spawn that is not waited for, whose tool call is answered at once.
#[tokio::test(start_paused = true)]
async fn l4_a_detached_spawn_is_exactly_one_step_too() {
    let script = r#"
rules:
  - when: { agent: root, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: helper, id: h, goal: Count., detach: true } } ]
  - when: { agent: root, turn: 2 }
    call: [ { tool: wait_agent, args: { agents: [h] } } ]
  - when: { agent: root }
    say: Done.
  - when: { agent: helper }
    think_ms: 50
    say: There are seven.
"#;
    let ran = Ran::play(&TestHome::new(script), "root $9.00 turns=20 / helper later turns=3").await;
    assert_snapshot!(briefly(&ran.all_steps()["root"]), @r#"
    step_001 agent:spawn {"child_id":"h"} ok: Spawned h with goal: Count.... | -
    step_002 wait_agent {"agents":["h"]} ok: h completed | -
    step_003 agent:answer {"model":"m"} ok: Done. | -
    "#);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_a_step() {
    let ran = Ran::play(&TestHome::new(FAMILY), "root $9.00 turns=20 / helper later turns=3").await;
    assert_snapshot!(shown(&ran.all_steps()["h"][0]), @r#"
    {
      "id": "step_001",
      "tool_name": "agent:answer",
      "minimal_args": {
        "model": "m"
      },
      "observation": "There are seven.",
      "success": true,
      "timestamp_ms": 1700000000070,
      "outcome_ref": null,
      "error": null,
      "metadata": {
        "tree": "018bcfe56800910abeeb8da1658eec67",
        "path": "root/h",
        "thread": "018bcfe56800910abeeb8da1658eec67",
        "seq": 16,
        "call": 5,
        "took_ms": 50,
        "spent": {
          "cost_nanos": 4000000,
          "tokens": 2862,
          "steps": 1
        }
      }
    }
    "#);
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_or_failed_is_a_step_without_success() {
    let script = r#"
rules:
  - when: { turn: 1 }
    say: Trying things.
    call:
      - { tool: serach, args: { query: trees } }
      - { tool: fetch, args: { url: "http://example.org" } }
      - { tool: spawn_agent, args: { agent: nobody, goal: x } }
      - { tool: hang }
  - { say: never, fail: { kind: auth, times: 9 } }
tools:
  fetch: { error: no such host }
  hang: { hang: true }
"#;
    let ran = Ran::play(&TestHome::new(script), "root $9.00 turns=20").await;
    let steps = &ran.all_steps()["root"];
    assert_snapshot!(briefly(steps), @r#"
    step_001 serach {"query":"trees"} no: unknown tool `serach`: choose one of `spawn_agent`, `wait_agent`, `send_message`, `followup_task`, `list_agents`, `cancel_agent`, `ask_human`, `read_context`, `write_context`, `list_context`, `run_pipeline`, `wait_message`, `delegate_to_agent`, `hand_back`, `fetch`, `hang` | unknown tool `serach`: choose one of `spawn_agent`, `wait_agent`, `send_message`, `followup_task`, `list_agents`, `cancel_agent`, `ask_human`, `read_context`, `write_context`, `list_context`, `run_pipeline`, `wait_message`, `delegate_to_agent`, `hand_back`, `fetch`, `hang`
    step_002 spawn_agent {"agent":"nobody","goal":"x"} no: unknown role `nobody`: choose one of `root` | unknown role `nobody`: choose one of `root`
    step_003 fetch {"url":"http://example.org"} no: no such host | no such host
    step_004 hang {} no: timeout: no end after 1 minute | timeout: no end after 1 minute
    step_005 agent:answer {"model":"cheap"} no: auth: rule 2 of script.yaml: attempt 2 fails as scripted | auth: rule 2 of script.yaml: attempt 2 fails as scripted
    "#);
    assert_snapshot!(shown(&steps[0]), @r#"
    {
      "id": "step_001",
      "tool_name": "serach",
      "minimal_args": {
        "query": "trees"
      },
      "observation": "unknown tool `serach`: choose one of `spawn_agent`, `wait_agent`, `send_message`, `followup_task`, `list_agents`, `cancel_agent`, `ask_human`, `read_context`, `write_context`, `list_context`, `run_pipeline`, `wait_message`, `delegate_to_agent`, `hand_back`, `fetch`, `hang`",
      "success": false,
      "timestamp_ms": 1700000000000,
      "outcome_ref": null,
      "error": "unknown tool `serach`: choose one of `spawn_agent`, `wait_agent`, `send_message`, `followup_task`, `list_agents`, `cancel_agent`, `ask_human`, `read_context`, `write_context`, `list_context`, `run_pipeline`, `wait_message`, `delegate_to_agent`, `hand_back`, `fetch`, `hang`",
      "metadata": {
        "tree": "018bcfe56800910abeeb8da1658eec67",
        "path": "root",
        "thread": "018bcfe56800910abeeb8da1658eec67",
        "seq": 6,
        "said": "Trying things."
      }
    }
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_question_is_a_step_once_it_is_answered() {
    let script = r#"
rules:
  - when: { turn: 1 }
    call: [ { tool: ask_human, args: { question: "May I?", default: "yes", timeout: 5s } } ]
  - say: Done.
"#;
    let ran = Ran::play(&TestHome::new(script), "root $9.00 turns=20").await;
    assert!(ran.all_steps()["root"].is_empty());
    let script = script.replace(", default: \"yes\", timeout: 5s", "");
    let stage = TestHome::new(&script);
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 turns=20").await;
    tree.settled().await;
    let question = tree.snapshot().await.unwrap().questions[0].question;
    tree.answer(question, "Yes, you may.").await.unwrap();
    tree.ended().await;
    let ran = Ran::from_tree(&stage, &tree).await;
    assert_snapshot!(briefly(&ran.all_steps()["root"]), @r#"
    step_001 ask_human {"question":"May I?"} ok: Yes, you may. | -
    step_002 agent:answer {"model":"m"} ok: Done. | -
    "#);
}

/// An answer that is too long for a page stands in the journal, and one that is too long for the journal in a blob. A
/// tool's output that is too long for a context is a file. The step says where.
#[tokio::test(start_paused = true)]
async fn a_long_output_is_a_preview_and_a_reference() {
    let script = r#"
rules:
  - when: { agent: root, turn: 1 }
    call:
      - { tool: long, args: {} }
      - { tool: spawn_agent, args: { agent: helper, id: a, goal: Write a thousand. } }
      - { tool: spawn_agent, args: { agent: helper, id: b, goal: Write ten thousand. } }
  - when: { agent: root }
    say: Done.
  - when: { goal_contains: ten }
    say: "TEN_THOUSAND"
  - say: "ONE_THOUSAND"
tools:
  long: { say: "TEN_THOUSAND" }
"#;
    let script = &script
        .replace("TEN_THOUSAND", &"0123456789".repeat(10_000))
        .replace("ONE_THOUSAND", &"0123456789".repeat(1_000));
    let mut definition = definition("root turns=20 / helper later turns=20");
    for role in definition.roles.values_mut() {
        role.turns.iter_mut().for_each(|turns| turns.output_cap = Some(30_000));
    }
    let stage = TestHome::new(script);
    let home = stage.home();
    let tree = home.start(definition).await.unwrap();
    tree.settled().await;
    home.shutdown(Shutdown::Stop).await;
    let ran = Ran::from_tree(&stage, &tree).await;
    let steps = ran.all_steps();
    let (a, b) = (&steps["a"][0], &steps["b"][0]);
    let whole = "0123456789".repeat(10_000);
    let preview = format!("{}…", &whole[..4_096]);
    assert_eq!([&a.observation, &b.observation], [&preview, &preview]);
    let (event, hash) = (format!("event:{}", a.metadata.seq.0), BlobHash::digest(whole.as_bytes()));
    assert_eq!([&a.outcome_ref, &b.outcome_ref], [&Some(event), &Some(format!("blob:{hash}"))]);
    let long = steps["root"].iter().find(|step| step.tool_name == "long").unwrap();
    let file = format!("offload/{:.16}.txt", hash.as_str());
    assert_eq!(
        long.observation,
        format!(
            "{}\n[98464 of 100000 bytes left out; the whole is in {file}]\n{}",
            &whole[..1_024],
            &whole[whole.len() - 512..]
        )
    );
    assert_eq!(long.outcome_ref, Some(file));
    assert!(steps.values().flatten().all(|step| step.bytes().len() < 8_192 && step.success));
    // It is not an output of the agent.
    let home = tempfile::tempdir().unwrap();
    ran.write(home.path());
    assert_eq!(crate::names(&ran.agent(home.path(), "root").join("outputs")), [""; 0]);
}

/// L10: each step has the nine fields, all of them, always.
#[tokio::test(start_paused = true)]
async fn l10_each_step_has_the_nine_fields() {
    let ran = Ran::play(&TestHome::new(FAMILY), "root $9.00 turns=20 / helper later turns=3").await;
    let nine = [
        "id",
        "tool_name",
        "minimal_args",
        "observation",
        "success",
        "timestamp_ms",
        "outcome_ref",
        "error",
        "metadata",
    ];
    let home = tempfile::tempdir().unwrap();
    ran.write(home.path());
    let files = crate::files(home.path());
    assert_eq!(files.len(), 4);
    for (path, bytes) in files {
        let read: serde_json::Map<String, Value> = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(read.keys().collect::<Vec<_>>(), nine, "{}", path.display());
        let step: Step = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(step.bytes(), bytes);
        assert_eq!(path.file_stem().unwrap().to_str().unwrap(), step.id);
    }
    let ids: BTreeSet<String> = ran.all_steps()["root"].iter().map(|step| step.id.clone()).collect();
    assert_eq!(ids, ["step_001", "step_002", "step_003"].map(str::to_owned).into());
}

/// A step names the images and files that a tool returned, and holds none of their bytes.
#[tokio::test(start_paused = true)]
async fn a_step_contains_parts_by_reference() {
    let script = "rules: [ { when: { turn: 1 }, call: [ { tool: draw, args: {} } ] }, { say: done } ]";
    let tool = FunctionTool::new(async |_: RawCall| {
        let chart = Enclosure::new("image/png".parse()?, "chart.png".parse()?, b"pixels".to_vec());
        Ok::<_, IdError>(Answered::new("Here it is.").with_parts([chart]))
    });
    let ran = Ran::play(&TestHome::new(script).with_tool("draw", tool), "root $9.00 turns=20").await;
    let step = shown(&ran.all_steps()["root"][0]);
    let hash = &BlobHash::digest(b"pixels").to_string()[..16];
    let words = format!("Here it is.\\n[image chart.png, image/png, 6 bytes, blob {hash}]");
    assert!(step.contains(&words) && !step.contains("pixels"), "{step}");
}
