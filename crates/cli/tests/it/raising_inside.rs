//! A program under `spinney exec` that asks for more budget, and whatever it starts: it is refused by every process that
//! has a tree of the home open, and opens no tree of it itself. From outside the same commands work.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use crate::exec::{exec, used};
use crate::test_folder::{Playing, TestFolder};
use crate::upstream::{Reply, Upstream};

/// What a refusal says.
const REFUSED: &str = "runs inside a run of `exec`";

/// For the program: `spinney …`, and `try NAME COMMAND…`, which prints how it ended.
fn inside() -> String {
    let binary = env!("CARGO_BIN_EXE_spinney");
    format!(
        r#"
spinney() {{ "{binary}" "$@"; }}
export SPINNEY="{binary}"
try() {{
  name=$1; shift
  said=$("$@" 2>&1)
  echo "$name: $? $said"
}}
"#
    )
}

fn start(stage: &TestFolder, upstream: &Upstream, script: &str) -> Playing {
    exec(stage, upstream, &["--budget-usd", "1"], &format!("{}\n{script}", inside()))
}

fn ceiling(stage: &TestFolder, tree: &str) -> Value {
    let listed = stage.spinney(&["tree", tree, "--json"]);
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    listed.json()[0]["limit"]["cost_nanos"].clone()
}

/// The tree that started last.
fn last(stage: &TestFolder) -> String {
    stage.spinney(&["ps", "--json"]).json()[0]["tree"].as_str().unwrap().to_owned()
}

/// The lines of the program that say how an attempt ended.
fn attempts(out: &str) -> Vec<&str> {
    let is_attempt = |line: &&str| line.split_once(": ").is_some_and(|(name, _)| name.starts_with("try-"));
    out.lines().filter(is_attempt).collect()
}

fn assert_all_refused(out: &str, count: usize) {
    let attempts = attempts(out);
    assert_eq!(attempts.len(), count, "{out}");
    for attempt in attempts {
        let (_, how) = attempt.split_once(": ").unwrap();
        assert!(how.starts_with("2 ") && how.contains(REFUSED), "{attempt}");
        assert!(how.contains("use another terminal"), "{attempt}");
    }
}

/// G23: neither the program nor what it starts raises its budget, by whatever path it names the home; it may look. From
/// outside the command works while the program waits.
#[test]
fn g23_a_program_and_its_children_cannot_raise_its_budget() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(900)]);
    symlink(stage.home(), stage.folder().join("link")).unwrap();
    let script = r#"
