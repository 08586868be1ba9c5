//! Models that do everything wrong, on the real runtime: each tree ends with a typed result within its limits, and
//! errors are returned as advice. `run_and_check.rs` checks what holds for all of them.

use std::fmt::Write as _;
use std::sync::Arc;

use insta::assert_snapshot;
use spinney::FunctionTool;
use spinney::function_tool::RawCall;
use spinney_kernel::budget::{Resource, Used};
use spinney_kernel::definition::Recursion;
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{AttemptError, Deltas, Model, ModelAnswer, ModelAttempt};
use spinney_kernel::primitives::limit;
use spinney_kernel::record::ToolAsk;
use spinney_testkit::{Recorder, TestHome};

use crate::run_and_check::{Played, wordy};

/// A script whose root makes these calls in its first answer, and then says that it is done.
fn first(calls: &str, rest: &str) -> String {
    format!("rules:\n  - when: {{ agent: root, turn: 1 }}\n    call:\n{calls}\n{rest}\n  - {{ say: done }}\n")
}

#[tokio::test(start_paused = true)]
async fn arguments_that_are_no_json_come_back_as_advice() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let (not, end) = ("{\"not\":".repeat(1_500), "}".repeat(1_500));
    let schema = format!("{{\"agent\":\"helper\",\"goal\":\"x\",\"output_schema\":{not}{{}}{end}}}");
    let wrong = [
        r#"{"agent": "hel"#,
        "",
        "[]",
        "null",
        r#""helper""#,
        "{} {}",
        r#"{"agent": 5, "goal": "x"}"#,
        r#"{"agent": "helper"}"#,
        r#"{"agent": "helper", "goal": "x", "goal": "y"}"#,
        r#"{"agent": "helper", "goal": "x", "budget": {"cost_usd": -1}}"#,
        r#"{"agent": "helper", "goal": "x", "budget": {"cost_usd": 1e400}}"#,
        r#"{"agent": "helper", "goal": "x", "depth": 99}"#,
        r#"{"agent": "no such", "goal": "x"}"#,
        r#"{"agent": "helper", "goal": ""}"#,
        &deep,
        &schema,
    ];
    let calls = wrong.iter().fold(String::new(), |mut calls, args| {
        writeln!(calls, "      - {{ tool: spawn_agent, args: '{args}' }}").unwrap();
        calls
    });
    let played = Played::by(&first(&calls, ""), "root $9000.00 turns=5 / helper later turns=5").await;
    assert_snapshot!(played.sum(), @"completed, 2 model calls, 1 agents");
    assert!(played.returned("root").iter().all(|returned| returned.is_error));
    assert_snapshot!(played.results("root"), @"
    !1_1 bad arguments for `spawn_agent`: EOF while parsing a string at line 1 column 14; write one JSON object with the fields it takes
    !1_2 bad arguments for `spawn_agent`: EOF while parsing a value at line 1 column 0; write one JSON object with the fields it takes
    !1_3 bad arguments for `spawn_agent`: they are not a JSON object; write one JSON object with the fields it takes
    !1_4 bad arguments for `spawn_agent`: they are not a JSON object; write one JSON object with the fields it takes
    !1_5 bad arguments for `spawn_agent`: they are not a JSON object; write one JSON object with the fields it takes
    !1_6 bad arguments for `spawn_agent`: trailing characters at line 1 column 4; write one JSON object with the fields it takes
    !1_7 bad arguments for `spawn_agent`: invalid type: integer `5`, expected a string at line 1 column 11; write one JSON object with the fields it takes
    !1_8 bad arguments for `spawn_agent`: missing field `goal` at line 1 column 19; write one JSON object with the fields it takes
    !1_9 bad arguments for `spawn_agent`: duplicate field `goal` at line 1 column 39; write one JSON object with the fields it takes
    !1_10 bad arguments for `spawn_agent`: `-1` is not an amount in USD: write a plain positive number such as 0.25, at most nine decimals at line 1 column 59; write one JSON object with the fields it takes
    !1_11 bad arguments for `spawn_agent`: number out of range at line 1 column 61; write one JSON object with the fields it takes
    !1_12 bad arguments for `spawn_agent`: unknown field `depth`, expected one of `agent`, `goal`, `id`, `model`, `tools`, `budget`, `timeout`, `detach`, `share`, `output_schema`, `window`, `messages` at line 1 column 40; write one JSON object with the fields it takes
    !1_13 bad arguments for `spawn_agent`: `no such` is not a valid role: 1 to 48 characters of a-z, 0-9, `_` and `-`, the first a letter or digit at line 1 column 19; write one JSON object with the fields it takes
    !1_14 the goal is empty
    !1_15 bad arguments for `spawn_agent`: unknown field `a`, expected one of `agent`, `goal`, `id`, `model`, `tools`, `budget`, `timeout`, `detach`, `share`, `output_schema`, `window`, `messages` at line 1 column 4; write one JSON object with the fields it takes
    !1_16 bad `output_schema`: recursion limit exceeded at line 1 column 890; write a JSON Schema, which is a JSON object
    ");
}

