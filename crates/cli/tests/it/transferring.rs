//! `spinney export` and `spinney import`: trees that move to another machine, come back, or are copied.

use std::fs;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::Value;
use spinney::rng::Rng;
use spinney_journal::ChainHash;
use spinney_kernel::primitives::Seq;
use spinney_kernel::record::RULES;
use spinney_testkit::transfer_campaign::{TransferTally, transfer_one_tree};
use tempfile::TempDir;

use crate::scripts::{HANGS, SAYS};
use crate::test_folder::{Ended, TestFolder, steady};
use crate::upstream::{Reply, Upstream};

/// Writes a file, asks a person, and repeats the answer.
const WRITES: &str = "
rules:
  - when: { turn: 1 }
    call: [ { tool: write_file, args: { path: outputs/colour.md, text: 'Which one?' } } ]
  - when: { turn: 2 }
    call: [ { tool: ask_human, args: { question: Which colour? } } ]
  - say: 'You said {{ last }}'
";

fn writes(stage: &TestFolder) -> String {
    let run = stage.spinney(&["run", &stage.tree("write_file, ask_human", WRITES)]);
    assert_eq!(run.code, Some(5), "{}", run.err);
    id(stage)
}

fn succeeds(stage: &TestFolder, args: &[&str]) -> Ended {
    let ended = stage.spinney(args);
    assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.err);
    ended
}

fn refused(stage: &TestFolder, args: &[&str]) -> String {
    let ended = stage.spinney(args);
    assert_eq!(ended.code, Some(2), "{args:?}: {}{}", ended.out, ended.err);
    ended.err
}

fn listed(stage: &TestFolder) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let trees = succeeds(stage, &["ps", "--json"]).json();
    trees.iter().map(|tree| (word(&tree["tree"]), word(&tree["state"]))).collect()
}

fn id(stage: &TestFolder) -> String {
    listed(stage)[0].0.clone()
}

fn state(stage: &TestFolder) -> String {
    listed(stage)[0].1.clone()
}

/// Answers the only question of a tree.
fn answer(stage: &TestFolder, tree: &str) {
    let number = succeeds(stage, &["questions", tree, "--json"]).json()[0]["question"].to_string();
    succeeds(stage, &["answer", tree, &number, "blue"]);
}

/// What was printed, without ids and the folders of the test.
fn printed(text: &str, stages: &[&TestFolder]) -> String {
    let without =
        |text: String, stage: &&TestFolder| text.replace(&stage.folder().display().to_string(), "…");
    steady(&stages.iter().fold(text.to_owned(), without))
}

/// A file beside the homes of a stage.
fn beside(stage: &TestFolder, name: &str) -> String {
    stage.folder().join(name).display().to_string()
}

/// G31: a tree that was started on one machine is finished on another with two commands, its agents' files included.
#[test]
fn an_exported_tree_is_finished_on_another_machine() {
    let whole = TestFolder::new();
    writes(&whole);
    succeeds(&whole, &["answer", "blue"]);
    let undisturbed = succeeds(&whole, &["resume", "--json"]).result();

    let (here, there) = (TestFolder::new(), TestFolder::new());
    let (tree, file) = (writes(&here), beside(&there, "oak.trees"));
    let exported = succeeds(&here, &["export", "-o", &file]);
    assert_eq!(state(&here), "moved");
    // Nothing of the first machine is left.
    fs::remove_dir_all(here.folder()).unwrap();

    let imported = succeeds(&there, &["import", &file]);
    assert_eq!(imported.out.trim(), tree);
    assert_snapshot!("exported_and_imported", printed(&(exported.err + &imported.err), &[&there]));
    let files = succeeds(&there, &["files", "--json"]).json();
    let path = Path::new(files[0]["path"].as_str().unwrap());
    assert_eq!(fs::read_to_string(there.folder().join(path)).unwrap(), "Which one?");
    succeeds(&there, &["answer", "blue"]);
    let ended = succeeds(&there, &["resume", "--json"]).result();
    for field in ["state", "answer", "spent", "succeeded"] {
        assert_eq!(ended[field], undisturbed[field], "{field}");
    }
    succeeds(&there, &["replay", "--verify"]);
}

