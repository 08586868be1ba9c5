//! Checkpoints from the command line.

use serde_json::json;
use spinney_journal::{Blocking, CatalogKind, CatalogRow, CheckpointFacts, Journal};
use spinney_kernel::primitives::{CheckpointKind, Seq, Time};
use spinney_store::{Access, SqliteJournal};

use crate::scripts::HANGS;
use crate::test_folder::{TestFolder, steady};

const ASKS: &str = "rules: [ { when: { turn: 1 }, call: [ { tool: ask_human, args: { question: \"Which?\" } } ] }, { say: done } ]";

/// A stage with a tree that waits for a person.
fn waiting() -> TestFolder {
    let stage = TestFolder::new();
    assert_eq!(stage.spinney(&["run", &stage.tree("ask_human", ASKS)]).code, Some(5));
    stage
}

/// P25: one index of the home lists the checkpoints of all trees, by agent id.
#[test]
fn p25_checkpoints_of_all_trees_are_listed_by_agent() {
    let stage = waiting();
    let made = stage.spinney(&["checkpoint", "make", "lead", "--name", "before-lunch"]);
    assert_eq!((made.code, made.out.as_str()), (Some(0), "before-lunch\n"));
    assert_eq!(steady(&made.err), "checkpoint of `lead` in tree [id]\n");
    assert_eq!(stage.spinney(&["run", &stage.tree("ask_human", ASKS)]).code, Some(5));
    let drawn = stage.spinney(&["checkpoint", "make", "lead"]);
    assert_eq!((drawn.code, drawn.out.len()), (Some(0), 20), "{}", drawn.err);
    let listed = stage.spinney(&["checkpoint", "ls"]);
    insta::assert_snapshot!(steady(&listed.out), @"
    NAME                 AGENT  KIND    TREE          EVENT  MADE
    before-lunch         lead   manual  [id]      7  just now
    [name]  lead   manual  [id]      7  just now
    ");
    let json = stage.spinney(&["checkpoint", "ls", "--agent", "lead", "--json"]).json();
    let trees: Vec<_> =
        stage.spinney(&["ps", "--json"]).json().iter().rev().map(|tree| tree["tree"].clone()).collect();
    assert_eq!(json.iter().map(|line| line["tree"].clone()).collect::<Vec<_>>(), trees);
    assert_eq!((&json[0]["checkpoint"], &json[0]["kind"]), (&json!("before-lunch"), &json!("manual")));
    let none = stage.spinney(&["checkpoint", "ls", "--agent", "nobody"]);
    insta::assert_snapshot!(none.out, @"no checkpoint of `nobody` yet");
    // The tree still waits for the same thing.
    assert_eq!(stage.spinney(&["answer", "last", "2", "this one"]).code, Some(0));
    assert_eq!(stage.spinney(&["resume", "last"]).code, Some(0));
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

#[test]
fn a_checkpoint_that_cannot_be_made_says_why() {
    let stage = waiting();
    let first = stage.spinney(&["checkpoint", "make", "lead", "--name", "one"]);
    assert_eq!(first.code, Some(0), "{}", first.err);
    let before = stage.spinney(&["ps", "--json"]).out;
    let printed: Vec<String> = [
        &["checkpoint", "make", "lead", "--name", "one"][..],
        &["checkpoint", "make", "nobody"],
        &["checkpoint", "make", "zz", "lead"],
        &["checkpoint", "make", "lead", "--name", "No Name"],
    ]
    .map(|args| {
        let refused = stage.spinney(args);
        assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{args:?}");
        steady(&refused.err)
    })
    .to_vec();
    insta::assert_snapshot!(printed.join(""), @"
    spinney: checkpoint `one` already exists in tree [tree]: choose another name, or leave it out
    spinney: no agent `nobody` in this tree: known agents: lead
    spinney: `zz` is not a tree id: use a prefix of one that `spinney ps` lists, or `last`
    error: invalid value 'No Name' for '--name <NAME>': `No Name` is not a valid checkpoint name: 1 to 64 characters of a-z, 0-9, `_` and `-`, the first a letter or digit

    For more information, try '--help'.
    ");
    assert_eq!(stage.spinney(&["ps", "--json"]).out, before);
    let empty = TestFolder::new().spinney(&["checkpoint", "ls"]);
    assert_eq!(empty.code, Some(2));
}

#[test]
fn a_checkpoint_is_made_in_a_tree_that_runs() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("", HANGS)]);
    running.until("starts");
    assert_eq!(stage.spinney(&["checkpoint", "make", "lead", "--name", "early"]).code, Some(0));
    running.until("has a checkpoint: early, manual");
    let again = stage.spinney(&["checkpoint", "make", "lead", "--name", "early"]);
    assert_eq!(again.code, Some(2), "{}", again.err);
    running.kill();
    assert_eq!(stage.spinney(&["checkpoint", "ls", "--json"]).json().len(), 1);
}

