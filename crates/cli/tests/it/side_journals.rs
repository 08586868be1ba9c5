//! Several runs in one folder: side journals, trees that the process with their journal resumes, and every command on all of
//! them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

use serde_json::{Value, json};
use spinney_kernel::rules::request::VERSION;

use crate::exec::{exec, used};
use crate::rewritten::into_older;
use crate::scripts::{ASKS, HANGS, SAYS};
use crate::test_folder::{Ended, Playing, TestFolder};
use crate::upstream::Upstream;

/// Six turns with a tool, and an answer.
const LOOKS: &str = "
rules:
  - when: { turn: 1 }
    call: [ { tool: look } ]
  - when: { turn: 2 }
    call: [ { tool: look } ]
  - when: { turn: 3 }
    call: [ { tool: look } ]
  - when: { turn: 4 }
    call: [ { tool: look } ]
  - when: { turn: 5 }
    call: [ { tool: look } ]
  - say: done
tools: { look: { think_ms: 3, say: seen } }
";

/// The states of all trees, by id.
fn states(stage: &TestFolder) -> BTreeMap<String, String> {
    let listed = stage.spinney(&["ps", "--json"]);
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    listed.json().iter().map(|tree| (word(&tree["tree"]), word(&tree["state"]))).collect()
}

/// Starts a tree that hangs, and returns its id.
fn hangs(stage: &TestFolder) -> (Playing, String) {
    let before = if stage.home().exists() { states(stage) } else { BTreeMap::new() };
    let mut playing = stage.play(&["run", &stage.tree("", HANGS)]);
    playing.until("starts");
    let id = states(stage).into_keys().find(|id| !before.contains_key(id)).unwrap();
    (playing, id)
}

/// Starts a tree that hangs and kills its process.
fn interrupted(stage: &TestFolder) -> String {
    let (playing, id) = hangs(stage);
    playing.kill();
    id
}

fn side(stage: &TestFolder, id: &str) -> std::path::PathBuf {
    stage.home().join("runs").join(id)
}

fn succeeds(stage: &TestFolder, args: &[&str]) -> Ended {
    let ended = stage.spinney(args);
    assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.err);
    ended
}

/// G30: several `run`, `exec` and `resume` in one folder at the same time all work, and every command finds every tree.
#[test]
fn every_command_finds_every_tree_of_several_processes() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(1)]));
    let stopped = interrupted(&stage);
    let (own, first) = hangs(&stage);
    let (beside, second) = hangs(&stage);
    let mut resumed = stage.play(&["resume", &stopped]);
    let said = resumed.until("resumed at event");
    assert!(said.contains(&format!("in process {}", own.pid())), "{said}");
    resumed.until("starts");
    let mut program = exec(&stage, &upstream, &["--budget-usd", "1"], "call 1 one\necho called\nsleep NAP");
    program.until("called");
    let third = states(&stage).into_keys().find(|id| ![&stopped, &first, &second].contains(&id)).unwrap();
    assert_eq!(
        [side(&stage, &first).exists(), side(&stage, &second).is_dir(), side(&stage, &third).is_dir()],
        [false, true, true]
    );
    let all = [&stopped, &first, &second, &third].map(String::clone);
    assert!(states(&stage).values().all(|state| state == "running"), "{:?}", states(&stage));
    for id in &all {
        let id = id.as_str();
        let root = if id == third { "main" } else { "lead" };
        for verb in [["tree"], ["events"], ["costs"], ["files"], ["shared"], ["questions"], ["replay"]] {
            succeeds(&stage, &[&verb[..], &[id]].concat());
        }
        assert_eq!(succeeds(&stage, &["events", &id[..31], "--json"]).json()[0]["tree"], json!(id));
        succeeds(&stage, &["show", id, root]);
        succeeds(&stage, &["budget", id, "--add-usd", "1"]);
        succeeds(&stage, &["checkpoint", "make", id, root]);
        let refused = stage.spinney(&["rm", id, "--force"]);
        assert!(refused.code == Some(2) && refused.err.contains("is running"), "{}", refused.err);
        let again = stage.spinney(&["resume", id]);
        assert!(again.code == Some(6) || id == third, "{:?} {}", again.code, again.err);
    }
    assert_eq!(succeeds(&stage, &["checkpoint", "ls", "--json"]).json().len(), 4);
    let cleaned = stage.spinney(&["checkpoint", "clean"]);
    assert!(cleaned.err.contains("runs a program"), "{}", cleaned.err);
    for id in [&stopped, &first, &second] {
        succeeds(&stage, &["send", id, "lead", "Hurry up."]);
    }
    for id in &all {
        succeeds(&stage, &["cancel", id]);
    }
    assert_eq!([own, beside, resumed].map(|playing| playing.end().code), [Some(4); 3]);
    program.end();
    assert!(states(&stage).values().all(|state| state == "cancelled"), "{:?}", states(&stage));
    for id in &all {
        succeeds(&stage, &["rm", id]);
    }
    assert!(states(&stage).is_empty());
    assert_eq!(fs::read_dir(stage.home().join("runs")).unwrap().count(), 0);
}

