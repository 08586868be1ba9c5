//! Providers that misbehave, against the binary: every call ends on its own, is named, and is settled at what it can have cost.

use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::test_folder::{Ended, TestFolder};
use crate::upstream::{Reply, Upstream};

const PRICE: &str = "price: { input_per_mtok_usd: 1, output_per_mtok_usd: 10 }";

/// What a failed call is settled at.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Settled {
    /// The provider did not take it.
    Nothing,
    /// Its cost is unknown.
    Hold,
}

fn model(url: &str, rest: &str) -> String {
    format!("{{ provider: openai_compatible, model: m, base_url: '{url}', {PRICE}{rest} }}")
}

/// A tree on a server at this address that is asked once.
fn tree(stage: &TestFolder, url: &str, limits: &str) -> String {
    let head = "name: test\ngoal: Try it.\nbudget: { cost_usd: 1, retries: 0 }\nmodels:\n";
    let agent = format!("{{ model: fast, limits: {{ max_tokens_per_step: 150{limits} }} }}");
    stage.file("tree.yaml", &format!("{head}  fast: {}\nagents:\n  lead: {agent}\n", model(url, "")))
}

fn run(url: &str) -> Ended {
    let stage = TestFolder::new();
    stage.spinney(&["run", &tree(&stage, url, ""), "--json"])
}

/// The only call's fault, what it held, and what was booked for it.
fn failed(ended: &Ended) -> (Value, Settled) {
    let events = ended.json();
    let find = |kind: &str| {
        events.iter().find(|event| event["type"] == kind).unwrap_or_else(|| panic!("{}", ended.out))
    };
    let (started, end) = (find("call_started"), find("call_ended"));
    let tokens = |event: &Value, amount: &str| event[amount]["tokens"].as_u64().unwrap_or_default();
    let settled = match tokens(end, "spent") {
        0 => Settled::Nothing,
        spent => {
            assert_eq!(spent, tokens(started, "held"), "{end}");
            Settled::Hold
        }
    };
    (end["outcome"]["fault"].clone(), settled)
}

/// V7 (faults of servers): what can have been billed is booked at its hold, and nothing else is booked.
#[test]
fn v7_every_misbehaving_server_is_named_and_settled() {
    let text = json!({ "id": "c", "choices": [{ "delta": { "content": "So far" } }] });
    let error = json!({ "error": { "message": "it broke", "code": "server_error" } });
    let stream = |body: String| Reply::recorded(&body);
    let table = [
        ("cut after text", stream(format!("data: {text}\n\n")), "cut", Settled::Hold),
        ("cut in a chunk", stream(format!("data: {text}\n\ndata: {{\"id")), "cut", Settled::Hold),
        ("malformed chunk", stream(format!("data: {text}\n\ndata: {{\n\n")), "server", Settled::Hold),
        ("no text at all", stream("data: \u{fffd}\u{0}\n\n".to_owned()), "server", Settled::Hold),
        ("an empty stream", stream(String::new()), "cut", Settled::Hold),
        ("fails after text", stream(format!("data: {text}\n\ndata: {error}\n\n")), "server", Settled::Hold),
        ("closes at once", Reply::Sent(String::new()), "server", Settled::Hold),
        ("speaks no HTTP", Reply::Sent("220 mail ready\r\n".into()), "server", Settled::Hold),
        (
            "redirects",
            Reply::error("302 Found", "location: http://127.0.0.1:1/\r\n", "gone"),
            "invalid",
            Settled::Nothing,
        ),
        ("refuses the key", Reply::error("401 Unauthorized", "", "no"), "auth", Settled::Nothing),
        ("is busy", Reply::error("503 Service Unavailable", "", "busy"), "overloaded", Settled::Nothing),
        ("breaks", Reply::error("500 Internal Server Error", "", "oh"), "server", Settled::Nothing),
        ("breaks behind a proxy", Reply::error("502 Bad Gateway", "", "oh"), "server", Settled::Hold),
    ];
    for (what, reply, kind, settled) in table {
        let ended = run(&Upstream::new(vec![reply]).url);
        let (fault, booked) = failed(&ended);
        assert_eq!((ended.code, &fault["kind"], booked), (Some(1), &json!(kind), settled), "{what}: {fault}");
    }
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (fault, booked) = failed(&run(&format!("http://{nobody}/v1")));
    assert_eq!((&fault["kind"], booked), (&json!("server"), Settled::Nothing), "{fault}");
}

