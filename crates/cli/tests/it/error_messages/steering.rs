//! Looking at trees and steering them: names that nothing has, and requests that a tree refuses.

use std::fs;

use super::{done, told, told_by, typed};
use crate::scripts::{ASKS, HANGS, SAYS};
use crate::test_folder::TestFolder;

/// Two agents write a file of the same name, and one shares a value.
const WRITES: &str = "
rules:
  - when: { agent: lead, turn: 1 }
    call:
      - { tool: write_file, args: { path: outputs/note.md, text: mine } }
      - { tool: write_context, args: { key: colour, value: blue } }
      - { tool: spawn_agent, args: { agent: helper, id: helper, goal: Write. } }
  - when: { agent: helper, turn: 1 }
    call: [ { tool: write_file, args: { path: outputs/note.md, text: its own } } ]
  - say: done
";

/// A home with two trees that have ended; the last one wrote files and a shared value.
fn ended() -> TestFolder {
    let stage = TestFolder::new();
    done(&stage, &format!("spinney run {}", stage.tree("", SAYS)));
    let tree = stage.tree("spawn_agent, write_file, write_context", WRITES);
    let text = fs::read_to_string(&tree).unwrap();
    fs::write(&tree, text + "  helper: { model: fast, tools: [write_file] }\nentry: lead\n").unwrap();
    done(&stage, &format!("spinney run {tree}"));
    stage
}

/// A home with a tree that waits for an answer, with two checkpoints.
fn waiting() -> TestFolder {
    let stage = TestFolder::new();
    let run = typed(&stage, &format!("spinney run {}", stage.tree("ask_human", ASKS)));
    assert_eq!(run.code, Some(5), "{}", run.err);
    done(&stage, "spinney checkpoint make lead --name one");
    done(&stage, "spinney checkpoint make lead --name only");
    stage
}

/// Every command that needs a tree says the same where there is no home, and where there is no tree.
#[test]
fn without_a_home_or_a_tree_every_command_says_how_to_get_one() {
    let lines = [
        "spinney tree",
        "spinney costs",
        "spinney files",
        "spinney files cat note.md",
        "spinney events",
        "spinney show lead",
        "spinney window lead",
        "spinney questions",
        "spinney shared",
        "spinney shared last colour --set 1",
        "spinney resume",
        "spinney attach",
        "spinney replay",
        "spinney cancel",
        "spinney pause",
        "spinney unpause",
        "spinney answer 1 yes",
        "spinney send lead hi",
        "spinney refresh helper",
        "spinney broadcast --from lead --to helper",
        "spinney budget --add-usd 1",
        "spinney checkpoint make lead",
        "spinney rm",
    ];
    let stage = TestFolder::new();
    let only_homes = ["spinney ps", "spinney top", "spinney checkpoint ls", "spinney checkpoint clean"];
    let told_once = |lines: &[&str]| {
        let mut told: Vec<String> =
            lines.iter().map(|line| told_by(&stage, line).replace(line, "spinney …")).collect();
        told.dedup();
        told.join("\n")
    };
    let no_home = told_once(&[&lines[..], &only_homes].concat());
    insta::assert_snapshot!("no_home", no_home);
    assert!(!stage.home().exists(), "a look made a home");
    done(&stage, &format!("spinney run {}", stage.tree("", SAYS)));
    done(&stage, "spinney rm");
    insta::assert_snapshot!("no_tree", told_once(&lines) + "\n" + &told(&stage, &["spinney events 0a"]));
}

#[test]
fn names_that_nothing_has_are_answered_with_those_that_exist() {
    let stage = ended();
    let lines = [
        "spinney events ffff",
        "spinney events first",
        "spinney events 01a",
        "spinney resume lead",
        "spinney events --agent nobody",
        "spinney events --agent leed",
        "spinney events --topic modell",
        "spinney show nobody",
        "spinney show lead/helpr",
        "spinney window nobody",
        "spinney files cat nothing.md",
        "spinney files cat note.md",
        "spinney shared last color",
        "spinney checkpoint make nobody",
        "spinney checkpoint branch nothing --budget-usd 1",
        "spinney checkpoint rollback nothing",
        "spinney replay --expect 12",
        "spinney replay --expect 0000000000000000000000000000000000000000000000000000000000000000",
    ];
    let told = told(&stage, &lines);
    insta::assert_snapshot!(told);
}

#[test]
fn a_tree_that_has_ended_takes_no_requests() {
    let stage = ended();
    let lines = [
        "spinney cancel",
        "spinney pause",
        "spinney pause lead",
        "spinney unpause",
        "spinney answer 1 blue",
        "spinney answer first blue",
        "spinney send helper 'Hurry up.'",
        "spinney refresh helper",
        "spinney broadcast --from lead --to helper",
        "spinney budget --add-usd 1",
        "spinney shared last colour --set red",
        "spinney checkpoint make lead",
        "spinney exec --resume last -- true",
    ];
    insta::assert_snapshot!(told(&stage, &lines));
}