#[tokio::test(start_paused = true)]
async fn tools_that_are_not_there_come_back_as_advice() {
    let long = "x".repeat(5_000);
    let names = ["no_such_tool", "Spawn_Agent", "spawn agent", "../read_file", "spawn_agent\\0", &long];
    let calls = names.iter().fold(String::new(), |mut calls, name| {
        writeln!(calls, "      - {{ tool: \"{name}\", args: {{}} }}").unwrap();
        calls
    });
    let played = Played::by(&first(&calls, ""), "root $9000.00 turns=5").await;
    assert_snapshot!(played.sum(), @"completed, 2 model calls, 1 agents");
    let returned = played.returned("root");
    assert_eq!(returned.len(), names.len());
    for result in returned {
        assert!(result.is_error && result.text.starts_with("unknown tool `"), "{result:?}");
        assert!(result.text.contains("choose one of") && result.text.len() <= limit::NOTICE_BYTES_MAX);
    }
}

/// This many calls of one tool in one answer.
fn storm(count: usize, call: impl Fn(usize) -> String, rest: &str) -> String {
    let calls = (1..=count).map(|number| format!("      - {}\n", call(number)));
    first(&calls.collect::<String>(), rest)
}

fn look(number: usize) -> String {
    format!("{{ tool: look, args: {{ at: {number} }} }}")
}

const LOOK: &str = "tools: { look: { think_ms: 5, say: 'seen {{ args.at }}' } }";

/// The maximum of one answer: each is answered once, in order.
#[tokio::test(start_paused = true)]
async fn a_thousand_tool_calls_in_one_answer_are_all_answered_in_order() {
    let played = Played::by(&format!("{}{LOOK}", storm(1_000, look, "")), "root $9000.00 turns=5").await;
    assert_snapshot!(played.sum(), @"completed, 2 model calls, 1 agents");
    let returned: Vec<_> = played.returned("root").into_iter().map(|r| (r.id, r.text)).collect();
    let all: Vec<_> = (1..=1_000).map(|n| (format!("call_1_{n}"), format!("seen {n}"))).collect();
    assert_eq!(returned, all);
    assert_eq!(limit::ASKS_MAX, 1_000);
}

/// A model whose first answer has this many calls.
struct Storm(usize);

impl Model for Storm {
    fn call(&self, attempt: Arc<ModelAttempt>, _: Deltas) -> Pending<Result<ModelAnswer, AttemptError>> {
        let ask = |number: usize| ToolAsk {
            id: format!("call_1_{number}"),
            tool: "look".to_owned(),
            args: format!("{{\"at\":{number}}}"),
            tokens: None,
            told_tokens: None,
        };
        let asks = (1..=self.0).filter(|_| attempt.turn == 1).map(ask).collect();
        Box::pin(async { Ok(ModelAnswer::text("done").with_asks(asks).with_used(Used::NOTHING)) })
    }
}

