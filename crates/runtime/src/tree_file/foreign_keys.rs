//! Keys of other systems, for people who switch from them: each is an error that names our key.

/// Our name for another system's `key`, if we have it under another name.
pub(super) fn ours(key: &str) -> Option<&'static str> {
    let found = WORDS.iter().find(|(theirs, _)| *theirs == key);
    found.map(|(_, ours)| *ours)
}

const WORDS: &[(&str, &str)] = &[
    // ceilings up the parent chain
    ("max_cost_usd", "`budget.cost_usd`"),
    ("max_budget_usd", "`budget.cost_usd`"),
    ("max_retries_total", "`budget.retries`"),
    ("max_steps_total", "`budget.steps`"),
    ("max_tokens", "`budget.tokens` for all calls together, `limits.max_tokens_per_step` for each"),
    ("resource_budget", "`budget`"),
    ("timeout_ms", "`budget.timeout` or an agent's `limits.timeout`, with a unit such as `200ms`"),
    ("timeout_s", "`budget.timeout` or an agent's `limits.timeout`, with a unit such as `60s`"),
    // spawning
    ("max_subagent_depth", "`limits.depth`"),
    ("max_depth", "`limits.depth`"),
    ("max_children", "`limits.children`"),
    ("max_output_size", "`limits.max_output_size_bytes`"),
    ("max_parallel_agents", "`limits.parallel`"),
    ("subagent_allowed_models", "`subagent_models`"),
    ("default_tools", "`tools`"),
    ("system_prompt", "`prompt`"),
    ("instructions", "`prompt`"),
    ("trace_id", "the tree's id, which Spinney draws: delete it"),
    ("chain_id", "the tree's id, which Spinney draws: delete it"),
    ("thread_id", "`thread`"),
    // windows
    ("model_max_tokens", "a model's `context`"),
    ("max_context_tokens", "a model's `context`"),
    ("shared_cw_max_tokens", "an agent's `window.size`"),
    ("max_output_tokens", "a model's `max_output`"),
    // calls of an interface, not settings
    ("run_single_turn", "an agent's `limits: { max_steps: 1 }`"),
    ("run_task", "`goal`, and the command `run`"),
    ("process_message", "the command `send`"),
    ("master_agent", "`entry`"),
    ("task", "`goal`"),
];