/// P24: a branch has its own answer and budget, is listed with its origin, and is verified from its first event.
#[test]
fn p24_a_branch_is_made_run_listed_and_guards_its_origin() {
    let stage = waiting();
    stage.spinney(&["checkpoint", "make", "lead", "--name", "fork"]);
    let printed: Vec<String> = [
        &["checkpoint", "branch", "fork"][..],
        &["checkpoint", "branch", "spoon", "--budget-usd", "1"],
        &["checkpoint", "branch", "fork", "--budget-usd", "-1"],
    ]
    .map(|args| {
        let refused = stage.spinney(args);
        assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{args:?}");
        refused.err.lines().next().unwrap_or_default().to_owned()
    })
    .to_vec();
    insta::assert_snapshot!(printed.join("\n"), @"
    error: the following required arguments were not provided:
    spinney: no checkpoint starts with `spoon`: `spinney checkpoint ls` lists all of them
    error: unexpected argument '-1' found
    ");
    let made = stage.spinney(&["checkpoint", "branch", "fo", "--budget-usd", "0.5"]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    insta::assert_snapshot!(steady(&made.err), @"branched off tree [id] at `fork`, event 7; continue with: spinney resume [id]");
    let branch = made.out.trim();
    let origin = stage.spinney(&["ps", "--json"]).json()[1]["tree"].as_str().unwrap().to_owned();
    insta::assert_snapshot!(steady(&stage.spinney(&["ps"]).out), @"
    TREE          STATE    NAME  EVENTS  STARTED   LAST CHANGE
    [id]  stopped  test      10  just now  just now     branch of [id] at 7
    [id]  waiting  test       7  just now  just now
    ");
    assert_eq!(stage.spinney(&["answer", branch, "2", "left"]).code, Some(0));
    assert_eq!(stage.spinney(&["resume", branch]).code, Some(0));
    assert_eq!(stage.spinney(&["answer", &origin, "2", "right"]).code, Some(0));
    assert_eq!(stage.spinney(&["resume", &origin]).code, Some(0));
    insta::assert_snapshot!(steady(&stage.spinney(&["events", branch, "--from", "7"]).out), @"
     7    0.00s  lead  has a checkpoint: fork, manual
     8    0.00s  -  branched off tree [id] after event 7: what ran there does not run here
     9    0.00s  -  the tree is stopped until it is resumed
    10    0.00s  lead  has a checkpoint: [name], branch
    11    0.00s  lead  has an answer from a person: left
    12    0.00s  lead  asks model fast (call 3): 373 tokens in, at most 16000 out
    13    0.00s  lead  waits with model fast: suspended
    14    0.00s  -  the tree continues
    15    0.00s  lead  starts model fast, attempt 1: $0.02009325, 16,373 tokens, 1 step held
    16    0.00s  lead  answers: done  [16,373 tokens held, 374 used: 373 in, 1 out]
    17    0.00s  lead  completed; spent $0.0000945, 374 tokens, 1 step
    ");
    for tree in [branch, &origin] {
        assert_eq!(stage.spinney(&["replay", tree, "--verify"]).code, Some(0));
    }
    let guarded = stage.spinney(&["rm", &origin]);
    assert_eq!(guarded.code, Some(2));
    insta::assert_snapshot!(steady(&guarded.err), @"spinney: not removed; `spinney rm [id] --force` removes it anyway: tree [tree] is the origin of branch [tree]: remove that first, or force it");
    let forced = stage.spinney(&["rm", &origin, "--force"]);
    assert_eq!(forced.code, Some(0));
    insta::assert_snapshot!(steady(&forced.err), @"
    removed tree [tree]
    branch [tree] keeps the shared part; it has ended and was not notified
    ");
    assert_eq!(stage.spinney(&["replay", branch, "--verify"]).code, Some(0));
}

/// Adds catalog rows for checkpoints of the only tree: kind, number, and when they were made.
fn plant(stage: &TestFolder, planted: &[(CheckpointKind, u32, Time)]) {
    let journal = SqliteJournal::open(stage.home(), Access::Write).unwrap();
    let head = journal.heads(&[]).wait().unwrap().remove(0);
    let rows = planted.iter().enumerate().map(|(nth, (kind, number, made))| {
        let agent = "lead".parse().unwrap();
        let known = CheckpointFacts { agent, kind: *kind, seq: Seq(1), made: *made, number: *number };
        let value = Some(serde_json::to_string(&known).unwrap());
        CatalogRow { kind: CatalogKind::Checkpoint, key: format!("c{nth}"), value }
    });
    let name = journal.catalog(CatalogKind::Tree, "").wait().unwrap().remove(0);
    let name = CatalogRow { kind: CatalogKind::Tree, key: name.key, value: Some(name.value) };
    journal.replace_catalog(head.tree, head.seq, rows.chain([name]).collect()).wait().unwrap();
}

/// P26: the command prints how many it removed, keeps those of people, branches and rollbacks, and is idempotent.
#[test]
fn p26_clean_removes_what_has_expired_and_says_how_many() {
    use CheckpointKind::{Automatic, Branch, Manual, Rollback};
    let stage = waiting();
    let (old, new) = (Time(1_000), Time(u64::MAX >> 12));
    let kinds = [(Automatic, 1, old), (Automatic, 10, old), (Automatic, 1, new), (Automatic, 2, new)];
    plant(&stage, &[&kinds[..], &[(Manual, 0, old), (Branch, 0, old), (Rollback, 0, old)]].concat());
    let printed: Vec<String> = [(); 2]
        .map(|()| {
            let cleaned = stage.spinney(&["checkpoint", "clean"]);
            assert_eq!((cleaned.code, cleaned.err.as_str()), (Some(0), ""));
            cleaned.out
        })
        .to_vec();
    insta::assert_snapshot!(printed.join(""), @"
    removed 2 automatic checkpoints, 2 left
    nothing to remove
    ");
    let left = stage.spinney(&["checkpoint", "ls", "--json"]).json();
    let mut left: Vec<&str> = left.iter().map(|line| line["checkpoint"].as_str().unwrap()).collect();
    left.sort_unstable();
    assert_eq!(left, ["c2", "c3", "c4", "c5", "c6"]);
    plant(&stage, &[(Automatic, 1, old), (Automatic, 1, new)]);
    let one = stage.spinney(&["checkpoint", "clean"]);
    insta::assert_snapshot!(one.out, @"removed 1 automatic checkpoint, 1 left");
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
    assert!(stage.spinney(&["ps"]).out.contains("test"));
}

/// P26: a folder that is not a home is not changed, and a journal that another process has open is cleaned by that.
#[test]
fn p26_clean_is_done_by_the_process_that_has_the_home_open() {
    let stage = TestFolder::new();
    let none = stage.spinney(&["checkpoint", "clean"]);
    assert_eq!((none.code, stage.home().exists()), (Some(2), false), "{}", none.err);
    let mut running = stage.play(&["run", &stage.tree("", HANGS)]);
    running.until("starts");
    let cleaned = stage.spinney(&["checkpoint", "clean"]);
    assert_eq!((cleaned.code, cleaned.out.as_str()), (Some(0), "nothing to remove\n"), "{}", cleaned.err);
    running.kill();
    assert_eq!(stage.spinney(&["checkpoint", "clean"]).out, "nothing to remove\n");
}

/// P23: rolls back a tree that is not running: prints what is left, which can be shown and continued from.
#[test]
fn p23_a_rollback_says_what_is_left_and_can_be_taken_back() {
    let stage = waiting();
    stage.spinney(&["checkpoint", "make", "lead", "--name", "then"]);
    stage.spinney(&["send", "last", "lead", "not so"]);
    let shown = |stage: &TestFolder| steady(&stage.spinney(&["show", "lead"]).out);
    let before = shown(&stage);
    let back = stage.spinney(&["checkpoint", "rollback", "th"]);
    assert_eq!((back.code, back.out.len()), (Some(0), 20), "{}", back.err);
    let prior = back.out.trim();
    insta::assert_snapshot!(steady(&back.err), @"restored `lead` from checkpoint `then`: 3 messages; the context before that is checkpoint `[name]`; continue with: spinney resume [id]");
    let now = shown(&stage);
    assert!(before.contains("not so") && !now.contains("not so"), "{now}");
    assert!(now.contains("rolled back"), "{now}");
    insta::assert_snapshot!(steady(&stage.spinney(&["checkpoint", "ls"]).out), @"
    NAME                 AGENT  KIND      TREE          EVENT  MADE
    then                 lead   manual    [id]      7  just now
    [name]  lead   rollback  [id]     10  just now
    ");
    // And back again.
    let again = stage.spinney(&["checkpoint", "rollback", prior]);
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert!(shown(&stage).contains("not so"));
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
    assert_eq!(stage.spinney(&["resume", "last"]).code, Some(0));
    let verified = stage.spinney(&["replay", "last", "--verify"]);
    assert_eq!(verified.code, Some(0), "{}", verified.err);
    let printed = stage.spinney(&["events", "last"]).out;
    assert!(printed.contains("is rolled back to its context at event"), "{printed}");
    // It has ended by now, and an end cannot be undone.
    let over = stage.spinney(&["checkpoint", "rollback", "then"]);
    assert_eq!((over.code, over.out.as_str()), (Some(2), ""));
    insta::assert_snapshot!(steady(&over.err), @"spinney: `lead` is in a tree that has ended and cannot be rolled back: branch from the checkpoint to continue in a new tree, such as: spinney checkpoint branch then --budget-usd 1");
}

/// P25: a checkpoint is restored into another agent only with `--into`, and only within the same tree.
#[test]
fn a_rollback_that_cannot_be_done_says_why() {
    let stage = waiting();
    stage.spinney(&["checkpoint", "make", "lead", "--name", "then"]);
    let before = stage.spinney(&["ps", "--json"]).out;
    let printed: Vec<String> = [
        &["checkpoint", "rollback"][..],
        &["checkpoint", "rollback", "now"],
        &["checkpoint", "rollback", "then", "--into", "laed"],
        &["checkpoint", "rollback", "then", "--into", "No One"],
    ]
    .map(|args| {
        let refused = stage.spinney(args);
        assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{args:?}");
        steady(&refused.err)
    })
    .to_vec();
    insta::assert_snapshot!(printed.join(""), @"
    error: the following required arguments were not provided:
      <NAME>

    Usage: spinney checkpoint rollback <NAME>

    For more information, try '--help'.
    spinney: no checkpoint starts with `now`: `spinney checkpoint ls` lists all of them
    spinney: no agent `laed` in this tree: did you mean `lead`?
    error: invalid value 'No One' for '--into <AGENT>': `No One` is not a valid agent id: 1 to 64 characters of a-z, 0-9, `_` and `-`, the first a letter or digit

    For more information, try '--help'.
    ");
    assert_eq!(stage.spinney(&["ps", "--json"]).out, before);
}

#[test]
fn a_tree_that_runs_is_rolled_back_by_its_process() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &stage.tree("", HANGS)]);
    running.until("starts");
    assert_eq!(stage.spinney(&["checkpoint", "make", "lead", "--name", "early"]).code, Some(0));
    let back = stage.spinney(&["checkpoint", "rollback", "early"]);
    assert_eq!(back.code, Some(0), "{}", back.err);
    insta::assert_snapshot!(steady(&back.err), @"restored `lead` from checkpoint `early`: 1 message; the context before that is checkpoint `[name]`");
    running.until("is rolled back");
    running.kill();
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}
