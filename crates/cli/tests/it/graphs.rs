//! Pipelines through the binary: the example, its result, and the page that describes them.

use serde_json::json;
use spinney::tree_file::TreeFile;

use crate::test_folder::TestFolder;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// O8, S2, S3: fan-out over a folder that really is listed and read, reduce, vote and critic loop in one file.
#[test]
fn the_example_of_documents_reads_a_folder_and_lists_its_steps() {
    let stage = TestFolder::new();
    let folder = std::fs::canonicalize(format!("{EXAMPLES}/parks")).unwrap().display().to_string();
    let (file, given) = (format!("{EXAMPLES}/documents.yaml"), format!("folder={folder}"));
    let run = stage.spinney(&["run", &file, "--read", &folder, "--set", &given, "--json"]);
    assert_eq!(run.code, Some(0), "{} {}", run.out, run.err);
    let result = run.result();
    let documents = ["castle-park.md", "river-meadow.md", "station-square.md"];
    assert_eq!(result["outputs"]["documents"], json!(documents.map(|name| format!("{folder}/{name}"))));
    let findings = result["outputs"]["findings"].as_array().unwrap();
    for (at, word) in ["fungus", "butterflies", "lime trees"].into_iter().enumerate() {
        assert!(findings[at].as_str().unwrap().contains(word), "{findings:?}");
    }
    assert_eq!(result["outputs"]["verdict"], json!({ "lead": "castle-park.md" }));
    assert_eq!(result["output"], result["outputs"]["report"]);
    let mut succeeded: Vec<&str> =
        result["succeeded"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    succeeded.sort_unstable();
    let wanted = [
        "judge[0]", "judge[1]", "judge[2]", "list", "publish", "read[0]", "read[1]", "read[2]", "review",
        "review#2", "write", "write#2",
    ];
    assert_eq!(succeeded, wanted);
    assert_eq!((&result["failed"], &result["skipped"]), (&json!([]), &json!([])));
    // Without a folder that is given, it says which input that is; without the right to read it, nothing is read.
    let asked = stage.spinney(&["run", &file]);
    assert!(asked.code == Some(2) && asked.err.contains("input `folder` has no value"), "{}", asked.err);
    let refused = stage.spinney(&["run", &file, "--set", &given, "--json"]);
    assert_eq!((refused.code, &refused.result()["failed"]), (Some(1), &json!(["list"])));
    assert!(!refused.out.contains("castle-park"), "{}", refused.out);
}

/// The panel objects, the author changes the diff, and the panel approves what it has then; another diff is an input.
#[test]
fn the_example_of_a_review_panel_votes_again_after_a_change() {
    let stage = TestFolder::new();
    let file = format!("{EXAMPLES}/review-panel.yaml");
    let run = stage.spinney(&["run", &file, "--json"]);
    assert_eq!(run.code, Some(0), "{} {}", run.out, run.err);
    let outputs = run.result()["outputs"].clone();
    assert_eq!(outputs["panel"]["verdict"], json!("approve"));
    assert!(outputs["patch"].as_str().unwrap().contains("+        send(member.mail, TEXT)"), "{outputs}");
    let goals: Vec<String> =
        run.json().iter().filter_map(|event| event["goal"].as_str().map(str::to_owned)).collect();
    let of_round = |word: &str| {
        goals.iter().filter(|goal| goal.starts_with("Can it be abused?") && goal.contains(word)).count()
    };
    assert_eq!((of_round("os.system"), of_round("+        send(member")), (1, 1), "{goals:?}");
    let good = "diff=+        send(member.mail, TEXT)";
    let approved = stage.spinney(&["run", &file, "--set", good, "--json"]).result();
    assert_eq!((&approved["agents"], &approved["outputs"]["patch"]), (&json!(5), &json!(null)));
}

/// The lead splits a question, its researchers work at the same time, and the report is a file.
#[test]
fn the_example_of_a_research_team_writes_a_report() {
    let stage = TestFolder::new();
    let run = stage.spinney(&["run", &format!("{EXAMPLES}/research-team.yaml"), "--json"]);
    assert_eq!((run.code, &run.result()["agents"]), (Some(0), &json!(3)), "{}", run.err);
    assert!(stage.said(&["files"]).contains("outputs/report.md"));
}

/// O7, O12: the result says what failed and what was never reached, and the error is the step's own.
#[test]
fn a_failed_pipeline_lists_what_failed_and_what_was_skipped() {
    let stage = TestFolder::new();
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

/// A file whose steps write files, race, and never end.
fn long_race(stage: &TestFolder) -> String {
    stage.file(
        "s.yaml",
        "rules:\n  - { when: { goal_contains: slow }, hang: true }\n  \
         - { when: { turn: 1 }, call: [{ tool: write_file, args: { path: outputs/notes.md, text: '{{ goal }}' } }] }\n  \
         - { say: done }\n",
    );
    stage.file(
        "tree.yaml",
        "name: t\ngoal: Go.\nmodels:\n  m: { provider: scripted, script: s.yaml }\nagents:\n  \
         worker: { model: m, tools: [write_file] }\npipeline:\n  steps:\n    \
         - race:\n        - { id: quick, agent_id: worker, task_description: Be quick. }\n        \
         - { id: lost, agent_id: worker, task_description: Be slow. }\n      output_to: won\n    \
         - parallel:\n        - { id: more, agent_id: worker, task_description: Write more. }\n        \
         - { id: endless, agent_id: worker, task_description: Be slow. }\n    \
         - { id: last, agent_id: worker, task_description: Last. }\n",
    )
}

/// The result lists what was stopped, in a race and with the whole tree, what was never reached, and the files of
/// agents with paths that can be opened.
#[test]
fn a_cancelled_pipeline_lists_what_was_stopped_and_the_files_of_its_agents() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &long_race(&stage), "--json"]);
    running.until(r#""frame":5,"name":"more","end":"#);
    assert_eq!(stage.spinney(&["cancel", "last"]).code, Some(0));
    let ended = running.end();
    let result = ended.result();
    assert_eq!((ended.code, &result["state"]), (Some(4), &json!("cancelled")), "{}", ended.err);
    assert_eq!(result["succeeded"], json!(["quick", "more"]));
    assert_eq!(result["cancelled"], json!(["lost", "endless"]));
    assert_eq!((&result["failed"], &result["skipped"]), (&json!([]), &json!(["last"])));
    assert_eq!(result["outputs"], json!({ "won": "done" }));
    let files: Vec<&str> =
        result["files"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
    let texts: Vec<String> =
        files.iter().map(|path| std::fs::read_to_string(stage.folder().join(path)).unwrap()).collect();
    assert_eq!(texts, ["Write more.", "Be quick."], "{files:?}");
    let shown = stage.spinney(&["resume", "last"]);
    for part in ["stopped lost, endless", "skipped last", "/more/outputs/notes.md"] {
        assert!(shown.out.contains(part), "{part} is not in {}", shown.out);
    }
}

/// A person writes a value for a step that waits, and a later step of the same tree reads it.
#[test]
fn a_value_that_a_person_writes_is_there_for_agents() {
    let stage = TestFolder::new();
    stage.file(
        "s.yaml",
        "rules:\n  - { when: { turn: 1 }, call: [{ tool: read_context, args: { key: plan } }] }\n  - { say: '{{ last }}' }\n",
    );
    let tree = stage.file(
        "tree.yaml",
        "name: t\ngoal: Go.\nmodels:\n  m: { provider: scripted, script: s.yaml }\nagents:\n  \
         worker: { model: m, tools: [read_context] }\npipeline:\n  steps:\n    - { id: ok, ask: Ready? }\n    \
         - { id: read, agent_id: worker, task_description: Read. }\n",
    );
    assert_eq!(stage.spinney(&["run", &tree, "--json"]).code, Some(5));
    let set = stage.spinney(&["shared", "last", "plan", "--set", "plant ash", "--expect-version", "0"]);
    assert_eq!(set.code, Some(0), "{}", set.err);
    assert!(set.err.contains("wrote `plan`, version 1") || set.out.contains("wrote `plan`, version 1"));
    let late = stage.spinney(&["shared", "last", "plan", "--set", "[1]", "--expect-version", "0"]);
    assert!(late.code != Some(0) && late.err.contains("`plan` has version 1, not 0"), "{}", late.err);
    let question = stage.spinney(&["questions", "last", "--json"]).json()[0]["question"].to_string();
    assert_eq!(stage.spinney(&["answer", "last", &question, "yes"]).code, Some(0));
    let result = stage.spinney(&["resume", "last", "--json"]).result();
    assert!(result["output"].as_str().unwrap().contains("plant ash"), "{result}");
    assert_eq!(result["outputs"]["plan"], json!("plant ash"));
}

#[test]
fn the_tree_file_of_the_page_is_read() {
    const PAGE: &str = include_str!("../../../../docs/graphs.md");
    let text = PAGE.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let file = TreeFile::parse("page.yaml", text).unwrap();
    assert_eq!(file.definition.graph.unwrap().steps().count(), 3);
}
