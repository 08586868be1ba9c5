//! Answers with a schema, as people see them: an example that repairs an answer, and a run in which none matches.

use serde_json::{Value, json};

use crate::test_folder::{TestFolder, steady};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/scenarios/structured-answer.yaml");

#[test]
fn the_example_repairs_an_answer_and_gives_json() {
    let stage = TestFolder::new();
    let run = stage.spinney(&["run", EXAMPLE, "--json"]);
    let result = run.result();
    // `output` is the text of the answer, even if it is JSON.
    assert_eq!(result["output"], json!(r#"{"tree": "ash", "years": 70}"#));
    let events = run.json();
    let wrong = |event: &&Value| event["outcome"]["mismatch"].is_object();
    let mismatches: Vec<&Value> =
        events.iter().filter(wrong).map(|event| &event["outcome"]["mismatch"]).collect();
    assert_eq!(mismatches.len(), 1);
    assert_eq!(mismatches[0]["kind"], json!("not_json"));
    // The parent read the bare JSON.
    let printed = stage.spinney(&["show", "forester"]).out;
    assert!(printed.contains(r#"{"rings": 70, "species": "ash"}"#) && !printed.contains("```"), "{printed}");
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

#[test]
fn a_run_in_which_nothing_fits_fails_with_code_and_remedy() {
    let stage = TestFolder::new();
    let file = stage.tree("", "rules: [ { say: '{\"n\": \"five\"}' } ]");
    let text = std::fs::read_to_string(&file).unwrap();
    let schema = "output_schema: { properties: { n: { type: integer } } }";
    let text = text.replacen("tools: []", &format!("tools: [], {schema}"), 1);
    assert!(text.contains("output_schema"), "{text}");
    std::fs::write(&file, text).unwrap();
    let run = stage.spinney(&["run", &file, "--json"]);
    let result = run.result();
    assert_eq!(
        (run.code, &result["state"], &result["error"]["code"]),
        (Some(1), &json!("failed"), &json!("output_mismatch"))
    );
    insta::assert_snapshot!(result["error"]["message"].as_str().unwrap(), @r#"at /n: value is not of type "integer": the answer still does not fit `output_schema` after 2 repairs; describe the expected answer in the goal, or ask for less in the schema"#);
    insta::assert_snapshot!(result["error"]["remedy"].as_str().unwrap(), @"describe the expected answer in the prompt or the goal, or ask for less in `output_schema`, and run it again");
    assert_eq!(result["output"], json!(r#"{"n": "five"}"#));
    let printed = stage.spinney(&["events", "last"]).out;
    insta::assert_snapshot!(steady(&printed), @r#"
     1    0.00s  -  tree `test` started, by rules 8
     2    0.00s  lead  starts: Try it.
     3    0.00s  lead  asks model fast (call 1): 113 tokens in, at most 16000 out
     4    0.00s  lead  starts model fast, attempt 1: $0.02002825, 16,113 tokens, 1 step held
     5    0.00s  lead  answers, and the answer does not match its schema (at /n: value is not of type "integer"): {"n": "five"}  [16,113 tokens held, 117 used: 113 in, 4 out]
     6    0.00s  lead  asks model fast (call 2): 270 tokens in, at most 16000 out
     7    0.00s  lead  starts model fast, attempt 1: $0.0200675, 16,270 tokens, 1 step held
     8    0.00s  lead  answers, and the answer does not match its schema (at /n: value is not of type "integer"): {"n": "five"}  [16,270 tokens held, 274 used: 270 in, 4 out]
     9    0.00s  lead  asks model fast (call 3): 427 tokens in, at most 16000 out
    10    0.00s  lead  starts model fast, attempt 1: $0.02010675, 16,427 tokens, 1 step held
    11    0.00s  lead  answers, and the answer does not match its schema (at /n: value is not of type "integer"): {"n": "five"}  [16,427 tokens held, 431 used: 427 in, 4 out]
    12    0.00s  lead  failed (output_mismatch: at /n: value is not of type "integer": the answer still does not fit `output_schema` after 2 repairs; describe the expected answer in the goal, or ask for less in the schema); spent $0.0002175, 822 tokens, 3 steps
    "#);
    let step = stage.home().join("workspace");
    let mut files: Vec<_> = walk(&step).into_iter().filter(|path| path.ends_with("step_001.json")).collect();
    let step: Value = serde_json::from_str(&std::fs::read_to_string(files.remove(0)).unwrap()).unwrap();
    assert_eq!(step["success"], json!(false));
    assert!(step["error"].as_str().unwrap().starts_with("output_mismatch: at /n: "), "{step}");
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
