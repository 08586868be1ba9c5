//! What each key does, in the words of `docs/tree-file.md`, for the hints of editors.

/// By the struct that has the key.
pub(super) fn description(of: &str, key: &str) -> Option<&'static str> {
    let keys = match of {
        "TreeKeys" => TREE,
        "TreeLimitKeys" => TREE_LIMITS,
        "InputKeys" => INPUT,
        "ValueAccessKeys" => VALUE_ACCESS,
        "RateKeys" => RATE,
        "ModelKeys" => MODEL,
        "ParamKeys" => PARAMS,
        "PriceKeys" => PRICE,
        "AgentKeys" => AGENT,
        "AgentLimitKeys" => AGENT_LIMITS,
        "WindowKeys" => WINDOW,
        "QuestionKeys" => QUESTIONS,
        "BoxKeys" => BOX,
        "BudgetKeys" | "AgentBudgetKeys" => BUDGET,
        "Repeats" => REPEATS,
        "CommandToolKeys" => COMMAND_TOOL,
        "ServerKeys" => SERVER,
        "ServerAuthKeys" => SERVER_AUTH,
        "RedactionKeys" => REDACTION,
        _ => return None,
    };
    keys.iter().find(|(known, _)| *known == key).map(|(_, text)| *text)
}

type Keys = &'static [(&'static str, &'static str)];

const TREE: Keys = &[
    ("name", "The name of the tree, for people."),
    (
        "goal",
        "The task of the root; may be given when the tree is started. May use inputs: {{ inputs.topic }}.",
    ),
    (
        "inputs",
        "Values that are given when the tree is started, by name; the goal, prompts and steps may use them.",
    ),
    ("pipeline", "Fixed steps that the tree runs, instead of an agent that decides (entry)."),
    (
        "shared",
        "Which agents may read and write shared values, by the name of a value or its beginning and *.",
    ),
    ("entry", "The agent that is the root; optional if there is only one agent."),
    ("models", "The models by name."),
    ("agents", "The roles of agents by name."),
    ("budget", "The ceilings of the whole tree."),
    ("limits", "The limits of the whole tree."),
    ("durability", "What the journal survives: full (a power loss), normal (the death of the process), off."),
    ("box", "What surrounds the commands of all agents; an agent may have its own."),
    (
        "tools",
        "Tools of your own by name: commands that agents may call, in their box and never through a shell.",
    ),
    (
        "mcp",
        "Servers of tools by name. Agents call their tools as server__tool, if their own tools list that name. Starting one needs the user's permission.",
    ),
    ("read", "Folders of yours that the tree may read. Needs the user's permission."),
    ("write", "Folders of yours that the tree may read and write. Needs the user's permission."),
    ("unpriced", "Whether a model without a price is refused under a cost ceiling, or counts as free."),
    ("thread", "The conversation that the tree belongs to; default: its own."),
    ("tags", "Your own labels. They appear on every event; agents never see them."),
    (
        "redact",
        "Secrets that are replaced in everything that is shown, beside what looks like a key; journal: in the journal as well.",
    ),
];

const REDACTION: Keys = &[
    ("env", "Names of variables whose values are secret."),
    (
        "journal",
        "Whether answers and outputs are redacted before the journal, models and tools get them; default false.",
    ),
];

const SERVER: Keys = &[
    (
        "command",
        "The program, which speaks the protocol through its standard input and output; ./ and ../ begin at the tree file's folder. Either this or url.",
    ),
    ("args", "Its arguments; ./ and ../ as above."),
    ("env", "Names of variables of yours that it gets. Needs the user's permission."),
    ("tools", "Its tools that agents may have, as it names them; all if absent."),
    (
        "url",
        "Where a server that runs elsewhere is reached, as https://HOST/PATH. Agents that use it need its host in their own network.",
    ),
    ("auth", "The key that is sent to the url."),
    ("timeout", "How long one call may take; default 1m."),
    ("sampling", "Whether it may ask for model calls in the budget of the agent that calls it."),
    ("per", "tree (default): all agents use one process of it; agent: each agent has its own."),
    (
        "network",
        "Hosts that it may connect to; none by default. Agents that use it need them in their own network.",
    ),
    ("read", "Folders of yours that it may read. Agents that use it also need them."),
    ("write", "Folders of yours that it may read and write. Agents that use it also need them."),
];

