//! Ctrl-C under `spinney exec`: the run ends as interrupted whatever its program makes of the signal, unless the program
//! continues to work.

use serde_json::json;

use crate::exec::{CALLS, exec, lives, nap, nap_seconds, ps, used};
use crate::test_folder::TestFolder;
use crate::upstream::Upstream;

/// A program that makes a call, and at an interrupt does this.
fn at_interrupt(then: &str) -> String {
    format!(
        "at_interrupt() {{ {then}; }}\ntrap at_interrupt INT\ncall 100 one\necho ready\nwhile :; do sleep NAP & wait $!; done"
    )
}

/// Whatever exit code a program has after Ctrl-C, the run is interrupted and not completed: Claude Code exits with 0.
#[test]
fn a_program_that_catches_an_interrupt_and_ends_is_interrupted() {
    for then in ["exit 0", "echo one more line; exit 0", "exit 7"] {
        let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(100)]));
        let mut running = exec(&stage, &upstream, &["--budget-usd", "1"], &at_interrupt(then));
        running.until("ready");
        running.signal("INT");
        let ended = running.end();
        assert_eq!(ended.code, Some(130), "{then}: {}", ended.err);
        assert!(ended.err.contains("spinney exec --resume"), "{}", ended.err);
        assert_eq!(ps(&stage)[0]["state"], json!("stopped"));
        assert!(!lives(&nap()));
        let again = exec(&stage, &upstream, &["--resume", "last"], "call 100 two").end();
        assert_eq!(again.code, Some(0), "{}", again.err);
        assert!(again.err.contains("spent $0.20 of $1.00 · 2 calls"), "{}", again.err);
    }
}

/// The same at a terminal, where the program gets the signal from the terminal and not from us.
#[test]
fn a_program_that_catches_ctrl_c_at_a_terminal_and_ends_is_interrupted() {
    for then in ["exit 0", "exit 7"] {
        let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(100)]));
        let script = at_interrupt(then).replace("NAP", &nap_seconds());
        let program = stage.file("program.sh", &format!("{CALLS}\n{script}"));
        let environment = [("ANTHROPIC_API_KEY", "sk-1"), ("ANTHROPIC_BASE_URL", upstream.url.as_str())];
        let args = ["exec", "--budget-usd", "1", "--price", "m=0,1000", "--", "bash", &program];
        let mut terminal = stage.terminal_in(&args, (100, 24), &environment);
        terminal.until("ready");
        terminal.send("\u{3}");
        let ended = terminal.end();
        assert_eq!(ended.code, Some(130), "{then}: {}", ended.out);
        assert!(ended.out.contains("spinney exec --resume"), "{}", ended.out);
        assert_eq!(ps(&stage)[0]["state"], json!("stopped"));
    }
}

/// A program that makes another call after the interrupt has cancelled a turn and not the session.
#[test]
fn a_program_that_works_on_after_an_interrupt_is_completed() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(100)]));
    // Sooner, the call could be that of a part which has not noticed yet.
    let then = "sleep 3; call 100 two; echo finished; exit 0";
    let mut running = exec(&stage, &upstream, &["--budget-usd", "1"], &at_interrupt(then));
    running.until("ready");
    running.signal("INT");
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("finished"), "{}", ended.out);
    assert_eq!(ps(&stage)[0]["state"], json!("completed"));
}
