//! The workspaces of a run match its journal, even if processes die.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use spinney::rng::Rng;
use spinney_drivers::workspace::{Step, StepChange, Steps};
use spinney_journal::{Blocking, Journal, pages};
use spinney_kernel::context::offload;
use spinney_kernel::primitives::{Seq, TreeId};
use spinney_store::{Access, SqliteJournal};

use crate::test_folder::{TestFolder, steady};

const DOCUMENT: &str = include_str!("../../../../docs/workspace.md");

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn hello() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hello.yaml").to_owned()
}

/// The files that the journal of the only tree requires.
fn expected(home: &Path) -> (TreeId, Files) {
    let journal = SqliteJournal::open(home, Access::ReadOnly).unwrap();
    let heads = journal.heads(&[]).wait().unwrap();
    let [head] = heads.as_slice() else { panic!("{} trees", heads.len()) };
    let folder = home.join("workspace").join(head.tree.to_string());
    let (mut steps, mut files) = (Steps::new(head.tree), Files::new());
    let mut seq = 0;
    for entry in pages(&journal, head.tree, Seq(0)).blocking().flat_map(|page| page.unwrap()) {
        for event in &entry.batch.events {
            seq += 1;
            for change in steps.take(Seq(seq), entry.batch.input.now, event) {
                match change {
                    StepChange::Did { agent, step, .. } => {
                        let file = format!("{agent}/history/{}.json", step.id);
                        files.insert(folder.join(file), step.bytes());
                    }
                    StepChange::Offloaded { agent, blob } => {
                        let file = format!("{agent}/offload/{}", offload::name(&blob.hash));
                        files.insert(folder.join(file), journal.blob(&blob).wait().unwrap().unwrap());
                    }
                    StepChange::Wrote { .. }
                    | StepChange::Removed { .. }
                    | StepChange::Born { .. }
                    | StepChange::Gone { .. } => {}
                }
            }
        }
    }
    (head.tree, files)
}

/// Every file below a folder. A file that disappears before it is read was temporary.
fn found(folder: &Path) -> Files {
    let mut all = Files::new();
    let Ok(entries) = fs::read_dir(folder) else { return all };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            all.extend(found(&path));
        } else if let Ok(bytes) = fs::read(&path) {
            all.insert(path, bytes);
        }
    }
    all
}

fn workspace(stage: &TestFolder) -> PathBuf {
    stage.home().join("workspace")
}

#[test]
fn a_run_leaves_one_folder_per_agent_with_what_it_did() {
    let stage = TestFolder::new();
    assert_eq!(stage.spinney(&["run", &hello()]).code, Some(0));
    let (tree, files) = expected(stage.home());
    assert_eq!(found(&workspace(&stage)), files);
    let folder = workspace(&stage).join(tree.to_string());
    let names: Vec<&str> =
        files.keys().map(|file| file.strip_prefix(&folder).unwrap().to_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "helper/history/step_001.json",
            "helper/history/step_002.json",
            "lead/history/step_001.json",
            "lead/history/step_002.json",
            "lead/history/step_003.json",
        ]
    );
    assert!(folder.join("lead/outputs").is_dir() && folder.join("helper/outputs").is_dir());
}

/// The step file in the documentation is one that the example writes, except for what differs between runs.
#[test]
fn the_page_about_workspaces_shows_a_step_of_the_example() {
    let stage = TestFolder::new();
    stage.spinney(&["run", &hello()]);
    let file =
        expected(stage.home()).1.into_iter().find(|(file, _)| file.ends_with("lead/history/step_001.json"));
    let real: Step = serde_json::from_slice(&file.unwrap().1).unwrap();
    let (_, rest) = DOCUMENT.split_once("```json\n").unwrap();
    let written = rest.split_once("```").unwrap().0;
    let shown: Step = serde_json::from_str(written).unwrap();
    assert_eq!(written.as_bytes(), shown.bytes(), "as it stands in a file");
    let (timestamp_ms, took_ms) = (real.timestamp_ms, real.metadata.took_ms);
    let mut same_time = Step { timestamp_ms, ..shown };
    same_time.metadata.took_ms = took_ms;
    let text = |step: &Step| steady(&String::from_utf8(step.bytes()).unwrap());
    assert_eq!(text(&same_time), text(&real));
}

