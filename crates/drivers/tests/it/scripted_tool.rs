//! The scripted tools: what they are, what they answer, how they fail.

use std::time::Duration;

use spinney_drivers::scripted::ScriptedTool;
use spinney_kernel::budget::Used;
use spinney_kernel::definition::{OnLost, ToolSpec as Spec};
use spinney_kernel::port::model::AttemptError;
use spinney_kernel::port::tool::{Tool, ToolAnswer};
use spinney_kernel::primitives::{Fault, FaultKind};
use tokio::time::timeout;

use crate::scene::{script, tool_attempt, with};

/// The tool `search` with these keys.
fn search(keys: &str) -> ScriptedTool {
    let script = script(&format!("tools: {{ search: {{ {keys} }} }}"));
    script.tools().into_iter().next().unwrap().1
}

async fn answer(keys: &str, args: &str) -> ToolAnswer {
    search(keys).call(tool_attempt(args)).await.unwrap()
}

#[test]
fn tools_have_the_order_of_the_file() {
    let script =
        script("rules: [{ say: hi }]\ntools:\n  write: { say: a }\n  read: { say: b }\n  ask: { say: c }");
    let names: Vec<String> = script.tools().into_iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(names, ["write", "read", "ask"]);
}

#[test]
fn a_tool_is_described_and_repeatable_as_written() {
    assert_eq!(search("say: hi").spec(), Spec { lost: OnLost::Presumed, ..Spec::default() });
    let spec = search("say: hi, description: Finds pages., repeatable: true").spec();
    let description = "Finds pages.".to_owned();
    assert_eq!(spec, Spec { description, lost: OnLost::Repeatable, ..Spec::default() });
}

#[tokio::test]
async fn a_tool_says_what_its_template_says() {
    let say = r#"say: "{{ agent }} {{ attempt }} {{ key }} {{ args.query }} {{ args.list|tojson }}""#;
    let expected = ToolAnswer::text("lead 1 k jax [1, 2]");
    assert_eq!(answer(say, r#"{"query": "jax", "list": [1, 2]}"#).await, expected);
    assert_eq!(answer("say: '<{{ args }}>'", "no json").await.text, "<no json>");
}

#[tokio::test]
async fn a_tool_complains_with_its_error() {
    let expected = ToolAnswer::failed("no such page: x");
    assert_eq!(answer("error: 'no such page: {{ args.page }}'", r#"{"page": "x"}"#).await, expected);
}

#[tokio::test]
async fn a_tool_fails_as_often_as_written() {
    let tool = search("fail: { kind: server, times: 2, retry_after_ms: 9 }, say: at last");
    for attempt in [1, 2] {
        let end = tool.call(with(tool_attempt("{}"), |it| it.attempt = attempt)).await;
        let message = format!("tool `search` of x.script.yaml: attempt {attempt} fails as scripted");
        let fault = Fault { kind: FaultKind::Server, message, retry_after_ms: Some(9) };
        assert_eq!(end, Err(AttemptError { fault, used: Used::NOTHING }));
    }
    let end = tool.call(with(tool_attempt("{}"), |it| it.attempt = 3)).await;
    assert_eq!(end.unwrap().text, "at last");
    let always = search("fail: { kind: auth }").call(with(tool_attempt("{}"), |it| it.attempt = 9)).await;
    assert_eq!(always.unwrap_err().fault.kind, FaultKind::Auth);
}

#[tokio::test(start_paused = true)]
async fn a_tool_takes_its_time_or_hangs() {
    let slow = search("think_ms: 40, say: hi");
    assert!(timeout(Duration::from_millis(39), slow.call(tool_attempt("{}"))).await.is_err());
    assert!(timeout(Duration::from_millis(41), slow.call(tool_attempt("{}"))).await.is_ok());
    let stuck = search("hang: true");
    assert!(timeout(Duration::from_secs(360_000), stuck.call(tool_attempt("{}"))).await.is_err());
}

#[tokio::test]
async fn a_tool_that_cannot_render_is_invalid() {
    let missed = search("say: '{{ args.query }}'").call(tool_attempt("{}")).await.unwrap_err();
    let message = "tool `search` of x.script.yaml: undefined value".to_owned();
    let fault = Fault { message, ..Fault::new(FaultKind::Invalid) };
    assert_eq!(missed, AttemptError { fault, used: Used::NOTHING });
}
