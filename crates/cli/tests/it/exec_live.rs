//! `spinney exec --live`: the tree is drawn below the output of a program that has no terminal of its own.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::exec::{CALLS, EXEC_PID, lives, nap, nap_seconds, until_gone, used};
use crate::pty::Pty;
use crate::test_folder::{NO_SERVER, TestFolder};
use crate::upstream::{Reply, Upstream};

/// Starts a program on a terminal, with the live view.
fn live(stage: &TestFolder, upstream: &Upstream, options: &[&str], script: &str, size: (u16, u16)) -> Pty {
    let program = script_of(stage, script);
    let mut args = vec!["exec", "--live", "--price", "m=0,1000"];
    args.extend(options);
    args.extend(["--", "bash", &program]);
    stage.terminal_in(&args, size, &environment(upstream))
}

fn script_of(stage: &TestFolder, script: &str) -> String {
    stage.file("program.sh", &format!("{CALLS}\n{}", script.replace("NAP", &nap_seconds())))
}

fn environment(upstream: &Upstream) -> [(&str, &str); 2] {
    [("ANTHROPIC_API_KEY", "sk-1"), ("ANTHROPIC_BASE_URL", upstream.url.as_str())]
}

/// The program's lines stay above the tree, in order and inert; at the ceiling the view has the command that raises it; at
/// the end nothing of the view is left, and the report is the usual one. G16 (terminal): the emulator fails at anything that
/// is neither text nor what draws the view.
#[test]
fn g16_a_program_runs_above_the_live_tree_and_its_text_is_inert() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(900)]);
    let script = "
printf 'one \\033[2J\\033]0;title\\007 \\u202e\\n'
echo two >&2
call 900 one | grep -o 'used [0-9]*'
echo three
call 900 two | grep -o 'used [0-9]*'
printf 'last, without an end'
";
    let mut terminal = live(&stage, &upstream, &["--budget-usd", "1"], script, (100, 24));
    terminal.until("three\n");
    let halted = terminal.until("  spinney budget");
    let text = halted.lines().find(|line| line.contains("one \\u{1b}[2J")).unwrap();
    assert_eq!(text, "one \\u{1b}[2J\\u{1b}]0;title\\u{7} \\u{202e}");
    let at = |part: &str| halted.find(part).unwrap_or_else(|| panic!("{part}: {halted}"));
    let order = ["one ", "\ntwo", "used 900", "three", " · halted", "■ everything waits", "■ main"].map(at);
    assert!(order.is_sorted(), "{halted}");
    assert!(halted.contains("$0.9000 of $1.00"), "{halted}");
    let command = halted.lines().find(|line| line.starts_with("  spinney budget")).unwrap().trim();
    let raised = stage.shell(command);
    assert_eq!(raised.code, Some(0), "{}", raised.err);
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    let (_, shown) = ended.out.split_once("\ntwo\n").unwrap();
    let expected = "used 900\nthree\nused 900\nlast, without an end\nspinney: completed after ";
    assert!(shown.starts_with(expected), "{}", ended.out);
    assert!(shown.contains("spent $1.80 of $1.80 · 2 calls · "), "{}", ended.out);
    assert_eq!(shown.lines().count(), 6, "{}", ended.out);
}

/// What a program writes into a file or a pipe is not touched; the view is drawn where standard error is.
#[test]
fn output_that_is_no_terminal_is_passed_on_unchanged_and_the_view_is_on_standard_error() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(100).late()]);
    let script = "
printf 'raw \\033[2J\\377\\r\\n\\ttail'
echo noted >&2
call 100 one >&2
";
    let program = script_of(&stage, script);
    let spinney = env!("CARGO_BIN_EXE_spinney");
    let line = format!("exec {spinney} exec --live --json --price m=0,1000 -- bash {program} > out");
    let mut terminal = stage.terminal_of("sh", &["-c", &line], (80, 24), &environment(&upstream));
    // What it writes and what it calls come by two ways.
    terminal.until("noted\n");
    let shown = terminal.until("asks model");
    assert!(shown.contains("noted\n") && shown.contains("● main"), "{shown}");
    assert!(!shown.contains("raw"), "{shown}");
    upstream.release();
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    let out = fs::read(stage.folder().join("out")).unwrap();
    let (raw, result) = out.split_at(b"raw \x1b[2J\xff\r\n\ttail".len());
    assert_eq!(raw, b"raw \x1b[2J\xff\r\n\ttail");
    let result: serde_json::Value = serde_json::from_slice(result).unwrap();
    assert_eq!(result["state"], json!("completed"));
}

/// The program finds no terminal at all, so it can neither wait for keys nor draw over the view.
#[test]
fn the_program_has_no_terminal() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(1)]);
    let script = "
for stream in 0 1 2; do [ -t $stream ] && echo terminal $stream; done
read -r line || echo end of input
( : > /dev/tty ) 2>/dev/null || echo no terminal
";
    let ended = live(&stage, &upstream, &[], script, (80, 24)).end();
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    assert!(ended.out.contains("\nend of input\nno terminal\nspinney: completed"), "{}", ended.out);
    assert!(!ended.out.contains("terminal 0") && !ended.out.contains("terminal 1"), "{}", ended.out);
}

