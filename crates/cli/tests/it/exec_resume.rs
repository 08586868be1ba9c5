//! `spinney exec --resume`: what the command line gives replaces what the run had, and the rest stays.

use serde_json::{Value, json};

use crate::exec::{exec, nap_seconds, ps, used};
use crate::test_folder::{Ended, TestFolder};
use crate::upstream::{ReceivedRequest, Upstream};

/// A run that was stopped after a call of 90 cents.
fn stopped(stage: &TestFolder, upstream: &Upstream, options: &[&str]) {
    let ended = exec(stage, upstream, options, "call 900 one\nkill -INT $$").end();
    assert_eq!(ended.code, Some(130), "{}", ended.err);
}

/// Resumes the last run with these options and another program. Its price is kept.
fn resumed(stage: &TestFolder, upstream: &Upstream, options: &[&str], script: &str) -> Ended {
    let name = format!("again-{}.sh", std::fs::read_dir(stage.folder()).unwrap().count());
    let script = format!("{}\n{}", crate::exec::CALLS, script.replace("NAP", &nap_seconds()));
    let program = stage.file(&name, &script);
    let args = [&["exec", "--resume", "last"], options, &["--", "bash", &program]].concat();
    let environment = [("ANTHROPIC_API_KEY", "sk-1"), ("ANTHROPIC_BASE_URL", upstream.url.as_str())];
    stage.play_in(&args, &environment).end()
}

/// The output cap of a request.
fn cap(asked: &ReceivedRequest) -> &Value {
    &asked.body["max_tokens"]
}

#[test]
fn a_budget_that_is_given_is_the_ceiling_in_total() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(900)]));
    stopped(&stage, &upstream, &["--budget-usd", "1", "--on-limit", "stop"]);
    // Less than what is spent.
    let refused = resumed(&stage, &upstream, &["--budget-usd", "0.5"], "call 1 two");
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{}", refused.err);
    for number in ["limit $0.50", "spent $0.90"] {
        assert!(refused.err.contains(number), "{}", refused.err);
    }
    assert_eq!(ps(&stage)[0]["state"], json!("stopped"));
    // More.
    let ended = resumed(&stage, &upstream, &["--budget-usd", "3"], "call 900 two\nkill -INT $$");
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    assert!(
        ended.err.contains("at most $3.00") && ended.err.contains("spent $1.80 of $3.00"),
        "{}",
        ended.err
    );
    // Less than before, and more than what is spent; the limit still stops it.
    let ended = resumed(&stage, &upstream, &["--budget-usd", "2"], "call 900 three\nexit 9");
    assert_eq!(ended.code, Some(3), "{}", ended.err);
    assert!(ended.err.contains("spent $1.80 of $2.00"), "{}", ended.err);
    assert_eq!(upstream.asked().len(), 2);
}

#[test]
fn a_run_without_a_budget_gets_one() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(900)]));
    stopped(&stage, &upstream, &["--on-limit", "stop"]);
    let ended = resumed(&stage, &upstream, &["--budget-usd", "1", "--steps", "9"], "call 900 two\nexit 9");
    assert_eq!(ended.code, Some(3), "{}", ended.err);
    assert!(ended.err.contains("at most $1.00, 9 steps"), "{}", ended.err);
    assert!(!ended.err.contains("no budget"), "{}", ended.err);
    assert_eq!(upstream.asked().len(), 1);
}

/// `--on-low` changes for the rest of the run.
#[test]
fn output_caps_are_fitted_or_left_alone_from_now_on() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(900)]));
    stopped(&stage, &upstream, &["--budget-usd", "7", "--on-low", "halt", "--on-limit", "stop"]);
    let ended = resumed(&stage, &upstream, &[], "call 9000 two\nexit 9");
    assert_eq!(ended.code, Some(3), "{}", ended.err);
    let ended = resumed(&stage, &upstream, &["--on-low", "shrink"], "call 9000 two\nkill -INT $$");
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    assert_eq!(upstream.asked().iter().map(cap).collect::<Vec<_>>(), [&json!(900), &json!(4_096)]);
    let ended = resumed(&stage, &upstream, &["--on-low", "halt"], "call 9000 three\nexit 9");
    assert_eq!(ended.code, Some(3), "{}", ended.err);
}

/// Options of the process: they replace, and they are kept for the next time.
#[test]
fn options_of_the_gateway_are_replaced_and_kept() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(900)]));
    stopped(&stage, &upstream, &["--budget-usd", "9", "--no-bodies"]);
    let other = "kill -INT $$";
    let ended =
        resumed(&stage, &upstream, &["--models", "n", "--price", "n=0,1"], &format!("call 1 two\n{other}"));
    assert!(ended.err.contains("model m is not allowed in this run: use one of n"), "{}", ended.err);
    let ended = resumed(&stage, &upstream, &[], &format!("call 1 two\n{other}"));
    assert!(ended.err.contains("use one of n"), "it is kept: {}", ended.err);
    let ended = resumed(&stage, &upstream, &["--models", "m,n"], &format!("call 900 two\n{other}"));
    assert!(ended.err.contains("spent $1.80 of $9.00 · 2 calls"), "the price of m is kept: {}", ended.err);
    for options in [
        &["--max-parallel", "1"][..],
        &["--child-budget-usd", "0.5", "--prices-of", "anthropic"],
        &["--allow-field", "tool:web_search", "--halt-wait", "1m"],
    ] {
        let ended = resumed(&stage, &upstream, options, other);
        assert_eq!(ended.code, Some(130), "{options:?}: {}", ended.err);
    }
    // The program is the one that was named last.
    let environment = [("ANTHROPIC_API_KEY", "sk-1"), ("ANTHROPIC_BASE_URL", upstream.url.as_str())];
    let again = stage.play_in(&["exec", "--resume", "last"], &environment).end();
    assert_eq!(again.code, Some(130), "{}", again.err);
    let shown = stage.spinney(&["show", "last", "main"]);
    assert!(shown.out.contains("--no-bodies"), "still: {}", shown.out);
    let replayed = stage.spinney(&["replay", "--verify", "last"]);
    assert_eq!(replayed.code, Some(0), "{}", replayed.err);
}

