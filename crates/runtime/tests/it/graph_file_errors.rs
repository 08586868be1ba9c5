//! The errors for a pipeline that cannot run: place, reason and what to write instead. This is the complete list, word for
//! word.

use spinney::tree_file::{FileErrors, NoCatalog, TreeFile};

const HEAD: &str = "name: t\ngoal: Go.\ninputs: { place: { default: Kent } }\nmodels:\n  m: { provider: scripted, script: s.yaml }\nagents:\n  w: { model: m }\n";

/// Everything that is wrong with these steps, each on a line.
fn errors(steps: &str) -> String {
    let text = format!("{HEAD}pipeline:\n  steps:\n{steps}");
    errors_of(&text)
}

pub(crate) fn errors_of(text: &str) -> String {
    let (_, FileErrors { errors }) = TreeFile::parse_partly("tree.yaml", text, &NoCatalog);
    assert!(!errors.is_empty(), "nothing is wrong with\n{text}");
    errors.iter().map(|error| format!("{error}\n")).collect()
}

#[test]
fn a_pipeline_that_is_none_says_what_to_write() {
    let whole = |pipeline: &str| errors_of(&format!("{HEAD}pipeline: {pipeline}\n"));
    insta::assert_snapshot!(
        [
            "7",
            "{}",
            "{ steps: [] }",
            "{ steps: w }",
            "{ steps: [ 7, {}, { agent_id: w, parallel: [] } ] }",
            "{ mode: fast, steps: [ { agent_id: w, task_description: x } ] }",
            "{ on_partial_success: hope, steps: [ { agent_id: w, task_description: x } ] }",
            "{ max_parallel: 0, steps: [ { agent_id: w, task_description: x } ] }",
            "{ step: [ { agent_id: w, task_description: x } ] }",
        ]
        .map(whole)
        .concat()
    );
    let entry =
        format!("{HEAD}entry: w\npipeline: {{ steps: [ {{ agent_id: w, task_description: x }} ] }}\n");
    let named = format!(
        "{HEAD}  pipeline: {{ model: m }}\npipeline: {{ steps: [ {{ agent_id: w, task_description: x }} ] }}\n"
    );
    insta::assert_snapshot!(errors_of(&entry) + &errors_of(&named));
    let deep = "{ sequence: ".repeat(40) + "{ agent_id: w, task_description: x }" + &" }".repeat(40);
    insta::assert_snapshot!(whole(&format!("{{ steps: [ {deep} ] }}")));
}

#[test]
fn a_step_that_cannot_be_read_says_what_to_write() {
    insta::assert_snapshot!(errors(
        "
    - { id: a, agent_id: nobody, task_description: x }
    - { id: a, agent_id: w, task_description: x }
    - { id: A b, agent_id: w, task_description: x }
    - { agent_id: w }
    - { agent_id: w, task_description: ' ' }
    - { agent_id: w, task_description: 7 }
    - { agent_id: w, task_description: 'Use {{ x' }
    - { agent_id: w, task_description: x, required: often }
    - { agent_id: w, task_description: x, retry: 1000 }
    - { agent_id: w, task_description: x, timeout: soon }
    - { agent_id: w, task_description: x, when: 'a and' }
    - { agent_id: w, task_description: x, budget: { cost: 1 } }
    - { agent_id: w, task_description: x, budget: { cost_usd: -1 } }
    - { agent_id: w, task_description: x, output_to: 'a b' }
    - { agent_id: w, task_description: x, output_schema: '{' }
    - { agent_id: w, task_description: x, undo: 7 }
    - { agent_id: w, task_description: x, undo: { agent_id: w } }
    - { agent_id: w, task_description: x, undo: { agent_id: nobody, task_description: x } }
    - { agent_id: w, task_description: x, undo: { agent: w, task_description: x } }
    - { agent_id: w, task_description: x, input_from: [7] }
    - { agent_id: w, task_description: x, input_from: [place, place] }
    - { agent_id: w, task_description: x, input_from: ['a b'] }
"
    ));
}

#[test]
fn a_group_that_cannot_be_read_says_what_to_write() {
    insta::assert_snapshot!(errors(
        "
    - { parallel: [] }
    - { parallel: w }
    - { parallel: [ { agent_id: w, task_description: x } ], output_to: both }
    - { map: [ { agent_id: w, task_description: x } ] }
    - { map: [ { agent_id: w, task_description: x } ], over: place, as: 'a b' }
    - { vote: [ { agent_id: w, task_description: x } ] }
    - { vote: [ { agent_id: w, task_description: x }, { agent_id: w, task_description: x } ], voters: 3 }
    - { vote: [ { agent_id: w, task_description: x } ], voters: 3, majority: many }
    - { loop: [ { agent_id: w, task_description: x } ], until: 'true' }
    - { loop: [ { agent_id: w, task_description: x } ], max_rounds: 3 }
    - { loop: [ { agent_id: w, task_description: x } ], until: 'true', max_rounds: 0 }
    - { choose: {}, on: place }
    - { choose: [ x ], on: place }
    - { choose: { Kent: [] }, on: place }
    - { choose: { Kent: [ { agent_id: w, task_description: x } ] } }
    - { ask: '' }
    - { ask: Which?, on_timeout: default }
    - { ask: Which?, on_timeout: fail, default: blue }
    - { ask: Which?, on_timeout: hope }
"
    ));
}

#[test]
fn a_value_that_is_not_there_says_where_it_could_come_from() {
    insta::assert_snapshot!(errors("
    - { id: reads, agent_id: w, task_description: x, input_from: [later] }
    - { id: writes, agent_id: w, task_description: x, output_to: later }
    - { agent_id: w, task_description: x, input_from: [latr] }
    - { agent_id: w, task_description: 'In {{ inputs.place }}.' }
    - { agent_id: w, task_description: x, output_to: later }
    - { agent_id: w, task_description: x, output_to: place }
    - { agent_id: w, task_description: x, output_to: goal }
    - { agent_id: w, task_description: 'About {{ own }}', output_to: own }
    - { race: [ { id: hidden, agent_id: w, task_description: x, output_to: inside } ] }
    - { agent_id: w, task_description: x, input_from: [inside] }
    - { map: [ { agent_id: w, task_description: x, output_to: item } ], over: place }
    - { loop: [ { agent_id: w, task_description: x, input_from: [draft] }, { agent_id: w, task_description: x, output_to: draft } ], until: 'true', max_rounds: 2 }
    - { agent_id: w, task_description: 'Round {{ round }}' }
"));
    insta::assert_snapshot!(
        errors(
            "
    - { id: a, agent_id: w, task_description: x, input_from: [b], output_to: a }
    - { id: b, agent_id: w, task_description: x, input_from: [a], output_to: b }
"
        ) + &errors(
            "
    - parallel:
        - { id: a, agent_id: w, task_description: x, input_from: [b], output_to: a }
        - { id: b, agent_id: w, task_description: x, input_from: [a], output_to: b }
"
        )
    );
}
