//! Pipelines of tree files: their problems have places, and their sizes bounds.

use spinney::tree_file::TreeFile;

const HEAD: &str = "name: t\ngoal: Go.\nmodels:\n  m: { provider: scripted, script: s.yaml }\nagents:\n  writer: { model: m }\n";

fn error(pipeline: &str) -> String {
    TreeFile::parse("tree.yaml", &format!("{HEAD}{pipeline}")).unwrap_err().to_string()
}

/// G18: the place and the remedy of a problem.
#[test]
fn g18_a_problem_of_a_pipeline_has_its_line_its_column_and_a_remedy() {
    let steps = "pipeline:\n  steps:\n    - { id: a, agent_id: writter, task_description: x }\n";
    assert_eq!(error(steps), "tree.yaml:9:26: unknown agent `writter`: did you mean `writer`?");
    let steps = "pipeline:\n  steps:\n    - parallel:\n        - id: a\n          agent_id: writer\n          task_descripton: x\n";
    assert_eq!(
        error(steps),
        "tree.yaml:12:11: unknown key `task_descripton`: did you mean `task_description`?"
    );
    let steps = "pipeline:\n  steps:\n    - { agent_id: writer, task_description: 'Use {{ x' }\n";
    assert!(error(steps).starts_with("tree.yaml:9:45: bad `task_description`: "), "{}", error(steps));
    let both = "entry: writer\npipeline: { steps: [{ agent_id: writer, task_description: x }] }\n";
    assert!(error(both).starts_with("tree.yaml:7:8: `entry` and `pipeline` in one file"), "{}", error(both));
    let named =
        "  pipeline: { model: m }\npipeline: { steps: [{ agent_id: writer, task_description: x }] }\n";
    assert!(error(named).starts_with("tree.yaml:7:3: no agent can be called `pipeline`"), "{}", error(named));
    let many =
        format!("pipeline:\n  steps:\n{}", "    - { agent_id: writer, task_description: x }\n".repeat(1_000));
    assert!(error(&many).ends_with("write `limits: { agents: 1001 }` or more"), "{}", error(&many));
}

/// A file with the most steps is read, and one with more is refused with the number.
#[test]
fn a_file_of_many_steps_is_read_within_bounds() {
    let file = |count: usize| {
        let steps = "    - { agent_id: writer, task_description: x }\n".repeat(count);
        format!("{HEAD}limits: {{ agents: 1000000 }}\npipeline:\n  steps:\n{steps}")
    };
    let tree = TreeFile::parse("tree.yaml", &file(10_000)).unwrap();
    assert_eq!(tree.definition.graph.unwrap().steps().count(), 10_000);
    let error = TreeFile::parse("tree.yaml", &file(100_000)).unwrap_err().to_string();
    assert!(error.contains("the graph has more than 100000 steps and groups"), "{error}");
}
