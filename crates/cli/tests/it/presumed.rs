//! Money that no provider reported, in every view: what is spent, and how much of it is only presumed.

use std::fs;

use serde_json::{Value, json};
use spinney_kernel::budget::usd;
use spinney_kernel::primitives::grouped;

use crate::exec::{exec, used};
use crate::test_folder::{Ended, TestFolder, steady};
use crate::upstream::{Reply, Upstream};

/// What the one reported call of [`cut_lost_and_cancelled`] cost: 100 tokens in, 20 out.
const REPORTED_NANOS: u64 = 50_000;
const REPORTED_TOKENS: u64 = 120;

/// Cost and tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sum {
    nanos: u64,
    tokens: u64,
}

impl Sum {
    fn from_json(amounts: &Value) -> Self {
        let of = |key: &str| amounts[key].as_u64().unwrap_or_default();
        Self { nanos: of("cost_nanos"), tokens: of("tokens") }
    }

    fn over<'v>(rows: impl IntoIterator<Item = &'v Value>) -> Self {
        rows.into_iter().map(Self::from_json).fold(Self { nanos: 0, tokens: 0 }, |sum, one| Self {
            nanos: sum.nanos + one.nanos,
            tokens: sum.tokens + one.tokens,
        })
    }
}

/// A tree that was answered once; then a stream broke off, a call was lost with its process, and one was cancelled.
fn cut_lost_and_cancelled(stage: &TestFolder) -> Ended {
    let upstream = Upstream::new(vec![Reply::writes(), Reply::cut(), Reply::held()]);
    let running = stage.play(&["run", &stage.tree_on(&upstream)]);
    upstream.was_asked(3);
    running.kill();
    let resumed = stage.play(&["resume", "last", "--json"]);
    upstream.was_asked(4);
    let cancelled = stage.spinney(&["cancel", "last"]);
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.err);
    let ended = resumed.end();
    assert_eq!(ended.code, Some(4), "{}{}", ended.out, ended.err);
    ended
}

