//! The pipeline's part of the schema. The kernel reads pipelines and says which keys each place has; here is what each
//! key takes.

use serde_json::{Map, Value, json};
use spinney_kernel::definition::Graph;
use spinney_kernel::primitives::limit;

use super::leaves::{time, timeout};

/// The name of the definition of a whole pipeline.
pub(super) const PIPELINE: &str = "Pipeline";
/// A step, a group, or a list of them.
const NODE: &str = "PipelineSteps";
const UNDO: &str = "PipelineUndo";

/// The definitions of the schema, by name.
pub(super) fn definitions() -> Vec<(String, Value)> {
    let list = json!({ "type": "array", "items": to(NODE), "minItems": 1 });
    let kinds = Graph::KIND_KEYS.iter().map(|kind| to(&name(kind)));
    let nodes: Vec<Value> = std::iter::once(list).chain(kinds).collect();
    let mut all = vec![
        (PIPELINE.to_owned(), object(PIPELINE, Graph::KEYS, &["steps"])),
        (NODE.to_owned(), json!({ "anyOf": nodes })),
        (UNDO.to_owned(), object(UNDO, Graph::UNDO_KEYS, &["task_description"])),
    ];
    for kind in Graph::KIND_KEYS {
        let mut required = vec![*kind];
        required.extend(match *kind {
            "agent_id" => &["task_description"][..],
            "map" => &["over"],
            "loop" => &["until", "max_rounds"],
            "choose" => &["on"],
            _ => &[],
        });
        all.push((name(kind), object(kind, &Graph::keys_of(kind), &required)));
    }
    all
}

/// The name of the definition of a kind of node.
fn name(kind: &str) -> String {
    let word = if kind == "agent_id" { "step" } else { kind };
    let (first, rest) = word.split_at(1);
    format!("{PIPELINE}{}{rest}", first.to_uppercase())
}