/// G31: keys do not move; they are named where a tree leaves and where it comes, and asked for before they are sent.
#[test]
fn what_cannot_move_is_named_and_asked_for() {
    let (here, there) = (TestFolder::new(), TestFolder::stranger());
    let server = Upstream::new(vec![Reply::held()]);
    let model = format!(
        "provider: openai_compatible, model: x, base_url: '{}', key_env: TEAM_KEY, \
         price: {{ input_per_mtok_usd: 1, output_per_mtok_usd: 1 }}",
        server.url
    );
    let file = format!(
        "name: test\ngoal: Try it.\nbudget: {{ cost_usd: 1 }}\nmodels: {{ fast: {{ {model} }} }}\nagents: {{ lead: {{ model: fast }} }}\n"
    );
    let run = here.play_in(&["run", &here.file("tree.yaml", &file)], &[("TEAM_KEY", "a-key-of-the-team")]);
    server.was_asked(1);
    run.kill();
    let file = beside(&there, "oak.trees");
    let exported = succeeds(&here, &["export", "-o", &file]);
    assert!(!fs::read(&file).unwrap().windows(17).any(|part| part == b"a-key-of-the-team"));
    let imported = succeeds(&there, &["import", &file]);
    let address = server.url.trim_start_matches("http://").split('/').next().unwrap();
    let said = (exported.err + &imported.err).replace(address, "[address]");
    assert_snapshot!("what_cannot_move", printed(&said, &[&there]));
    let asked = there.play_in(&["resume"], &[("TEAM_KEY", "another-key")]).end();
    assert_eq!(asked.code, Some(2), "{}", asked.err);
    assert!(asked.err.contains("TEAM_KEY (key) to 127.0.0.1"), "{}", asked.err);
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_moved_tree_does_nothing_here_until_it_is_taken_back() {
    let stage = TestFolder::new();
    let tree = writes(&stage);
    let file = beside(&stage, "oak.trees");
    succeeds(&stage, &["export", "-o", &file]);
    for request in [
        &["resume"][..],
        &["answer", "blue"],
        &["budget", "--add-usd", "1"],
        &["send", "lead", "hello"],
        &["cancel"],
        &["checkpoint", "make", "lead"],
    ] {
        let why = refused(&stage, request);
        assert!(why.contains("moved to `oak.trees`") && why.contains("export"), "{request:?}: {why}");
    }
    let said = [
        refused(&stage, &["resume"]),
        refused(&stage, &["export", "-o", &beside(&stage, "elm.trees")]),
        refused(&stage, &["export", "-o", &file]),
        succeeds(&stage, &["import", &file]).err,
        refused(&stage, &["export", "--take-back"]),
    ];
    assert_eq!(state(&stage), "moved");
    let back = succeeds(&stage, &["export", &tree, "--take-back", "--yes"]);
    let twice = refused(&stage, &["export", "--take-back", "--yes"]);
    assert_snapshot!("moved_and_taken_back", printed(&(said.concat() + &back.err + &twice), &[&stage]));
    succeeds(&stage, &["answer", "blue"]);
    succeeds(&stage, &["resume"]);
    assert_eq!(state(&stage), "completed");
}

/// A process that was killed between the seal and the file leaves a sealed tree: the same command again writes the file.
#[test]
fn an_export_that_was_interrupted_is_done_again() {
    let (here, there) = (TestFolder::new(), TestFolder::new());
    writes(&here);
    let file = beside(&there, "oak.trees");
    succeeds(&here, &["export", "-o", &file]);
    fs::remove_file(&file).unwrap();
    succeeds(&here, &["export", "-o", &file]);
    succeeds(&there, &["import", &file]);
    assert_eq!(state(&there), "stopped");
}

#[test]
fn a_running_tree_is_copied_and_does_not_move() {
    let stage = TestFolder::new();
    let mut run = stage.play(&["run", &stage.tree("", HANGS)]);
    run.until("starts");
    let why = refused(&stage, &["export", "-o", &beside(&stage, "oak.trees")]);
    assert_snapshot!("running", printed(&why, &[&stage]));
    assert!(!stage.folder().join("oak.trees").exists());
    succeeds(&stage, &["export", "--copy", "-o", &beside(&stage, "copy.trees")]);
    run.kill();
    let other = TestFolder::new();
    succeeds(&other, &["import", &beside(&stage, "copy.trees")]);
    assert_eq!((state(&other).as_str(), state(&stage).as_str()), ("copy", "interrupted"));
}

/// A copy can be read and branched, with its own budget, and does nothing else.
#[test]
fn a_copy_is_read_and_branched() {
    let (here, there) = (TestFolder::new(), TestFolder::new());
    let tree = writes(&here);
    let file = beside(&there, "copy.trees");
    let exported = succeeds(&here, &["export", "--copy", "-o", &file]);
    assert_ne!(state(&here), "moved");
    let imported = succeeds(&there, &["import", &file]);
    let why = refused(&there, &["resume"]);
    let again = succeeds(&there, &["import", &file]);
    assert_snapshot!("copied", printed(&(exported.err + &imported.err + &why + &again.err), &[&there]));
    assert!(refused(&there, &["answer", "blue"]).contains("is a copy"));
    succeeds(&there, &["show", &tree, "lead"]);
    let name = succeeds(&there, &["checkpoint", "ls", "--json"]).json()[0]["checkpoint"]
        .as_str()
        .unwrap()
        .to_owned();
    let branch = succeeds(&there, &["checkpoint", "branch", &name, "--budget-usd", "1"]).out;
    answer(&there, branch.trim());
    let ended = succeeds(&there, &["resume", branch.trim(), "--json"]).result();
    assert_eq!(ended["state"], "completed");
    let copied = listed(&there).into_iter().find(|(id, _)| *id == tree).unwrap();
    assert_eq!(copied.1, "copy");
}

#[test]
fn a_tree_comes_back_with_what_happened_elsewhere() {
    let (here, there) = (TestFolder::new(), TestFolder::new());
    writes(&here);
    let (away, back) = (beside(&there, "away.trees"), beside(&here, "back.trees"));
    succeeds(&here, &["export", "-o", &away]);
    succeeds(&there, &["import", &away]);
    succeeds(&there, &["answer", "blue"]);
    succeeds(&there, &["export", "-o", &back]);
    let imported = succeeds(&here, &["import", &back]);
    assert!(imported.err.contains("had moved away from here"), "{}", imported.err);
    let ended = succeeds(&here, &["resume", "--json"]).result();
    assert_eq!(ended["state"], "completed");
    assert_eq!(state(&there), "moved");
    assert_eq!(succeeds(&here, &["files", "--json"]).json().len(), 1);
    assert_eq!(listed(&here).len(), 1);
}

#[test]
fn a_tree_with_other_events_is_refused() {
    let (here, there) = (TestFolder::new(), TestFolder::new());
    writes(&here);
    let (first, second) = (beside(&there, "first.trees"), beside(&there, "second.trees"));
    succeeds(&here, &["export", "--copy", "-o", &first]);
    succeeds(&here, &["answer", "blue"]);
    succeeds(&here, &["resume"]);
    succeeds(&here, &["export", "-o", &second]);
    succeeds(&there, &["import", &first]);
    let why = refused(&there, &["import", &second]);
    assert!(why.contains("is already here with different events"), "{why}");
    succeeds(&there, &["rm", "--force"]);
    succeeds(&there, &["import", &second]);
    assert_eq!(state(&there), "completed");
}

#[test]
fn a_whole_home_moves_with_its_branches() {
    let (here, there) = (TestFolder::new(), TestFolder::new());
    let asking = writes(&here);
    let name = succeeds(&here, &["checkpoint", "make", "lead"]).out;
    let branch = succeeds(&here, &["checkpoint", "branch", name.trim(), "--budget-usd", "1"]).out;
    succeeds(&here, &["run", &here.tree("", SAYS)]);
    let file = beside(&there, "home.trees");
    succeeds(&here, &["export", "--all", "-o", &file]);
    succeeds(&there, &["import", &file]);
    let states = |stage: &TestFolder| {
        let mut all = listed(stage);
        all.sort();
        all
    };
    let moved =
        |(id, state): (String, String)| (id, if state == "moved" { "stopped".to_owned() } else { state });
    assert_eq!(states(&there), states(&here).into_iter().map(moved).collect::<Vec<_>>());
    for tree in [asking.trim(), branch.trim()] {
        answer(&there, tree);
        succeeds(&there, &["resume", tree]);
        succeeds(&there, &["replay", tree, "--verify"]);
    }
    assert!(states(&there).iter().all(|(_, state)| state == "completed"));
}

/// What is left in the folder of side journals.
fn left(stage: &TestFolder) -> Vec<PathBuf> {
    let entries = fs::read_dir(stage.home().join("runs")).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| !path.ends_with(".imports")).collect()
}

