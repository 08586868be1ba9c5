//! A run of `spinney exec` whose journal fails: it ends with exit code 1 and a result that has the tree, the code and what
//! was spent.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use rusqlite::Connection;

use serde_json::json;

use crate::exec::{CALLS, exec, used};
use crate::exec_refused::last_line;
use crate::test_folder::TestFolder;
use crate::upstream::Upstream;

#[test]
fn a_run_whose_home_is_deleted_ends_with_the_true_sum() {
    for script in [
        "call 10 one\ncall 20 two\nrm -rf .spinney\ncall 30 three\nexit 0",
        "call 10 one\ncall 20 two\nrm -rf .spinney\nexit 0",
        "call 10 one\ncall 20 two\nrm -rf .spinney\nexit 7",
    ] {
        let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(10), used(20), used(30)]));
        let ended = exec(&stage, &upstream, &["--budget-usd", "1", "--json"], script).end();
        let result = last_line(&ended);
        assert_eq!((ended.code, &result["exit_code"]), (Some(1), &json!(1)), "{script}: {}", ended.err);
        assert_eq!((&result["state"], &result["error"]["code"]), (&json!("failed"), &json!("journal")));
        assert!(result["tree"].is_string() && result["agents"].is_array(), "{result}");
        assert_eq!(result["spent"]["cost_nanos"], json!(30_000_000), "{result}");
        assert!(ended.err.contains("was deleted or replaced"), "{}", ended.err);
    }
}

/// The disk is full.
#[test]
fn a_run_whose_disk_is_full_ends_with_the_true_sum_and_can_be_resumed() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(10)]));
    let text = "words ".repeat(20_000);
    let script = format!(
        "{CALLS}\nfor n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do call 10 \"{text}\"; done\nexit 0"
    );
    let program = stage.file("program.sh", &script);
    // With SIGXFSZ ignored, a write beyond this file size fails instead of killing the process.
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 1200; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_spinney")]);
    shell.args(["exec", "--json", "--price", "m=0,1000", "--budget-usd", "9", "--", "bash", &program]);
    shell.env("ANTHROPIC_API_KEY", "sk-1").env("ANTHROPIC_BASE_URL", &upstream.url);
    shell.envs(stage.user_folders()).current_dir(stage.folder()).stdin(Stdio::null());
    let ended = TestFolder::started(shell).end();
    let result = last_line(&ended);
    assert_eq!((ended.code, &result["error"]["code"]), (Some(1), &json!("journal")), "{}", ended.err);
    // A call whose end the journal does not have costs its hold, which is what it used here: the provider was asked, whether
    // its program saw the answer or not.
    let (answered, asked) = (ended.out.matches("used 10").count(), upstream.asked().len());
    assert!(answered > 0 && (answered..=answered + 1).contains(&asked), "{}", ended.out);
    let asked = asked as u64;
    assert_eq!(result["spent"]["cost_nanos"], json!(asked * 10_000_000), "{result}");
    let remedy = result["error"]["remedy"].as_str().unwrap();
    assert!(remedy.contains("spinney exec --resume"), "{remedy}");
    let again = exec(&stage, &upstream, &["--resume", "last", "--json"], "call 10 more").end();
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert_eq!(last_line(&again)["spent"]["cost_nanos"], json!((asked + 1) * 10_000_000));
}

/// A process may be killed before its run has begun. What it leaves is not a run, and hides none.
#[test]
fn a_run_whose_process_was_killed_before_it_began_is_passed_over() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(10)]));
    assert_eq!(exec(&stage, &upstream, &["--budget-usd", "1"], "call 10 one").end().code, Some(0));
    let left = stage.home().join("runs").join("f".repeat(32));
    let file = left.join("journal.sqlite3");
    for step in 0..3 {
        match step {
            0 => fs::create_dir(&left).unwrap(),
            1 => fs::write(&file, "").unwrap(),
            _ => {
                let database = Connection::open(&file).unwrap();
                database.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
            }
        }
        fs::set_permissions(&left, fs::Permissions::from_mode(0o700)).unwrap();
        let listed = stage.spinney(&["ps", "--json"]);
        assert_eq!((listed.code, listed.json().len(), listed.err.as_str()), (Some(0), 1, ""), "{step}");
        let last = stage.spinney(&["exec", "--resume", "last"]);
        assert!(
            last.err.contains("already ended") && last.err.contains("spent $0.01"),
            "{step}: {}",
            last.err
        );
    }
}
