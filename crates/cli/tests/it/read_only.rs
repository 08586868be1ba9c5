//! Read-only commands need no disk space, no write access and no ownership of the home.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use serde_json::json;

use crate::homes::{everything, is_root};
use crate::scripts::SAYS;
use crate::test_folder::{Ended, TestFolder};

const HANGS: &str = "rules: [ { when: { turn: 1 }, call: [ { tool: look } ] }, { hang: true } ]\ntools: { look: { say: seen } }";

/// Read-only commands, and what each must print.
const LOOKS: [(&[&str], &str); 7] = [
    (&["ps", "--json"], "\"tree\""),
    (&["events", "last"], "starts model fast"),
    (&["show", "last", "lead"], "Try it."),
    (&["window", "last", "lead"], "lead"),
    (&["checkpoint", "ls"], "here"),
    (&["replay", "last", "--verify"], "with the same result"),
    (&["replay", "last"], "replayed"),
];

/// A home with a killed or ended tree, and a checkpoint.
fn stage(script: &str) -> TestFolder {
    let stage = TestFolder::new();
    let tree = stage.tree(
        "look",
        if script == SAYS { "rules: [ { say: done } ]\ntools: { look: { say: x } }" } else { script },
    );
    let mut running = stage.play(&["run", &tree]);
    running.until("starts");
    if script == HANGS {
        running.until("look");
        assert_eq!(stage.spinney(&["checkpoint", "make", "lead", "--name", "here"]).code, Some(0));
        running.kill();
    } else {
        running.end();
    }
    stage
}

/// Reads the home as a user without write access: root becomes another user, and other users remove their own write
/// permission.
fn looked(stage: &TestFolder, args: &[&str]) -> Ended {
    if !is_root(stage) {
        return stage.spinney(args);
    }
    let binary = stage.folder().join("spinney");
    if !binary.exists() {
        fs::copy(env!("CARGO_BIN_EXE_spinney"), &binary).unwrap();
    }
    let mut somebody = Command::new("setpriv");
    somebody.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(binary).args(args);
    Ended::from(somebody.env_remove("SPINNEY_HOME").current_dir(stage.folder()).output().unwrap())
}

/// Makes the home read-only for all users.
fn close(stage: &TestFolder) {
    let mode =
        |path: &std::path::Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    for (path, found, _) in everything(stage.home()) {
        mode(&path, if found & 0o170_000 == 0o040_000 { 0o555 } else { 0o444 });
    }
    mode(stage.home(), 0o555);
    mode(stage.folder(), 0o755);
}

/// Makes the home writable again, so it can be removed.
fn open(stage: &TestFolder) {
    for path in [stage.home().to_owned(), stage.home().join("workspace")] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
    }
}

fn check(stage: &TestFolder, what: &str) {
    let before = everything(stage.home());
    for (args, part) in LOOKS {
        if args[0] == "checkpoint" && what.starts_with("ended") {
            continue;
        }
        let seen = looked(stage, args);
        assert_eq!(seen.code, Some(0), "{what} {args:?} {}", seen.err);
        assert!(seen.out.contains(part), "{what} {args:?} {} {}", seen.out, seen.err);
        assert!(everything(stage.home()) == before, "{what} {args:?} changed the home");
    }
}

/// G14 (another owner): a user who may read a home sees everything in it, and creates no file there.
#[test]
fn a_home_that_may_not_be_written_can_be_looked_at() {
    for (script, what) in [(SAYS, "ended"), (HANGS, "killed")] {
        let stage = stage(script);
        close(&stage);
        check(&stage, what);
        if what == "killed" {
            // Without the index file that the dead process left.
            open(&stage);
            let file = |ending: &str| stage.home().join(format!("journal.sqlite3{ending}"));
            assert!(fs::metadata(file("-wal")).unwrap().size() > 0);
            fs::remove_file(file("-shm")).unwrap();
            close(&stage);
            check(&stage, "killed, without an index");
        }
        let refused = looked(&stage, &["cancel", "last"]);
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        let why = if is_root(&stage) { "belongs to user 0" } else { "not allowed" };
        assert!(refused.err.contains(why), "{}", refused.err);
        open(&stage);
    }
}