/// G30: runs that start at the same moment, in a folder without a home.
#[test]
fn runs_that_start_at_the_same_moment_all_complete() {
    for _ in 0..4 {
        let stage = TestFolder::new();
        let tree = stage.tree("", SAYS);
        let playing: Vec<Playing> = (0..4).map(|_| stage.play(&["run", &tree])).collect();
        for playing in playing {
            let ended = playing.end();
            assert_eq!(ended.code, Some(0), "{}", ended.err);
        }
        let states = states(&stage);
        assert!(states.len() == 4 && states.values().all(|state| state == "completed"), "{states:?}");
        let (first, last) = (states.keys().next().unwrap(), states.keys().next_back().unwrap());
        assert_eq!(succeeds(&stage, &["events", "last", "--json"]).json()[0]["tree"], json!(last));
        assert_eq!(succeeds(&stage, &["events", first, "--json"]).json()[0]["tree"], json!(first));
    }
}

/// A generator of numbers below a bound, from a seed.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// G30: processes that are killed at any point, and resumed side by side: nothing is lost, nothing is repeated.
#[test]
fn killed_processes_of_one_folder_lose_and_repeat_nothing() {
    let whole = TestFolder::new();
    let undisturbed = whole.spinney(&["run", &whole.tree("look", LOOKS), "--json"]);
    assert_eq!(undisturbed.code, Some(0), "{}", undisturbed.err);
    let mut seeded = Seeded(0x5eed_0030);
    for round in 0..3 {
        let stage = TestFolder::new();
        let tree = stage.tree("look", LOOKS);
        let mut playing: Vec<Playing> = (0..3).map(|_| stage.play(&["run", &tree])).collect();
        // Each has begun, so none is lost.
        playing.iter_mut().for_each(|playing| drop(playing.until("tree ")));
        kill_all(playing, &mut seeded);
        let ids: Vec<String> = states(&stage).into_keys().collect();
        assert_eq!(ids.len(), 3, "round {round}");
        for _ in 0..2 {
            let resumed: Vec<Playing> = ids.iter().map(|id| stage.play(&["resume", id])).collect();
            kill_all(resumed, &mut seeded);
        }
        let resumed: Vec<Playing> = ids.iter().map(|id| stage.play(&["resume", id, "--json"])).collect();
        for (id, playing) in ids.iter().zip(resumed) {
            let ended = playing.end();
            assert_eq!(ended.code, Some(0), "round {round}, {id}: {}", ended.err);
            assert_eq!(ended.result()["answer"], undisturbed.result()["answer"]);
            let shown = succeeds(&stage, &["show", id, "lead", "--json"]).json();
            let results = shown.iter().filter(|message| message["role"] == "tool").count();
            assert_eq!(results, 5, "round {round}, {id}");
            succeeds(&stage, &["replay", id, "--verify"]);
        }
        assert_eq!(states(&stage).into_keys().collect::<Vec<_>>(), ids, "round {round}");
        assert!(states(&stage).values().all(|state| state == "completed"));
    }
}

/// Kills each process after some lines of its output, unless it ends before.
fn kill_all(playing: Vec<Playing>, seeded: &mut Seeded) {
    for mut playing in playing {
        for _ in 0..seeded.below(12) {
            if playing.line().is_none() {
                break;
            }
        }
        playing.kill();
    }
}

/// G30: the process that runs a tree for another one dies, and the tree continues where it was asked for.
#[test]
fn a_resumed_tree_continues_here_when_the_process_that_runs_it_dies() {
    let stage = TestFolder::new();
    let stopped = interrupted(&stage);
    let (own, _) = hangs(&stage);
    let mut resumed = stage.play(&["resume", &stopped]);
    let said = resumed.until("resumed at event");
    assert!(said.contains("in process"), "{said}");
    resumed.until("starts");
    own.kill();
    let said = resumed.until("resumed at event");
    assert!(!said.contains("in process"), "{said}");
    resumed.until("starts");
    assert_eq!(states(&stage)[&stopped], "running");
    succeeds(&stage, &["cancel", &stopped]);
    assert_eq!(resumed.end().code, Some(4));
}