run=$(echo "$PWD"/.spinney/runs/*)
ln -s "$run" run-link
try try-itself spinney budget last --add-usd 100
try try-shell sh -c '"$SPINNEY" budget last --add-usd 100'
try try-grandchild sh -c 'sh -c "\"$SPINNEY\" budget last --add-usd 100; exit \$?"; exit $?'
try try-session setsid --wait "$SPINNEY" budget last --add-usd 100
try try-spelling spinney --home .spinney/runs/../../.spinney/. budget last --add-usd 100
try try-link spinney --home link budget last --add-usd 100
try try-run-home spinney --home "$run" budget last --add-usd 100
try try-run-link spinney --home run-link budget last --add-usd 100
try try-cancel spinney cancel last
try try-pause spinney pause last
try try-unpause spinney unpause last
for look in "ps" "events last" "costs last" "tree last"; do spinney $look > /dev/null || echo "cannot look: $look"; done
call 900 one
call 900 two
echo finished
"#;
    let mut running = start(&stage, &upstream, script);
    running.until_noted("continue with: spinney budget");
    let tree = last(&stage);
    assert_eq!(ceiling(&stage, &tree), json!(1_000_000_000));
    let raised = stage.spinney(&["budget", "last", "--add-usd", "1"]);
    assert_eq!(raised.code, Some(0), "{}", raised.err);
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{} {}", ended.out, ended.err);
    assert!(ended.out.contains("finished") && !ended.out.contains("cannot look"), "{}", ended.out);
    assert_all_refused(&ended.out, 11);
    assert!(ended.err.contains("spent $1.80 of $2.00"), "{}", ended.err);
}

/// G23: a process whose parents have ended is still one that the program started.
#[test]
fn g23_an_orphan_of_a_program_cannot_raise_its_budget() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(1)]);
    // The orphan begins when the process between it and the program is gone.
    let script = r#"
mkfifo said
( between=$BASHPID
  setsid bash -c 'while kill -0 '$between' 2>/dev/null; do :; done
    said=$("$SPINNEY" budget last --add-usd 100 2>&1); echo "try-orphan: $? $said" > said' & )
cat said
"#;
    let ended = start(&stage, &upstream, script).end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_all_refused(&ended.out, 1);
    assert!(ended.err.contains("of $1.00"), "{}", ended.err);
}

/// G23: the process that has the tree open refuses, whichever process writes to its socket.
#[test]
fn g23_a_program_that_writes_to_the_socket_itself_is_refused() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(1)]);
    let (mut other, held) = held_run(&stage);
    let home_tree = last(&stage);
    let script = format!(
        r#"
run=$(echo "$PWD"/.spinney/runs/*)
raise() {{ SPINNEY_TEST_SOCKET="$1" SPINNEY_TEST_TREE="$2" SPINNEY_TEST_AGENT="$3" "{test}" --exact \
  raising_inside::writes_to_the_socket_it_is_given --nocapture --test-threads 1; }}
raise "$run/control" "$(basename "$run")" main
raise "$PWD/.spinney/control" "$(basename "$run")" main
raise "$PWD/.spinney/control" "{home_tree}" lead
( raise "$run/control" "$(basename "$run")" main )
"#,
        test = std::env::current_exe().unwrap().display(),
    );
    let ended = start(&stage, &upstream, &script).end();
    assert_eq!(ended.code, Some(0), "{} {}", ended.out, ended.err);
    let answers: Vec<&str> = ended.out.lines().filter(|line| line.contains("the socket says")).collect();
    assert_eq!(answers.len(), 4, "{}", ended.out);
    for answer in answers {
        assert!(answer.contains(r#""kind":"refused""#) && answer.contains(REFUSED), "{answer}");
    }
    assert!(ended.err.contains("of $1.00"), "{}", ended.err);
    assert_eq!(ceiling(&stage, &home_tree), json!(1_000_000_000));
    held.release();
    other.until("completed");
}

/// G23: a command in a box reaches the socket of another home in a folder that it may read, and changes nothing there.
#[test]
fn g23_a_command_in_a_box_changes_no_tree_of_another_home() {
    let (stage, apart) = (TestFolder::new(), TestFolder::new());
    let (mut other, held) = held_run(&stage);
    let home_tree = last(&stage);
    let test = std::env::current_exe().unwrap();
    let line = format!(
        "SPINNEY_TEST_SOCKET={socket} SPINNEY_TEST_TREE={home_tree} SPINNEY_TEST_AGENT=lead {test} --exact raising_inside::writes_to_the_socket_it_is_given --nocapture --test-threads 1",
        socket = stage.home().join("control").display(),
        test = test.display(),
    );
    let call = json!({ "tool": "run_command", "args": { "command": line } });
    let script = format!("rules:\n  - {{ when: {{ turn: 1 }}, call: [{call}] }}\n  - {{ say: done }}\n");
    let tree = apart.tree("run_command", &script);
    let folders = [stage.folder(), test.parent().unwrap()].map(|folder| folder.display().to_string());
    let ended = apart.spinney(&["run", &tree, "--read", &folders[0], "--read", &folders[1]]);
    assert_eq!(ended.code, Some(0), "{} {}", ended.out, ended.err);
    let events = apart.spinney(&["events", "last", "--json"]).out;
    assert!(events.contains("the socket says") && events.contains(REFUSED), "{events}");
    assert_eq!(ceiling(&stage, &home_tree), json!(1_000_000_000));
    held.release();
    other.until("completed");
}

/// Not a test on its own: the program of the test above, which asks for a raise over the socket in its environment.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test above says where to write and what")]
fn writes_to_the_socket_it_is_given() {
    let variable = |name: &str| std::env::var(name).ok();
    let Some(socket) = variable("SPINNEY_TEST_SOCKET") else { return };
    let (tree, agent) = (variable("SPINNEY_TEST_TREE").unwrap(), variable("SPINNEY_TEST_AGENT").unwrap());
    let request = json!({ "verb": "raise", "agent": agent, "add": { "cost_nanos": 100_000_000_000_u64 } });
    let line = json!({ "version": 2, "body": { "kind": "apply", "tree": tree, "request": request } });
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    println!("\nthe socket says {answer}");
}

/// A tree of the home that `spinney run` has open, until its model is released.
fn held_run(stage: &TestFolder) -> (Playing, Upstream) {
    let model = Upstream::new(vec![Reply::says("done", &[]).late()]);
    let running = stage.play(&["run", &stage.tree_on(&model), "--plain"]);
    model.was_asked(1);
    (running, model)
}

/// G23: the other trees of the home are out of its reach as well, whether a process has them open or not.
#[test]
fn g23_a_program_cannot_change_other_trees_of_its_home() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(900)]);
    let earlier = exec(
        &stage,
        &upstream,
        &["--budget-usd", "1", "--on-limit", "stop"],
        "call 900 a\ncall 900 b\nexit 9",
    );
    assert_eq!(earlier.end().code, Some(3));
    let run = last(&stage);
    let halted = stage.spinney(&[
        "run",
        &stage.tree_with("budget: { cost_usd: 0.000001 }", "", "rules: [ { say: done } ]"),
    ]);
    assert_eq!(halted.code, Some(3), "{} {}", halted.out, halted.err);
    let tree = last(&stage);
    assert_eq!(stage.spinney(&["checkpoint", "make", &tree, "lead", "--name", "mine"]).code, Some(0));
    let before = (stage.spinney(&["events", &run]).out, stage.spinney(&["events", &tree]).out);
    let script = format!(
        r#"
for tree in {run} {tree}; do
  try try-raise spinney budget $tree --add-usd 100
  try try-cancel spinney cancel $tree
  try try-rm spinney rm $tree --force
done
try try-resume spinney resume {tree}
try try-exec-resume spinney exec --resume {run} -- true
try try-checkpoint spinney checkpoint make {tree} lead
try try-branch spinney checkpoint branch mine --budget-usd 100
try try-rollback spinney checkpoint rollback mine
try try-clean spinney checkpoint clean
try try-accept spinney ps --accept-loss
"#
    );
    let ended = start(&stage, &upstream, &script).end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_all_refused(&ended.out, 13);
    let after = (stage.spinney(&["events", &run]).out, stage.spinney(&["events", &tree]).out);
    assert_eq!(after, before);
    for tree in [&run, &tree] {
        let raised = stage.spinney(&["budget", tree, "--add-usd", "1"]);
        assert_eq!(raised.code, Some(0), "{}", raised.err);
    }
}

/// G23: a program that hides its ancestors in a new namespace changes nothing either, whatever trees no process has
/// open. Where such namespaces are not permitted, its command fails before that.
#[test]
fn g23_a_namespace_of_its_own_does_not_help_a_program() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(10)]);
    assert_eq!(exec(&stage, &upstream, &["--budget-usd", "1"], "exit 130").end().code, Some(130));
    let stored = last(&stage);
    let each = format!(
        "for flags in -Urpf -pf; do\n  try try-namespace unshare $flags --mount-proc \"$SPINNEY\" budget {stored} --add-usd 100\ndone"
    );
    // A lock that is gone may be held.
    let script = format!("{each}\nrm .spinney/runs/*/lock\n{each}");
    let ended = start(&stage, &upstream, &script).end();
    let attempts = attempts(&ended.out);
    assert_eq!(attempts.len(), 4, "{}", ended.out);
    assert!(attempts.iter().all(|attempt| !attempt.contains(": 0 ")), "{attempts:?}");
    let is_permitted = |attempt: &&&str| !attempt.contains("unshare: ");
    for attempt in attempts.iter().filter(is_permitted) {
        assert!(attempt.contains("a run of this home is in another namespace"), "{attempt}");
    }
    assert_eq!(ceiling(&stage, &stored), json!(1_000_000_000_u64));
}

