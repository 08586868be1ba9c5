//! The JSON Schema of tree files: it is current, takes every file that can be read, and refuses unknown keys.

use std::path::Path;

use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Value, json};
use spinney::TreeFile;

use crate::tree_file::{EVERY_KEY, EVERY_KEY_JSON, EVERY_KEY_TOML};

const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tree-file.schema.json");
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// Every kind of step and group, with every key.
const EVERY_STEP: &str = "
name: t
inputs: { docs: { type: json, default: [a] } }
models: { fast: { provider: scripted, script: s.yaml } }
agents: { lead: { model: fast, tools: [write_context] } }
shared: { plan: {} }
pipeline:
  mode: parallel
  on_partial_success: best_effort
  max_parallel: 4
  budget: { cost_usd: 1, timeout: 5m }
  steps:
    - id: draft
      agent_id: lead
      task_description: Draft {{ goal }}.
      input_from: [docs, 'old?', shared.plan]
      on_missing: wait
      output_to: text
      required: false
      when: docs is defined
      retry: 2
      timeout: 30s
      output_schema: { type: object }
      undo: { agent_id: lead, task_description: Take it back. }
      budget: { tokens: 1000, on_low: { downgrade: fast } }
    - sequence:
        - { agent_id: lead, task_description: a, input_from: docs, undo: Take it back., timeout: { wall: 5m } }
      id: order
      output_to: last
      required: true
      when: docs is defined
      retry: 1
      timeout: 1m
      budget: { steps: 5 }
    - { parallel: [{ agent_id: lead, task_description: a }], max_parallel: 1 }
    - { map: { agent_id: lead, task_description: '{{ doc }}' }, over: docs, as: doc, max_parallel: 3, output_to: sums }
    - { race: [{ agent_id: lead, task_description: a }], output_to: first }
    - vote: { agent_id: lead, task_description: a }
      voters: 3
      majority: two_thirds
      by: verdict
      on_tie: first
      missing: ignored
      output_to: verdict
    - { loop: [{ agent_id: lead, task_description: a }], until: round > 1, max_rounds: 3, on_max_rounds: continue, output_to: end }
    - { choose: { a: [{ agent_id: lead, task_description: a }], b: { agent_id: lead, task_description: b } }, on: docs, else: [{ agent_id: lead, task_description: c }], output_to: one }
    - { ask: Ship it?, id: ask-me, output_to: answer, required: true, when: docs is defined, timeout: 1h, on_timeout: default, default: no way }
";

fn validator() -> Validator {
    jsonschema::validator_for(&TreeFile::json_schema()).unwrap()
}

/// As editors read it: `on` is a text.
fn yaml(text: &str) -> Value {
    serde_saphyr::from_str_with_options(text, serde_saphyr::options! { strict_booleans: true }).unwrap()
}

#[test]
fn the_committed_schema_is_current() {
    let committed: Value = serde_json::from_str(&std::fs::read_to_string(COMMITTED).unwrap()).unwrap();
    assert_eq!(
        committed,
        TreeFile::json_schema(),
        "write it again: spinney check --schema > docs/tree-file.schema.json"
    );
}

