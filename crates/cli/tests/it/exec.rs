//! `spinney exec` with real processes: a program that calls the gateway, another terminal that steers, and ends of every
//! kind. A token of output costs a tenth of a cent.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::exec_refused::last_line;
use crate::test_folder::{Ended, NO_SERVER, Playing, TestFolder};
use crate::upstream::{Reply, Upstream};

const USER_KEY: &str = "sk-the-users-own-key-0123456789";

/// A program that makes calls: `call TOKENS TEXT`, and as a sub-agent `as_agent TOKENS TEXT`.
pub(crate) const CALLS: &str = r#"
call() {
  at=${ANTHROPIC_BASE_URL#http://}
  exec 3<>/dev/tcp/${at%:*}/${at#*:}
  body="{\"model\":\"m\",\"max_tokens\":$1,\"messages\":[{\"role\":\"user\",\"content\":\"$2\"}]}"
  printf 'POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: %s\r\n%bconnection: close\r\ncontent-length: %s\r\n\r\n%s' \
    "$ANTHROPIC_API_KEY" "$as" "${#body}" "$body" >&3
  cat <&3
  exec 3>&-
  echo
}
as_agent() { as='x-claude-code-session-id: s\r\nx-claude-code-agent-id: a\r\n' call "$@"; }
"#;

/// The process of `spinney exec` as its program finds it: the parent of its own parent.
pub(crate) const EXEC_PID: &str =
    "while read -r name value; do [ $name = PPid: ] && exec_pid=$value; done < /proc/$PPID/status";

/// An answer that used so many tokens of output.
pub(crate) fn used(tokens: u64) -> Reply {
    let body = json!({
        "type": "message", "id": "msg", "role": "assistant", "model": "m",
        "content": [{ "type": "text", "text": format!("used {tokens}") }], "stop_reason": "end_turn",
        "usage": { "input_tokens": 1, "output_tokens": tokens },
    });
    let body = body.to_string();
    Reply::Sent(format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    ))
}

/// Starts a program under a budget of a dollar, or with other options.
pub(crate) fn exec(stage: &TestFolder, upstream: &Upstream, options: &[&str], script: &str) -> Playing {
    exec_in(stage, upstream, options, script, &[])
}

pub(crate) fn exec_in(
    stage: &TestFolder,
    upstream: &Upstream,
    options: &[&str],
    script: &str,
    more: &[(&str, &str)],
) -> Playing {
    // A shell reads its script while it runs, so each run has its own.
    let name = format!("program-{}.sh", fs::read_dir(stage.folder()).unwrap().count());
    let program = stage.file(&name, &format!("{CALLS}\n{}", script.replace("NAP", &nap_seconds())));
    let mut args = vec!["exec", "--price", "m=0,1000"];
    args.extend(options);
    args.extend(["--", "bash", &program]);
    let mut environment =
        vec![("ANTHROPIC_API_KEY", USER_KEY), ("ANTHROPIC_BASE_URL", upstream.url.as_str())];
    environment.extend(more);
    stage.play_in(&args, &environment)
}

/// A time that no other process sleeps for: a test is a separate process.
pub(crate) fn nap_seconds() -> String {
    format!("86400.{}", std::process::id())
}

/// The command line of a process that sleeps so long.
pub(crate) fn nap() -> String {
    format!("sleep\u{0}{}", nap_seconds())
}

/// Whether a process with this word in its command line lives.
pub(crate) fn lives(word: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let commands = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    commands.into_iter().any(|command| String::from_utf8_lossy(&command).contains(word))
}

pub(crate) fn until_gone(word: &str) {
    // A test that has not ended after some minutes is stopped by its runner.
    while lives(word) {
        std::thread::yield_now();
    }
}

pub(crate) fn ps(stage: &TestFolder) -> Vec<Value> {
    stage.spinney(&["ps", "--json"]).json()
}

/// The command in a note.
fn command_in(note: &str) -> &str {
    note.split_once("continue with: ").unwrap().1.trim()
}

/// G11: at its ceiling the program waits; the printed command tops it up from another terminal, and it finishes. Every
/// command that looks at a tree finds the run.
#[test]
fn g11_a_program_at_its_ceiling_waits_and_the_printed_command_lets_it_finish() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(900)]);
    let script = "call 900 one\ncall 900 two\necho finished";
    let mut running = exec(&stage, &upstream, &["--budget-usd", "1"], script);
    running.until("used 900");
    let note = running.until_noted("continue with: spinney budget");
    assert_eq!(ps(&stage)[0]["state"], json!("halted"));
    let raised = stage.shell(command_in(&note));
    assert_eq!(raised.code, Some(0), "{}", raised.err);
    let Ended { code, out, err } = running.end();
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("finished") && out.matches("used 900").count() == 2, "{out}");
    assert!(err.contains("spent $1.80 of $1.80 · 2 calls"), "{err}");
    assert_eq!(upstream.asked().len(), 2);
    assert_eq!(ps(&stage)[0]["state"], json!("completed"));
    for snapshot in [&["events", "last"][..], &["replay", "--verify", "last"], &["show", "last", "main"]] {
        let ended = stage.spinney(snapshot);
        assert_eq!(ended.code, Some(0), "{snapshot:?} {}", ended.err);
    }
    let shown = stage.spinney(&["show", "last", "main", "--calls", "--json"]).json();
    assert_eq!(shown.len(), 2);
    assert!(shown[0]["request"].as_str().unwrap().contains("\"one\""));
    assert!(shown[1]["response"].as_str().unwrap().contains("used 900"));
    assert_eq!(shown[1]["cost_nanos"], json!(900_000_000));
}

