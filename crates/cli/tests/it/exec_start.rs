//! What `spinney exec` says before and while its program starts to work: a run without a budget, a key that is missing,
//! a login that it cannot use, a model without a price.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::exec::{CALLS, exec, nap_seconds, used};
use crate::exec_refused::last_line;
use crate::test_folder::{Ended, NO_SERVER, TestFolder};
use crate::upstream::Upstream;

/// The output has this line as often.
fn lines_with(text: &str, part: &str) -> usize {
    text.lines().filter(|line| line.contains(part)).count()
}

#[test]
fn a_run_without_a_budget_says_so_once_and_the_result_has_none() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(10)]));
    let run = |options: &[&str]| {
        let plain = exec(&stage, &upstream, options, "call 10 one").end();
        let ended = exec(&stage, &upstream, &[options, &["--json"]].concat(), "call 10 one").end();
        let noted = [&plain, &ended].map(|ended| lines_with(&ended.err, "no budget"));
        assert!(noted[0] == 0 || plain.err.contains("--budget-usd"), "{}", plain.err);
        let result: Value = serde_json::from_str(ended.out.lines().last().unwrap()).unwrap();
        (noted, result["budget"].clone())
    };
    assert_eq!(run(&[]), ([1, 1], Value::Null));
    assert_eq!(run(&["--timeout", "1h"]), ([1, 1], Value::Null));
    let dollars = json!({ "cost_usd": 2.0, "cost_nanos": 2_000_000_000_u64 });
    assert_eq!(run(&["--budget-usd", "2"]), ([0, 0], dollars));
    let counts = json!({ "tokens": 5_000, "steps": 3 });
    assert_eq!(run(&["--tokens", "5000", "--steps", "3"]), ([0, 0], counts));
}

/// A program of this name that only says that it was started.
fn named(stage: &TestFolder, name: &str) -> String {
    let path = stage.file(name, "#!/bin/sh\necho started\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Starts such a program for a user with this environment, whose home folder is `user`.
fn started(stage: &TestFolder, name: &str, environment: &[(&str, &str)]) -> Ended {
    let home = stage.folder().join("user").display().to_string();
    let environment = [&[("HOME", home.as_str())], environment].concat();
    stage.play_in(&["exec", "--budget-usd", "1", "--", &named(stage, name)], &environment).end()
}

fn refused(stage: &TestFolder, name: &str, environment: &[(&str, &str)]) -> String {
    let ended = started(stage, name, environment);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{name} {environment:?}: {}", ended.err);
    assert!(!stage.home().exists(), "nothing was started");
    ended.err
}

/// A program needs a key of its provider, or a server of the user's own.
#[test]
fn a_missing_key_is_an_error_before_the_program_starts() {
    const KEY: &str = "sk-a-key-of-the-user";
    const SERVER: &str = "http://127.0.0.1:9/v1";
    let stage = TestFolder::new();
    for (name, environment) in [
        ("claude", &[][..]),
        ("claude", &[("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", SERVER)]),
        ("claude", &[("ANTHROPIC_API_KEY", "")]),
    ] {
        let error = refused(&stage, name, environment);
        assert!(error.contains("ANTHROPIC_API_KEY") && !error.contains("OPENAI_API_KEY"), "{error}");
        assert!(!error.contains(KEY), "{error}");
    }
    for environment in [&[][..], &[("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", SERVER)]] {
        let error = refused(&stage, "codex", environment);
        assert!(error.contains("OPENAI_API_KEY") && !error.contains("ANTHROPIC_API_KEY"), "{error}");
    }
    let error = refused(&stage, "agent", &[]);
    assert!(error.contains("ANTHROPIC_API_KEY") && error.contains("OPENAI_API_KEY"), "{error}");
    for (name, variable, value) in [
        ("claude", "ANTHROPIC_API_KEY", KEY),
        ("claude", "ANTHROPIC_AUTH_TOKEN", KEY),
        ("claude", "ANTHROPIC_BASE_URL", SERVER),
        ("codex", "OPENAI_API_KEY", KEY),
        ("codex", "CODEX_API_KEY", KEY),
        ("codex", "OPENAI_BASE_URL", SERVER),
        ("agent", "ANTHROPIC_API_KEY", KEY),
        ("agent", "OPENAI_API_KEY", KEY),
        ("agent", "ANTHROPIC_BASE_URL", SERVER),
        ("agent", "OPENAI_BASE_URL", SERVER),
    ] {
        let ended = started(&stage, name, &[(variable, value)]);
        assert_eq!((ended.code, ended.out.as_str()), (Some(0), "started\n"), "{variable}: {}", ended.err);
    }
    // A run that is resumed needs one as well.
    let stopped =
        stage.play_in(&["exec", "--", "bash", "-c", "kill -INT $$"], &[("OPENAI_API_KEY", KEY)]).end();
    assert_eq!(stopped.code, Some(130), "{}", stopped.err);
    let home = stage.folder().join("user").display().to_string();
    let resumed = stage.play_in(&["exec", "--resume", "last"], &[("HOME", &home)]).end();
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(2), ""), "{}", resumed.err);
}

