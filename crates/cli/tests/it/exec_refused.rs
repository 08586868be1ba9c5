//! What the gateway refuses is in the result of `spinney exec`: at a ceiling, with another key, on a path that it does not
//! serve. A program that hides the error and exits with 0 does not look completed.

use serde_json::{Value, json};

use crate::exec::{exec, ps, used};
use crate::test_folder::{Ended, TestFolder};
use crate::upstream::Upstream;

/// The last line of the output. Programs write what they like before it.
pub(crate) fn last_line(ended: &Ended) -> Value {
    let line = ended.out.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}\n{}", ended.err))
}

/// A request to another path: `get PATH`.
const GET: &str = r#"
get() {
  at=${ANTHROPIC_BASE_URL#http://}
  exec 3<>/dev/tcp/${at%:*}/${at#*:}
  printf 'GET %s HTTP/1.1\r\nhost: x\r\nx-api-key: %s\r\nconnection: close\r\n\r\n' "$1" "$ANTHROPIC_API_KEY" >&3
  cat <&3
  exec 3>&-
}
"#;

/// Issue 34: of a program that asks only for a path that the gateway does not serve, the report says why it failed. One that
/// makes calls may look for such paths.
#[test]
fn an_unknown_path_is_in_the_report_of_a_program_that_makes_no_call() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(10)]));
    let script = format!("{GET}\nget /v1/nowhere\nexit 1");
    let ended = exec(&stage, &upstream, &[], &script).end();
    let told =
        ended.err.lines().find(|line| line.contains("refused")).unwrap_or_else(|| panic!("{}", ended.err));
    insta::assert_snapshot!(told, @"spinney: the gateway refused 1 request: the gateway does not serve GET /v1/nowhere: it serves messages, chat completions, responses, Gemini's generateContent and streamGenerateContent, token counts and lists of models");
    let ended = exec(&stage, &upstream, &[], &format!("{script}\n").replace("exit 1", "call 10 one")).end();
    assert!(!ended.err.contains("refused"), "{}", ended.err);
}

/// Issue 34: without a key there is no run, and the result still has every key that a program of `exec --json` reads.
#[test]
fn the_result_without_a_key_is_one_of_exec() {
    let stage = TestFolder::new();
    let ended = stage.spinney(&["exec", "--json", "--", "claude"]);
    let mut result = ended.result();
    let message = result["error"]["message"].take();
    assert!(message.as_str().unwrap().contains("ANTHROPIC_API_KEY"), "{message}");
    assert_eq!(ended.code, Some(2));
    insta::assert_snapshot!(serde_json::to_string_pretty(&result).unwrap(), @r#"
    {
      "type": "result",
      "tree": null,
      "state": "failed",
      "exit_code": 2,
      "budget": null,
      "spent": {
        "cost_usd": 0.0,
        "cost_nanos": 0,
        "tokens": 0,
        "steps": 0,
        "tool_calls": 0,
        "retries": 0,
        "presumed": {
          "cost_usd": 0.0,
          "cost_nanos": 0,
          "tokens": 0
        }
      },
      "agents": [],
      "requests": null,
      "refused": null,
      "capped": 0,
      "outside_bound": {},
      "elapsed_ms": 0,
      "hint": null,
      "error": {
        "code": "usage",
        "message": null,
        "remedy": "fix what the message names, then run it again"
      }
    }
    "#);
}

/// aider prints the error of a call and exits with 0.
#[test]
fn g11_a_program_that_exits_with_0_after_its_last_call_was_refused_at_the_ceiling_is_not_completed() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(900)]));
    let options = ["--budget-usd", "1", "--on-limit", "stop", "--json"];
    let ended = exec(&stage, &upstream, &options, "call 900 one\ncall 900 two\nexit 0").end();
    let result = last_line(&ended);
    assert_eq!((ended.code, &result["exit_code"], &result["state"]), (Some(3), &json!(3), &json!("stopped")));
    assert_eq!(
        (&result["refused"]["count"], &result["refused"]["kinds"]),
        (&json!(1), &json!({ "ceiling": 1 }))
    );
    let last = result["refused"]["last"].as_str().unwrap();
    assert!(last.contains("the budget of this run does not allow this call"), "{last}");
    assert_eq!(ps(&stage)[0]["state"], json!("stopped"));
    // It can be raised and resumed, as after any other exit code.
    assert_eq!(stage.spinney(&["budget", "last", "--add-usd", "2"]).code, Some(0));
    let again = exec(&stage, &upstream, &["--resume", "last"], "call 900 two").end();
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert!(again.err.contains("completed") && again.err.contains("spent $1.80 of $3.00"), "{}", again.err);
}