/// The other ceilings freeze a run as well, and the printed command raises the one that was reached.
#[test]
fn g11_a_ceiling_of_tokens_or_calls_freezes_and_the_printed_command_lets_it_finish() {
    for (ceiling, add) in [(["--tokens", "2500"], "--add-tokens 340"), (["--steps", "1"], "--add-steps 1")] {
        let stage = TestFolder::new();
        let upstream = Upstream::new(vec![used(900)]);
        let mut running = exec(&stage, &upstream, &ceiling, "call 900 one\ncall 900 two\necho finished");
        running.until("used 900");
        let note = running.until_noted("continue with: spinney budget");
        assert!(command_in(&note).ends_with(add), "{note}");
        assert_eq!(ps(&stage)[0]["state"], json!("halted"));
        let raised = stage.shell(command_in(&note));
        assert_eq!(raised.code, Some(0), "{}", raised.err);
        let Ended { code, out, err } = running.end();
        assert_eq!(code, Some(0), "{err}");
        assert!(out.contains("finished") && out.matches("used 900").count() == 2, "{out}");
        assert_eq!(upstream.asked().len(), 2);
    }
}

/// G11: with `--on-limit stop` the program reads our text, and the run can be raised and resumed.
#[test]
fn g11_a_program_that_is_stopped_at_the_limit_reads_our_text_and_the_run_can_go_on() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(900)]);
    let script = "call 900 one\ncall 900 two\nexit 9";
    let ended = exec(&stage, &upstream, &["--budget-usd", "1", "--on-limit", "stop"], script).end();
    assert_eq!(ended.code, Some(3), "{}", ended.err);
    assert!(ended.out.contains("402 Payment Required"), "{}", ended.out);
    assert!(ended.out.contains("a person can raise the budget"), "{}", ended.out);
    assert!(!ended.out.contains("spinney budget"), "only our terminal has the command: {}", ended.out);
    assert!(ended.err.contains("at the limit; raise it with: spinney budget"), "{}", ended.err);
    assert_eq!(ps(&stage)[0]["state"], json!("stopped"));
    assert_eq!(stage.spinney(&["budget", "last", "--add-usd", "2"]).code, Some(0));
    let again = exec(&stage, &upstream, &["--resume", "last", "--json"], "call 900 three").end();
    assert_eq!(again.code, Some(0), "{}", again.err);
    let result: Value = serde_json::from_str(again.out.lines().last().unwrap()).unwrap();
    assert_eq!(result["spent"]["cost_nanos"], json!(1_800_000_000));
    assert_eq!(ps(&stage).len(), 1, "one ledger");
}