/// A copy of a tree that moved is a copy: only the file that it moved to continues it.
#[test]
fn a_copy_of_a_moved_tree_does_not_continue() {
    let (here, there) = (TestFolder::new(), TestFolder::new());
    let tree = writes(&here);
    succeeds(&here, &["export", "-o", &beside(&there, "oak.trees")]);
    let copied = succeeds(&here, &["export", "--copy", "-o", &beside(&there, "copy.trees")]);
    assert!(copied.err.contains("the copy can be read and branched"), "{}", copied.err);
    succeeds(&here, &["export", "--all", "--copy", "-o", &beside(&there, "all.trees")]);
    for copy in ["copy.trees", "all.trees"] {
        succeeds(&there, &["import", &beside(&there, copy)]);
        assert_eq!(state(&there), "copy");
        let name = succeeds(&there, &["checkpoint", "ls", "--json"]).json()[0]["checkpoint"].clone();
        succeeds(&there, &["checkpoint", "branch", name.as_str().unwrap(), "--budget-usd", "1"]);
        succeeds(&there, &["rm", "--force"]);
        succeeds(&there, &["rm", &tree, "--force"]);
    }
}

/// A copy does not take the place of a tree that moved away, so the tree itself can come back.
#[test]
fn a_copy_does_not_bring_a_tree_back() {
    let (here, there) = (TestFolder::new(), TestFolder::new());
    writes(&here);
    succeeds(&here, &["export", "-o", &beside(&here, "away.trees")]);
    succeeds(&there, &["import", &beside(&here, "away.trees")]);
    succeeds(&there, &["answer", "blue"]);
    succeeds(&there, &["export", "--copy", "-o", &beside(&here, "copy.trees")]);
    refused(&here, &["import", &beside(&here, "copy.trees")]);
    assert_eq!(state(&here), "moved");
    succeeds(&there, &["export", "-o", &beside(&here, "back.trees")]);
    succeeds(&here, &["import", &beside(&here, "back.trees")]);
    succeeds(&here, &["resume"]);
}