/// A program that continues with a call that fits has coped with it: its own exit code counts, and the result names the call.
#[test]
fn g11_a_program_that_makes_another_call_after_a_refused_one_is_completed() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(900), used(10)]));
    let options = ["--budget-usd", "1", "--on-limit", "stop", "--on-low", "halt", "--json"];
    let ended = exec(&stage, &upstream, &options, "call 900 one\ncall 900 two\ncall 10 three").end();
    let result = last_line(&ended);
    assert_eq!((ended.code, &result["state"]), (Some(0), &json!("completed")), "{}", ended.err);
    assert_eq!(result["refused"]["kinds"], json!({ "ceiling": 1 }));
}

#[test]
fn the_result_counts_every_request_that_got_an_error_of_the_gateway() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(10)]));
    let script = format!(
        "{GET}\ncall 10 one\nANTHROPIC_API_KEY=sk-mine call 10 two\nget /v1/files\nget /v1/files\nNO_MODEL=1 call x three"
    );
    let ended = exec(&stage, &upstream, &["--budget-usd", "1", "--json"], &script).end();
    let result = last_line(&ended);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(
        (&result["refused"]["count"], &result["refused"]["kinds"]),
        (&json!(4), &json!({ "bad_request": 1, "not_found": 2, "wrong_key": 1 }))
    );
}

/// A program need not end its last line.
#[test]
fn the_result_begins_on_a_line_of_its_own() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(10)]));
    for script in ["printf 'no end of line'", "echo 'an end of line'", "true"] {
        let ended = exec(&stage, &upstream, &["--budget-usd", "1", "--json"], script).end();
        assert_eq!(last_line(&ended)["type"], json!("result"), "{}", ended.out);
        let lines: Vec<&str> = ended.out.lines().collect();
        let before = &lines[..lines.len() - 1];
        assert!(before.iter().all(|line| !line.contains('{')), "{script}: {}", ended.out);
    }
}

/// A program that reads its key from a file or a stored login sends another one. It learns that, and so does the person.
#[test]
fn a_request_with_another_key_than_the_runs_says_so() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(10)]));
    let script =
        "ANTHROPIC_API_KEY=sk-from-a-file call 10 one\nANTHROPIC_API_KEY=sk-from-a-file call 10 two\nexit 4";
    let ended = exec(&stage, &upstream, &["--budget-usd", "1"], script).end();
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    assert!(ended.out.contains("401 Unauthorized"), "{}", ended.out);
    assert_eq!(ended.out.matches("does not use this run's key").count(), 2, "{}", ended.out);
    let notes: Vec<&str> = ended.err.lines().filter(|line| line.contains("this run's key")).collect();
    // At once, and in the report.
    assert_eq!(notes.len(), 2, "{}", ended.err);
    assert!(notes[0].contains(".env") && notes[0].contains("stored login"), "{}", notes[0]);
    assert!(!ended.out.contains("sk-from-a-file") && !ended.err.contains("sk-from-a-file"));
    assert!(!ended.err.contains("no request reached the gateway"), "{}", ended.err);
    assert_eq!(upstream.asked().len(), 0);
    // Without any key the words are others.
    let ended = exec(&stage, &upstream, &["--budget-usd", "1"], "ANTHROPIC_API_KEY= call 10 one").end();
    assert!(ended.out.contains("401 Unauthorized") && ended.out.contains("has no key"), "{}", ended.out);
}

/// A program that speaks Gemini's format shows its key in another header. What it does wrong is the format.
#[test]
fn a_method_of_gemini_that_is_not_served_is_told_what_is() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(10)]));
    let get = GET.replace("x-api-key", "x-goog-api-key");
    let script = format!("{get}\nget /v1beta/models/gemini-2.5-pro:generateContent");
    let ended = exec(&stage, &upstream, &["--budget-usd", "1"], &script).end();
    assert!(ended.out.contains("404 Not Found"), "{}", ended.out);
    assert!(ended.out.contains("it serves messages, chat completions, responses"), "{}", ended.out);
}