/// G40: of lost, cut and cancelled calls every view says how much is presumed, and the numbers agree.
#[test]
fn g40_every_view_of_a_tree_says_how_much_is_presumed() {
    let stage = TestFolder::new();
    let result = cut_lost_and_cancelled(&stage).result();
    let out = |args: &[&str]| {
        let ended = stage.spinney(args);
        assert!(matches!(ended.code, Some(0 | 4)), "{args:?}: {}", ended.err);
        ended
    };

    // The events: each of the three calls is presumed at its full hold, and the one that was reported is not.
    let events = out(&["events", "--json"]).json();
    let of_type = |kinds: &[&str]| -> Vec<&Value> {
        events.iter().filter(|event| kinds.iter().any(|kind| event["type"] == *kind)).collect()
    };
    let settled = of_type(&["attempt_failed", "call_ended"]);
    let presumed: Vec<&Value> =
        settled.iter().filter(|event| !event["presumed"].is_null()).map(|event| &event["presumed"]).collect();
    let held: Vec<&Value> = of_type(&["call_started"])
        .into_iter()
        .map(|event| &event["held"])
        .filter(|held| !held["tokens"].is_null())
        .collect();
    assert_eq!((presumed.len(), held.len()), (3, 4), "{events:#?}");
    let sum = Sum::over(presumed);
    assert_eq!(sum, Sum::over(held.into_iter().skip(1)));
    let spent = Sum { nanos: sum.nanos + REPORTED_NANOS, tokens: sum.tokens + REPORTED_TOKENS };
    let ends = of_type(&["agent_ended"]);
    assert_eq!((Sum::from_json(&ends[0]["spent"]), Sum::from_json(&ends[0]["presumed"])), (spent, sum));

    // The result, `tree` and `costs`, for programs.
    for result in [&result, &out(&["resume", "--json"]).result()] {
        let of = &result["spent"];
        assert_eq!((Sum::from_json(of), Sum::from_json(&of["presumed"])), (spent, sum), "{of}");
        let dollars = usd(sum.nanos).trim_start_matches('$').parse::<f64>().unwrap();
        assert_eq!(of["presumed"]["cost_usd"].as_f64(), Some(dollars));
    }
    let agents = out(&["tree", "--json"]).json();
    assert_eq!((Sum::from_json(&agents[0]["spent"]), Sum::from_json(&agents[0]["presumed"])), (spent, sum));
    let costs = out(&["costs", "--json"]).result();
    assert_eq!(
        (Sum::from_json(&costs["total"]["spent"]), Sum::from_json(&costs["total"]["presumed"])),
        (spent, sum)
    );
    for table in ["agents", "roles", "models", "steps", "attempts"] {
        let rows = costs[table].as_array().unwrap();
        assert_eq!(Sum::over(rows.iter().map(|row| &row["presumed"])), sum, "{table}");
    }
    // `ps` shows no amounts that could be presumed.
    assert_eq!(out(&["ps", "--json"]).result()["spent"], json!(null));

    // For people.
    let cost = format!("{} ({} presumed)", usd(spent.nanos), usd(sum.nanos));
    let tokens = format!("{} tokens ({} presumed)", grouped(spent.tokens), grouped(sum.tokens));
    for (args, words) in [
        (&["resume"] as &[&str], format!("  spent   {cost} · {tokens} · ")),
        (&["attach"], format!("  spent   {cost} · {tokens} · ")),
        (&["events"], format!("; spent {cost}, {tokens}, ")),
        (&["costs"], format!("spent {cost} · {tokens} · ")),
        (&["tree", "--dot"], cost.clone()),
        (
            &["tree"],
            format!("* includes what is presumed: {}, {} tokens\n", usd(sum.nanos), grouped(sum.tokens)),
        ),
        (&["top", "--once"], "PRESUMED".to_owned()),
    ] {
        let shown = out(args).out;
        assert!(shown.contains(&words), "{args:?} without `{words}`:\n{shown}");
    }
    let shown = out(&["events"]).out;
    let told: Vec<&str> = shown.lines().filter(|line| line.contains("(all presumed)")).collect();
    for words in [
        "which failed (cut)",
        "lost its call to model fast with its process",
        "gives up on model fast (stopped)",
    ] {
        assert!(told.iter().any(|line| line.contains(words)), "no `{words}`:\n{shown}");
    }
    assert_eq!(told.len(), 3, "{shown}");
    assert_eq!(stage.spinney(&["replay", "--verify", "last"]).code, Some(0));
}