/// Every tree file in a folder and below it.
fn tree_files(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        if path.is_dir() {
            tree_files(&path, found);
        } else if name.ends_with(".yaml") && !name.ends_with(".script.yaml") {
            found.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn every_example_and_every_key_are_in_the_schema() {
    let validator = validator();
    let mut files = Vec::new();
    tree_files(Path::new(EXAMPLES), &mut files);
    assert!(files.len() > 10, "{files:?}");
    let mut values: Vec<(String, Value)> =
        files.iter().map(|(name, text)| (name.clone(), yaml(text))).collect();
    values.push(("every key".to_owned(), yaml(EVERY_KEY)));
    values.push(("every step".to_owned(), yaml(EVERY_STEP)));
    values.push(("every key, JSON".to_owned(), serde_json::from_str(EVERY_KEY_JSON).unwrap()));
    let toml: toml::Table = EVERY_KEY_TOML.parse().unwrap();
    values.push(("every key, TOML".to_owned(), serde_json::to_value(toml).unwrap()));
    for (name, value) in values {
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
    }
}

/// An editor finds a modeline among the first comments of each example, and the schema at its end.
#[test]
fn every_example_names_the_schema() {
    let mut files = Vec::new();
    tree_files(Path::new(EXAMPLES), &mut files);
    for (name, text) in files {
        let mut comments = text.lines().take_while(|line| line.starts_with('#'));
        let path = comments.find_map(|line| line.strip_prefix("# yaml-language-server: $schema="));
        let path = path.unwrap_or_else(|| panic!("{name} does not name the schema"));
        let schema = Path::new(&name).parent().unwrap().join(path);
        assert_eq!(schema.canonicalize().unwrap(), Path::new(COMMITTED).canonicalize().unwrap(), "{name}");
    }
}

/// The paths of all maps with fixed keys.
fn maps(value: &Value, path: &str, found: &mut Vec<String>) {
    let free = ["/models", "/agents", "/tags", "/inputs", "/shared"];
    let is_free =
        free.contains(&path) || ["/approvals", "/headers", "/choose"].iter().any(|end| path.ends_with(end));
    if path.ends_with("/output_schema") {
        return;
    }
    if let Value::Object(entries) = value {
        if !is_free {
            found.push(path.to_owned());
        }
        for (key, value) in entries {
            maps(value, &format!("{path}/{key}"), found);
        }
    }
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        maps(item, &format!("{path}/{at}"), found);
    }
}

#[test]
fn an_unknown_key_is_refused_wherever_it_is() {
    let validator = validator();
    for every in [yaml(EVERY_KEY), yaml(EVERY_STEP)] {
        assert!(validator.is_valid(&every));
        let text = serde_json::to_string(&every).unwrap();
        TreeFile::parse("tree.json", &text).unwrap_or_else(|error| panic!("{error}"));
        let mut found = Vec::new();
        maps(&every, "", &mut found);
        assert!(found.len() > 10, "{found:?}");
        for path in found {
            let mut value = every.clone();
            let map = value.pointer_mut(&path).and_then(Value::as_object_mut).unwrap();
            map.insert("unknown_key".to_owned(), json!(1));
            assert!(!validator.is_valid(&value), "{path}");
            let text = serde_json::to_string(&value).unwrap();
            assert!(TreeFile::parse("tree.json", &text).is_err(), "{path}");
        }
    }
}

#[test]
fn wrong_types_and_missing_keys_are_refused() {
    let validator = validator();
    let every = yaml(EVERY_KEY);
    for (path, wrong) in [
        ("/name", json!(5)),
        ("/budget/cost_usd", json!("lots")),
        ("/budget/tokens", json!("5")),
        ("/budget/timeout", json!("soon")),
        ("/durability", json!("sometimes")),
        ("/agents", json!([])),
    ] {
        let mut value = every.clone();
        *value.pointer_mut(path).unwrap_or_else(|| panic!("{path}")) = wrong;
        assert!(!validator.is_valid(&value), "{path}");
    }
    for key in ["name", "models", "agents"] {
        let mut value = every.clone();
        value.as_object_mut().unwrap().remove(key);
        assert!(!validator.is_valid(&value), "{key}");
    }
}

/// Values that keys take, and values that they do not.
fn other_value() -> impl Strategy<Value = Value> {
    let texts = [
        "", "a", "fast", "lead", "5m", "10%", "010%", "off", "on", "$1.50", ".5", "1.", "text", "json",
        "full",
    ];
    prop_oneof![
        proptest::sample::select(texts.to_vec()).prop_map(|text| json!(text)),
        proptest::sample::select(vec![json!(0), json!(1), json!(12), json!(0.5), json!(-1), json!(1e300)]),
        proptest::sample::select(vec![json!(null), json!(true), json!([]), json!(["fast"]), json!({})]),
        proptest::sample::select(vec![
            json!({ "wall": "5m" }),
            json!({ "downgrade": "small" }),
            json!({ "fork": 2 })
        ]),
    ]
}

proptest! {
    /// What can be read is in the schema, so no editor complains about a good file.
    #[test]
    fn whatever_is_read_is_in_the_schema(
        has_steps in any::<bool>(),
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), other_value()), 1..4),
    ) {
        thread_local! {
            static VALIDATOR: Validator = validator();
        }
        let mut value: Value = match has_steps {
            true => yaml(EVERY_STEP),
            false => serde_json::from_str(EVERY_KEY_JSON).unwrap(),
        };
        for (at, other) in edits {
            let mut paths = Vec::new();
            places(&value, "", &mut paths);
            let path = at.get(&paths).clone();
            if let Some(place) = value.pointer_mut(&path) {
                *place = other;
            }
        }
        let text = serde_json::to_string(&value).unwrap();
        if TreeFile::parse("t.json", &text).is_ok() {
            let errors: Vec<String> =
                VALIDATOR.with(|validator| validator.iter_errors(&value).map(|error| error.to_string()).collect());
            prop_assert!(errors.is_empty(), "{text}: {errors:?}");
        }
    }
}

/// The path of every value.
fn places(value: &Value, path: &str, found: &mut Vec<String>) {
    if !path.is_empty() {
        found.push(path.to_owned());
    }
    match value {
        Value::Object(entries) => {
            entries.iter().for_each(|(key, value)| places(value, &format!("{path}/{key}"), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, value)| places(value, &format!("{path}/{at}"), found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
