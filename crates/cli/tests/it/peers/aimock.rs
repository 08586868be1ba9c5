//! aimock as the provider, in all four formats. It has no cache counts, no real signatures and no encrypted reasoning; these
//! are played by our own upstream (`crates/drivers/tests/it/wire`, `providers.rs`).

use serde_json::{Value, json};
use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::port::model::StopReason;

use super::peer::{Format, Peer, called, of_type, run};
use crate::test_folder::TestFolder;

const FORMATS: [Format; 4] = [
    Format { provider: "openai_chat", path: "/v1" },
    Format { provider: "openai", path: "/v1" },
    Format { provider: "anthropic", path: "" },
    Format { provider: "gemini", path: "/v1beta" },
];

/// What every answer of aimock is said to have used: 120 tokens.
fn usage() -> Value {
    json!({ "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120 })
}
const USED: u64 = 120;

/// A tree of one agent that may cost a dollar.
fn tree(stage: &TestFolder, format: Format, peer: &Peer) -> String {
    let model = format.at(peer);
    stage.file(
        "tree.yaml",
        &format!(
            "name: test\ngoal: Try it.\nbudget: {{ cost_usd: 1, retries: 3 }}\nmodels:\n  fast: {{ model: asked, {model} }}\n\
             agents:\n  lead: {{ model: fast, tools: [write_file], limits: {{ max_tokens_per_step: 150 }} }}\n"
        ),
    )
}

#[tokio::test]
async fn each_format_is_streamed_with_its_reasoning_and_its_usage() {
    let said = "A small wood of birches, with a path that nobody uses.";
    let response = json!({ "content": said, "reasoning": "I look around.", "usage": usage() });
    let peer = Peer::aimock(&json!({ "fixtures": [{ "match": {}, "response": response, "chunkSize": 8 }] }));
    for format in FORMATS {
        let (answer, pieces) = called(format, &peer).await;
        let answer = answer.unwrap();
        assert!(pieces.len() > 3 && pieces.concat() == said, "{} {pieces:?}", format.provider);
        assert_eq!((answer.text.as_str(), answer.stop), (said, StopReason::End), "{}", format.provider);
        assert_eq!(answer.reasoning, "I look around.", "{}", format.provider);
        let used = Usage { input: 100, output: 20, ..Usage::default() };
        assert_eq!(answer.used, Used::Tokens(used), "{}", format.provider);
    }
}

#[test]
fn each_format_calls_a_tool_and_goes_on_with_its_result() {
    let call = json!({ "name": "write_file", "arguments": { "path": "outputs/note.md", "text": "seen" } });
    let peer = Peer::aimock(&json!({ "fixtures": [
        { "match": { "hasToolResult": false }, "response": { "content": "I write it down.", "toolCalls": [call], "usage": usage() } },
        { "match": { "hasToolResult": true }, "response": { "content": "It is written.", "usage": usage() } },
    ] }));
    for format in FORMATS {
        let stage = TestFolder::new();
        let ended = run(&stage, &tree(&stage, format, &peer));
        let result = ended.result();
        assert_eq!((ended.code, &result["output"]), (Some(0), &json!("It is written.")), "{}", ended.out);
        let spent = &result["spent"];
        assert_eq!((&spent["steps"], &spent["tool_calls"]), (&json!(2), &json!(1)), "{}", format.provider);
        // Twice 100 and 200 micro-dollars.
        assert_eq!(
            (&spent["tokens"], &spent["cost_nanos"]),
            (&json!(2 * USED), &json!(600_000)),
            "{}",
            format.provider
        );
        let results = stage.results("lead");
        assert!(results.len() == 1 && results[0]["is_error"] == false, "{} {results:?}", format.provider);
    }
}

/// L31 (rate limits, by a peer): every format obeys the pause that the server asks for, and pays nothing for it.
#[test]
fn l31_each_format_stays_away_as_long_as_a_rate_limit_says() {
    for format in FORMATS {
        let error = json!({ "message": "slow down", "type": "rate_limit_error" });
        let peer = Peer::aimock(&json!({ "fixtures": [
            { "match": { "sequenceIndex": 0 }, "response": { "error": error, "status": 429, "retryAfter": 2 } },
            { "match": {}, "response": { "content": "Now it works.", "usage": usage() } },
        ] }));
        let stage = TestFolder::new();
        let ended = run(&stage, &tree(&stage, format, &peer));
        let (result, events) = (ended.result(), ended.json());
        assert_eq!((ended.code, &result["output"]), (Some(0), &json!("Now it works.")), "{}", ended.out);
        assert_eq!(result["spent"]["tokens"], json!(USED), "{}", format.provider);
        let at: Vec<u64> =
            of_type(&events, "call_started").iter().map(|event| event["at"].as_u64().unwrap()).collect();
        assert!(at.len() == 2 && at[1] - at[0] >= 2_000, "{} {at:?}", format.provider);
        assert_eq!(faults(&events), ["rate_limit"], "{}", format.provider);
    }
}

/// A fixture that fails, and what our books call it.
struct Failure {
    fixture: Value,
    kind: &'static str,
    /// Whether it may be billed. An error status in place of an answer is not.
    may_be_billed: bool,
}

/// aimock's own chaos, and an answer that breaks off after its first pieces.
fn failures() -> [Failure; 4] {
    let long = json!({ "content": "This is cut before it can end. ".repeat(20), "usage": usage() });
    let chaos = |rate: &str| json!({ "response": long, "chaos": { rate: 1 } });
    [
        Failure { fixture: chaos("dropRate"), kind: "server", may_be_billed: false },
        Failure { fixture: chaos("malformedRate"), kind: "server", may_be_billed: true },
        Failure { fixture: chaos("disconnectRate"), kind: "server", may_be_billed: true },
        Failure {
            fixture: json!({ "response": long, "latency": 50, "disconnectAfterMs": 400 }),
            kind: "cut",
            may_be_billed: true,
        },
    ]
}

/// V7 (by a peer): an attempt that failed is classified, settled at its hold if it may be billed, and made again.
#[test]
fn v7_each_format_settles_a_failure_at_its_hold_and_tries_again() {
    for format in FORMATS {
        for Failure { mut fixture, kind, may_be_billed } in failures() {
            fixture["match"] = json!({ "sequenceIndex": 0 });
            let whole = json!({ "match": {}, "response": { "content": "Whole.", "usage": usage() } });
            let peer = Peer::aimock(&json!({ "fixtures": [fixture, whole] }));
            let stage = TestFolder::new();
            let ended = run(&stage, &tree(&stage, format, &peer));
            let (result, events) = (ended.result(), ended.json());
            let at = format!("{} {fixture}\n{}", format.provider, ended.out);
            assert_eq!((ended.code, &result["output"]), (Some(0), &json!("Whole.")), "{at}");
            assert_eq!(faults(&events), [kind], "{at}");
            let held = of_type(&events, "call_started")[0]["held"]["tokens"].as_u64().unwrap();
            let booked = if may_be_billed { held } else { 0 };
            assert_eq!(result["spent"]["tokens"], json!(booked + USED), "{at}");
            assert_eq!(result["spent"]["presumed"]["tokens"], json!(booked), "{at}");
        }
    }
}

/// A server that never recovers ends the tree: with its retries used up, every attempt in the books, and no hang.
#[test]
fn each_format_gives_up_on_a_server_that_never_recovers() {
    for format in FORMATS {
        let long = json!({ "content": "This is cut before it can end. ".repeat(20), "usage": usage() });
        let peer = Peer::aimock(&json!({ "fixtures": [
            { "match": {}, "response": long, "latency": 50, "disconnectAfterMs": 300 },
        ] }));
        let stage = TestFolder::new();
        let ended = run(&stage, &tree(&stage, format, &peer));
        let (result, events) = (ended.result(), ended.json());
        assert_eq!((ended.code, &result["state"]), (Some(1), &json!("failed")), "{}", ended.out);
        let asked: Vec<Value> = serde_json::from_str(&peer.read("/__aimock/journal")).unwrap();
        let starts = of_type(&events, "call_started");
        assert_eq!((asked.len(), starts.len()), (4, 4), "{} {}", format.provider, ended.out);
        let held: u64 = starts.iter().map(|event| event["held"]["tokens"].as_u64().unwrap()).sum();
        assert_eq!(result["spent"]["tokens"], json!(held), "{}", format.provider);
    }
}

/// The kinds of the faults in a journal, in order.
fn faults(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["fault"]["kind"].as_str()).collect()
}