/// A login by subscription is named, with what it cannot do and what to do instead. Its tokens are not read.
#[test]
fn a_login_by_subscription_gets_an_answer_before_the_program_starts() {
    const SECRET: &str = "sk-ant-oat01-a-secret-of-the-login";
    let stage = TestFolder::new();
    let login = |path: &Path| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Opening it blocks forever.
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    let folder = |name: &str| stage.folder().join(name);
    let (claude, codex) = (folder("other/.credentials.json"), folder("elsewhere/auth.json"));
    login(&claude);
    login(&codex);
    let text = |path: &Path| path.parent().unwrap().display().to_string();
    let mut errors = vec![
        ("claude", refused(&stage, "claude", &[("CLAUDE_CODE_OAUTH_TOKEN", SECRET)])),
        ("claude", refused(&stage, "claude", &[("CLAUDE_CONFIG_DIR", &text(&claude))])),
        ("codex", refused(&stage, "codex", &[("CODEX_HOME", &text(&codex))])),
    ];
    login(&folder("user/.claude/.credentials.json"));
    login(&folder("user/.codex/auth.json"));
    errors.push(("claude", refused(&stage, "claude", &[])));
    errors.push(("codex", refused(&stage, "codex", &[])));
    for (name, error) in errors {
        let key = if name == "claude" { "ANTHROPIC_API_KEY" } else { "OPENAI_API_KEY" };
        assert!(error.contains("login") && error.contains("subscription"), "{error}");
        assert!(error.contains("no budget can bound it") && error.contains(key), "{error}");
        assert!(!error.contains(SECRET), "{error}");
    }
    // With a key, the login does not matter.
    let ended = started(&stage, "claude", &[("ANTHROPIC_API_KEY", "sk-1")]);
    assert_eq!(ended.out, "started\n", "{}", ended.err);
}

/// A model without a price is refused at its first call. The person learns it at once, and once per model, with and without
/// a budget; the program may hide the errors that it gets.
#[test]
fn a_model_without_a_price_is_named_at_its_first_call() {
    let upstream = Upstream::new(vec![used(10)]);
    let environment = [("ANTHROPIC_API_KEY", "sk-1"), ("ANTHROPIC_BASE_URL", upstream.url.as_str())];
    for budget in [&["--budget-usd", "1"][..], &[]] {
        let stage = TestFolder::new();
        let other = CALLS.replace("call()", "other()").replace("\\\"m\\\"", "\\\"n\\\"");
        let script = format!(
            "{CALLS}{other}\n(call 10 one; call 10 two; other 10 three) >/dev/null\necho ready\nexec sleep {}",
            nap_seconds()
        );
        let program = stage.file("program.sh", &script);
        let args = [&["exec"], budget, &["--", "bash", &program]].concat();
        let mut running = stage.play_in(&args, &environment);
        let note = running.until_noted("model m");
        for part in ["--price m=IN,OUT", "--prices-of anthropic"] {
            assert!(note.contains(part), "{note}");
        }
        running.until("ready");
        assert_eq!(stage.spinney(&["cancel", "last"]).code, Some(0));
        let ended = running.end();
        // The report has the last error again.
        assert_eq!(lines_with(&ended.err, "model m"), 0, "{}", ended.err);
        assert_eq!(lines_with(&ended.err, "model n"), 2, "{}", ended.err);
        assert_eq!(upstream.asked().len(), 0);
    }
}

