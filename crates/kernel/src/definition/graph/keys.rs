//! The keys of a graph as people and models write it. The schema for editors is also made from them.

pub(super) const GRAPH: [&str; 5] = ["mode", "steps", "on_partial_success", "max_parallel", "budget"];
/// Each says what a node is; exactly one of them is among its keys.
pub(super) const KINDS: [&str; 9] =
    ["agent_id", "sequence", "parallel", "map", "race", "vote", "loop", "choose", "ask"];
pub(super) const STEP: [&str; 13] = [
    "id",
    "agent_id",
    "task_description",
    "input_from",
    "on_missing",
    "output_to",
    "required",
    "when",
    "retry",
    "timeout",
    "output_schema",
    "undo",
    "budget",
];
pub(super) const ASK: [&str; 10] = [
    "ask",
    "id",
    "output_to",
    "required",
    "when",
    "timeout",
    "on_timeout",
    "default",
    "choices",
    "answer_schema",
];
pub(super) const UNDO: [&str; 2] = ["agent_id", "task_description"];
const GROUP: [&str; 6] = ["id", "required", "when", "retry", "timeout", "budget"];

/// The keys of a node of this kind.
pub(super) fn for_kind(kind: &str) -> Vec<&'static str> {
    let own: &[&'static str] = match kind {
        "agent_id" => return STEP.to_vec(),
        "ask" => return ASK.to_vec(),
        "parallel" => &["parallel", "max_parallel"],
        "map" => &["map", "over", "as", "max_parallel", "output_to"],
        "race" => &["race", "output_to"],
        "vote" => &["vote", "voters", "majority", "by", "on_tie", "missing", "output_to"],
        "loop" => &["loop", "until", "max_rounds", "on_max_rounds", "output_to"],
        "choose" => &["choose", "on", "else", "output_to"],
        _ => &["sequence", "output_to"],
    };
    own.iter().chain(&GROUP).copied().collect()
}
