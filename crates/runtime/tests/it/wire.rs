//! The wire form for processes outside.

use prost::Message;
use spinney::wire::{SpawnRequest, SpawnResult, WireError};
use spinney_testkit::Stage;

fn request(parent: &str, child: &str, role: &str) -> SpawnRequest {
    SpawnRequest {
        parent_id: parent.to_owned(),
        child_id: child.to_owned(),
        goal: "Look around.".to_owned(),
        tools: vec!["look".to_owned()],
        timeout_ms: 60_000,
        role: role.to_owned(),
    }
}

/// The bytes that other languages write and read.
#[test]
fn field_numbers_are_those_of_the_proto_file() {
    let bytes = request("lead", "a", "b").encode_to_vec();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    insta::assert_snapshot!(hex, @"0a046c6561641201611a0c4c6f6f6b2061726f756e642e22046c6f6f6b28e0d403320162");
    let result = SpawnResult {
        parent_id: "lead".to_owned(),
        child_id: "a".to_owned(),
        success: true,
        result: "Seen.".to_owned(),
        error: "none".to_owned(),
    };
    let hex: String = result.encode_to_vec().iter().map(|byte| format!("{byte:02x}")).collect();
    insta::assert_snapshot!(hex, @"0a046c656164120161180122055365656e2e2a046e6f6e65");
    let proto = include_str!("../../src/wire.proto");
    for field in [
        "string parent_id = 1;",
        "string child_id = 2;",
        "string goal = 3;",
        "repeated string tools = 4;",
        "int64 timeout_ms = 5;",
        "string role = 6;",
        "bool success = 3;",
        "string result = 4;",
        "string error = 5;",
    ] {
        assert!(proto.contains(field), "{field}");
    }
    assert_eq!(SpawnRequest::read(&bytes), Ok(request("lead", "a", "b")));
}

#[test]
fn what_is_no_request_is_told_so() {
    assert!(matches!(SpawnRequest::read(b"\xff\xff\xff"), Err(WireError::Unreadable { .. })));
    assert!(matches!(SpawnRequest::read(&vec![0; 2_000_000]), Err(WireError::TooLong { bytes: 2_000_000 })));
}

const SCRIPT: &str = "
rules:
  - when: { agent: worker, turn: 3 }
    say: I have seen it.
  - when: { agent: worker }
    call: [ { tool: look } ]
  - when: { agent: lazy }
    fail: { kind: auth }
tools: { look: { say: something } }
";

/// L5: whoever asked for a child gets its result and nothing of how it got there. L7: bad ids make nothing.
#[tokio::test(start_paused = true)]
async fn l5_l7_a_child_for_outside_returns_its_result_and_bad_ids_make_none() {
    let stage = Stage::new(SCRIPT);
    let home = stage.home();
    let tree = stage.start(&home, "root $9.00 / worker later turns=9 / lazy later turns=9").await;
    let served = tree.serve(&request("root", "w1", "worker")).await;
    let expected = SpawnResult {
        parent_id: "root".to_owned(),
        child_id: "w1".to_owned(),
        success: true,
        result: "I have seen it.".to_owned(),
        error: String::new(),
    };
    assert_eq!(served, expected);
    let before = tree.look().await.unwrap().seq;
    let mut errors = Vec::new();
    for (parent, child) in
        [("root", "../x"), ("root", "a/b"), ("root", ""), ("root", "root"), ("root", "w1"), ("ghost", "w2")]
    {
        let refused = tree.serve(&request(parent, child, "worker")).await;
        assert!(!refused.success && refused.result.is_empty(), "{refused:?}");
        errors.push(format!("{child:?} under {parent}: {}", refused.error));
    }
    let late = tree.serve(&SpawnRequest { timeout_ms: -1, ..request("root", "w3", "worker") }).await;
    errors.push(late.error);
    assert_eq!(tree.look().await.unwrap().seq, before);
    insta::assert_snapshot!(errors.join("\n"), @r#"
    "../x" under root: `../x` is not a valid agent id: 1 to 64 characters of a-z, 0-9, `_` and `-`, the first a letter or digit
    "a/b" under root: `a/b` is not a valid agent id: 1 to 64 characters of a-z, 0-9, `_` and `-`, the first a letter or digit
    "" under root: `` is not a valid agent id: 1 to 64 characters of a-z, 0-9, `_` and `-`, the first a letter or digit
    "root" under root: the id `root` is taken: choose another one or leave it out
    "w1" under root: the id `w1` is taken: choose another one or leave it out
    "w2" under ghost: no agent is called `ghost` in this tree: its events name every agent
    timeout_ms is -1: give 0 or more
    "#);
}