/// G11: kill -9 of the gateway loses no booking: what was settled stays, what ran is presumed spent, and nothing of the
/// program is left.
#[test]
fn g11_a_killed_gateway_leaves_no_process_and_its_ledger_goes_on() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(100), Reply::Held(String::new())]);
    let script = "sleep NAP & call 100 one\ncall 300 two";
    let mut running = exec(&stage, &upstream, &["--budget-usd", "1"], script);
    running.until("used 100");
    upstream.was_asked(2);
    running.kill();
    until_gone(&nap());
    assert_eq!(ps(&stage)[0]["state"], json!("interrupted"));
    let upstream = Upstream::new(vec![used(50)]);
    let again = exec(&stage, &upstream, &["--resume", "last", "--json"], "call 50 three").end();
    assert_eq!(again.code, Some(0), "{}", again.err);
    let result: Value = serde_json::from_str(again.out.lines().last().unwrap()).unwrap();
    assert_eq!(result["spent"]["cost_nanos"], json!(450_000_000));
    assert_eq!(stage.spinney(&["replay", "--verify", "last"]).code, Some(0));
}

/// Cancelling from another terminal ends the program and everything that it started, whatever group that is in.
#[test]
fn a_cancelled_run_leaves_no_process() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(1)]);
    let script =
        "trap '' TERM\nsleep NAP &\nsetsid sleep NAP &\n(sleep NAP &)\necho started\nwait\nsleep NAP";
    let mut running = exec(&stage, &upstream, &["--budget-usd", "1"], script);
    running.until("started");
    assert_eq!(stage.spinney(&["cancel", "last"]).code, Some(0));
    let ended = running.end();
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    assert!(!lives(&nap()));
    assert_eq!(ps(&stage)[0]["state"], json!("cancelled"));
}

/// A run that waits at a ceiling and is stopped does not continue, and does not say so.
#[test]
fn a_waiting_run_that_is_stopped_does_not_say_that_it_continues() {
    for stop in ["INT", "TERM", "cancel"] {
        let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(900)]));
        let script = "call 900 one\ncall 900 two";
        let mut running = exec(&stage, &upstream, &["--budget-usd", "1"], script);
        running.until_noted("continue with: spinney budget");
        match stop {
            "cancel" => assert_eq!(stage.spinney(&["cancel", "last"]).code, Some(0)),
            signal => running.signal(signal),
        }
        let ended = running.end();
        assert!(!ended.err.contains("the run continues"), "{stop}: {}", ended.err);
        let code = if stop == "cancel" { 4 } else { 130 };
        assert_eq!(ended.code, Some(code), "{stop}: {}", ended.err);
    }
}

/// A deadline ends the program.
#[test]
fn a_run_whose_time_is_over_ends_its_program() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(1)]);
    let running = exec(&stage, &upstream, &["--timeout", "1s"], "sleep NAP");
    let ended = running.end();
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(!lives(&nap()));
}

/// What the program leaves behind when it ends is also ended; its exit code is ours.
#[test]
fn the_exit_code_is_the_programs_own_and_nothing_of_it_is_left() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(1)]);
    let ended = exec(&stage, &upstream, &[], "setsid sleep NAP >/dev/null 2>&1 &\nexit 7").end();
    assert_eq!(ended.code, Some(7), "{}", ended.err);
    assert!(!lives(&nap()));
    let none = stage.play_in(&["exec", "--", "no-such-program-here"], &NO_SERVER).end();
    assert_eq!(none.code, Some(127));
    assert!(none.err.contains("cannot start no-such-program-here"), "{}", none.err);
}

/// The printed command continues a run with its program and its options, such as prices; a program with the user's key in
/// its arguments has to be named again.
#[test]
fn a_run_is_resumed_as_it_was_started() {
    let upstream = Upstream::new(vec![used(100)]);
    let stage = TestFolder::new();
    let script = "call 100 one\nif [ -e second ]; then echo finished; exit; fi\ntouch second\necho ready\nexec sleep NAP";
    let mut running = exec(&stage, &upstream, &["--budget-usd", "1", "--no-bodies"], script);
    running.until("ready");
    running.signal("INT");
    let ended = running.end();
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    let command = ended.err.split_once("the same budget: ").unwrap().1.trim();
    let environment = [("ANTHROPIC_API_KEY", USER_KEY), ("ANTHROPIC_BASE_URL", upstream.url.as_str())];
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!(&words[..3], ["spinney", "exec", "--resume"]);
    let again = stage.play_in(&words[1..], &environment).end();
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert!(
        again.out.contains("finished") && again.err.contains("spent $0.20 of $1.00 · 2 calls"),
        "{}",
        again.err
    );

    let stage = TestFolder::new();
    let args = ["exec", "--", "bash", "-c", "echo ready", USER_KEY];
    let refused = stage.play_in(&args, &environment).end();
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{}", refused.err);
    let said = "argument 3 of the program contains the value of ANTHROPIC_API_KEY";
    assert!(refused.err.contains(said) && !stage.home().join("exec").exists(), "{}", refused.err);
}

