//! Step files on disk: the same as the journal, whatever was there before.

use std::fs;
use std::os::unix::fs::MetadataExt;

use spinney_kernel::primitives::Durability;
use spinney_testkit::{TestHome, definition};

use crate::{Ran, files, names};

const SCRIPT: &str = r#"
rules:
  - when: { agent: root, turn: 1 }
    call: [ { tool: spawn_agent, args: { agent: helper, id: h, goal: Help. } }, { tool: look } ]
  - when: { agent: helper, turn: 1 }
    call: [ { tool: look }, { tool: look } ]
  - say: Done.
tools: { look: { think_ms: 5, say: something } }
"#;

async fn ran() -> Ran {
    Ran::play(&TestHome::new(SCRIPT), "root $9.00 turns=20 / helper later turns=20").await
}

/// L10: the files are what the journal says, in the same bytes however often they are computed.
#[tokio::test(start_paused = true)]
async fn l10_the_same_journal_gives_the_same_files() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let ran = ran().await;
    ran.write(one.path());
    ran.mend(other.path()).unwrap();
    let expected = ran.files(one.path());
    assert_eq!(expected.len(), 6);
    assert_eq!(files(one.path()), expected);
    assert_eq!(files(other.path()), ran.files(other.path()));
}

/// A process that takes a tree up writes what is missing or wrong, leaves what is right, and removes the rest.
#[tokio::test(start_paused = true)]
async fn a_history_is_mended_from_the_journal() {
    let home = tempfile::tempdir().unwrap();
    let ran = ran().await;
    ran.write(home.path());
    let history = ran.agent(home.path(), "h").join("history");
    let inode = |file: &str| fs::metadata(history.join(file)).unwrap().ino();
    let right = inode("step_003.json");
    fs::remove_file(history.join("step_001.json")).unwrap();
    fs::write(history.join("step_002.json"), "{ \"id\": \"step").unwrap();
    for file in
        [".unfinished-step_002.json", "step_004.json", "step_0003.json", "notes.txt", ".unfinished-output"]
    {
        fs::write(history.join(file), "left over").unwrap();
    }
    fs::create_dir_all(history.join("step_1.json/deep/er")).unwrap();
    fs::remove_dir_all(ran.agent(home.path(), "root")).unwrap();
    ran.mend(home.path()).unwrap();
    assert_eq!(files(home.path()), ran.files(home.path()));
    assert_eq!(names(&history), ["step_001.json", "step_002.json", "step_003.json"]);
    assert_eq!(inode("step_003.json"), right, "what is right is not written again");
}

/// Taken up in the middle: living agents' histories are swept too, and the rest follows as it happens.
#[tokio::test(start_paused = true)]
async fn a_tree_that_is_resumed_in_the_middle_ends_with_the_same_files() {
    let ran = ran().await;
    for cut in 0..ran.recorded.len() {
        let home = tempfile::tempdir().unwrap();
        let begun = ran.begun(cut);
        begun.write(home.path());
        for (agent, _) in begun.all_steps() {
            fs::write(ran.agent(home.path(), &agent).join("history/.unfinished-step_001.json"), "{").unwrap();
        }
        ran.write_after(home.path(), begun.last()).unwrap();
        assert_eq!(files(home.path()), ran.files(home.path()), "cut after {cut}");
    }
}

/// A folder that was there before its agent was is nothing that the agent has to inherit.
#[tokio::test(start_paused = true)]
async fn a_new_agent_has_an_empty_history() {
    let home = tempfile::tempdir().unwrap();
    let ran = ran().await;
    let history = ran.agent(home.path(), "h").join("history");
    fs::create_dir_all(&history).unwrap();
    fs::write(history.join("step_009.json"), "planted").unwrap();
    ran.write(home.path());
    assert_eq!(files(home.path()), ran.files(home.path()));
}

/// What the tree's events survive, its files survive; how they are written changes nothing in them.
#[tokio::test(start_paused = true)]
async fn a_tree_that_survives_the_loss_of_power_has_the_same_files() {
    let stage = TestHome::new(SCRIPT);
    let home = stage.home();
    let mut definition = definition("root $9.00 turns=20 / helper later turns=20");
    definition.durability = Durability::Full;
    let tree = home.start(definition).await.unwrap();
    tree.ended().await;
    let ran = Ran::from_tree(&stage, &tree).await;
    let home = tempfile::tempdir().unwrap();
    ran.write(home.path());
    assert_eq!(files(home.path()), ran.files(home.path()));
}

#[tokio::test(start_paused = true)]
async fn more_than_999_steps_have_more_digits() {
    let asks = ["{ tool: look }"; 100].join(", ");
    let turn = |turn| format!("  - when: {{ turn: {turn} }}\n    call: [ {asks} ]\n");
    let turns: String = (1..=10).map(turn).collect();
    let script = format!("rules:\n{turns}  - say: Done.\ntools: {{ look: {{ say: something }} }}\n");
    let ran = Ran::play(&TestHome::new(&script), "root $9.00 turns=20").await;
    let home = tempfile::tempdir().unwrap();
    ran.write(home.path());
    let history = names(&ran.agent(home.path(), "root").join("history"));
    assert_eq!(history.len(), 1_001);
    assert!(
        ["step_001.json", "step_999.json", "step_1000.json", "step_1001.json"]
            .iter()
            .all(|file| history.iter().any(|name| name == file))
    );
    assert_eq!(files(home.path()), ran.files(home.path()));
}

/// One folder that cannot be written does not keep other histories from being written.
#[tokio::test(start_paused = true)]
async fn a_fault_at_one_agent_is_reported_and_the_others_are_written() {
    let home = tempfile::tempdir().unwrap();
    let ran = ran().await;
    let folder = ran.agent(home.path(), "h");
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    fs::write(&folder, "in the way").unwrap();
    let fault = ran.mend(home.path()).unwrap_err();
    assert_eq!(fault.place, format!("{}/h", ran.tree));
    assert_eq!(names(&ran.agent(home.path(), "root").join("history")).len(), 3);
    assert_eq!(fs::read_to_string(&folder).unwrap(), "in the way");
    fs::remove_file(&folder).unwrap();
    ran.mend(home.path()).unwrap();
    assert_eq!(files(home.path()), ran.files(home.path()));
}