/// A tree that has branches here comes back beside what they share with it.
#[test]
fn a_tree_with_branches_comes_back() {
    let (here, there) = (TestFolder::new(), TestFolder::new());
    let tree = writes(&here);
    let name = succeeds(&here, &["checkpoint", "make", "lead"]).out;
    let branch = succeeds(&here, &["checkpoint", "branch", name.trim(), "--budget-usd", "1"]).out;
    succeeds(&here, &["export", &tree, "-o", &beside(&here, "away.trees")]);
    succeeds(&there, &["import", &beside(&here, "away.trees")]);
    answer(&there, &tree);
    succeeds(&there, &["export", &tree, "-o", &beside(&here, "back.trees")]);
    succeeds(&here, &["import", &beside(&here, "back.trees")]);
    assert_eq!(listed(&here).len(), 2);
    for tree in [tree.as_str(), branch.trim()] {
        if tree == branch.trim() {
            answer(&here, tree);
        }
        succeeds(&here, &["resume", tree]);
        succeeds(&here, &["replay", tree, "--verify"]);
    }
    assert!(listed(&here).iter().all(|(_, state)| state == "completed"), "{:?}", listed(&here));
}

/// Where branches of a removed tree are left, it is not imported over them.
#[test]
fn an_import_replaces_no_other_tree() {
    let (here, there) = (TestFolder::new(), TestFolder::new());
    let tree = writes(&here);
    let file = beside(&there, "copy.trees");
    succeeds(&here, &["export", "--copy", "-o", &file]);
    succeeds(&there, &["import", &file]);
    let name = succeeds(&there, &["checkpoint", "ls", "--json"]).json()[0]["checkpoint"].clone();
    let branch = succeeds(&there, &["checkpoint", "branch", name.as_str().unwrap(), "--budget-usd", "1"]).out;
    succeeds(&there, &["rm", &tree, "--force"]);
    let why = refused(&there, &["import", &file]);
    assert!(why.contains("has other trees"), "{why}");
    answer(&there, branch.trim());
    succeeds(&there, &["resume", branch.trim()]);
}