/// `*` at the end of a name stands for the rest, as in `--models`; the longest name that fits counts.
#[test]
fn a_price_may_be_for_all_models_whose_names_begin_alike() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(100)]));
    let environment = [("ANTHROPIC_API_KEY", "sk-1"), ("ANTHROPIC_BASE_URL", upstream.url.as_str())];
    let calls = CALLS.replace("\\\"m\\\"", "\\\"big-1\\\"");
    let program = stage.file("program.sh", &format!("{calls}\ncall 100 one"));
    for (prices, spent) in [
        (&["--price", "big-*=0,1000"][..], "spent $0.10"),
        (&["--price", "b*=0,5000", "--price", "big-*=0,1000", "--price", "*=0,9"], "spent $0.10"),
        (&["--price", "big-*=0,5000", "--price", "big-1=0,1000"], "spent $0.10"),
    ] {
        let args = [&["exec", "--budget-usd", "1"], prices, &["--", "bash", &program]].concat();
        let ended = stage.play_in(&args, &environment).end();
        assert!(ended.err.contains(spent), "{prices:?}: {}", ended.err);
    }
    for wrong in ["b*g=0,1", "*-1=0,1", "b**=0,1"] {
        let refused = stage.play_in(&["exec", "--price", wrong, "--", "true"], &environment).end();
        assert_eq!(refused.code, Some(2), "{wrong}: {}", refused.err);
        assert!(refused.err.contains('*'), "{}", refused.err);
    }
}

/// A program that misses the gateway fails, if it has no key of its own. The report and the result say what to look at.
#[test]
fn a_program_that_sends_no_request_gets_a_hint_however_it_ends() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(10)]));
    const HINT: &str = "no request reached the gateway";
    for (script, is_told) in
        [("exit 0", true), ("exit 3", true), ("call 10 one\nexit 3", false), ("kill -INT $$", false)]
    {
        let plain = exec(&stage, &upstream, &["--budget-usd", "1"], script).end();
        assert_eq!(plain.err.contains(HINT), is_told, "{script}: {}", plain.err);
        let ended = exec(&stage, &upstream, &["--budget-usd", "1", "--json"], script).end();
        let result = last_line(&ended);
        assert_eq!(result["requests"], json!(u64::from(script.contains("call"))), "{script}");
        assert_eq!(
            result["hint"].as_str().is_some_and(|hint| hint.contains(HINT)),
            is_told,
            "{script}: {result}"
        );
    }
    // One that could not be started has nothing to do with it.
    let none = stage.play_in(&["exec", "--", "no-such-program-here"], &NO_SERVER).end();
    assert!(!none.err.contains(HINT), "{}", none.err);
}

/// With a key of another provider, a program can spend beside the budget. The person hears which ones it sees.
#[test]
fn keys_of_other_providers_are_listed_at_the_start_and_can_be_hidden() {
    let stage = TestFolder::new();
    let program = stage.file("program.sh", "env | grep -E '^(GROQ|OPENROUTER|AZURE_OPENAI|MY)_' | sort\n");
    let keys = [
        ("GROQ_API_KEY", "gsk-1"),
        ("OPENROUTER_API_KEY", "sk-or-2"),
        ("AZURE_OPENAI_API_KEY", "azure-3"),
        ("AZURE_OPENAI_ENDPOINT", "https://example.test"),
        ("MISTRAL_API_KEY", ""),
        ("MY_API_KEY", "mine"),
    ];
    let environment = [&NO_SERVER[..], &keys].concat();
    let run = |options: &[&str]| {
        stage
            .play_in(
                &[&["exec", "--budget-usd", "1"], options, &["--", "bash", &program]].concat(),
                &environment,
            )
            .end()
    };
    let seen = run(&[]);
    let note = seen.err.lines().find(|line| line.contains("other providers' keys")).unwrap_or_default();
    assert!(note.contains("AZURE_OPENAI_API_KEY, GROQ_API_KEY, OPENROUTER_API_KEY"), "{}", seen.err);
    assert!(note.contains("--hide-keys") && !note.contains("MY_") && !note.contains("MISTRAL"), "{note}");
    assert!(!note.contains("gsk-1"), "{note}");
    assert_eq!(seen.out.lines().count(), 5, "{}", seen.out);
    let hidden = run(&["--hide-keys"]);
    assert!(!hidden.err.contains("other providers' keys"), "{}", hidden.err);
    assert_eq!(hidden.out, "AZURE_OPENAI_ENDPOINT=https://example.test\nMY_API_KEY=mine\n");
}