/// A program may hide the errors that it gets, so the report has the last one.
#[test]
fn the_report_has_what_the_gateway_refused() {
    let upstream = Upstream::new(vec![used(100)]);
    let stage = TestFolder::new();
    let program =
        stage.file("program.sh", &format!("{CALLS}\ncall 100 one >/dev/null\ncall 100 two >/dev/null"));
    let no_price = [("ANTHROPIC_API_KEY", USER_KEY), ("ANTHROPIC_BASE_URL", upstream.url.as_str())];
    let ended = stage.play_in(&["exec", "--", "bash", &program], &no_price).end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let expected = "spinney: the gateway refused 2 requests, the last: the price of model m at your base URL is unknown: run with --prices-of anthropic";
    assert!(ended.err.contains(expected), "{}", ended.err);
    let ended = stage.play_in(&["exec", "--json", "--", "bash", &program], &no_price).end();
    assert_eq!(last_line(&ended)["refused"]["count"], json!(2), "{}", ended.out);
    // Without a key of its provider nothing goes up.
    let other = [("OPENAI_API_KEY", USER_KEY)];
    let priced = ["exec", "--price", "m=0,1", "--", "bash", &program];
    let ended = stage.play_in(&priced, &other).end();
    assert!(ended.err.contains("the gateway refused 2 requests, the last: "), "{}", ended.err);
    assert!(ended.err.contains("ANTHROPIC_API_KEY"), "{}", ended.err);
}

/// Signals: one interrupts the program and keeps the run, two end everything at once.
#[test]
fn an_interrupted_run_can_be_resumed() {
    let upstream = Upstream::new(vec![used(100)]);
    for (signal, script) in
        // A shell that waits for a command may survive an interrupt that reaches only itself.
        [
            ("INT", "call 100 one\necho ready\nexec sleep NAP"),
            ("TERM", "trap '' TERM INT\ncall 100 one\necho ready\nexec sleep NAP"),
        ]
    {
        let stage = TestFolder::new();
        let mut running = exec(&stage, &upstream, &["--budget-usd", "1"], script);
        running.until("ready");
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.code, Some(130), "{}", ended.err);
        assert!(!lives(&nap()));
        assert!(ended.err.contains("spinney exec --resume"), "{}", ended.err);
        assert_eq!(ps(&stage)[0]["state"], json!("stopped"));
        let again = exec(&stage, &upstream, &["--resume", "last"], "call 100 two").end();
        assert_eq!(again.code, Some(0), "{}", again.err);
    }
    let stage = TestFolder::new();
    // Signals that come before one of them is handled count as one, so the second waits for the first.
    let script = "trap 'echo interrupted' INT\ntrap '' TERM\necho ready\nwhile :; do sleep NAP & wait; done";
    let mut running = exec(&stage, &upstream, &[], script);
    running.until("ready");
    running.signal("INT");
    running.until("interrupted");
    running.signal("INT");
    assert_eq!(running.end().code, Some(130));
    assert!(!lives(&nap()));
}

/// A closed terminal and Ctrl-\ also end what the program started, and keep the run.
#[test]
fn a_closed_terminal_or_a_quit_leaves_no_process() {
    for is_closed in [true, false] {
        let stage = TestFolder::new();
        let script = format!("setsid sleep {} &\necho started\nwait", nap_seconds());
        let program = stage.file("program.sh", &script);
        let mut terminal = stage.terminal_in(&["exec", "--", "bash", &program], (80, 24), &NO_SERVER);
        terminal.until("started");
        let code = if is_closed {
            terminal.close()
        } else {
            terminal.send("\u{1c}");
            terminal.end().code
        };
        until_gone(&nap());
        assert_eq!(code, Some(130));
        assert_eq!(ps(&stage)[0]["state"], json!("stopped"));
    }
}