/// G23: a program does not change the user's configuration either: prices and hosts in it bound every later run.
#[test]
fn g23_a_program_does_not_change_the_configuration() {
    let stage = TestFolder::stranger();
    let upstream = Upstream::new(vec![used(1)]);
    let script = r"
try try-budget spinney config set budget.cost_usd 1000
try try-price spinney config set prices.m 0,0
try try-field spinney config add allow_field bash tool:web_search_20250305
try try-host spinney config add allow_hosts evil.example
try try-notify spinney config set notify -- bash -c true
try try-unset spinney config unset budget
spinney config > /dev/null && spinney config path > /dev/null; echo reads: $?
";
    let ended = start(&stage, &upstream, script).end();
    assert_all_refused(&ended.out, 6);
    assert!(ended.out.contains("reads: 0"), "{}", ended.out);
    assert!(!stage.spinney(&["config"]).out.contains("config.toml"));
}

/// G24: a raise that reaches a stopped tree by another path is asked about before the tree continues.
#[test]
fn g24_a_raise_in_a_copy_of_the_home_is_asked_about() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(900)]);
    let first = exec(&stage, &upstream, &["--budget-usd", "1"], "call 900 a\nexit 130").end();
    assert_eq!(first.code, Some(130), "{}", first.err);
    let run = last(&stage);
    let [ours, theirs] =
        [stage.home(), &stage.folder().join("theirs")].map(|home| home.join("runs").join(&run));
    fs::create_dir_all(theirs.parent().unwrap()).unwrap();
    fs::rename(&ours, &theirs).unwrap();
    let raised = stage.spinney(&["--home", "theirs", "budget", &run, "--add-usd", "100"]);
    assert_eq!(raised.code, Some(0), "{}", raised.err);
    fs::rename(&theirs, &ours).unwrap();
    let asks = exec(&stage, &upstream, &["--resume", "last"], "call 900 b").end();
    assert_eq!(asks.code, Some(2), "{}", asks.err);
    assert!(asks.err.contains("were raised, and this machine has no record of that"), "{}", asks.err);
    assert_eq!(upstream.asked().len(), 1);
    let trusted = exec(&stage, &upstream, &["--resume", "last", "--trust-home"], "call 900 b").end();
    assert_eq!(trusted.code, Some(0), "{}", trusted.err);
}