#[test]
fn looking_writes_nothing() {
    let stage = TestFolder::new();
    stage.spinney(&["run", &hello()]);
    fs::remove_dir_all(workspace(&stage)).unwrap();
    for snapshot in [&["events", "last"][..], &["replay", "last", "--verify"], &["ps"]] {
        assert_eq!(stage.spinney(snapshot).code, Some(0));
        assert!(!workspace(&stage).exists(), "{snapshot:?}");
    }
}

/// If step files cannot be written, the error says what to do, and the tree is not affected.
#[test]
fn a_workspace_that_cannot_be_written_does_not_stop_the_tree() {
    let stage = TestFolder::new();
    // A home that was just created.
    fs::create_dir_all(stage.home()).unwrap();
    fs::write(stage.home().join("journal.sqlite3"), "").unwrap();
    fs::write(workspace(&stage), "in the way").unwrap();
    let ended = stage.spinney(&["run", &hello(), "--json"]);
    assert_eq!((ended.code, &ended.result()["state"]), (Some(0), &"completed".into()));
    let says = ["are incomplete", "writes them again"];
    assert!(says.iter().all(|said| ended.err.contains(said)), "{}", ended.err);
    fs::remove_file(workspace(&stage)).unwrap();
    // It has ended, and its files are written anyway.
    let resumed = stage.spinney(&["resume", "last"]);
    assert_eq!((resumed.code, resumed.err.as_str()), (Some(0), ""));
    assert!(resumed.out.contains("already ended after"), "{}", resumed.out);
    assert_eq!(found(&workspace(&stage)), expected(stage.home()).1);
}

/// A request to a tree that is not running also updates its files.
#[test]
fn a_tree_that_is_cancelled_while_not_running_has_its_files() {
    let stage = TestFolder::new();
    let tree = stage.tree("look", "rules: [ { call: [ { tool: look } ] } ]\ntools: { look: { hang: true } }");
    let mut running = stage.play(&["run", &tree]);
    running.until("calls look");
    running.kill();
    assert_eq!(stage.spinney(&["cancel", "last"]).code, Some(0));
    let files = expected(stage.home()).1;
    assert_eq!(found(&workspace(&stage)), files);
    let only: Vec<Step> = files.values().map(|file| serde_json::from_slice(file).unwrap()).collect();
    let [step] = only.as_slice() else { panic!("{only:?}") };
    assert!(!step.success && step.tool_name == "look", "{step:?}");
}

/// A lead with six helpers, which do a lot in a short time.
fn busy(stage: &TestFolder) -> String {
    let say = "0123456789".repeat(300);
    let spawn =
        |n: u32| format!("{{ tool: spawn_agent, args: {{ agent: helper, id: h{n}, goal: Part {n}. }} }}");
    let spawns: Vec<String> = (1..=6).map(spawn).collect();
    let turn = |turn: u32| {
        format!(
            "  - when: {{ agent: helper, turn: {turn} }}\n    call: [ {} ]\n",
            ["{ tool: look }"; 4].join(", ")
        )
    };
    let turns: String = (1..=8).map(turn).collect();
    let script = format!(
        "rules:\n  - when: {{ agent: lead, turn: 1 }}\n    call: [ {} ]\n{turns}  - say: Done.\ntools: {{ look: {{ repeatable: true, think_ms: 1, say: \"{{{{ key }}}} {say}\" }} }}\n",
        spawns.join(", ")
    );
    stage.tree("look, spawn_agent", &script);
    let price = "price: { input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 }";
    stage.file(
        "busy.yaml",
        &format!(
            "name: busy\ngoal: Be killed.\nentry: lead\nmodels:\n  fast: {{ provider: scripted, script: tree.script.yaml, {price} }}\nagents:\n  lead: {{ model: fast, tools: [look, spawn_agent] }}\n  helper: {{ model: fast, tools: [look] }}\n"
        ),
    )
}

