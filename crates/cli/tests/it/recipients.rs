//! Whom a message can be sent to: agents that exist, and those that the tree can still get.

use crate::exec::{exec, used};
use crate::scripts::{ASKS, BUSY};
use crate::test_folder::{Ended, TestFolder, steady};
use crate::upstream::Upstream;

fn refused(ended: &Ended) -> String {
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{}", ended.err);
    steady(&ended.err)
}

fn noted(ended: &Ended) -> String {
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{}", ended.err);
    steady(&ended.err)
}

/// Issue 34: `spinney send last lead`, with the text forgotten, stored the message `lead` for an agent `last`.
#[test]
fn a_forgotten_word_is_named_and_nothing_is_sent() {
    let stage = TestFolder::new();
    assert_eq!(stage.spinney(&["run", &stage.tree("ask_human, spawn_agent", ASKS)]).code, Some(5));
    let id = stage.spinney(&["ps", "--json"]).result()["tree"].as_str().unwrap().to_owned();
    let told = [
        refused(&stage.spinney(&["send", "last", "lead"])),
        refused(&stage.spinney(&["send", "LAST", "Hurry up."])),
        refused(&stage.spinney(&["send", &id, "lead"])),
        refused(&stage.spinney(&["send", &id[..12], "Hurry up."])),
    ];
    insta::assert_snapshot!(told.concat(), @"
    spinney: the text for `lead` is missing; usage: spinney send [OPTIONS] [ID] <AGENT> <TEXT>
    spinney: `LAST` is a tree: name an agent and a text after it; usage: spinney send [OPTIONS] [ID] <AGENT> <TEXT>
    spinney: the text for `lead` is missing; usage: spinney send [OPTIONS] [ID] <AGENT> <TEXT>
    spinney: `[id]` is a tree: name an agent and a text after it; usage: spinney send [OPTIONS] [ID] <AGENT> <TEXT>
    ");
    assert!(!stage.said(&["events"]).contains("gets a message"));
    insta::assert_snapshot!(noted(&stage.spinney(&["send", "lead", "last"])), @"sent to `lead`; continue with: spinney resume [id]");
}

/// Issue 34: a message to an agent that does not exist and cannot come is refused with the nearest name, whether a process
/// runs the tree or not.
#[test]
fn a_name_that_no_agent_can_get_is_refused() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("ask_human, hang", BUSY)]);
    running.until("asks a person");
    let told = || {
        let sent = |to| refused(&stage.spinney(&["send", to, "Hurry up."]));
        [sent("leed"), sent("nobody"), sent("lead/helper"), sent("lead-2"), sent("person")].concat()
    };
    let while_running = told();
    insta::assert_snapshot!(while_running, @"
    spinney: no agent `leed` in this tree: did you mean `lead`?
    spinney: no agent `nobody` in this tree: known agents: lead
    spinney: no agent `helper` in this tree: known agents: lead
    spinney: no agent `lead-2` in this tree: did you mean `lead`?
    spinney: no agent `person` in this tree: known agents: lead
    ");
    running.kill();
    assert_eq!(told(), while_running);
    assert!(!stage.said(&["events"]).contains("gets a message"));
}

/// Where models choose the ids of agents, every name can still come.
#[test]
fn a_name_that_a_model_may_choose_is_kept_until_its_agent_is_spawned() {
    let stage = TestFolder::new();
    for tool in ["spawn_agent", "run_pipeline"] {
        assert_eq!(stage.spinney(&["run", &stage.tree(&format!("ask_human, {tool}"), ASKS)]).code, Some(5));
        assert_eq!(
            noted(&stage.spinney(&["send", "helper", "Hurry up."])),
            "sent to `helper`: no agent has that name yet (known agents: lead); it gets the message when it is spawned\n"
        );
    }
}