/// A run that ignores its terminal (`nohup`) continues without it, and so does its program.
#[test]
fn a_run_that_ignores_a_closed_terminal_goes_on() {
    let stage = TestFolder::new();
    let script = format!("{EXEC_PID}\nkill -HUP $exec_pid $PPID $$\necho went on");
    let program = stage.file("program.sh", &script);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_spinney")]);
    command.args(["exec", "--", "bash", &program]).current_dir(stage.folder()).stdin(Stdio::null());
    command.envs(NO_SERVER);
    let ended = TestFolder::started(command).end();
    assert_eq!((ended.code, ended.out.trim()), (Some(0), "went on"), "{}", ended.err);
}

/// The gateway may open many files. The program keeps its own limit: some go through every number below theirs.
#[test]
fn the_limit_of_open_files_is_raised_for_the_gateway_alone() {
    let stage = TestFolder::new();
    let script = format!("{EXEC_PID}\nulimit -Sn\nulimit -Hn\ngrep 'open files' /proc/$exec_pid/limits");
    let program = stage.file("program.sh", &script);
    let mut command = Command::new("bash");
    command.args(["-c", "ulimit -Sn 300; exec \"$@\"", "bash", env!("CARGO_BIN_EXE_spinney")]);
    command.args(["exec", "--", "bash", &program]).current_dir(stage.folder()).stdin(Stdio::null());
    command.envs(NO_SERVER);
    let ended = TestFolder::started(command).end();
    let [soft, hard, ours] = ended.out.lines().collect::<Vec<_>>().try_into().unwrap();
    assert_eq!(soft, "300", "{}", ended.out);
    let most = hard.parse::<u64>().map_or(8_448, |hard| hard.min(8_448));
    assert_eq!(ours.split_whitespace().nth(3), Some(most.to_string().as_str()), "{}", ended.out);
}