/// What this user allowed a tree is forgotten when it comes from elsewhere, even if nothing of it was left here.
#[test]
fn an_imported_tree_is_a_strangers() {
    let (here, there) = (TestFolder::new(), TestFolder::new());
    let server = Upstream::new(vec![Reply::held()]);
    let tree = here.tree_on(&server);
    let text = fs::read_to_string(&tree).unwrap().replace("model: tiny,", "model: tiny, key_env: TEAM_KEY,");
    fs::write(&tree, text).unwrap();
    let key = [("TEAM_KEY", "a-key-of-the-team")];
    let run = here.play_in(&["run", &tree], &key);
    server.was_asked(1);
    run.kill();
    let id = id(&here);
    succeeds(&here, &["export", "-o", &beside(&here, "away.trees")]);
    succeeds(&there, &["import", &beside(&here, "away.trees")]);
    succeeds(&there, &["send", "lead", "Do something else."]);
    succeeds(&there, &["export", "-o", &beside(&here, "back.trees")]);
    // As after a kill that left nothing of it here.
    for left in ["journal.sqlite3", "journal.sqlite3-wal", "journal.sqlite3-shm", "journal.head"] {
        let _ = fs::remove_file(here.home().join(left));
    }
    succeeds(&here, &["import", &beside(&here, "back.trees")]);
    let asked = here.play_in(&["resume", &id], &key).end();
    assert_eq!(asked.code, Some(2), "{}", asked.err);
    assert!(asked.err.contains("was not started by you on this machine"), "{}", asked.err);
    assert_eq!(server.asked().len(), 1);
}

/// A file with another version of the rules cannot be checked, so it is refused.
#[test]
fn a_tree_of_other_rules_is_refused() {
    let (here, there) = (TestFolder::new(), TestFolder::new());
    writes(&here);
    let file = beside(&there, "oak.trees");
    succeeds(&here, &["export", "-o", &file]);
    let whole = fs::read(&file).unwrap();
    for rules in ["0", "99"] {
        let forged = rewritten(&whole, |batch| {
            let text = String::from_utf8(batch.to_vec()).unwrap();
            text.replace(&format!("\"rules\":{RULES}"), &format!("\"rules\":{rules}")).into_bytes()
        });
        assert_ne!(forged, whole);
        fs::write(&file, forged).unwrap();
        let why = refused(&there, &["import", &file]);
        assert!(why.contains("which this version cannot check"), "{why}");
        assert_eq!(left(&there), [] as [PathBuf; 0]);
    }
}