/// Kills a tree's processes at random moments until it has ended. Returns the number of kills.
fn killed_to_its_end(draws: &mut Rng) -> u64 {
    let stage = TestFolder::new();
    let tree = busy(&stage);
    let mut kills = 0;
    let mut args = vec!["run", tree.as_str(), "--json"];
    loop {
        let mut running = stage.play(&args);
        // A call that is lost repeatedly is given up, so every process gets some time.
        let lines = 2 + draws.next() % 90;
        let ended = (0..lines).any(|_| running.line().is_none());
        if !ended {
            (0..draws.next() % 300_000).for_each(|_| std::hint::spin_loop());
        }
        running.kill();
        kills += u64::from(!ended);
        let (_, files) = expected(stage.home());
        for (path, bytes) in found(&workspace(&stage)) {
            if !path.to_string_lossy().contains("/.unfinished-") {
                assert_eq!(files.get(&path), Some(&bytes), "{} after kill {kills}", path.display());
            }
        }
        if ended {
            assert_eq!(found(&workspace(&stage)), files, "after {kills} kills");
            // Each helper has as many long outputs as calls.
            assert_eq!(files.len(), 6 * (33 + 32) + 6 + 1);
            return kills;
        }
        args = vec!["resume", "last", "--json"];
    }
}

/// L10, P22: processes that run a tree are killed while they write step files. Every file is complete at all times, and
/// in the end the files match the journal.
#[test]
fn l10_p22_step_files_survive_kills_and_are_what_the_journal_says_after_resume() {
    let mut draws = Rng::seeded(11);
    let mut kills = 0;
    while kills < 20 {
        kills += killed_to_its_end(&mut draws);
    }
    println!("{kills} kills");
}

/// Everything in a home, with size and modification time.
fn marks(folder: &Path) -> BTreeMap<PathBuf, (u64, std::time::SystemTime)> {
    let mut all = BTreeMap::new();
    for path in fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()) {
        let found = fs::symlink_metadata(&path).unwrap();
        if found.is_dir() {
            all.extend(marks(&path));
        }
        all.insert(path, (found.len(), found.modified().unwrap()));
    }
    all
}

/// How often each thread of a process was scheduled.
fn wakes(pid: u32) -> BTreeMap<PathBuf, String> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten().map(|entry| entry.path());
    let switches = |thread: PathBuf| {
        let status = fs::read_to_string(thread.join("status")).unwrap();
        let counts: Vec<&str> = status.lines().filter(|line| line.contains("ctxt_switches")).collect();
        assert_eq!(counts.len(), 2);
        (thread, counts.join(" "))
    };
    threads.map(switches).collect()
}

/// P22: fifty idle agents cause no wake-ups and no writes.
#[test]
fn p22_fifty_idle_agents_cause_no_wake_ups_and_no_writes() {
    let stage = TestFolder::new();
    let spawn =
        |n: u32| format!("{{ tool: spawn_agent, args: {{ agent: helper, id: h{n}, goal: Part {n}. }} }}");
    let spawns: Vec<String> = (1..=49).map(spawn).collect();
    let script = format!(
        "rules:\n  - when: {{ agent: lead, turn: 1 }}\n    call: [ {} ]\n  - when: {{ agent: helper }}\n    call: [ {{ tool: look }} ]\n  - say: Done.\ntools: {{ look: {{ hang: true }} }}\n",
        spawns.join(", ")
    );
    stage.file("idle.script.yaml", &script);
    let tree = stage.file(
        "idle.yaml",
        "name: idle\ngoal: Do nothing.\nentry: lead\nlimits: { children: 64, parallel: 64 }\nmodels:\n  fast: { provider: scripted, script: idle.script.yaml }\nagents:\n  lead: { model: fast, tools: [look, spawn_agent], limits: { max_tokens_per_step: 100000 } }\n  helper: { model: fast, tools: [look] }\n",
    );
    let mut running = stage.play(&["run", &tree]);
    (0..49).for_each(|_| drop(running.until("calls look")));
    // Time passes while an unrelated process runs and ends.
    let other = TestFolder::new();
    let pass = || assert_eq!(other.spinney(&["--version"]).code, Some(0));
    let is_written = |_: &u32| {
        pass();
        found(&workspace(&stage)).len() == 49
    };
    assert!((0..200).any(|n| is_written(&n)), "the step files of the lead");
    let is_still = |_: &u32| {
        let before = (wakes(running.pid()), marks(stage.home()));
        (0..20).for_each(|_| pass());
        before == (wakes(running.pid()), marks(stage.home()))
    };
    assert!((0..3).any(|n| is_still(&n)), "it did not come to rest: {:?}", wakes(running.pid()));
    running.kill();
}
