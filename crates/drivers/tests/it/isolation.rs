//! What agents share: nothing but a goal and a result.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

use spinney_kernel::context::Message;
use spinney_kernel::primitives::AgentId;
use spinney_kernel::record::Event;
use spinney_testkit::TestHome;

use crate::{Ran, files, names};

const ROOT: &str = "root $9.00 turns=20 / helper later turns=20";

/// L1: a child of a parent with three steps and things in its memory has no steps and one message.
#[tokio::test(start_paused = true)]
async fn l1_a_child_begins_without_steps_and_with_its_task_only() {
    let stage = TestHome::new(
        r#"
rules:
  - when: { agent: root, turn: 1 }
    say: First I look.
    call: [ { tool: look, args: { at: a } }, { tool: look, args: { at: b } } ]
  - when: { agent: root, turn: 2 }
    say: Once more.
    call: [ { tool: look, args: { at: c } } ]
  - when: { agent: root, turn: 3 }
    call: [ { tool: spawn_agent, args: { agent: helper, id: h, goal: Count the files., tools: [] } } ]
  - when: { agent: helper }
    say: There are seven.
  - say: Done.
tools: { look: { say: "something at {{ args.at }}" } }
"#,
    );
    let ran = Ran::play(&stage, ROOT).await;
    let born = ran.recorded.iter().position(
        |recorded| matches!(&recorded.event, Event::AgentSpawned(spawned) if spawned.parent.is_some()),
    );
    let steps = ran.steps(born.unwrap() + 1);
    let of = |agent: &str| steps[agent].iter().map(|step| step.tool_name.as_str()).collect::<Vec<_>>();
    assert_eq!(of("root"), ["look", "look", "look", "agent:spawn"]);
    assert_eq!(of("h"), [""; 0]);
    // Its parent had more to tell by then.
    let attempts = stage.model().attempts();
    let messages = |agent: &str| {
        let first = attempts.iter().rfind(|attempt| attempt.origin.agent().as_str() == agent).unwrap();
        first.packet.messages.clone()
    };
    assert!(messages("root").len() > 5);
    let memory = messages("h");
    let [only] = memory.as_slice() else { panic!("{memory:?}") };
    let Message::System(system) = only.as_ref() else { panic!("{only:?}") };
    assert_eq!(
        system.to_string(),
        "When you are done, answer with a clear summary of the result.\n\nYour task: Count the files."
    );
    // And its folder is there, with nothing in it.
    let home = tempfile::tempdir().unwrap();
    ran.begun(born.unwrap() + 1).write(home.path());
    assert_eq!(names(&ran.agent(home.path(), "h")), ["history", "outputs"]);
    assert!(files(&ran.agent(home.path(), "h")).is_empty());
    assert_eq!(names(&ran.agent(home.path(), "root").join("history")).len(), 4);
}

/// L5: of a child that took seven steps its parent gets the answer, and no step.
#[tokio::test(start_paused = true)]
async fn l5_a_parent_gets_the_result_and_none_of_the_steps() {
    let stage = TestHome::new(
        r#"
rules:
  - when: { agent: root, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: helper, id: h, goal: Count. } } ]
  - when: { agent: root }
    say: Seven, then.
  - when: { agent: helper, turn: 1 }
    say: A secret thought.
    call: [ { tool: look }, { tool: look }, { tool: look } ]
  - when: { agent: helper, turn: 2 }
    call: [ { tool: look }, { tool: look }, { tool: look } ]
  - when: { agent: helper }
    say: There are seven.
tools: { look: { say: a secret place } }
"#,
    );
    let ran = Ran::play(&stage, ROOT).await;
    let steps = ran.all_steps();
    assert_eq!(steps["h"].len(), 7);
    let own: Vec<&str> = steps["root"].iter().map(|step| step.tool_name.as_str()).collect();
    assert_eq!(own, ["agent:spawn", "agent:answer"]);
    let last = stage.model().attempts().pop().unwrap();
    let results: Vec<&Message> = last.packet.messages.iter().map(AsRef::as_ref).skip(2).collect();
    let [Message::Result { tool, text, is_error, .. }] = results.as_slice() else { panic!("{results:?}") };
    assert_eq!((tool.as_ref(), text.as_str(), *is_error), ("spawn_agent", "There are seven.", false));
    assert!(!format!("{last:?}").contains("secret"));
}