/// Trees of another user's home may be running: only its owner can ask.
#[test]
fn a_tree_of_another_owner_is_not_called_interrupted() {
    let stage = stage(HANGS);
    close(&stage);
    fs::set_permissions(stage.home().join("lock"), fs::Permissions::from_mode(0o600)).unwrap();
    let listed = looked(&stage, &["ps", "--json"]);
    let state = listed.result()["state"].clone();
    if is_root(&stage) {
        assert_eq!(state, json!("running"));
        assert!(listed.err.contains("another user's home"), "{}", listed.err);
    } else {
        assert_eq!(state, json!("interrupted"));
    }
    open(&stage);
}

/// A process that cannot write files at all sees the same as any other.
#[test]
fn a_home_can_be_looked_at_without_any_room() {
    for script in [SAYS, HANGS] {
        let stage = stage(script);
        let _ = fs::remove_file(stage.home().join("journal.sqlite3-shm"));
        let full = |args: &[&str]| {
            let line = r#"trap "" XFSZ; ulimit -f 0; exec "$@""#;
            let mut shell = Command::new("sh");
            shell.args(["-c", line, "sh", env!("CARGO_BIN_EXE_spinney")]).args(args);
            shell.env_remove("SPINNEY_HOME").current_dir(stage.folder());
            Ended::from(shell.output().unwrap())
        };
        for (args, part) in LOOKS {
            if args[0] == "checkpoint" && script == SAYS {
                continue;
            }
            let seen = full(args);
            assert_eq!(seen.code, Some(0), "{args:?} {}", seen.err);
            assert!(seen.out.contains(part), "{args:?} {}", seen.out);
        }
        // Checks that writing really fails there.
        assert_ne!(full(&["run", &stage.tree("", SAYS)]).code, Some(0));
    }
}

/// If a small disk can be mounted, fills it completely; otherwise only checks the reserved space.
#[test]
fn a_tree_is_removed_on_a_full_disk() {
    let stage = TestFolder::new();
    fs::create_dir(stage.home()).unwrap();
    let disk = Disk::mount(stage.home());
    if disk.is_none() {
        eprintln!(
            "NOTE: no disk can be mounted here, so none is full: only the room that is kept is checked"
        );
    }
    let tree = stage.tree("", SAYS);
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(0));
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(0));
    let reserve = stage.home().join("journal.reserve");
    assert!(fs::metadata(&reserve).unwrap().blocks() >= 512, "room is set aside, and really taken");
    if let Some(disk) = &disk {
        disk.fill();
        assert_ne!(stage.spinney(&["run", &tree]).code, Some(0), "the disk is full");
        assert_eq!(stage.spinney(&["ps", "--json"]).json().len(), 2);
    }
    let removed = stage.spinney(&["rm", "last"]);
    assert_eq!(removed.code, Some(0), "{}", removed.err);
    assert_eq!(stage.spinney(&["ps", "--json"]).json().len(), 1);
    assert!(!reserve.exists(), "it was given up");
    if let Some(disk) = disk {
        fs::remove_file(&disk.filler).unwrap();
        assert_eq!(stage.spinney(&["run", &tree]).code, Some(0));
        assert!(reserve.exists(), "and is set aside again");
    }
}

/// A disk of two megabytes.
struct Disk {
    at: std::path::PathBuf,
    filler: std::path::PathBuf,
}

impl Disk {
    fn mount(at: &std::path::Path) -> Option<Self> {
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs"]).arg(at).output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Some(Self { at: at.to_owned(), filler: at.join("filler") });
        }
        None
    }

    /// Fills it to the last byte.
    fn fill(&self) {
        use std::io::Write;
        let mut filler = fs::File::create(&self.filler).unwrap();
        for bytes in [4096, 1] {
            while filler.write_all(&vec![0; bytes]).is_ok() {}
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.at).status();
    }
}