/// A timeout is of the whole run, also if it is its first.
#[test]
fn a_timeout_that_is_given_ends_the_program() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(900)]));
    stopped(&stage, &upstream, &["--budget-usd", "9"]);
    let ended = resumed(&stage, &upstream, &["--timeout", "1s"], "sleep NAP");
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.err.contains("timeout"), "{}", ended.err);
}

/// The words of a program may be relative paths, which mean other files in another folder.
#[test]
fn a_kept_program_is_started_in_its_own_folder_only() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(1)]));
    stage.file("agent.sh", "echo ours");
    std::fs::create_dir(stage.folder().join("below")).unwrap();
    stage.file("below/agent.sh", "echo theirs");
    let environment = [("ANTHROPIC_API_KEY", "sk-1"), ("ANTHROPIC_BASE_URL", upstream.url.as_str())];
    let first = stage
        .play_in(&["exec", "--budget-usd", "1", "--", "bash", "-c", ". ./agent.sh; exit 130"], &environment);
    assert_eq!(first.end().code, Some(130));
    let script = format!(
        "cd below && ANTHROPIC_API_KEY=sk-1 ANTHROPIC_BASE_URL={} spinney exec --resume last",
        upstream.url
    );
    let refused = stage.shell(&script);
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{}", refused.err);
    assert!(refused.err.contains("resume it there, or name a program after `--`"), "{}", refused.err);
    let resumed = stage.play_in(&["exec", "--resume", "last"], &environment).end();
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(130), "ours\n"), "{}", resumed.err);
}

/// A process that was killed after the end of its run has printed nothing. The next one does, and starts nothing.
#[test]
fn a_run_that_has_ended_prints_its_result() {
    for (script, code, word) in [("call 900 one", 0, "completed"), ("call 900 one\nexit 7", 7, "exit code 7")]
    {
        let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(900)]));
        let ended = exec(&stage, &upstream, &["--budget-usd", "1"], script).end();
        assert!(ended.err.contains(word), "{}", ended.err);
        // It needs no key.
        let again = stage.spinney(&["exec", "--resume", "last"]);
        assert_eq!((again.code, again.out.as_str()), (Some(code), ""), "{}", again.err);
        assert!(again.err.contains(word) && again.err.contains("spent $0.90"), "{}", again.err);
        assert!(again.err.contains("1 call") && again.err.contains("already ended"), "{}", again.err);
        let result = stage.spinney(&["exec", "--resume", "last", "--json"]).result();
        assert_eq!((&result["type"], &result["exit_code"]), (&json!("result"), &json!(code)));
        assert_eq!(result["spent"]["cost_nanos"], json!(900_000_000), "{result}");
        assert_eq!(upstream.asked().len(), 1);
        // Asking for more than that is refused.
        for more in [&["--budget-usd", "2"][..], &["--", "true"]] {
            let refused = stage.spinney(&[&["exec", "--resume", "last"], more].concat());
            assert_eq!(refused.code, Some(2), "{}", refused.err);
            assert!(refused.err.contains("start a new one"), "{}", refused.err);
        }
    }
}

/// A run is in its own home, and so are the commits that it lost.
#[test]
fn g13_a_loss_is_accepted_where_the_run_is() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(100), used(100)]));
    let mut running = exec(
        &stage,
        &upstream,
        &["--budget-usd", "1"],
        "call 100 one\ncall 100 two\necho ready\nexec sleep NAP",
    );
    running.until("ready");
    running.kill();
    crate::exec::until_gone(&crate::exec::nap());
    let id = ps(&stage)[0]["tree"].as_str().unwrap().to_owned();
    let wal = stage.home().join("runs").join(&id).join("journal.sqlite3-wal");
    let bytes = std::fs::read(&wal).unwrap();
    // Its last commits, and not its beginning.
    std::fs::write(&wal, &bytes[..bytes.len() * 7 / 8]).unwrap();
    let environment = [("ANTHROPIC_API_KEY", "sk-1"), ("ANTHROPIC_BASE_URL", upstream.url.as_str())];
    let resume = |more: &[&str]| {
        let args = [&["exec", "--resume", &id], more, &["--", "true"]].concat();
        stage.play_in(&args, &environment).end()
    };
    let refused = resume(&[]);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(refused.err.contains("were confirmed but are missing"), "{}", refused.err);
    let accepted = resume(&["--accept-loss"]);
    assert_eq!(accepted.code, Some(0), "{}", accepted.err);
    assert!(accepted.err.contains("gave up commits"), "{}", accepted.err);
}
