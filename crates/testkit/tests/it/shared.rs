//! Shared values, as decisions: versions, authors, access, sizes and their end. The runtime's tests have the rest.

use insta::assert_snapshot;
use serde_json::json;
use spinney_kernel::definition::SharedAccess;
use spinney_kernel::primitives::limit;
use spinney_kernel::record::Event;
use spinney_testkit::Scenario;

/// Has an agent make each of these calls in its own turn, and returns the answers.
fn answers(play: &mut Scenario, agent: &str, calls: &[String]) -> Vec<String> {
    let mut answers = Vec::new();
    for call in calls {
        let turn =
            play.world().calls().all().find(|(_, call)| {
                call.work.is_turn() && play.world().agents().id(call.agent).as_str() == agent
            });
        let turn = turn.unwrap().0;
        play.run(&format!("said {turn} Hm. | {call}"));
        let events = &play.batches().last().unwrap().events;
        answers.extend(events.iter().filter_map(|event| match event {
            Event::ToolAnswered { body, .. } => Some(body.text.trim_end().to_owned()),
            _ => None,
        }));
    }
    answers
}

fn write(key: &str, value: &serde_json::Value) -> String {
    format!("write_context {}", json!({ "key": key, "value": value }))
}

fn write_if(key: &str, value: &serde_json::Value, version: u64) -> String {
    format!("write_context {}", json!({ "key": key, "value": value, "expect_version": version }))
}

fn read(key: &str) -> String {
    format!("read_context {}", json!({ "key": key }))
}