/// A program of this name that shows its arguments and the settings among them.
fn named(stage: &TestFolder, name: &str) -> String {
    let show = "#!/bin/bash\nprintf '%s\\n' \"$@\"\n[ \"$1\" = --settings ] && stat -c %a \"$2\" && cat \"$2\"\nexit 0\n";
    let path = stage.file(name, show);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Settings win over the environment in Claude Code: those of the run are put over the user's, in a private file, because
/// every user can read arguments.
#[test]
fn the_settings_of_claude_code_lead_to_the_gateway() {
    let stage = TestFolder::new();
    let claude = named(&stage, "claude");
    let mine =
        r#"{"model":"m","env":{"OTHER":"stays","CLAUDE_CODE_USE_VERTEX":"1","ANTHROPIC_BASE_URL":"x"}}"#;
    let file = stage.file("mine.json", mine);
    let pair = format!("--settings={file}");
    for given in [&["--settings", mine, "-p"][..], &["--settings", "ignored", &pair, "-p"], &["-p", &pair]] {
        let args = [&["exec", "--", &claude], given].concat();
        let ended = stage.play_in(&args, &NO_SERVER).end();
        let [option, path, print, mode, settings] = ended.out.lines().collect::<Vec<_>>().try_into().unwrap();
        assert_eq!((option, print, mode), ("--settings", "-p", "600"));
        let settings: Value = serde_json::from_str(settings).unwrap();
        let environment = &settings["env"];
        assert_eq!((&settings["model"], &environment["OTHER"]), (&json!("m"), &json!("stays")));
        assert_eq!(environment["CLAUDE_CODE_USE_VERTEX"], json!(""));
        assert!(environment["ANTHROPIC_BASE_URL"].as_str().unwrap().starts_with("http://127.0.0.1:"));
        assert!(environment["ANTHROPIC_AUTH_TOKEN"].as_str().unwrap().starts_with("sk-spinney-"));
        assert!(!Path::new(path).exists(), "the key of the run is gone with it");
    }
    let listed = ps(&stage).len();
    for bad in ["no-such-file", "{", "{\"env\":3}"] {
        let ended = stage.play_in(&["exec", "--", &claude, "--settings", bad], &NO_SERVER).end();
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{}", ended.err);
        assert!(ended.err.contains("`--settings`"), "{}", ended.err);
    }
    assert_eq!(ps(&stage).len(), listed, "nothing was started");
}

/// Later arguments win over ours in Codex, so those that name a provider are refused.
#[test]
fn arguments_that_lead_codex_past_the_gateway_are_refused() {
    let stage = TestFolder::new();
    let codex = named(&stage, "codex");
    for bad in [
        &["exec", "-c", "model_provider=\"openai\""][..],
        &["--config=model_provider=openai"],
        &["-cmodel_providers.spinney.base_url=\"http://127.0.0.1:9\""],
        &["-c", " \"model_provider\" = 'openai'"],
        &["exec", "--oss"],
    ] {
        let ended = stage.play_in(&[&["exec", "--", &codex], bad].concat(), &NO_SERVER).end();
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{bad:?} {}", ended.err);
        assert!(ended.err.contains("past the gateway: leave it out"), "{}", ended.err);
    }
    let fine = ["exec", "--", &codex, "exec", "-c", "model=\"m\"", "--", "--oss"];
    assert_eq!(stage.play_in(&fine, &NO_SERVER).end().code, Some(0));
}

/// What `exec` adds to the arguments of Codex.
fn codex_arguments(stage: &TestFolder, options: &[&str], args: &[&str]) -> String {
    let codex = named(stage, "codex");
    let ended = stage.play_in(&[&["exec"], options, &["--", &codex], args].concat(), &NO_SERVER).end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    ended.out
}

/// With a model other than its default Codex offers the provider's web search, which the gateway refuses.
#[test]
fn codex_searches_only_if_the_user_asks() {
    let stage = TestFolder::new();
    let disabled = "web_search=\"disabled\"";
    assert!(codex_arguments(&stage, &[], &["exec", "-m", "m", "Fix it."]).contains(disabled));
    // After `--` there are no options.
    assert!(codex_arguments(&stage, &[], &["exec", "--", "--search"]).contains(disabled));
    for args in [
        &["--search", "exec"][..],
        &["exec", "-c", "web_search=\"live\""],
        &["exec", "--config=tools.web_search=true"],
    ] {
        assert!(!codex_arguments(&stage, &[], args).contains(disabled), "{args:?}");
    }
    assert!(!codex_arguments(&stage, &["--allow-field", "tool:web_search"], &["exec"]).contains(disabled));
}

/// G12: the user's key reaches neither the program, nor the home, nor a log.
#[test]
fn g12_the_users_key_is_in_no_environment_file_or_log() {
    let stage = TestFolder::new();
    let upstream =
        Upstream::new(vec![Reply::error("401 Unauthorized", "", &format!("bad key {USER_KEY}")), used(1)]);
    let script = "env\ncat /proc/$PPID/environ | tr '\\0' '\\n'\ncall 5 one\ncall 5 two";
    let log = [("SPINNEY_LOG", "trace"), ("OPENAI_API_KEY", USER_KEY), ("ANTHROPIC_AUTH_TOKEN", USER_KEY)];
    let ended = exec_in(&stage, &upstream, &["--budget-usd", "1"], script, &log).end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("used 1") && ended.out.contains("ANTHROPIC_API_KEY=sk-spinney-"));
    assert!(!ended.out.contains(USER_KEY) && !ended.err.contains(USER_KEY), "{}\n{}", ended.out, ended.err);
    let asked = upstream.asked();
    assert!(asked.iter().all(|asked| asked.head.contains(USER_KEY)));
    let run_key = ended.out.lines().find_map(|line| line.strip_prefix("ANTHROPIC_API_KEY=")).unwrap();
    for bytes in files(stage.home()) {
        for key in [USER_KEY, run_key] {
            assert!(!bytes.windows(key.len()).any(|found| found == key.as_bytes()));
        }
    }
}

/// G12: the program cannot read the user's key from our processes, although it runs as the same user.
#[test]
fn g12_the_program_cannot_read_our_environment() {
    let stage = TestFolder::new();
    let script =
        format!("{EXEC_PID}\nfor pid in $PPID $exec_pid; do cat /proc/$pid/environ 2>&1; echo; done");
    let program = stage.file("program.sh", &script);
    // Root may read everything, unless it does without these rights.
    let spinney = env!("CARGO_BIN_EXE_spinney");
    let start: &[&str] = match rustix::process::getuid().is_root() {
        true => &["setpriv", "--bounding-set", "-sys_ptrace,-perfmon,-sys_admin", spinney],
        false => &[spinney],
    };
    let mut command = Command::new(start[0]);
    command.args(&start[1..]).args(["exec", "--", "bash", &program]).env("ANTHROPIC_API_KEY", USER_KEY);
    command.current_dir(stage.folder()).stdin(Stdio::null());
    let ended = TestFolder::started(command).end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(ended.out.matches("Permission denied").count(), 2, "{}", ended.out);
    assert!(!ended.out.contains(USER_KEY));
}