const SERVER_AUTH: Keys = &[
    ("key_env", "The environment variable that has the key. Needs the user's permission."),
    ("header", "The header that has the key, as it is; default: Authorization, as a bearer token."),
];

const COMMAND_TOOL: Keys = &[
    ("description", "What it does and when to use it, for the model."),
    ("args", "A JSON Schema of its arguments, an object; none if absent. Calls are checked against it."),
    (
        "command",
        "The program and its arguments. {{ name }} is replaced by that argument of the call; ./ and ../ begin at the tree file's folder.",
    ),
    (
        "repeatable",
        "Whether a call that was under way when its process died may be started again; default false.",
    ),
    ("timeout", "How long one call may take; default 2m, at most 1h."),
    (
        "kind",
        "What kind of outputs it makes: what a call prints is saved as outputs/{kind}_{NNN}.{extension}; not saved if absent.",
    ),
    ("extension", "The end of the names of its saved outputs; default txt."),
];

const TREE_LIMITS: Keys = &[
    ("depth", "The maximum depth of an agent below the root; default 3."),
    ("children", "The maximum number of live children of one agent; default 16."),
    ("agents", "The maximum number of agents in the tree, including ended ones; default 1000."),
    ("parallel", "The maximum number of calls that run at the same time; default 64."),
    ("rate", "The most model calls and tokens of the whole tree in a minute."),
];

const VALUE_ACCESS: Keys = &[
    ("read", "The agents that may read them; all if absent."),
    ("write", "The agents that may write them; all if absent."),
];

const RATE: Keys = &[
    ("requests_per_min", "The most model calls in a minute."),
    ("tokens_per_min", "The most input and output tokens in a minute."),
];

const INPUT: Keys = &[
    ("type", "text (default) or json."),
    ("default", "The value if none is given. Without one the input is required."),
    (
        "env",
        "The environment variable that has the value if none is given. The journal keeps it: do not use it for keys.",
    ),
    ("description", "What to give, for people."),
];

const MODEL: Keys = &[
    (
        "provider",
        "Where the answers come from: openai, openai_chat, anthropic, gemini, ollama, openai_compatible or scripted.",
    ),
    ("model", "The provider's name for the model; required unless scripted."),
    ("base_url", "The provider's URL, if not the default; required for openai_compatible."),
    ("key_env", "The environment variable with the API key; default: the provider's usual one."),
    ("params", "Parameters of its calls."),
    (
        "script",
        "The script with the answers, relative to the tree file. For other providers it is used if the key is missing.",
    ),
    ("max_output", "The maximum number of output tokens that one call may request."),
    ("context", "The size of its context in tokens; default: from the price table."),
    ("attempts_lost_max", "How often a call is started again after its process died; default 8."),
    (
        "cache_wait",
        "How long a call waits at most while another one fills the provider's cache; default 10s.",
    ),
    ("price", "Dollars per million tokens, or provider/model to take them from the price table."),
    (
        "rate",
        "The most calls and tokens of this model and its key in a minute, over all trees of the process.",
    ),
    ("fallback", "Models to try in order when this one fails."),
];

const PARAMS: Keys = &[
    ("temperature", "From 0 to 2."),
    ("top_p", "From 0 to 1."),
    ("reasoning_effort", "How much the model reasons, in the provider's own words."),
    ("thinking", "adaptive: the model decides how much it thinks."),
    ("thinking_budget", "The most tokens that the model thinks."),
    ("cache", "How long Anthropic keeps marked prompts: off, 5m (default) or 1h."),
    ("stop", "Texts at which the model stops."),
    ("seed", "Repeatable answers, if the provider supports it."),
    ("headers", "Additional headers, each with the environment variable of its value."),
];

const PRICE: Keys = &[
    ("input_per_mtok_usd", "Dollars per million input tokens."),
    ("output_per_mtok_usd", "Dollars per million output tokens."),
    (
        "cached_input_per_mtok_usd",
        "Dollars per million input tokens from the provider's cache; default: as other input.",
    ),
    (
        "cache_write_per_mtok_usd",
        "Dollars per million input tokens written to the cache; default: as other input.",
    ),
];