const SIBLINGS: &str = r#"
rules:
  - when: { agent: root, turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: helper, id: a, goal: Do one half. } }
      - { tool: spawn_agent, args: { agent: helper, id: b, goal: Do the other half. } }
  - when: { agent: helper, turn: 1 }
    call: [ { tool: look } ]
  - say: Done.
tools: { look: { say: something } }
"#;

/// L6: children are also siblings on disk, and no file is in two workspaces.
#[tokio::test(start_paused = true)]
async fn l6_siblings_have_folders_side_by_side_and_share_no_file() {
    let ran = Ran::play(&TestHome::new(SIBLINGS), ROOT).await;
    let home = tempfile::tempdir().unwrap();
    ran.write(home.path());
    let tree = home.path().join("workspace").join(ran.tree.to_string());
    assert_eq!(names(&tree), ["a", "b", "root"]);
    let inodes = |agent: &str| -> BTreeSet<u64> {
        assert_eq!(names(&tree.join(agent)), ["history", "outputs"]);
        let files = files(&tree.join(agent)).into_keys();
        files.map(|file| std::fs::symlink_metadata(file).unwrap().ino()).collect()
    };
    assert_eq!([inodes("a").len(), inodes("b").len()], [2, 2]);
    assert!(inodes("a").is_disjoint(&inodes("b")));
}

/// L7: an id that is a path, empty or taken spawns no agent and makes no folder.
#[tokio::test(start_paused = true)]
async fn l7_an_id_that_is_a_path_or_taken_makes_nothing() {
    let bad = ["../x", "a/b", "", "/etc", "..", ".", "a\\\\b", "a\\u0000b", "A", "%2e%2e", " ", "root"];
    let rule = |(turn, id): (usize, &&str)| {
        let call = format!("{{ tool: spawn_agent, args: {{ agent: helper, goal: x, id: \"{id}\" }} }}");
        format!("  - when: {{ turn: {} }}\n    call: [ {call} ]\n", turn + 1)
    };
    let rules: String = bad.iter().enumerate().map(rule).collect();
    let script = format!("rules:\n{rules}  - say: Done.\n");
    let stage = TestHome::new(&script);
    let ran = Ran::play(&stage, ROOT).await;
    let home = tempfile::tempdir().unwrap();
    ran.write(home.path());
    assert_eq!(names(home.path()), ["workspace"]);
    assert_eq!(names(&home.path().join("workspace")), [ran.tree.to_string()]);
    assert_eq!(names(&home.path().join("workspace").join(ran.tree.to_string())), ["root"]);
    let steps = &ran.all_steps()["root"];
    let (last, refused) = steps.split_last().unwrap();
    assert!(last.success && refused.len() == bad.len());
    for (step, id) in refused.iter().zip(bad) {
        let error = step.error.as_deref().unwrap();
        let expected = if id == "root" { "`root`" } else { "is not a valid agent id" };
        assert!(!step.success && error.contains(expected), "{id}: {error}");
    }
    // The lowest layer takes ids and no texts, and these texts are not ids.
    for id in bad.into_iter().filter(|id| *id != "root") {
        assert!(id.parse::<AgentId>().is_err(), "{id}");
    }
    assert_eq!(stage.model().attempts().len(), bad.len() + 1);
}

/// L9: a name that was used in a run that is over begins anew in the next; within one run it is refused.
#[tokio::test(start_paused = true)]
async fn l9_a_name_that_is_spawned_again_starts_empty() {
    let home = tempfile::tempdir().unwrap();
    let first = Ran::play(&TestHome::new(SIBLINGS), ROOT).await;
    first.write(home.path());
    std::fs::write(first.agent(home.path(), "a").join("outputs/page_001.html"), "old").unwrap();
    let second = Ran::play(&TestHome::new(SIBLINGS).with_seed(2), ROOT).await;
    assert_ne!(first.tree, second.tree);
    let born = second
        .recorded
        .iter()
        .position(|recorded| matches!(&recorded.event, Event::AgentSpawned(s) if s.agent.as_str() == "a"));
    second.begun(born.unwrap() + 1).write(home.path());
    assert_eq!(names(&second.agent(home.path(), "a")), ["history", "outputs"]);
    assert!(files(&second.agent(home.path(), "a")).is_empty());
    let again = SIBLINGS.replace("id: b,", "id: a,");
    let ran = Ran::play(&TestHome::new(&again), ROOT).await;
    let steps = &ran.all_steps()["root"];
    assert!(
        steps.iter().any(|step| step.error.as_deref().is_some_and(|error| error.contains("`a`"))),
        "{steps:?}"
    );
}