fn files(folder: &Path) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => all.extend(files(&entry.path())),
            kind if kind.is_file() => all.push(fs::read(entry.path()).unwrap()),
            _ => {}
        }
    }
    all
}

/// Runs and trees work side by side in one folder, and are listed together.
#[test]
fn several_runs_and_a_tree_work_side_by_side_in_one_folder() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(10)]);
    let mut first = exec(&stage, &upstream, &["--budget-usd", "1"], "call 10 a\nread -r _ < <(sleep NAP)");
    first.until("used 10");
    let second = exec(&stage, &upstream, &["--budget-usd", "1"], "call 10 b").end();
    assert_eq!(second.code, Some(0), "{}", second.err);
    let tree = stage.spinney(&["run", &stage.tree("", "rules: [ { say: done } ]")]);
    assert_eq!(tree.code, Some(0), "{}", tree.err);
    let listed = ps(&stage);
    let states: Vec<&str> = listed.iter().map(|tree| tree["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["completed", "completed", "running"]);
    assert_eq!(
        stage.spinney(&["events", "last", "--json"]).result()["agent"],
        json!("lead"),
        "last is the tree"
    );
    let id = listed[2]["tree"].as_str().unwrap();
    assert_eq!(stage.spinney(&["cancel", id]).code, Some(0));
    assert_eq!(first.end().code, Some(4));
    let removed = stage.spinney(&["rm", id]);
    assert_eq!(removed.code, Some(0), "{}", removed.err);
    assert_eq!(ps(&stage).len(), 2);
    assert!(!stage.home().join("runs").join(id).exists());
    let run = stage.spinney(&["resume", listed[1]["tree"].as_str().unwrap()]);
    assert_eq!(run.code, Some(0), "a run that has ended shows its result: {}", run.err);
}

/// The home is private to its owner, and no link is followed.
#[test]
fn the_homes_of_runs_are_private_and_no_link_is_followed() {
    use std::os::unix::fs::{MetadataExt as _, symlink};
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(10)]);
    assert_eq!(exec(&stage, &upstream, &[], "true").end().code, Some(0));
    let id = ps(&stage)[0]["tree"].as_str().unwrap().to_owned();
    for folder in [stage.home().to_owned(), stage.home().join("runs"), stage.home().join("runs").join(id)] {
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o077, 0, "{}", folder.display());
    }
    let stage = TestFolder::new();
    fs::create_dir(stage.home()).unwrap();
    let elsewhere = stage.folder().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, stage.home().join("runs")).unwrap();
    let refused = exec(&stage, &upstream, &[], "true").end();
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 0);
    let stage = TestFolder::new().at("foreign");
    fs::create_dir(stage.home()).unwrap();
    fs::write(stage.home().join("letter.txt"), "mine").unwrap();
    let refused = exec(&stage, &upstream, &[], "true").end();
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert_eq!(fs::read_dir(stage.home()).unwrap().count(), 1, "nothing was written");
}

/// `--no-bodies` keeps only counts; `--json` ends in a result with every agent.
#[test]
fn without_bodies_only_counts_are_kept_and_json_has_the_agents() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(10)]);
    let script = "call 20 something-to-remember";
    let ended = exec(&stage, &upstream, &["--no-bodies", "--json"], script).end();
    let result: Value = serde_json::from_str(ended.out.lines().last().unwrap()).unwrap();
    assert_eq!(result["type"], json!("result"));
    assert_eq!((result["state"].clone(), result["exit_code"].clone()), (json!("completed"), json!(0)));
    assert_eq!(result["agents"][0]["agent"], json!("main"));
    assert_eq!(result["agents"][0]["own"]["cost_nanos"], json!(10_000_000));
    for bytes in files(stage.home()) {
        assert!(!bytes.windows(21).any(|found| found == b"something-to-remember"));
    }
}