/// Issue 36: events that do not fit their tree printed the text of a panic before the error.
#[test]
fn a_file_whose_events_do_not_fit_is_refused_without_a_panic() {
    let (here, there) = (TestFolder::new(), TestFolder::new());
    writes(&here);
    let file = beside(&there, "oak.trees");
    succeeds(&here, &["export", "-o", &file]);
    let whole = fs::read(&file).unwrap();
    for (event, from, to) in [
        ("\"type\":\"call_ended\"", "\"call\":", "\"call\":9"),
        ("\"type\":\"agent_spawned\"", "\"agent\":\"lead\"", "\"agent\":\"elder\""),
    ] {
        let forged = rewritten(&whole, |batch| {
            let text = String::from_utf8(batch.to_vec()).unwrap();
            if text.contains(event) { text.replace(from, to).into_bytes() } else { text.into_bytes() }
        });
        assert_ne!(forged, whole);
        fs::write(&file, forged).unwrap();
        let why = refused(&there, &["import", &file]);
        assert!(why.contains("is damaged or was changed") && !why.contains("panicked"), "{why}");
        assert_eq!(why.lines().count(), 1, "{why}");
        assert_eq!(left(&there), [] as [PathBuf; 0]);
    }
}

/// A file of one tree with other batches and the hashes that they have.
fn rewritten(file: &[u8], change: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let (format, mut rest) = file.split_at(16);
    let (mut records, mut head, mut hash) = (Vec::new(), Value::Null, None);
    while let [kind, tail @ ..] = rest {
        let (length, tail) = tail.split_at(8);
        let (content, tail) = tail.split_at(u64::from_le_bytes(length.try_into().unwrap()) as usize);
        rest = tail;
        match kind {
            b'T' => {
                head = serde_json::from_slice(content).unwrap();
                hash = Some(ChainHash::start(head["seed"].as_str().unwrap().parse().unwrap()));
            }
            b'B' => {
                let (after, batch) = content.split_at(8);
                let batch = change(batch);
                let seq = Seq(u64::from_le_bytes(after.try_into().unwrap()));
                hash = hash.map(|hash| hash.then(seq, &batch));
                records.push((*kind, [after, &batch].concat()));
            }
            _ => records.push((*kind, content.to_vec())),
        }
    }
    head["hash"] = hash.unwrap().to_string().into();
    let first = (b'T', serde_json::to_vec(&head).unwrap());
    let mut written = format.to_vec();
    for (kind, content) in [first].into_iter().chain(records) {
        written.push(kind);
        written.extend((content.len() as u64).to_le_bytes());
        written.extend(content);
    }
    written
}

#[test]
fn a_home_moves_without_what_moved_before() {
    let (here, there) = (TestFolder::new(), TestFolder::new());
    let first = writes(&here);
    succeeds(&here, &["export", "-o", &beside(&there, "first.trees")]);
    writes(&here);
    let exported = succeeds(&here, &["export", "--all", "-o", &beside(&there, "rest.trees")]);
    assert!(
        exported.err.contains("left out tree") && exported.err.contains("first.trees"),
        "{}",
        exported.err
    );
    assert!(!succeeds(&there, &["import", &beside(&there, "rest.trees")]).out.contains(&first));
}