/// Ctrl-C once interrupts the program, and twice ends everything; so does a closed terminal.
#[test]
fn ctrl_c_and_a_closed_terminal_end_the_run_as_without_the_view() {
    let upstream = Upstream::new(vec![used(1)]);
    let stage = TestFolder::new();
    let script = "trap 'echo interrupted; exit 130' INT\nsleep NAP &\necho started\nwait";
    let mut terminal = live(&stage, &upstream, &[], script, (80, 24));
    terminal.until("started");
    terminal.until(" · running");
    terminal.send("\u{3}");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(130), "{}", ended.out);
    assert!(ended.out.contains("interrupted\nspinney: stopped after"), "{}", ended.out);
    assert!(ended.out.contains("spinney exec --resume"), "{}", ended.out);
    assert!(!lives(&nap()));

    let stage = TestFolder::new();
    let script = "trap 'echo not yet' INT TERM\necho started\nwhile :; do sleep NAP & wait; done";
    let mut terminal = live(&stage, &upstream, &[], script, (80, 24));
    terminal.until("started");
    terminal.send("\u{3}");
    terminal.until("not yet");
    terminal.send("\u{3}");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(130), "{}", ended.out);
    assert!(!lives(&nap()));

    let stage = TestFolder::new();
    let mut terminal = live(&stage, &upstream, &[], "echo started\nsleep NAP", (80, 24));
    terminal.until("started");
    assert_eq!(terminal.close(), Some(130));
    until_gone(&nap());
}

/// A process that was stopped continues below what others wrote meanwhile, and does not draw over it.
#[test]
fn a_view_that_was_stopped_begins_anew() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(100).late()]);
    let script = format!("{EXEC_PID}\necho pid $exec_pid.\ncall 100 one >/dev/null");
    let mut terminal = live(&stage, &upstream, &[], &script, (80, 24));
    let shown = terminal.until("pid ");
    let pid = shown.split_once("pid ").and_then(|(_, rest)| rest.split_once('.')).unwrap().0.to_owned();
    terminal.until("asks model");
    assert!(Command::new("kill").args(["-CONT", &pid]).status().unwrap().success());
    terminal.until_times("agents live", 2);
    upstream.release();
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    assert_eq!(ended.out.matches("agents live").count(), 1, "{}", ended.out);
    assert!(ended.out.contains("\nspinney: completed after"), "{}", ended.out);
}

/// Without a terminal to draw on, the option changes nothing.
#[test]
fn without_a_terminal_the_program_runs_as_ever() {
    let stage = TestFolder::new();
    let args = ["exec", "--live", "--", "printf", "%s", "\u{1b}[2Jraw"];
    let ended = stage.play_in(&args, &NO_SERVER).end();
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "\u{1b}[2Jraw\n"), "{}", ended.err);
    assert!(ended.err.contains("spinney: completed after"), "{}", ended.err);
}

/// A command that is too long for the view is printed above it, whole.
#[test]
fn a_command_that_does_not_fit_the_view_is_printed_above_it() {
    let stage = TestFolder::new().at("a-home-with-a-very-long-name-that-no-narrow-terminal-has-room-for");
    let upstream = Upstream::new(vec![used(900)]);
    let mut terminal = live(&stage, &upstream, &["--budget-usd", "0.5"], "call 900 one >/dev/null", (60, 24));
    let halted = terminal.until("--add-usd 0.40");
    let command = halted.lines().find(|line| line.starts_with("spinney --home")).unwrap();
    assert_eq!(stage.shell(command).code, Some(0), "{halted}");
    assert_eq!(terminal.end().code, Some(0));
}

/// A call without an answer is a call: it may have been billed, so it is booked at its hold, and the report says so.
#[test]
fn the_report_counts_calls_that_were_cut_off_or_failed() {
    let stage = TestFolder::new();
    let cut = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{\"type\"";
    let upstream = Upstream::new(vec![
        Reply::Sent(cut.to_owned()),
        used(10),
        Reply::error("400 Bad Request", "content-length: 30\r\n", "no"),
    ]);
    let calls = |script: &str| {
        let program = script_of(&stage, script);
        let args = ["exec", "--price", "m=0,1000", "--", "bash", &program];
        stage.play_in(&args, &environment(&upstream)).end().err
    };
    let err = calls("call 100 one");
    assert!(err.contains("spent $0.10 (all presumed) · 1 call, cut off · "), "{err}");
    let err = calls("call 100 one\ncall 100 two");
    assert!(err.contains("spent $0.01 · 2 calls, 1 failed · "), "{err}");
}

/// Issue 34: the report begins on a separate line, also without the view.
#[test]
fn the_report_begins_below_a_line_without_an_end() {
    let stage = TestFolder::new();
    let program = ["exec", "--", "printf", "hello"];
    let mut environment = NO_SERVER.to_vec();
    environment.push(("ANTHROPIC_API_KEY", "sk-1"));
    let ended = stage.terminal_in(&program, (100, 24), &environment).end();
    assert!(ended.out.contains("\nhello\nspinney: completed"), "{}", ended.out);
}