#[test]
fn a_waiting_tree_refuses_with_what_it_would_take() {
    let stage = waiting();
    let lines = [
        "spinney answer 7 blue",
        "spinney answer last first blue",
        "spinney unpause",
        "spinney pause nobody",
        "spinney pause last nobody",
        "spinney cancel last nobody",
        "spinney budget --add-tokens 5",
        "spinney budget --add-usd 0",
        "spinney budget --add-time 5m",
        "spinney budget last nobody --add-usd 1",
        "spinney send 'No One' hi",
        "spinney send lead ''",
        "spinney refresh lead",
        "spinney refresh nobody",
        "spinney broadcast --from lead --to lead",
        "spinney broadcast --from nobody --to lead",
        "spinney broadcast --from lead --to nobody",
        "spinney shared last 'a b' --set 1",
        "spinney shared last colour --set 1 --expect-version 7",
        "spinney shared last pipeline.progress --set 1",
        "spinney shared last colour",
        "spinney files cat note.md",
        "spinney checkpoint make lead --name one",
        "spinney checkpoint make nobody",
        "spinney checkpoint branch o --budget-usd 1",
        "spinney checkpoint branch one --budget-tokens 99999999999999999999",
        "spinney checkpoint rollback one --into nobody",
        "spinney rm",
        "spinney exec --resume last -- true",
    ];
    let told = told(&stage, &lines);
    insta::assert_snapshot!(told);
}

#[test]
fn a_paused_tree_and_one_with_branches_say_what_is_in_the_way() {
    let stage = waiting();
    let origin = stage.spinney(&["ps", "--json"]).result()["tree"].as_str().unwrap().to_owned();
    done(&stage, "spinney checkpoint branch one --budget-usd 1");
    done(&stage, &format!("spinney pause {origin}"));
    let again = told_by(&stage, &format!("spinney pause {origin}"));
    done(&stage, &format!("spinney cancel {origin}"));
    let over = told(&stage, &["spinney checkpoint rollback one", &format!("spinney rm {origin}")]);
    let told = format!("{again}\n{over}");
    insta::assert_snapshot!(told.replace(&origin, "[tree]"));
}

#[test]
fn a_home_that_another_process_has_open_is_not_opened_twice() {
    let stage = TestFolder::new();
    let tree = stage.tree("", HANGS);
    let mut running = stage.play(&["run", &tree]);
    running.until("starts");
    let lines = [
        "spinney resume",
        "spinney rm",
        "spinney rm --force",
        "spinney checkpoint rollback nothing",
        "spinney window nobody",
        "spinney answer 1 blue",
        "spinney --accept-loss ps",
    ];
    let told = told(&stage, &lines);
    running.kill();
    insta::assert_snapshot!(told);
}

/// The root of a pipeline only stands for its steps.
#[test]
fn a_pipeline_is_no_agent_to_talk_to() {
    let stage = TestFolder::new();
    let tree = stage.tree("", SAYS);
    let text = fs::read_to_string(&tree).unwrap();
    fs::write(&tree, text + "pipeline: { steps: [ { id: colour, ask: Which colour? } ] }\n").unwrap();
    assert_eq!(typed(&stage, "spinney run tree.yaml").code, Some(5));
    done(&stage, "spinney checkpoint make pipeline --name whole");
    let lines = [
        "spinney send pipeline hi",
        "spinney checkpoint rollback whole",
        "spinney show pipeline",
        "spinney window pipeline",
        "spinney refresh pipeline",
        "spinney show colour",
    ];
    insta::assert_snapshot!(told(&stage, &lines));
}

#[test]
fn what_is_too_long_or_used_up_is_named_with_its_limit() {
    let stage = TestFolder::new();
    let tree = stage.tree("ask_human", ASKS);
    let text = fs::read_to_string(&tree).unwrap();
    let text = text.replace("model: fast,", "model: fast, limits: { max_steps: 1 },");
    fs::write(&tree, text.replace("cost_usd: 1", "cost_usd: 1, wrap_up: off")).unwrap();
    assert_eq!(typed(&stage, "spinney run tree.yaml").code, Some(5));
    done(&stage, "spinney checkpoint make lead --name one");
    let lines = [
        "spinney send lead $(head -c 70000 /dev/zero | tr '\\0' x)",
        "spinney answer 2 $(head -c 70000 /dev/zero | tr '\\0' x)",
        "spinney cancel --reason $(head -c 70000 /dev/zero | tr '\\0' x)",
        "spinney checkpoint rollback one",
    ];
    insta::assert_snapshot!(told(&stage, &lines));
}