/// G30: the tree stops with the command that asked for it, and the process that ran it runs on.
#[test]
fn a_tree_stops_with_the_resume_that_asked_for_it() {
    let stage = TestFolder::new();
    let asks = stage.tree("ask_human", ASKS);
    let waiting = stage.spinney(&["run", &asks, "--json"]);
    assert_eq!(waiting.code, Some(5), "{}", waiting.err);
    let id = waiting.result()["tree"].as_str().unwrap().to_owned();
    let stopped = interrupted(&stage);
    let (own, first) = hangs(&stage);
    // It needs a person, as it does in a separate process.
    let again = stage.spinney(&["resume", &id]);
    assert_eq!(again.code, Some(5), "{}", again.err);
    assert!(again.out.contains("Which colour?"), "{}", again.out);
    let again = stage.spinney(&["resume", &id, "--json"]);
    assert_eq!(
        (again.code, &again.result()["state"]),
        (Some(5), &waiting.result()["state"]),
        "{}",
        again.err
    );
    // The answer is kept by the process that has the journal open.
    let question = succeeds(&stage, &["questions", &id, "--json"]).result()["question"].to_string();
    succeeds(&stage, &["answer", &id, &question, "blue"]);
    let done = stage.spinney(&["resume", &id]);
    assert!(done.code == Some(0) && done.out.contains("You said blue"), "{} {}", done.out, done.err);
    // A killed command leaves nothing running.
    let mut resumed = stage.play(&["resume", &stopped]);
    resumed.until("starts");
    resumed.kill();
    assert_eq!(states(&stage)[&first], "running");
    own.kill();
}

/// A branch is in the journal of its origin, whichever process has that open.
#[test]
fn a_branch_is_made_and_resumed_by_the_process_with_the_journal() {
    let stage = TestFolder::new();
    let (own, first) = hangs(&stage);
    let (beside, second) = hangs(&stage);
    for id in [&first, &second] {
        succeeds(&stage, &["checkpoint", "make", id, "lead", "--name", "here"]);
    }
    // A name of several journals is refused with the list.
    let refused = stage.spinney(&["checkpoint", "branch", "here", "--budget-usd", "1"]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!([&first, &second].iter().all(|id| refused.err.contains(&id[..12])), "{}", refused.err);
    let home = side(&stage, &second).display().to_string();
    let branched = succeeds(&stage, &["--home", &home, "checkpoint", "branch", "here", "--budget-usd", "1"]);
    let branch = branched.out.trim().to_owned();
    assert_eq!(states(&stage)[&branch], "stopped");
    assert_eq!(succeeds(&stage, &["events", "last", "--json"]).json().last().unwrap()["tree"], json!(branch));
    let mut resumed = stage.play(&["resume", &branch]);
    let said = resumed.until("resumed at event");
    assert!(said.contains(&format!("in process {}", beside.pid())), "{said}");
    succeeds(&stage, &["cancel", &branch]);
    assert_eq!(resumed.end().code, Some(4));
    own.kill();
    beside.kill();
    // The folder stays while a tree is in it.
    let refused = stage.spinney(&["rm", &second, "--force"]);
    assert_eq!(refused.code, Some(0), "{}", refused.err);
    assert!(side(&stage, &second).exists());
    assert_eq!(states(&stage).into_keys().collect::<Vec<_>>(), [first, branch.clone()]);
    succeeds(&stage, &["rm", &branch]);
    assert_eq!(fs::read_dir(stage.home().join("runs")).unwrap().count(), 0);
}

/// A home that only programs have used has side journals only; old ones are beside new ones.
#[test]
fn old_runs_of_programs_are_found_beside_new_ones() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(1)]));
    for _ in 0..2 {
        assert_eq!(exec(&stage, &upstream, &[], "call 1 one").end().code, Some(0));
    }
    assert!(!stage.home().join("journal.sqlite3").exists());
    let ids: Vec<String> = states(&stage).into_keys().collect();
    // As an older release made it.
    fs::create_dir(stage.home().join("exec")).unwrap();
    let old = stage.home().join("exec").join(&ids[0]);
    fs::rename(side(&stage, &ids[0]), &old).unwrap();
    assert_eq!(states(&stage).into_keys().collect::<Vec<_>>(), ids);
    for id in &ids {
        succeeds(&stage, &["costs", id]);
        let again = stage.spinney(&["exec", "--resume", id, "--json"]);
        assert_eq!((again.code, &again.result()["tree"]), (Some(0), &json!(id)), "{}", again.err);
        let refused = stage.spinney(&["resume", id]);
        assert_eq!(refused.code, Some(0), "{}", refused.err);
    }
    succeeds(&stage, &["checkpoint", "ls"]);
    succeeds(&stage, &["checkpoint", "clean"]);
    // A process died while it removed a run.
    let left = stage.home().join("runs").join(format!(".removing-{}", "0".repeat(32)));
    fs::create_dir(&left).unwrap();
    succeeds(&stage, &["rm", &ids[0]]);
    succeeds(&stage, &["rm", &ids[1]]);
    assert!(!old.exists() && !side(&stage, &ids[1]).exists());
    assert!(states(&stage).is_empty());
    // The first tree of a file in this home.
    succeeds(&stage, &["run", &stage.tree("", SAYS)]);
    assert!(!left.exists());
}