/// X7 (versions, decision part): every write raises the version by one and names its author; a conditional write with
/// another version changes nothing and says what to do; 0 is for a value that must not exist.
#[test]
fn x7_each_write_raises_the_version_and_a_conditional_one_may_be_refused() {
    let mut play = Scenario::grow("root $9.00 turns=20");
    let calls = [
        read("plan"),
        write_if("plan", &json!(["a"]), 1),
        write_if("plan", &json!(["a"]), 0),
        write("plan", &json!(null)),
        write_if("plan", &json!("late"), 1),
        write_if("plan", &json!("next"), 2),
        read("plan"),
        write("notes", &json!({ "b": 1 })),
        "list_context {}".to_owned(),
        "list_context {\"prefix\":\"n\"}".to_owned(),
        "list_context {\"prefix\":\"x\"}".to_owned(),
    ];
    assert_snapshot!(answers(&mut play, "root", &calls).join("\n"), @"
    unknown value `plan`: list_context lists the values
    there is no value `plan` yet, so its version is 0, not 1: read it again, and write with `expect_version: 0`
    wrote plan version 1
    wrote plan version 2
    `plan` has version 2, not 1: read it again, and write with `expect_version: 2`
    wrote plan version 3
    plan version 3, 6 bytes, written by root:
    wrote notes version 1
    notes version 1, 7 bytes, written by root
    plan version 3, 6 bytes, written by root
    notes version 1, 7 bytes, written by root
    no shared values
    ");
}

/// X7 (access, decision part): a role reads and writes what its rules say, whichever agent spawned it, and a refusal names the
/// roles that may. What it may not read is not listed.
#[test]
fn x7_a_role_reads_and_writes_what_its_rules_say() {
    let access: SharedAccess = serde_json::from_value(json!({
        "plan*": { "write": ["root"] },
        "secret": { "read": ["root"], "write": [] },
        "inbox": { "read": ["root"] },
    }))
    .unwrap();
    let mut play = Scenario::grow_as("root $9.00 turns=20 / a turns=20", |tree| tree.shared = access);
    let own = [write("plan.a", &json!(1)), write("secret", &json!(1))];
    let of_root = answers(&mut play, "root", &own);
    let calls = [
        write("plan.a", &json!(2)),
        read("plan.a"),
        write("inbox", &json!("done")),
        read("inbox"),
        "list_context {}".to_owned(),
        write("pipeline.progress", &json!(1)),
    ];
    let of_a = answers(&mut play, "a", &calls);
    assert_snapshot!([of_root, of_a].concat().join("\n"), @"
    wrote plan.a version 1
    role `root` may not write `secret`, nobody may: choose another key
    role `a` may not write `plan.a`, only `root` may: choose another key
    plan.a version 1, 1 bytes, written by root:
    wrote inbox version 1
    role `a` may not read `inbox`, only `root` may: choose another key
    plan.a version 1, 1 bytes, written by root
    `pipeline.progress` is written by the tree itself: choose another key
    ");
}

/// O3 (sizes, decision part): a value of 1,048,576 bytes is taken and one byte more is not; nor is one beyond what a
/// tree may hold, or a key beyond the last. What is not JSON is refused, and so is a bad key.
#[test]
fn o3_sizes_and_keys_have_limits() {
    let mut play = Scenario::grow("root $9.00 turns=2000");
    let text = |bytes: usize| json!("x".repeat(bytes - 2));
    let largest = text(limit::VALUE_BYTES_MAX);
    let mut calls = vec![write("a", &text(limit::VALUE_BYTES_MAX + 1))];
    calls.extend((0..16).map(|number| write(&format!("k{number}"), &largest)));
    calls.extend([
        write("k16", &json!(1)),
        write("k0", &json!(1)),
        write("k16", &json!(1)),
        "write_context {\"key\":\"a\",\"value\":NaN}".to_owned(),
        write("a b", &json!(1)),
        "write_context {\"key\":\"a\"}".to_owned(),
    ]);
    assert_snapshot!(answers(&mut play, "root", &calls).join("\n"), @"
    `a` would have 1048577 bytes and the limit is 1048576: write a shorter value, or several
    wrote k0 version 1
    wrote k1 version 1
    wrote k2 version 1
    wrote k3 version 1
    wrote k4 version 1
    wrote k5 version 1
    wrote k6 version 1
    wrote k7 version 1
    wrote k8 version 1
    wrote k9 version 1
    wrote k10 version 1
    wrote k11 version 1
    wrote k12 version 1
    wrote k13 version 1
    wrote k14 version 1
    wrote k15 version 1
    the shared values would have 16777217 bytes with `k16` and the limit is 16777216: write null over values that are no longer needed
    wrote k0 version 2
    wrote k16 version 1
    bad arguments for `write_context`: expected value at line 1 column 20; write one JSON object with the fields it takes
    bad arguments for `write_context`: `a b` is not a valid value name: 1 to 64 characters of A-Z, a-z, 0-9 and `_.-`, the first a letter or `_` at line 1 column 12; write one JSON object with the fields it takes
    bad arguments for `write_context`: missing field `value` at line 1 column 11; write one JSON object with the fields it takes
    ");
    let mut play = Scenario::grow("root $9.00 turns=2000");
    let calls: Vec<String> =
        (0..=limit::VALUES_MAX).map(|number| write(&format!("k{number}"), &json!(0))).collect();
    let answers = answers(&mut play, "root", &calls);
    assert_eq!(answers[limit::VALUES_MAX - 1], "wrote k1023 version 1");
    assert_snapshot!(answers[limit::VALUES_MAX], @"there are 1024 shared values and the limit is 1024: write over one that exists, not `k1024`");
    assert_eq!((play.world().shared().len(), play.world().shared().bytes()), (1_024, 1_024));
}

/// O4 (order, decision part): the values are cleared right before the root ends, however it ends.
#[test]
fn o4_the_values_are_cleared_before_the_root_ends() {
    for end in ["said #2 Done.", "cancel root enough", "fail root no"] {
        let mut play = Scenario::grow("root $9.00 turns=20");
        answers(&mut play, "root", &[write("plan", &json!(1))]);
        assert_eq!(play.world().shared().len(), 1);
        play.run(end);
        if !play.world().is_over() {
            // A call that ran is over first.
            play.run("done #2");
        }
        let events: Vec<&Event> = play.batches().iter().flat_map(|batch| &batch.events).collect();
        let cleared =
            events.iter().position(|event| matches!(event, Event::ValuesCleared { count: 1 })).unwrap();
        assert!(matches!(events[cleared + 1], Event::AgentEnded { .. }), "{end}");
        assert_eq!(cleared + 2, events.len(), "{end}");
        assert!(play.world().shared().is_empty());
    }
}

/// A tool of this name in a tree under older rules is its own tool, and a call without one is unknown as before.
#[test]
fn older_rules_do_not_know_these_tools() {
    let mut play = Scenario::grow_under(4, "root $9.00 turns=20");
    let answers = answers(&mut play, "root", &[write("plan", &json!(1))]);
    assert!(answers[0].starts_with("no tool is called `write_context`"), "{answers:?}");
    assert!(!answers[0].contains("read_context"), "{answers:?}");
}

/// Reading and listing the same value again and again is looking, not a loop. Each write has a new version, so its
/// result is another one; a refused write is the same each time.
#[test]
fn reading_a_value_again_is_no_loop() {
    let calls = [
        (read("plan"), 0),
        ("list_context {}".to_owned(), 0),
        (write("plan", &json!(1)), 0),
        (write_if("plan", &json!(1), 0), 1),
    ];
    for (call, notices) in calls {
        let mut play = Scenario::grow("root $9.00 turns=20 repeats=3,6");
        answers(&mut play, "root", &[write("plan", &json!(0))]);
        for _ in 0..8 {
            if !play.world().is_over() {
                answers(&mut play, "root", std::slice::from_ref(&call));
            }
        }
        let told = play.batches().iter().flat_map(|batch| &batch.events);
        let told = told.filter(|event| matches!(event, Event::RepeatsNoticed { .. })).count();
        assert_eq!((told, play.world().is_over()), (notices, notices > 0), "{call}");
    }
}