/// G40 (an answer without usage): its call and the file of its step say that it is presumed.
#[test]
fn g40_an_answer_without_usage_is_presumed_at_its_hold() {
    let stage = TestFolder::new();
    let said = json!({ "id": "c1", "choices": [{ "index": 0, "delta": { "content": "Hello." } }] });
    let stop = json!({ "id": "c1", "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let upstream = Upstream::new(vec![Reply::stream(&[said, stop])]);
    let ended = stage.spinney(&["run", &stage.tree_on(&upstream), "--json"]);
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    let (events, result) = (ended.json(), ended.result());
    let started = events.iter().find(|event| event["type"] == "call_started").unwrap();
    let (held, spent) = (Sum::from_json(&started["held"]), &result["spent"]);
    assert_eq!((Sum::from_json(spent), Sum::from_json(&spent["presumed"])), (held, held));
    let shown = stage.spinney(&["events"]).out;
    let words = format!("answers: Hello.; spent {} (all presumed), ", usd(held.nanos));
    assert!(shown.contains(&words), "{shown}");
    let history = stage.home().join(format!("workspace/{}/lead/history", result["tree"].as_str().unwrap()));
    let step: Value = serde_json::from_slice(&fs::read(history.join("step_001.json")).unwrap()).unwrap();
    let metadata = &step["metadata"];
    assert_eq!(
        (Sum::from_json(&metadata["spent"]), Sum::from_json(&metadata["presumed"])),
        (held, held),
        "{step}"
    );
}

/// G40 (layout): what is presumed breaks no table at any width, and is in each of them.
#[test]
fn g40_what_is_presumed_fits_every_width() {
    let stage = TestFolder::new();
    cut_lost_and_cancelled(&stage);
    let at = |snapshot: &[&str], columns: &str| {
        let ended = stage.play_in(snapshot, &[("COLUMNS", columns)]).end();
        assert_eq!(ended.code, Some(0), "{snapshot:?}: {}", ended.err);
        let most = ended.out.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(most <= columns.parse().unwrap(), "{snapshot:?} at {columns}: {most}\n{}", ended.out);
        steady(&ended.out)
    };
    for columns in ["60", "80", "200"] {
        for snapshot in [&["tree"] as &[&str], &["costs"]] {
            insta::assert_snapshot!(format!("presumed_{}_{columns}", snapshot[0]), at(snapshot, columns));
        }
        let top = at(&["top", "--once"], columns);
        assert!(top.contains("PRESUMED"), "{top}");
    }
    // At a terminal, the summary.
    for columns in [60, 80, 200] {
        let screen = stage.terminal(&["attach"], columns, 40).end();
        assert_eq!(screen.code, Some(4), "{}", screen.out);
        insta::assert_snapshot!(format!("presumed_summary_{columns}"), steady(&screen.out));
    }
}

/// G40 (exec): the report of a run and the views of it say how much is presumed after a stream that broke off and after
/// kill -9.
#[test]
fn g40_the_report_of_a_run_says_how_much_is_presumed() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{\"type\":";
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(100), Reply::Sent(cut.to_owned())]);
    let ended = exec(&stage, &upstream, &["--budget-usd", "1"], "call 100 one\ncall 200 two").end();
    let report = "spent $0.30 ($0.20 presumed) of $1.00 · 2 calls, 1 cut off · ";
    assert!(ended.err.contains(report), "{}", ended.err);

    let upstream = Upstream::new(vec![used(100), Reply::Held(String::new())]);
    let mut running = exec(&stage, &upstream, &["--budget-usd", "1"], "call 100 one\ncall 300 two");
    running.until("used 100");
    upstream.was_asked(2);
    running.kill();
    let upstream = Upstream::new(vec![used(50)]);
    let again = exec(&stage, &upstream, &["--resume", "last", "--json"], "call 50 three").end();
    assert_eq!(again.code, Some(0), "{}", again.err);
    let result: Value = serde_json::from_str(again.out.lines().last().unwrap()).unwrap();
    let (spent, own) = (&result["spent"], &result["agents"][0]["own"]);
    for amounts in [spent, own, &result["agents"][0]["spent"]] {
        assert_eq!(amounts["cost_nanos"], json!(450_000_000), "{result}");
        assert_eq!(amounts["presumed"]["cost_nanos"], json!(300_000_000), "{result}");
        assert_eq!(amounts["presumed"]["cost_usd"], json!(0.3), "{result}");
    }
    let costs = stage.spinney(&["costs", "--json"]).result();
    assert_eq!(costs["total"]["presumed"]["cost_nanos"], json!(300_000_000));
    assert_eq!(costs["total"]["presumed"]["tokens"], spent["presumed"]["tokens"]);
    let calls = stage.spinney(&["show", "last", "main", "--calls", "--json"]).json();
    let presumed: Vec<Value> = calls.iter().map(|call| call["presumed"]["cost_nanos"].clone()).collect();
    assert_eq!(presumed, [json!(0), json!(300_000_000), json!(0)]);
    let shown = stage.spinney(&["show", "last", "main", "--calls"]).out;
    assert!(shown.contains("lost, spent $0.30 (all presumed), "), "{shown}");
}