fn to(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn object(of: &str, keys: &[&str], required: &[&str]) -> Value {
    let property = |key: &&str| {
        let (mut schema, description) = match key_of(of, key) {
            Some(found) => found,
            None => unreachable!("key `{key}` of `{of}` in a pipeline has no schema"),
        };
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("description".to_owned(), json!(description));
        }
        ((*key).to_owned(), schema)
    };
    let properties: Map<String, Value> = keys.iter().map(property).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// What a key takes, and what it does.
fn key_of(of: &str, key: &str) -> Option<(Value, &'static str)> {
    let text = || json!({ "type": "string" });
    let words = |words: &[&str]| json!({ "enum": words });
    let count = |least: u32, most: u32| json!({ "type": "integer", "minimum": least, "maximum": most });
    let names = || json!({ "anyOf": [text(), { "type": "array", "items": text() }] });
    let cases = || json!({ "type": "object", "additionalProperties": to(NODE), "minProperties": 1 });
    Some(match (of, key) {
        (PIPELINE, "mode") => (
            words(&["sequential", "parallel"]),
            "Whether the steps run one after the other (default) or at the same time.",
        ),
        (PIPELINE, "steps") => (to(NODE), "The steps and groups."),
        (PIPELINE, "on_partial_success") => (
            words(&["fail", "continue", "best_effort"]),
            "What happens when a required step fails: fail (default) stops; the others run what still can run.",
        ),
        (PIPELINE, "budget") => (to("BudgetKeys"), "Ceilings of the tree that `budget` does not set."),
        (PIPELINE | "parallel" | "map", "max_parallel") => (
            count(1, limit::AGENTS_CAP),
            "How many run at the same time; default: the tree's limit on children.",
        ),
        (UNDO, "agent_id") => (text(), "The agent that does it; default: the step's own."),
        ("agent_id", "agent_id") => (text(), "The agent that does the task, one of agents."),
        (UNDO | "agent_id", "task_description") => {
            (text(), "The task; may use values: {{ name }}. See docs/expressions.md.")
        }
        (_, "id") => (text(), "Its name in the graph; made up if absent."),
        (_, "input_from") => (
            names(),
            "The values that its agent is given: outputs of other steps, inputs, or shared.KEY for what agents write with write_context. One with a ? may be missing.",
        ),
        (_, "on_missing") => (
            words(&["wait", "fail"]),
            "What happens while a shared value is not written: wait (default), as long as an agent could write it, or fail.",
        ),
        (_, "output_to") => (text(), "The name under which others read its value."),
        (_, "required") => {
            (json!({ "type": "boolean" }), "Whether its failure is its group's failure; default true.")
        }
        (_, "when") => (text(), "A condition; it is skipped unless it holds. See docs/expressions.md."),
        (_, "retry") => {
            (count(0, limit::GRAPH_RETRIES_MAX), "How often it is tried again after a failure; default 0.")
        }
        ("ask", "timeout") => (time(), "How long a person has to answer."),
        (_, "timeout") => (timeout(), "How long it may take: a time, or { wall: time }."),
        (_, "output_schema") => (
            json!({ "type": ["object", "string"] }),
            "The JSON Schema of its answer, as a map or as JSON in a text; default: its agent's.",
        ),
        (_, "undo") => (
            json!({ "anyOf": [text(), to(UNDO)] }),
            "What takes its effects back if the pipeline fails after it succeeded: a task, or an agent and a task.",
        ),
        (_, "budget") => (to("BudgetKeys"), "The ceilings of each of its runs."),
        ("ask", "ask") => (text(), "The question to a person; may use values: {{ name }}."),
        (_, "on_timeout") => (
            words(&["fail", "default", "cancel"]),
            "What happens if there is no answer in time; default fail.",
        ),
        (_, "default") => (text(), "The answer that counts if there is none in time."),
        (_, "choices") => (
            json!({ "type": "array", "items": text(), "minItems": limit::CHOICES_MIN, "maxItems": limit::CHOICES_MAX }),
            "The answers that count; the person picks one.",
        ),
        (_, "answer_schema") => (
            json!({ "type": ["object", "string"] }),
            "The JSON Schema of the answer, as a map or as JSON in a text; not with choices.",
        ),
        (_, "sequence") => (to(NODE), "Members that run one after the other."),
        (_, "parallel") => (to(NODE), "Members that run at the same time, after what they read is written."),
        (_, "map") => (to(NODE), "Members that run once for each item of a list."),
        (_, "over") => (text(), "The list: the name of a value, or an expression."),
        (_, "as") => (text(), "The name of the item for the members; default item."),
        (_, "race") => (to(NODE), "Members that run until one succeeds; the others are cancelled."),
        (_, "vote") => (to(NODE), "Members that answer the same question; what most answer is the value."),
        (_, "voters") => (count(1, limit::GRAPH_VOTERS_MAX), "How often the only member runs."),
        (_, "majority") => (
            words(&["half", "two_thirds", "all", "most"]),
            "How many votes are enough: more than half (default), two thirds, all, or more than any other.",
        ),
        (_, "by") => (text(), "The key of each answer that is the vote; default: the whole answer."),
        (_, "on_tie") => (words(&["fail", "first"]), "What happens if two values tie for the most votes."),
        (_, "missing") => (
            words(&["against", "ignored"]),
            "What a voter that failed means: a vote against (default), or none.",
        ),
        (_, "loop") => (to(NODE), "Members that run again and again, one after the other."),
        (_, "until") => (text(), "A condition; after a round in which it holds, the loop ends."),
        (_, "max_rounds") => (count(1, limit::GRAPH_ROUNDS_MAX), "The most rounds."),
        (_, "on_max_rounds") => (
            words(&["fail", "continue"]),
            "What happens if the condition does not hold after the last round; default fail.",
        ),
        (_, "choose") => (cases(), "One of these runs: the case with the value of `on`."),
        (_, "on") => (text(), "What is compared with the cases: the name of a value, or an expression."),
        (_, "else") => (to(NODE), "What runs if no case fits."),
        _ => return None,
    })
}
