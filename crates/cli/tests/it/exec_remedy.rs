//! The commands that `spinney exec` prints at a ceiling suffice: pasted as they are, the call that needed more continues.

use serde_json::json;

use crate::exec::{exec, ps, used};
use crate::test_folder::{Ended, TestFolder};
use crate::upstream::Upstream;

/// The command in a note.
fn command_in<'n>(note: &'n str, before: &str) -> &'n str {
    note.lines().find_map(|line| line.split_once(before)).unwrap_or_else(|| panic!("{note}")).1.trim()
}

/// A run that stopped at its limit, or whose wait was over, prints what raises the ceiling and what continues it, in this
/// order. Nothing else is needed.
#[test]
fn g17_a_run_that_was_given_up_at_a_ceiling_prints_the_commands_that_let_it_finish() {
    for options in [
        &["--budget-usd", "1", "--on-limit", "stop"][..],
        &["--budget-usd", "1", "--halt-wait", "1ms"],
        &["--tokens", "2000", "--on-limit", "stop"],
        &["--steps", "1", "--on-limit", "stop"],
    ] {
        let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(900)]));
        let script = "if [ -e second ]; then call 900 two; echo finished; exit; fi\ntouch second\ncall 900 one\ncall 900 two\nexit 9";
        let ended = exec(&stage, &upstream, options, script).end();
        assert_eq!(ended.code, Some(3), "{options:?}: {}", ended.err);
        assert_eq!(ps(&stage)[0]["state"], json!("stopped"));
        let raise = command_in(&ended.err, "raise the ceiling with: ").to_owned();
        let resume = command_in(&ended.err, "then continue with: ").to_owned();
        let raised = stage.shell(&raise);
        assert_eq!(raised.code, Some(0), "{raise}: {}", raised.err);
        let words: Vec<&str> = resume.split(' ').collect();
        assert_eq!(words[..3], ["spinney", "exec", "--resume"], "{resume}");
        let environment = [("ANTHROPIC_API_KEY", "sk-1"), ("ANTHROPIC_BASE_URL", upstream.url.as_str())];
        let Ended { code, out, err } = stage.play_in(&words[1..], &environment).end();
        assert_eq!(code, Some(0), "{options:?} {raise}: {err}");
        assert!(out.contains("finished") && out.contains("used 900"), "{out}");
    }
}

/// A call that lacks several resources is raised by one command, for all of them.
#[test]
fn g17_a_call_that_lacks_several_resources_continues_after_the_printed_command() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(900)]));
    let ceilings = ["--budget-usd", "1", "--tokens", "2000", "--steps", "1"];
    let mut running = exec(&stage, &upstream, &ceilings, "call 900 one\ncall 900 two\necho finished");
    let note = running.until_noted("continue with: spinney budget");
    let raised = stage.shell(command_in(&note, "continue with: "));
    assert_eq!(raised.code, Some(0), "{}", raised.err);
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("finished") && ended.out.matches("used 900").count() == 2, "{}", ended.out);
    assert_eq!(ended.err.matches("everything waits").count(), 0, "once: {}", ended.err);
}

/// What a running call may still spend is not there for the call that waits.
#[test]
fn g17_a_call_that_waits_behind_a_running_one_continues_after_the_printed_command() {
    // The first call costs as much as it holds, and ends after the raise.
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(3_000).late(), used(3_500)]));
    let script = "call 3000 one &\nfirst=$!\nuntil [ -e asked ]; do :; done\ncall 3500 two &\nwait $! $first\necho finished";
    let mut running = exec(&stage, &upstream, &["--budget-usd", "3.1", "--on-low", "halt"], script);
    upstream.was_asked(1);
    stage.file("asked", "");
    let note = running.until_noted("continue with: spinney budget");
    let raised = stage.shell(command_in(&note, "continue with: "));
    assert_eq!(raised.code, Some(0), "{}", raised.err);
    upstream.was_asked(2);
    upstream.release();
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("finished") && ended.out.contains("used 3500"), "{}", ended.out);
}

/// A sub-agent at its own ceiling, below a run that is also at its ceiling.
#[test]
fn g17_a_sub_agent_whose_run_is_at_its_ceiling_too_continues_after_the_printed_command() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(1_900), used(900)]));
    let options = ["--budget-usd", "2", "--child-budget-usd", "0.5", "--on-low", "halt"];
    let script = "call 1900 one\nas_agent 900 two\necho finished";
    let mut running = exec(&stage, &upstream, &options, script);
    let note = running.until_noted("continue with: spinney budget");
    let raised = stage.shell(command_in(&note, "continue with: "));
    assert_eq!(raised.code, Some(0), "{note} {}", raised.err);
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("finished") && ended.out.contains("used 900"), "{}", ended.out);
}