const AGENT: Keys = &[
    ("model", "Its model, one of models. Every agent has a model or a program."),
    (
        "program",
        "The program that it is in place of a model: claude, codex, opencode, or a list of arguments of which one is {{ goal }}.",
    ),
    ("prompt", "What its model reads first. May use inputs: {{ inputs.topic }}."),
    ("tools", "The tools it may call; none if absent."),
    ("subagents", "The roles it may spawn; all if absent. Spawning needs the tool spawn_agent."),
    ("subagent_models", "The models that agents below it may use; all if absent or empty."),
    (
        "approvals",
        "Tools that need a person's approval (ask) or are forbidden (deny), for it and everything below it. With network: ask it may ask a person for hosts.",
    ),
    ("limits", "The limits of each of its agents."),
    ("budget", "The ceilings of each of its agents and everything below it."),
    ("rate", "The most model calls and tokens of all its agents in a minute."),
    ("recursive", "Whether it may appear below itself, with another goal."),
    ("share", "What its agents know at the start besides their goal."),
    ("output_schema", "The JSON Schema of its answers, as a map or as JSON in a text."),
    ("window", "How much of its context one model call sees."),
    ("box", "What surrounds its commands, or none. What weakens a box needs the user's permission."),
    ("read", "Folders of yours that it may read; its parent's if neither list is there."),
    ("write", "Folders of yours that it may read and write."),
    (
        "network",
        "Hosts that its tools may connect to, such as api.example.org or *.example.org:8080; none by default. Needs the user's permission.",
    ),
    ("working_copy", "A git repository that each of its agents gets a copy of. Needs the user's permission."),
    ("questions", "What applies to its agents' questions to a person that say nothing else."),
    (
        "visibility",
        "What watchers without the right to everything are shown of its agents: full (default), summary or hidden.",
    ),
    ("tool_visibility", "The same for its calls of single tools, by the name of the tool."),
];

const QUESTIONS: Keys = &[
    ("timeout", "How long a question waits for an answer; default 1d. For approvals as well."),
    ("on_timeout", "What happens then: fail (default), default or cancel."),
    ("default", "The answer that counts if there is none in time."),
];

const AGENT_LIMITS: Keys = &[
    ("max_steps", "The maximum number of model turns; default 100."),
    ("max_tokens_per_step", "The maximum number of output tokens in one turn."),
    ("max_output_files", "The maximum number of output files; default 10."),
    ("max_output_size_bytes", "The maximum total size of output files; default 1000000."),
    ("timeout", "How long it may work, counted while one of its models or tools runs."),
    ("depth", "How deep below the root its descendants may be."),
    ("children", "The maximum number of its live children."),
];

const WINDOW: Keys = &[
    ("size", "The maximum number of tokens of one packet."),
    ("preset", "How categories of messages share the window."),
    ("images", "The maximum number of images in one packet; default 5."),
    ("compact", "What replaces messages that are left out: lines, count or summary."),
    ("clamp_note", "Whether it is notified when a child's window is smaller than its own."),
];

const BOX: Keys = &[
    ("processes", "The most processes of one command; default 256, of a program 4,096."),
    ("memory", "The most memory of one command; default 2GiB, of a program 8GiB."),
    ("disk", "By how much one command may grow its folders; default 1GiB, of a program 32GiB."),
    (
        "env",
        "Variables of the user's environment that commands get, by name; each needs the user's permission.",
    ),
    (
        "allow",
        "signals: commands may signal other processes of the user, where the machine cannot prevent it.",
    ),
];

const BUDGET: Keys = &[
    ("cost_usd", "Dollars."),
    ("tokens", "Input and output tokens of all calls together."),
    ("steps", "Model turns."),
    ("tool_calls", "Tool calls."),
    ("retries", "Attempts after the first."),
    ("timeout", "How long it may take: a time, which stops while it waits for a person, or { wall: time }."),
    ("lend", "Whether every ancestor holds these ceilings from the start."),
    ("answer_reserve", "The share of cost and tokens that descendants must leave, in percent."),
    ("on_low", "What to do when a call does not fit: halt (default), shrink, or { downgrade: model }."),
    ("wrap_up", "Whether it gets a last call before it runs out; default on."),
    ("repeats", "After how many identical tool calls in a row it is warned, and ends."),
    ("halt_wait", "How long a model call of a program waits at a ceiling before it is refused; default 10m."),
];

const REPEATS: Keys = &[
    ("notice", "After how many identical tool calls in a row it is warned; default 3, 0 is never."),
    ("end", "After how many identical tool calls in a row it ends; default 6, 0 is never."),
];