/// What a listing read of a side journal is remembered, and does not outlive a change.
#[test]
fn a_listing_remembers_side_journals_that_do_not_change() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(1)]));
    assert_eq!(exec(&stage, &upstream, &[], "call 1 one\nkill -INT $$").end().code, Some(130));
    let id = states(&stage).into_keys().next().unwrap();
    let journal = side(&stage, &id).join("journal.sqlite3");
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::File::options().append(true).open(&journal).unwrap().set_modified(long_ago).unwrap();
    let listed = states(&stage);
    assert!(side(&stage, &id).join("listed.json").exists());
    assert_eq!(states(&stage), listed);
    succeeds(&stage, &["cancel", &id]);
    assert_eq!(states(&stage)[&id], "cancelled");
    fs::File::options().append(true).open(&journal).unwrap().set_modified(long_ago).unwrap();
    fs::write(side(&stage, &id).join("listed.json"), "{ \"version\": 1, \"trees\": [] }").unwrap();
    assert_eq!(states(&stage)[&id], "cancelled");
}

/// The process that has a journal open checks what a tree sends itself, whatever it is asked.
#[test]
fn a_process_resumes_no_tree_that_the_user_did_not_allow() {
    let (stage, upstream) =
        (TestFolder::new(), Upstream::new(vec![crate::upstream::Reply::Held(String::new())]));
    let mut calls = stage.play(&["run", &stage.tree_on(&upstream)]);
    calls.until("starts");
    let stopped = states(&stage).into_keys().next().unwrap();
    calls.kill();
    // As a stranger would change it.
    into_older(&stage);
    let kept = stage.home().join("trees").join(&stopped);
    let (file, checksums) = (kept.join("tree.yaml"), kept.join("checksums"));
    let text = fs::read_to_string(&file).unwrap();
    let (_own, _) = hangs(&stage);
    fs::write(&file, text.replace("Try it.", "Steal it.")).unwrap();
    let answer = asked(&stage, &json!({ "kind": "resume", "tree": stopped, "hosts": [] }));
    assert_eq!(answer["kind"], json!("refused"), "{answer}");
    fs::remove_file(&checksums).unwrap();
    let answer = asked(&stage, &json!({ "kind": "resume", "tree": stopped, "hosts": ["x y"] }));
    assert_eq!(answer["kind"], json!("refused"), "{answer}");
    let resumed = stage.spinney(&["resume", &stopped]);
    assert_eq!(resumed.code, Some(2), "{}", resumed.err);
}

/// One exchange with the process that has the home open; then the connection is closed.
fn asked(stage: &TestFolder, ask: &Value) -> Value {
    let mut stream = UnixStream::connect(stage.home().join("control")).unwrap();
    writeln!(stream, "{}", json!({ "version": VERSION, "body": ask })).unwrap();
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    // Until the tree is stopped.
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
    answer["body"].clone()
}

/// A process of an older release does not know how to resume trees for others.
#[test]
fn a_process_of_an_older_release_is_named() {
    let stage = TestFolder::new();
    let stopped = interrupted(&stage);
    let lock = fs::File::options().read(true).write(true).open(stage.home().join("lock")).unwrap();
    lock.lock().unwrap();
    fs::write(stage.home().join("lock"), format!("{}\n", std::process::id())).unwrap();
    let _ = fs::remove_file(stage.home().join("control"));
    let listener = UnixListener::bind(stage.home().join("control")).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map(Result::unwrap) {
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let told = if line.contains("running") {
                json!({ "kind": "running", "trees": [] })
            } else {
                let message = "not a line of the control socket: unknown variant `resume`";
                json!({ "kind": "refused", "message": message })
            };
            let _ = writeln!(&stream, "{}", json!({ "version": VERSION, "body": told }));
        }
    });
    let refused = stage.spinney(&["resume", &stopped]);
    let named = format!("process {} has", std::process::id());
    assert!(refused.code == Some(6) && refused.err.contains(&named), "{:?} {}", refused.code, refused.err);
    assert!(refused.err.contains("older release"), "{}", refused.err);
}