/// O20 (provider): one that streams is heard; one that stalls, drops, sends unknown events or fails after text ends as what
/// it is, its retry is authorised again, and the answer that follows is the whole answer.
#[test]
fn a_provider_that_streams_stalls_drops_or_fails_after_text_ends_right() {
    let text = |said: &str| json!({ "id": "c", "choices": [{ "delta": { "content": said } }] });
    let drops = Reply::recorded(&format!("data: {}\n\n", text("Half")));
    let fails = Reply::recorded(&format!(
        "data: {}\n\ndata: {}\n\n",
        text("Half"),
        json!({ "error": { "message": "overloaded", "code": "overloaded" } })
    ));
    let unknown = include_str!("../../../drivers/corpus/open_ai_chat/unknown_kinds.sse");
    for first in [Reply::cut(), drops, fails] {
        let upstream = Upstream::new(vec![first, Reply::recorded(unknown)]);
        let stage = TestFolder::new();
        let keys = model(&upstream.url, ", key_env: TEST_MODEL_KEY");
        let file = stage.file(
            "tree.yaml",
            &format!("name: test\ngoal: Try it.\nbudget: {{ retries: 1 }}\nmodels: {{ fast: {keys} }}\nagents: {{ lead: {{ model: fast, tools: [list_files] }} }}\n"),
        );
        let ended = stage.play_in(&["run", &file, "--json"], &[("TEST_MODEL_KEY", "sk-0123456789")]).end();
        let output = ended.result()["output"].clone();
        assert_eq!(ended.code, Some(0), "{} {}", ended.out, ended.err);
        assert!(!output.as_str().unwrap().contains("Half"), "{output}");
        let asked = upstream.asked();
        assert!(
            asked.len() >= 2
                && asked.iter().all(|one| one.head.contains("authorization: Bearer sk-0123456789"))
        );
    }
    // One that says no more is left when the agent's time is up. What it said so far was heard.
    let upstream = Upstream::new(vec![Reply::held()]);
    let stage = TestFolder::new();
    let ended = stage.spinney(&["run", &tree(&stage, &upstream.url, ", timeout: 500ms"), "--json"]);
    let (_, booked) = failed(&ended);
    assert_eq!(booked, Settled::Hold, "{}", ended.out);
    assert_ne!(ended.code, Some(0));
}

/// X5 (provider): an answer that the provider cut at the output cap, twice, is partial and says so.
#[test]
fn x5_an_answer_that_the_provider_cut_is_partial() {
    let cut = |said: &str| {
        Reply::stream(&[
            json!({ "id": "c", "choices": [{ "delta": { "content": said } }] }),
            json!({ "id": "c", "choices": [{ "delta": {}, "finish_reason": "length" }] }),
            json!({ "id": "c", "choices": [], "usage": { "prompt_tokens": 50, "completion_tokens": 150 } }),
        ])
    };
    let ended = run(&Upstream::new(vec![cut("Half of "), cut("the rest of")]).url);
    let result = ended.result();
    assert_eq!((ended.code, &result["output"]), (Some(1), &json!("Half of the rest of")), "{}", ended.out);
    assert_eq!((&result["state"], &result["error"]["code"]), (&json!("failed"), &json!("output_truncated")));
}

/// A gigabyte as a stream of comments, as one line, as one JSON text and as an error: each is left, and none is kept.
#[test]
fn a_gigabyte_fills_no_memory() {
    let json_head = |status: &str| {
        format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: 1073741824\r\n\r\n")
    };
    let spaces = " ".repeat(64 * 1024);
    let text = json!({ "id": "c", "choices": [{ "delta": { "content": "many words ".repeat(1_000) } }] });
    let arguments =
        json!({ "index": 0, "id": "c1", "function": { "name": "now", "arguments": " ".repeat(10_000) } });
    let call = json!({ "id": "c", "choices": [{ "delta": { "tool_calls": [arguments] } }] });
    let replies = [
        Reply::gigabyte(&format!(": {}\n\n", "still here ".repeat(100_000))),
        Reply::gigabyte("x"),
        Reply::gigabyte(&format!("data: {text}\n\n")),
        Reply::gigabyte(&format!("data: {call}\n\n")),
        Reply::Gigabyte { head: json_head("200 OK"), piece: spaces.clone() },
        Reply::Gigabyte { head: json_head("500 Internal Server Error"), piece: spaces },
        Reply::Gigabyte { head: "HTTP/1.1 200 OK\r\n".to_owned(), piece: "x-more: headers\r\n".to_owned() },
    ];
    for (place, reply) in replies.into_iter().enumerate() {
        let (large, spare) = (Upstream::new(vec![reply]), Upstream::new(vec![Reply::held()]));
        let stage = TestFolder::new();
        let models = format!(
            "  fast: {}\n  spare: {}",
            model(&large.url, ", fallback: [spare]"),
            model(&spare.url, "")
        );
        let file = stage.file(
            "tree.yaml",
            &format!("name: test\ngoal: Try it.\nbudget: {{ retries: 1 }}\nmodels:\n{models}\nagents: {{ lead: {{ model: fast }} }}\n"),
        );
        let playing = stage.play(&["run", &file, "--json"]);
        spare.was_asked(1);
        let peak = peak_kib(playing.pid());
        playing.kill();
        assert!(peak < PEAK_KIB_MAX, "reply {place} took {peak} KiB");
    }
}

/// What the process may have had in memory at most: an event of 16 MiB, and what reading it takes.
const PEAK_KIB_MAX: u64 = 128 * 1024;

fn peak_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
