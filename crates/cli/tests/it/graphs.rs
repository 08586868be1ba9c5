//! Pipelines through the binary: the example, its result, and the page that describes them.

use serde_json::json;
use spinney::tree_file::TreeFile;

use crate::stage::Stage;

fn example() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/documents.yaml").to_owned()
}

/// O8, S1, S2, S3, S18: fan-out, reduce, vote and critic loop in one file.
#[test]
fn the_example_of_documents_completes_and_lists_its_steps() {
    let run = Stage::new().spinney(&["run", &example(), "--json"]);
    assert_eq!(run.code, Some(0), "{} {}", run.out, run.err);
    let result = run.result();
    assert_eq!(result["outputs"]["documents"], json!(["ash.txt", "oak.txt", "elm.txt"]));
    let summaries = ["Ashes are the tallest.", "Oaks are the oldest.", "Elms are the rarest."];
    assert_eq!(result["outputs"]["summaries"], json!(summaries));
    assert_eq!(result["outputs"]["verdict"], json!({ "lead": "oak.txt" }));
    assert_eq!(result["output"], result["outputs"]["report"]);
    let mut succeeded: Vec<&str> =
        result["succeeded"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    succeeded.sort_unstable();
    let wanted = [
        "draft", "draft#2", "judge[0]", "judge[1]", "judge[2]", "list", "publish", "read[0]", "read[1]",
        "read[2]", "review", "review#2",
    ];
    assert_eq!(succeeded, wanted);
    assert_eq!((&result["failed"], &result["skipped"]), (&json!([]), &json!([])));
}

/// O7, O12: the result says what failed and what was never reached, and the error is the step's own.
#[test]
fn a_failed_pipeline_lists_what_failed_and_what_was_skipped() {
    let stage = Stage::new();
    stage.file("s.yaml", "rules:\n  - { when: { goal_contains: Two }, fail: { kind: auth, times: 9 }, say: x }\n  - { say: done }\n");
    let tree = stage.file(
        "tree.yaml",
        "name: t\ngoal: Go.\nmodels:\n  m: { provider: scripted, script: s.yaml }\nagents:\n  worker: { model: m }\n\
         pipeline:\n  steps:\n    - { id: one, agent_id: worker, task_description: One., output_to: one }\n    \
         - { id: two, agent_id: worker, task_description: Two. }\n    - { id: three, agent_id: worker, task_description: Three. }\n",
    );
    let run = stage.spinney(&["run", &tree, "--json"]);
    assert_eq!(run.code, Some(1));
    let result = run.result();
    assert_eq!(result["succeeded"], json!(["one"]));
    assert_eq!(result["failed"], json!(["two"]));
    assert_eq!(result["skipped"], json!(["three"]));
    assert_eq!(result["outputs"], json!({ "one": "done" }));
    assert_eq!(result["error"]["code"], json!("model_auth"));
    assert!(result["error"]["message"].as_str().unwrap().starts_with("step `two`: "), "{}", result["error"]);
    let plain = stage.spinney(&["run", &tree]);
    for part in ["done    one", "failed  two", "skipped three"] {
        assert!(plain.out.contains(part), "{part} is not in {}", plain.out);
    }
}

#[test]
fn the_tree_file_of_the_page_is_read() {
    const PAGE: &str = include_str!("../../../../docs/graphs.md");
    let text = PAGE.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let file = TreeFile::parse("page.yaml", text).unwrap();
    assert_eq!(file.definition.graph.unwrap().steps().count(), 3);
}