/// A raise by the user is recorded at once, so nothing is asked after a kill.
#[test]
fn a_raise_by_the_user_is_recorded_before_a_kill() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(900)]);
    let mut running =
        exec(&stage, &upstream, &["--budget-usd", "1"], "call 900 a\necho done-once\nsleep NAP");
    running.until("done-once");
    assert_eq!(stage.spinney(&["budget", "last", "--add-usd", "1"]).code, Some(0));
    running.kill();
    let resumed = exec(&stage, &upstream, &["--resume", "last"], "call 900 b").end();
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
}

/// G23: a new run below is not a raise, and the trees of another home are none of this run's.
#[test]
fn g23_a_new_run_below_works_and_other_homes_are_not_affected() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(1)]);
    let elsewhere = stage.folder().join("other").display().to_string();
    let tree = stage.tree_with("budget: { cost_usd: 0.000001 }", "", "rules: [ { say: done } ]");
    let halted = stage.spinney(&["--home", &elsewhere, "run", &tree]);
    assert_eq!(halted.code, Some(3), "{} {}", halted.out, halted.err);
    let script = r#"
spinney exec --budget-usd 1 -- bash -c 'echo below; said=$("$SPINNEY" budget last --add-usd 1 2>&1); echo "try-below: $? $said"'
try try-run spinney budget last --add-usd 1
spinney --home other budget last --add-usd 1
echo "other home: $?"
spinney run tree.yaml > /dev/null 2>&1
echo "new tree: $?"
"#;
    let ended = start(&stage, &upstream, script).end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(
        ended.out.contains("below") && ended.out.contains("other home: 0"),
        "{} {}",
        ended.out,
        ended.err
    );
    assert!(ended.out.contains("new tree: 3"), "{} {}", ended.out, ended.err);
    assert_all_refused(&ended.out, 2);
    assert_eq!(fs::read_dir(stage.home().join("runs")).unwrap().count(), 2);
}