/// One more than the maximum, and a hundred times the maximum: the excess is not called, and nothing is answered twice.
#[tokio::test(start_paused = true)]
async fn of_more_than_a_thousand_tool_calls_the_first_thousand_are_made() {
    for count in [1_001, 100_000] {
        let (stage, model) =
            (TestHome::new(&format!("rules: []\n{LOOK}")), Arc::new(Recorder::new(Storm(count))));
        let home = stage.home_with(|drivers| drivers.with_model("m".parse().unwrap(), model.clone()));
        let played = Played::at(&home, wordy("root $9000.00 turns=5"), || model.attempts()).await;
        assert_eq!((played.sum().as_str(), model.out()), ("completed, 2 model calls, 1 agents", 0));
        let returned: Vec<_> = played.returned("root").into_iter().map(|r| (r.id, r.text)).collect();
        let all: Vec<_> = (1..=1_000).map(|n| (format!("call_1_{n}"), format!("seen {n}"))).collect();
        assert_eq!(returned, all);
        assert_eq!(played.snapshot.agents[0].spent.get(Resource::ToolCalls), 1_000);
    }
}

/// Many calls against a ceiling: what fits is done, and each of the rest is refused on its own.
#[tokio::test(start_paused = true)]
async fn a_storm_of_tool_calls_stops_at_the_ceiling() {
    let script = format!("{}{LOOK}", storm(1_000, look, ""));
    let played = Played::by(&script, "root $9000.00 tool_calls=10 turns=5").await;
    assert_snapshot!(played.sum(), @"completed, 2 model calls, 1 agents");
    let returned = played.returned("root");
    let done = returned.iter().filter(|result| !result.is_error).count();
    assert_eq!((returned.len(), done), (1_000, 10));
    assert_snapshot!(returned.last().map(|r| r.text.clone()).unwrap_or_default(), @"tool_calls ceiling of `root`: limit 10, spent 10, held 0, asked 1: answer with what you have, or ask for less");
}

#[tokio::test(start_paused = true)]
async fn a_storm_of_spawns_ends_at_the_limit_of_children() {
    let spawn =
        |n: usize| format!("{{ tool: spawn_agent, args: {{ agent: helper, id: h{n}, goal: Count {n}. }} }}");
    let rest = "  - { when: { agent: helper }, think_ms: 5, say: '{{ goal }}' }";
    let played = Played::by(&storm(1_000, spawn, rest), "root $9000.00 turns=5 / helper later turns=5").await;
    assert_snapshot!(played.sum(), @"completed, 18 model calls, 17 agents");
    let returned = played.returned("root");
    assert_eq!(returned.len(), 1_000);
    for (n, result) in (1..).zip(&returned) {
        assert_eq!(result.id, format!("call_1_{n}"));
        let said = if n <= limit::CHILDREN_MAX {
            format!("Count {n}.")
        } else {
            "16 children are alive, and the limit is 16: wait for one to end".to_owned()
        };
        assert_eq!((&result.text, result.is_error), (&said, n > limit::CHILDREN_MAX));
    }
}

/// L14: a role that spawns itself forever, with a new goal each time, ends at the depth limit and the root answers.
#[tokio::test(start_paused = true)]
async fn l14_a_role_that_spawns_itself_for_ever_ends_at_the_depth_limit() {
    let mut tree = wordy("root $9000.00 turns=5 / again later turns=5");
    tree.limits.depth_max = limit::DEPTH_MAX;
    tree.roles[1].recursive = Recursion::Allowed;
    let script = r#"
rules:
  - { when: { agent: root, turn: 1 }, call: [{ tool: spawn_agent, args: { agent: again, goal: Dig, id: g1 } }] }
  - { when: { agent: again, turn: 1 }, call: [{ tool: spawn_agent, args: { agent: again, goal: "{{ goal }} deeper" } }] }
  - { say: "{{ goal }} came to: {{ last }}" }
"#;
    let played = Played::on(TestHome::new(script), tree).await;
    assert_snapshot!(played.sum(), @"completed, 8 model calls, 4 agents");
    assert_snapshot!(played.snapshot.end.as_ref().unwrap().shown.text, @"Grow. came to: Dig came to: Dig deeper came to: Dig deeper deeper came to: depth limit 3 reached at depth 3: do this part yourself");
}