/// A file that was cut or changed anywhere is refused, and nothing of it stays.
#[test]
fn a_damaged_file_is_refused_and_leaves_nothing() {
    let (here, there) = (TestFolder::new(), TestFolder::new());
    writes(&here);
    let file = beside(&there, "oak.trees");
    succeeds(&here, &["export", "-o", &file]);
    let whole = fs::read(&file).unwrap();
    let mut draws = Rng::seeded(0x7ee5);
    let mut damaged: Vec<Vec<u8>> = (0..24)
        .map(|_| {
            let mut bytes = whole.clone();
            let at = draws.next() as usize % bytes.len();
            bytes[at] ^= 1 << (draws.next() % 8);
            bytes
        })
        .collect();
    damaged.extend((0..8).map(|_| whole[..draws.next() as usize % whole.len()].to_vec()));
    // No trees, batches of no tree, and a tree with more batches than it says.
    let end = [b"E".as_slice(), &0u64.to_le_bytes()].concat();
    damaged.push([&whole[..16], &end].concat());
    damaged.push([&whole[..16], b"B", &8u64.to_le_bytes(), &0u64.to_le_bytes(), &end].concat());
    let without_end = &whole[..whole.len() - end.len()];
    // A record that says that it is longer than anything.
    damaged.push([&whole[..16], b"B", &u64::MAX.to_le_bytes()].concat());
    let longer = [without_end, b"L", &1u64.to_le_bytes(), b"x", &end].concat();
    let path = there.folder().join("longer.trees");
    fs::write(&path, longer).unwrap();
    assert!(refused(&there, &["import", &path.display().to_string()]).contains("more batches than it says"));
    // The end is missing.
    damaged.push(without_end.to_vec());
    for (number, bytes) in damaged.iter().enumerate() {
        let file = there.folder().join("damaged.trees");
        fs::write(&file, bytes).unwrap();
        let why = refused(&there, &["import", &file.display().to_string()]);
        assert!(why.starts_with("spinney: ") && !why.contains("panicked"), "{number}: {why}");
        assert_eq!(left(&there), [] as [PathBuf; 0], "{number}");
    }
    // What comes after the end is damage as well.
    for more in [b"more".as_slice(), &whole] {
        let file = there.folder().join("longer.trees");
        fs::write(&file, [whole.as_slice(), more].concat()).unwrap();
        assert!(refused(&there, &["import", &file.display().to_string()]).contains("after its end"));
    }
    assert_eq!(left(&there), [] as [PathBuf; 0]);
    succeeds(&there, &["import", &file]);
    succeeds(&there, &["replay", "--verify"]);
}

#[test]
fn what_is_not_an_export_is_refused() {
    let stage = TestFolder::new();
    writes(&stage);
    let folder = stage.folder().display().to_string();
    let said = [
        refused(&stage, &["import", &stage.file("other.txt", "something else")]),
        refused(&stage, &["import", &stage.file("empty", "")]),
        refused(&stage, &["import", &beside(&stage, "missing.trees")]),
        refused(&stage, &["import", &folder]),
        refused(&stage, &["export", "-o", &stage.file("there", "mine")]),
        refused(&stage, &["export", "-o", &folder]),
        refused(&stage, &["export", "-o", &beside(&stage, "missing/oak.trees")]),
        refused(&stage, &["export", "-o", "\u{1b}[31m"]),
        refused(&stage, &["export", "-o", ".."]),
    ];
    assert_eq!(fs::read_to_string(stage.folder().join("there")).unwrap(), "mine");
    assert_eq!(state(&stage), "waiting", "nothing was sealed");
    assert_snapshot!("not_an_export", printed(&said.concat(), &[&stage]));
}

/// G31: processes that are killed at any point of an export or an import: the tree can never continue in two places, and ends as
/// if nothing had happened.
#[test]
fn killed_transfers_lose_and_repeat_nothing() {
    let mut all = TransferTally::default();
    for seed in [0x31, 0x32] {
        let folder = TempDir::new().unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_spinney"));
        let one = transfer_one_tree(program, folder.path(), &mut Rng::seeded(seed));
        all.add(&one.unwrap_or_else(|broken| panic!("seed {seed}: {broken}")));
    }
    assert!(all.kills >= 10, "{all:?}");
}