/// The steps of a pipeline are known before their agents are: one in a map, a loop or a retry has numbers behind its name.
#[test]
fn a_step_that_is_still_to_come_gets_its_message() {
    let stage = TestFolder::new();
    stage.file("s.yaml", "rules: [ { say: 'I read {{ last }}' } ]");
    let steps = "
    - { id: colour, ask: Which colour? }
    - { id: plain, agent_id: worker, task_description: Once. }
    - { id: again, agent_id: worker, task_description: Twice., retry: 1 }
    - { map: [ { id: read, agent_id: worker, task_description: Read it. } ], over: '[1, 2]', as: it, id: all }
    - { loop: [ { id: draft, agent_id: worker, task_description: Write. } ], until: 'round == 2', max_rounds: 2, id: rounds }
";
    let tree = stage.file(
        "tree.yaml",
        &format!("name: t\ngoal: Go.\nmodels:\n  m: {{ provider: scripted, script: s.yaml }}\nagents:\n  worker: {{ model: m }}\npipeline:\n  steps:{steps}"),
    );
    let run = stage.spinney(&["run", &tree]);
    assert_eq!(run.code, Some(5), "{}{}", run.out, run.err);
    for to in ["plain", "again-t2", "read-0", "read[1]", "draft", "draft#2"] {
        let said = noted(&stage.spinney(&["send", to, &format!("For {to}.")]));
        assert!(said.contains("it gets the message when it is spawned"), "{said}");
    }
    let told = ["colour", "plain-2", "read-x", "red", "rounds", "draft#"]
        .map(|to| refused(&stage.spinney(&["send", to, "Hi."])));
    insta::assert_snapshot!(told.concat(), @"
    spinney: no agent `colour` in this tree: known agents: pipeline, plain, again, read, draft
    spinney: no agent `plain-2` in this tree: did you mean `plain`?
    spinney: no agent `read-x` in this tree: did you mean `read`?
    spinney: no agent `red` in this tree: did you mean `read`?
    spinney: no agent `rounds` in this tree: known agents: pipeline, plain, again, read, draft
    spinney: `draft#` is not a valid agent id: 1 to 64 characters of a-z, 0-9, `_` and `-`, the first a letter or digit
    ");
    noted(&stage.spinney(&["answer", "1", "blue"]));
    let resumed = stage.spinney(&["resume"]);
    assert_eq!(resumed.code, Some(0), "{}{}", resumed.out, resumed.err);
    for (agent, to) in [("plain", "plain"), ("read-1", "read[1]"), ("draft-r2", "draft#2")] {
        assert!(stage.said(&["show", agent]).contains(&format!("For {to}.")), "{agent}");
        assert_eq!(stage.said(&["show", to]), stage.said(&["show", agent]));
    }
}

/// The agents of `exec` are named by requests, and no program reads what is sent to them.
#[test]
fn a_program_of_exec_is_sent_nothing() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(900)]));
    let stopped = exec(&stage, &upstream, &["--budget-usd", "1"], "call 900 one\nkill -INT $$").end();
    assert_eq!(stopped.code, Some(130), "{}", stopped.err);
    for to in ["main", "agent-01234567", "nobody"] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(refused(&stage.spinney(&["send", to, "Hi."])), @"spinney: a program that `exec` started does not read messages: use its own interface");
        }
    }
}

/// Issue 34: only the last part of a path was read, so a wrong one reached another agent.
#[test]
fn a_path_that_is_not_the_agents_is_refused_with_the_nearest() {
    let stage = TestFolder::new();
    stage.file(
        "tree.script.yaml",
        "
rules:
  - { when: { agent: lead, turn: 1 }, call: [ { tool: spawn_agent, args: { agent: helper, id: kid, goal: Help. } } ] }
  - { when: { agent: helper, turn: 1 }, call: [ { tool: ask_human, args: { question: Which? } } ] }
  - say: done
",
    );
    let tree = stage.file(
        "tree.yaml",
        "name: test
goal: Try it.
models: { fast: { provider: scripted, script: tree.script.yaml } }
entry: lead
agents:
  lead: { model: fast, tools: [spawn_agent, wait_agent, ask_human] }
  helper: { model: fast, tools: [ask_human] }
",
    );
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(5));
    let events = stage.said(&["events"]);
    let told = [
        &["cancel", "last", "nonsense/kid"][..],
        &["pause", "last", "kid/kid"],
        &["budget", "last", "lead/kid/kid", "--add-usd", "1"],
        &["send", "last", "kid/lead", "hi"],
        &["send", "last", "nonsense/helper", "hi"],
        &["refresh", "last", "led/kid"],
        &["broadcast", "last", "--from", "lead", "--to", "x/kid"],
        &["show", "nonsense/lead"],
        &["window", "nope/kid"],
        &["events", "--agent", "foo/kid"],
        &["checkpoint", "make", "foo/kid"],
    ]
    .map(|args| refused(&stage.spinney(args)));
    insta::assert_snapshot!(told.concat(), @"
    spinney: no agent `nonsense/kid` in this tree: did you mean `lead/kid`?
    spinney: no agent `kid/kid` in this tree: did you mean `lead/kid`?
    spinney: no agent `lead/kid/kid` in this tree: did you mean `lead/kid`?
    spinney: no agent `kid/lead` in this tree: did you mean `lead`?
    spinney: no agent `nonsense/helper` in this tree: known agents: lead, lead/kid
    spinney: no agent `led/kid` in this tree: did you mean `lead/kid`?
    spinney: no agent `x/kid` in this tree: did you mean `lead/kid`?
    spinney: no agent `nonsense/lead` in this tree: did you mean `lead`?
    spinney: no agent `nope/kid` in this tree: did you mean `lead/kid`?
    spinney: no agent `foo/kid` in this tree: did you mean `lead/kid`?
    spinney: no agent `foo/kid` in this tree: did you mean `lead/kid`?
    ");
    assert_eq!(stage.said(&["events"]), events);
    assert_eq!(stage.spinney(&["show", "lead/kid"]).out, stage.spinney(&["show", "kid"]).out);
    assert_eq!(noted(&stage.spinney(&["cancel", "last", "lead/kid"])), "cancelled `kid`\n");
}