/// The same goal again is a circle, and is refused at once with its path.
#[tokio::test(start_paused = true)]
async fn a_role_that_hands_its_own_goal_on_is_refused() {
    let mut tree = wordy("root $9000.00 turns=5 / again later turns=5");
    tree.roles[1].recursive = Recursion::Allowed;
    let script = r#"
rules:
  - { when: { turn: 1 }, call: [{ tool: spawn_agent, args: { agent: again, goal: "  Dig ", id: "g{{ path | length }}" } }] }
  - { say: "{{ last }}" }
"#;
    let played = Played::on(TestHome::new(script), tree).await;
    assert_snapshot!(played.sum(), @"completed, 4 model calls, 2 agents");
    assert_snapshot!(played.results("root"), @" 1_1 role `again` is already an ancestor here (root > g4 > again): do this part yourself or hand it to another role");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_returns_five_megabytes_is_shown_in_part() {
    let tool = FunctionTool::sync(|_: RawCall| Ok::<_, String>("x".repeat(5 << 20)));
    let script = first("      - { tool: big }\n      - { tool: big }", "");
    let played =
        Played::on(TestHome::new(&script).with_tool("big", tool), wordy("root $9000.00 turns=5")).await;
    assert_snapshot!(played.sum(), @"completed, 2 model calls, 1 agents");
    for result in played.returned("root") {
        assert!(result.text.len() < limit::OFFLOAD_CHARS && !result.is_error, "{} bytes", result.text.len());
        assert!(result.text.contains("5241344 of 5242880 bytes left out"), "{}", result.text);
    }
    let most = played.attempts.iter().map(|attempt| attempt.packet.tokens).max();
    assert!(most.unwrap() < 10_000, "{most:?}");
}

/// For an answer of 200 KB, the parent and readers of the tree's answer get its beginning and a reference to the rest.
#[tokio::test(start_paused = true)]
async fn an_answer_of_two_hundred_kilobytes_is_shown_in_part() {
    let rest = format!(
        "  - {{ when: {{ agent: helper }}, say: {} }}\n  - {{ when: {{ agent: root }}, say: {} }}",
        "h".repeat(200_000),
        "r".repeat(200_000)
    );
    let script = first("      - { tool: spawn_agent, args: { agent: helper, goal: Write. } }", &rest);
    let played = Played::by(&script, "root $9000.00 turns=5 / helper later turns=5").await;
    assert_snapshot!(played.sum(), @"completed, 3 model calls, 2 agents");
    let returned = played.returned("root");
    assert!(!returned[0].is_error && returned[0].text.starts_with("hhhh"));
    let (shown, words) = returned[0].text.split_at(limit::TEXT_BYTES_MAX);
    assert_eq!(shown, "h".repeat(limit::TEXT_BYTES_MAX));
    assert_snapshot!(words, @"

    [only the beginning: 200000 bytes in all; the whole is blob c4ab760d4e15080d]
    ");
    let body = &played.snapshot.end.as_ref().unwrap().shown;
    assert!(body.text.len() <= limit::TEXT_BYTES_MAX);
    assert_eq!(body.rest().map(|blob| blob.bytes), Some(200_000));
}

#[tokio::test(start_paused = true)]
async fn arguments_of_three_hundred_kilobytes_are_refused() {
    let args = |bytes: usize| format!("{{\"at\":\"{}\"}}", "x".repeat(bytes));
    let calls =
        [300_000, 250_000].map(|bytes| format!("      - {{ tool: look, args: '{}' }}\n", args(bytes)));
    let tools = "tools: { look: { say: 'seen {{ args.at | length }}' } }";
    let played = Played::by(&format!("{}{tools}", first(&calls.concat(), "")), "root $9000.00 turns=5").await;
    assert_snapshot!(played.sum(), @"completed, 2 model calls, 1 agents");
    assert_snapshot!(played.results("root"), @"
    !1_1 bad arguments for `look`: 262145 bytes, the limit is 262144; write one JSON object with the fields it takes
     1_2 seen 250000
    ");
}

#[tokio::test(start_paused = true)]
async fn a_child_that_answers_with_nothing_is_an_empty_answer() {
    let rest = "  - { when: { agent: helper }, say: '' }";
    let calls = "      - { tool: spawn_agent, args: { agent: helper, goal: Be silent., id: h } }";
    let played = Played::by(&first(calls, rest), "root $9000.00 turns=5 / helper later turns=5").await;
    assert_snapshot!(played.sum(), @"completed, 3 model calls, 2 agents");
    assert_eq!(played.word("h"), "completed");
    assert_snapshot!(format!("{:?}", played.returned("root")), @r#"[Returned { id: "call_1_1", text: "", is_error: false }]"#);
}
