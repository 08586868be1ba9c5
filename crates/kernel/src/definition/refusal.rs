//! Refusals: every reason to say no, with the numbers asked and available and what to do instead.
//!
//! The model reads these as tool results and people read them on a terminal, so each one ends in advice.

use crate::primitives::{Body, SealKind, limit};
use serde::{Deserialize, Serialize};

use crate::budget::{AmountError, Resource, Shortfall};
use crate::definition::{FolderGrants, Network, SubjectPattern};
use crate::primitives::{
    AgentId, BadPart, BadSources, CallId, Category, CheckpointName, Millis, ModelName, RoleName, Time,
    ToolName, Topic, TreeId, ValueName, check_parts,
};

/// Why a request was refused. A refusal leaves the world unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Refusal {
    // --- the tree
    #[error("the tree has not been started: start it first")]
    TreeNotStarted,
    #[error("the tree has already started: a tree starts once")]
    TreeStartedBefore,
    #[error("the tree has ended: start a new one")]
    TreeEnded,
    #[error("the tree is halted at its ceiling: raise the ceiling, or cancel the tree")]
    TreeHalted,
    #[error(
        "limits.agents, limits.parallel and max_steps must be at least 1: with 0 the tree could do nothing"
    )]
    TreeCannotMove,

    // --- who asks, and for whom
    #[error("unknown agent `{agent}`: the tree's events name every agent")]
    UnknownAgent { agent: AgentId },
    #[error("agent `{agent}` is {state} and takes no more work: spawn another one")]
    AgentEnded { agent: AgentId, state: String },
    #[error("agent `{agent}` takes no new work because `{stopped}` is ending: answer with what you have")]
    AgentStopped { agent: AgentId, stopped: AgentId },
    #[error(
        "`{by}` may not do this to `{agent}`: an agent acts for itself, and signals only its descendants"
    )]
    NotYours { by: AgentId, agent: AgentId },
    #[error("only a person may {verb}: ask one with `ask_human`")]
    PersonOnly { verb: String },

    // --- spawning
    #[error("the id `{agent}` is taken: choose another one or leave it out")]
    DuplicateId { agent: AgentId },
    #[error("the id `{agent}` is reserved: choose another one")]
    ReservedId { agent: AgentId },
    #[error("depth limit {depth_max} reached at depth {depth}: do this part yourself")]
    DepthLimit { depth: u32, depth_max: u32 },
    #[error(
        "role `{role}` is already an ancestor here ({}): do this part yourself or hand it to another role",
        path.join(" > ")
    )]
    RoleCycle { role: RoleName, path: Vec<String> },
    #[error("{live} children are alive, and the limit is {live_max}: wait for one to end")]
    ChildrenLimit { live: u32, live_max: u32 },
    #[error("the tree has had {agents} agents and the limit is {agents_max}: do this part yourself")]
    AgentsLimit { agents: u32, agents_max: u32 },
    #[error("unknown role `{role}`{}", one_of(known))]
    UnknownRole { role: RoleName, known: Vec<RoleName> },
    #[error("this agent may not spawn role `{role}`{}", one_of(allowed))]
    RoleNotAllowed { role: RoleName, allowed: Vec<RoleName> },
    #[error("unknown model `{model}`{}", one_of(known))]
    UnknownModel { model: ModelName, known: Vec<ModelName> },
    #[error("the tree already has a model `{model}`: a model keeps its price")]
    ModelExists { model: ModelName },
    #[error("call {call} is not waiting: only a call that has not started can be withdrawn")]
    NotWaiting { call: CallId },
    #[error("call {call} is not a running tool call of this agent: only such a call asks a person")]
    NotRunning { call: CallId },
    #[error("model `{model}` is not allowed here{}", one_of(allowed))]
    ModelNotAllowed { model: ModelName, allowed: Vec<ModelName> },
    #[error("not allowed here: {}{}", listed(tools), one_of(allowed))]
    ToolNotAllowed { tools: Vec<ToolName>, allowed: Vec<ToolName> },
    #[error(
        "network access is not granted here: do without it, or ask a person to grant it to every agent above"
    )]
    NetworkNotAllowed,
    #[error(
        "not granted here: {folders}; granted here is {allowed}: do without, or ask a person to grant it"
    )]
    FolderNotAllowed { folders: FolderGrants, allowed: FolderGrants },
    #[error("not granted here: {hosts}; granted here is {allowed}: do without, or ask a person to grant it")]
    HostNotAllowed { hosts: Network, allowed: Network },
    #[error(
        "this agent may not ask a person for hosts, so agents below it may not either: spawn another role"
    )]
    HostRequestsNotAllowed,
    #[error("not granted here: {hosts}; granted here is {allowed}, and you may not ask for more: do without")]
    HostsNotAskable { hosts: Network, allowed: Network },
    #[error("nothing to lend: give the child at least one ceiling, or leave `lend` out")]
    LendWithoutCeiling,

    #[error("the graph needs at least {agents} agents and the limit is {agents_max}: raise `limits.agents`")]
    GraphTooLarge { agents: u64, agents_max: u64 },
    #[error("the graph was not started: {}", problems.join("; "))]
    BadGraph {
        /// Each with its place and what to write instead.
        problems: Vec<String>,
    },

    // --- budgets
    #[error("{}: answer with what you have, or ask for less", short.describe(account))]
    Ceiling { account: AgentId, short: Shortfall },
    #[error(
        "its first call needs {} and {} are left ({}): do this part yourself, or ask for less",
        short.resource.counted(short.asked),
        short.resource.counted(short.left()),
        short.describe(account)
    )]
    FirstCallTooLarge { account: AgentId, short: Shortfall },
    #[error(
        "model `{model}` has no known price and cost has a ceiling: give it a price, or set `unpriced: allow`"
    )]
    Unpriced { model: ModelName },
    #[error(transparent)]
    Amount(AmountError),
    #[error("a branch needs its own budget: give it at least one ceiling")]
    BranchWithoutBudget,
    #[error(
        "`{agent}` does not stand for a whole pipeline: redirect the agent of the pipeline, and name steps or groups of it"
    )]
    NoGraph { agent: AgentId },
    #[error("no step `{step}` in this pipeline{}", one_of(known))]
    UnknownStep { step: String, known: Vec<String> },
    #[error(
        "step `{step}` has begun, and what is done stays: stop it with an instruction if it still runs, or end the pipeline"
    )]
    StepBegan { step: String },
    #[error("this tree is still {state}: send its root a message")]
    NotEndedYet { state: String },
    #[error("this tree cannot be continued: {reason}")]
    CannotContinue { reason: String },
    #[error("nothing to raise: name a resource that has a ceiling{}", one_of(bounded))]
    RaisesNothing { bounded: Vec<Resource> },
    #[error("the new ceiling is below what is already used ({}): give a higher one", short.describe(account))]
    CeilingBelowUse { account: AgentId, short: Shortfall },
    #[error(
        "nothing to adjust: give a ceiling, a timeout, a number of calls, or what happens when one does not fit"
    )]
    AdjustsNothing,
    #[error("the tree is running: stop it first")]
    SealRunning,
    #[error("{}", sealed(kind))]
    Sealed { kind: SealKind },
    #[error("the tree was not moved: there is nothing to take back")]
    NotSealed,
    #[error("a timeout of {} is not more than the {} that `{agent}` has used: give a longer one", Millis(*ms), Millis(*used_ms))]
    TimeoutBelowUse { agent: AgentId, ms: u64, used_ms: u64 },
    #[error("a timeout of {ms} ms is not between 1 and {ms_max}: give one in that range or leave it out")]
    BadTimeout { ms: u64, ms_max: u64 },
    #[error("the program of a role cannot be one: {reason}")]
    BadProgram { reason: String },
    #[error("`{agent}` has no timeout to extend: name the agent that has one")]
    NoTimeout { agent: AgentId },
    #[error("an answer reserve of {percent} % is above {percent_max} %: leave something for the children")]
    BadReserve { percent: u8, percent_max: u8 },
    #[error(
        "`repeats.end` of {end} is not above `repeats.notice` of {notice}, so no agent could act on the notice: raise `end`, or write 0 to turn one of them off"
    )]
    BadRepeats { notice: u32, end: u32 },
    #[error(
        "a rate of {rate} `{what}` is not between 1 and {rate_max}: give one in that range or leave it out"
    )]
    BadRate { what: String, rate: u64, rate_max: u64 },
    #[error("the deadline of `{agent}` passed {late_ms} ms ago: answer with what you have")]
    DeadlinePassed { agent: AgentId, deadline: Time, late_ms: u64 },

    // --- shared values
    #[error("unknown value `{name}`: list_context lists the values")]
    UnknownValue { name: ValueName },
    #[error("role `{role}` may not {verb} `{name}`, {}: choose another key", only(allowed))]
    ValueNotAllowed { name: ValueName, role: RoleName, verb: String, allowed: Vec<RoleName> },
    #[error("`{name}` is written by the tree itself: choose another key")]
    ReservedValue { name: ValueName },
    #[error(
        "{}, not {expected}: read it again, and write with `expect_version: {version}`", has_version(name, *version)
    )]
    ValueVersion { name: ValueName, version: u64, expected: u64 },
    #[error(
        "`{name}` would have {bytes} bytes and the limit is {bytes_max}: write a shorter value, or several"
    )]
    ValueTooLarge { name: ValueName, bytes: u64, bytes_max: u64 },
    #[error(
        "the shared values would have {bytes} bytes with `{name}` and the limit is {bytes_max}: write null over values that are no longer needed"
    )]
    ValuesFull { name: ValueName, bytes: u64, bytes_max: u64 },
    #[error(
        "there are {count} shared values and the limit is {count_max}: write over one that exists, not `{name}`"
    )]
    ValuesLimit { name: ValueName, count: usize, count_max: usize },
    #[error("the value of `{name}` is not JSON: put text in double quotes")]
    ValueNotJson { name: ValueName },

    // --- calls
    #[error("{open} calls are open and the limit is {open_max}: wait for some to end")]
    OpenCallsLimit { open: usize, open_max: usize },
    #[error("model `{model}` is not available: its breaker is open; try another model or later")]
    ModelUnavailable { model: ModelName },
    #[error("`{agent}` takes its own turns: send it a message, or redirect it")]
    TakesTurns { agent: AgentId },
    #[error("nothing to wait for: name at least one child, or wait for messages")]
    NothingToWaitFor,
    #[error("`{agent}` is not a child of `{parent}`: name one of your own children")]
    NotAChild { parent: AgentId, agent: AgentId },
    #[error("`{agent}` is still at work: send it a message, or wait for it")]
    StillAtWork { agent: AgentId },
    #[error(
        "`{agent}` is {state}, and its context is gone: spawn another agent with everything it needs to know"
    )]
    NotKept { agent: AgentId, state: String },
    #[error("`{agent}` does not wait for a person after an answer: let it work, or cancel it")]
    NothingToConclude { agent: AgentId },
    #[error("role `{role}` takes no turns, so it cannot talk to a person: use spawn_agent")]
    CannotTalk { role: RoleName },
    #[error("no conversation was handed to you: give your answer instead")]
    NothingToHandBack,
    #[error("no question {} is open{}", question.0, one_of(&open.iter().map(|open| open.0).collect::<Vec<_>>()))]
    UnknownQuestion { question: CallId, open: Vec<CallId> },
    #[error("bad question: {reason}")]
    BadQuestion { reason: String },
    #[error("question {} has choices{}", question.0, one_of(choices))]
    NotAChoice { question: CallId, choices: Vec<String> },
    #[error("question {} takes JSON of another form: {mismatch}", question.0)]
    AnswerMismatch { question: CallId, mismatch: String },
    #[error(
        "question {} timed out {} ago: its `on_timeout` applied, so your answer has no effect",
        question.0,
        Millis(*late_ms)
    )]
    AnswerLate { question: CallId, late_ms: u64 },

    #[error("unknown tool `{tool}`{}", one_of(known))]
    UnknownTool { tool: String, known: Vec<ToolName> },
    #[error("bad arguments for `{tool}`: {reason}; write one JSON object with the fields it takes")]
    BadArguments { tool: ToolName, reason: String },
    #[error("`{tool}` is denied here by the tree's author: do without it")]
    ToolDenied { tool: ToolName },
    #[error("a person refused your call of `{tool}`: {answer}; do without it, or ask for something else")]
    NotApproved { tool: ToolName, answer: String },
    #[error("no answer in time on whether you may call `{tool}`: do without it, or ask for something else")]
    ApprovalExpired { tool: ToolName },
    #[error("{}", too_wide(pattern, offered.as_ref()))]
    ApprovalTooWide { pattern: SubjectPattern, offered: Option<SubjectPattern> },
    #[error("{count} approvals are remembered, the limit is {count_max}: answer yes or no")]
    ApprovalsLimit { count: usize, count_max: usize },
    #[error("bad `output_schema`: {reason}; write a JSON Schema, which is a JSON object")]
    BadSchema { reason: String },
    #[error("a tool cannot be called `{tool}`: that is a built-in tool; choose another name")]
    ToolNameTaken { tool: ToolName },

    // --- windows
    #[error("a window of {size} tokens is too small: it must hold at least {tokens}")]
    WindowTooSmall { tokens: u64, size: u64 },
    #[error("only Spinney writes messages of category {}: send `dialog` or `context`", category.as_str())]
    CategoryNotAllowed { category: Category },
    #[error("the root has no parent to refresh from: name one of its children")]
    NobodyAbove { agent: AgentId },
    #[error("`{agent}` cannot share with itself: name another agent")]
    TellsItself { agent: AgentId },

    // --- texts and signals
    #[error("the {what} is empty")]
    TextEmpty { what: String },
    #[error("the {what} has {bytes} bytes and the limit is {bytes_max}: shorten it or pass a reference")]
    TextTooLong { what: String, bytes: usize, bytes_max: usize },
    #[error("{part}")]
    Part { part: BadPart },
    #[error("{sources}")]
    Sources { sources: BadSources },
    #[error("{what}: {count} is above the limit {count_max}: use fewer")]
    TooMany { what: String, count: usize, count_max: usize },
    #[error("the inbox of `{agent}` is full ({waiting} messages): let it read first")]
    InboxFull { agent: AgentId, waiting: usize },
    #[error(
        "`{agent}` is not an agent and reads no messages: send it to an agent, or ask a person with `ask_human`"
    )]
    NotAnAgent { agent: AgentId },
    #[error("`{agent}` is a pipeline, not an agent: name the agent of a running step")]
    StandsForSteps { agent: AgentId },
    #[error(
        "`{agent}` is a program and reads no messages: wait for its end, or cancel it and start another with what it should know"
    )]
    ReadsNothing { agent: AgentId },
    #[error("the topic `{topic}` is reserved for the tree's own events: choose another first word")]
    ReservedTopic { topic: Topic },
    #[error("the message has used up its ttl: do not forward it again")]
    Forwarded,
    #[error("checkpoint `{name}` already exists in tree {tree}: choose another name, or leave it out")]
    NameTaken { name: CheckpointName, tree: TreeId },
    #[error("it is unknown whether `{name}` is free ({reason}): try again, or leave the name out")]
    NameUnknown { name: CheckpointName, reason: String },
    #[error(
        "`{agent}` is {state} and cannot be rolled back: branch from the checkpoint to continue in a new tree"
    )]
    RollbackOver { agent: AgentId, state: String },
    #[error("`{agent}` takes no turns, so it has no context: roll back an agent that does")]
    RollbackTurnless { agent: AgentId },
    #[error(
        "`{agent}` has used all of its {turns_max} turns, and a rollback does not restore them: branch from the checkpoint to continue in a new tree"
    )]
    RollbackTurns { agent: AgentId, turns_max: u32 },
    #[error("`{agent}` has no checkpoint at event {at}: choose one from the list of checkpoints")]
    NoCheckpoint { agent: AgentId, at: u64 },
    #[error("unknown checkpoint `{name}`: choose one from the list of checkpoints")]
    NoSuchCheckpoint { name: CheckpointName },
    #[error(
        "checkpoint `{name}` belongs to tree {tree}, and contexts cannot move between trees: roll back there, or branch from the checkpoint"
    )]
    CheckpointElsewhere { name: CheckpointName, tree: TreeId },
    #[error("the state of `{agent}` at event {at} is not available ({reason}): choose another checkpoint")]
    NoPast { agent: AgentId, at: u64, reason: String },
    #[error("`{agent}` is already paused: unpause it to continue")]
    AlreadyPaused { agent: AgentId },
    #[error("`{agent}` is not paused: nothing to unpause")]
    NotPaused { agent: AgentId },
}

impl From<AmountError> for Refusal {
    fn from(error: AmountError) -> Self {
        Self::Amount(error)
    }
}

impl Refusal {
    /// Every code.
    pub const CODES: [&'static str; 114] = [
        "bad_program",
        "tree_not_started",
        "tree_started_before",
        "tree_ended",
        "tree_halted",
        "tree_cannot_move",
        "unknown_agent",
        "agent_ended",
        "agent_stopped",
        "not_yours",
        "person_only",
        "duplicate_id",
        "reserved_id",
        "depth_limit",
        "role_cycle",
        "children_limit",
        "agents_limit",
        "unknown_role",
        "role_not_allowed",
        "unknown_model",
        "model_exists",
        "not_waiting",
        "not_running",
        "model_not_allowed",
        "tool_not_allowed",
        "network_not_allowed",
        "folder_not_allowed",
        "host_not_allowed",
        "host_requests_not_allowed",
        "hosts_not_askable",
        "lend_without_ceiling",
        "graph_too_large",
        "bad_graph",
        "ceiling",
        "first_call_too_large",
        "unpriced",
        "amount",
        "branch_without_budget",
        "raises_nothing",
        "ceiling_below_use",
        "adjusts_nothing",
        "seal_running",
        "sealed",
        "not_sealed",
        "timeout_below_use",
        "bad_timeout",
        "no_timeout",
        "bad_reserve",
        "bad_repeats",
        "bad_rate",
        "deadline_passed",
        "unknown_value",
        "value_not_allowed",
        "reserved_value",
        "value_version",
        "value_too_large",
        "values_full",
        "values_limit",
        "value_not_json",
        "open_calls_limit",
        "model_unavailable",
        "takes_turns",
        "nothing_to_wait_for",
        "nothing_to_conclude",
        "not_a_child",
        "still_at_work",
        "not_kept",
        "unknown_question",
        "bad_question",
        "not_a_choice",
        "answer_mismatch",
        "answer_late",
        "unknown_tool",
        "bad_arguments",
        "tool_denied",
        "not_approved",
        "approval_expired",
        "approval_too_wide",
        "approvals_limit",
        "bad_schema",
        "tool_name_taken",
        "window_too_small",
        "category_not_allowed",
        "nobody_above",
        "tells_itself",
        "text_empty",
        "text_too_long",
        "part",
        "sources",
        "too_many",
        "inbox_full",
        "not_an_agent",
        "stands_for_steps",
        "reads_nothing",
        "reserved_topic",
        "forwarded",
        "name_taken",
        "name_unknown",
        "rollback_over",
        "rollback_turnless",
        "rollback_turns",
        "no_checkpoint",
        "no_such_checkpoint",
        "checkpoint_elsewhere",
        "no_past",
        "already_paused",
        "not_paused",
        "no_graph",
        "unknown_step",
        "step_began",
        "not_ended_yet",
        "cannot_continue",
        "cannot_talk",
        "nothing_to_hand_back",
    ];

    /// The reason for programs. It is also the tag of its JSON.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "one line for each refusal")]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::TreeNotStarted => "tree_not_started",
            Self::TreeStartedBefore => "tree_started_before",
            Self::TreeEnded => "tree_ended",
            Self::TreeHalted => "tree_halted",
            Self::TreeCannotMove => "tree_cannot_move",
            Self::UnknownAgent { .. } => "unknown_agent",
            Self::AgentEnded { .. } => "agent_ended",
            Self::AgentStopped { .. } => "agent_stopped",
            Self::NotYours { .. } => "not_yours",
            Self::PersonOnly { .. } => "person_only",
            Self::DuplicateId { .. } => "duplicate_id",
            Self::ReservedId { .. } => "reserved_id",
            Self::DepthLimit { .. } => "depth_limit",
            Self::RoleCycle { .. } => "role_cycle",
            Self::ChildrenLimit { .. } => "children_limit",
            Self::AgentsLimit { .. } => "agents_limit",
            Self::UnknownRole { .. } => "unknown_role",
            Self::RoleNotAllowed { .. } => "role_not_allowed",
            Self::UnknownModel { .. } => "unknown_model",
            Self::ModelExists { .. } => "model_exists",
            Self::NotWaiting { .. } => "not_waiting",
            Self::NotRunning { .. } => "not_running",
            Self::ModelNotAllowed { .. } => "model_not_allowed",
            Self::ToolNotAllowed { .. } => "tool_not_allowed",
            Self::NetworkNotAllowed => "network_not_allowed",
            Self::FolderNotAllowed { .. } => "folder_not_allowed",
            Self::HostNotAllowed { .. } => "host_not_allowed",
            Self::HostRequestsNotAllowed => "host_requests_not_allowed",
            Self::HostsNotAskable { .. } => "hosts_not_askable",
            Self::LendWithoutCeiling => "lend_without_ceiling",
            Self::GraphTooLarge { .. } => "graph_too_large",
            Self::BadGraph { .. } => "bad_graph",
            Self::Ceiling { .. } => "ceiling",
            Self::FirstCallTooLarge { .. } => "first_call_too_large",
            Self::Unpriced { .. } => "unpriced",
            Self::Amount(_) => "amount",
            Self::BranchWithoutBudget => "branch_without_budget",
            Self::NoGraph { .. } => "no_graph",
            Self::UnknownStep { .. } => "unknown_step",
            Self::StepBegan { .. } => "step_began",
            Self::NotEndedYet { .. } => "not_ended_yet",
            Self::CannotContinue { .. } => "cannot_continue",
            Self::RaisesNothing { .. } => "raises_nothing",
            Self::CeilingBelowUse { .. } => "ceiling_below_use",
            Self::AdjustsNothing => "adjusts_nothing",
            Self::SealRunning => "seal_running",
            Self::Sealed { .. } => "sealed",
            Self::NotSealed => "not_sealed",
            Self::TimeoutBelowUse { .. } => "timeout_below_use",
            Self::BadTimeout { .. } => "bad_timeout",
            Self::BadProgram { .. } => "bad_program",
            Self::NoTimeout { .. } => "no_timeout",
            Self::BadReserve { .. } => "bad_reserve",
            Self::BadRepeats { .. } => "bad_repeats",
            Self::BadRate { .. } => "bad_rate",
            Self::DeadlinePassed { .. } => "deadline_passed",
            Self::UnknownValue { .. } => "unknown_value",
            Self::ValueNotAllowed { .. } => "value_not_allowed",
            Self::ReservedValue { .. } => "reserved_value",
            Self::ValueVersion { .. } => "value_version",
            Self::ValueTooLarge { .. } => "value_too_large",
            Self::ValuesFull { .. } => "values_full",
            Self::ValuesLimit { .. } => "values_limit",
            Self::ValueNotJson { .. } => "value_not_json",
            Self::OpenCallsLimit { .. } => "open_calls_limit",
            Self::ModelUnavailable { .. } => "model_unavailable",
            Self::TakesTurns { .. } => "takes_turns",
            Self::NothingToConclude { .. } => "nothing_to_conclude",
            Self::CannotTalk { .. } => "cannot_talk",
            Self::NothingToHandBack => "nothing_to_hand_back",
            Self::NothingToWaitFor => "nothing_to_wait_for",
            Self::NotAChild { .. } => "not_a_child",
            Self::StillAtWork { .. } => "still_at_work",
            Self::NotKept { .. } => "not_kept",
            Self::UnknownQuestion { .. } => "unknown_question",
            Self::BadQuestion { .. } => "bad_question",
            Self::NotAChoice { .. } => "not_a_choice",
            Self::AnswerMismatch { .. } => "answer_mismatch",
            Self::AnswerLate { .. } => "answer_late",
            Self::UnknownTool { .. } => "unknown_tool",
            Self::BadArguments { .. } => "bad_arguments",
            Self::ToolDenied { .. } => "tool_denied",
            Self::NotApproved { .. } => "not_approved",
            Self::ApprovalExpired { .. } => "approval_expired",
            Self::ApprovalTooWide { .. } => "approval_too_wide",
            Self::ApprovalsLimit { .. } => "approvals_limit",
            Self::BadSchema { .. } => "bad_schema",
            Self::ToolNameTaken { .. } => "tool_name_taken",
            Self::WindowTooSmall { .. } => "window_too_small",
            Self::CategoryNotAllowed { .. } => "category_not_allowed",
            Self::NobodyAbove { .. } => "nobody_above",
            Self::TellsItself { .. } => "tells_itself",
            Self::TextEmpty { .. } => "text_empty",
            Self::TextTooLong { .. } => "text_too_long",
            Self::Part { .. } => "part",
            Self::Sources { .. } => "sources",
            Self::TooMany { .. } => "too_many",
            Self::InboxFull { .. } => "inbox_full",
            Self::NotAnAgent { .. } => "not_an_agent",
            Self::StandsForSteps { .. } => "stands_for_steps",
            Self::ReadsNothing { .. } => "reads_nothing",
            Self::ReservedTopic { .. } => "reserved_topic",
            Self::Forwarded => "forwarded",
            Self::NameTaken { .. } => "name_taken",
            Self::NameUnknown { .. } => "name_unknown",
            Self::RollbackOver { .. } => "rollback_over",
            Self::RollbackTurnless { .. } => "rollback_turnless",
            Self::RollbackTurns { .. } => "rollback_turns",
            Self::NoCheckpoint { .. } => "no_checkpoint",
            Self::NoSuchCheckpoint { .. } => "no_such_checkpoint",
            Self::CheckpointElsewhere { .. } => "checkpoint_elsewhere",
            Self::NoPast { .. } => "no_past",
            Self::AlreadyPaused { .. } => "already_paused",
            Self::NotPaused { .. } => "not_paused",
        }
    }

    /// The numbers, if a ceiling was the reason.
    #[must_use]
    pub const fn shortfall(&self) -> Option<(&AgentId, &Shortfall)> {
        if let Self::Ceiling { account, short } = self { Some((account, short)) } else { None }
    }
}

pub(super) fn listed<T: std::fmt::Display>(items: &[T]) -> String {
    items.iter().map(|item| format!("`{item}`")).collect::<Vec<_>>().join(", ")
}

fn only<T: std::fmt::Display>(items: &[T]) -> String {
    if items.is_empty() { String::from("nobody may") } else { format!("only {} may", listed(items)) }
}

fn has_version(name: &ValueName, version: u64) -> String {
    match version {
        0 => format!("there is no value `{name}` yet, so its version is 0"),
        version => format!("`{name}` has version {version}"),
    }
}

fn one_of<T: std::fmt::Display>(items: &[T]) -> String {
    if items.is_empty() {
        String::from(": there are none")
    } else {
        format!(": choose one of {}", listed(items))
    }
}

pub(crate) fn check_text(what: &'static str, text: &str, bytes_max: usize) -> Result<(), Refusal> {
    if text.len() > bytes_max {
        return Err(Refusal::TextTooLong { what: what.to_owned(), bytes: text.len(), bytes_max });
    }
    Ok(())
}

pub(crate) fn check_said(what: &'static str, text: &str, bytes_max: usize) -> Result<(), Refusal> {
    if text.trim().is_empty() {
        return Err(Refusal::TextEmpty { what: what.to_owned() });
    }
    check_text(what, text, bytes_max)
}

impl From<BadSources> for Refusal {
    fn from(sources: BadSources) -> Self {
        Self::Sources { sources }
    }
}

impl From<BadPart> for Refusal {
    fn from(part: BadPart) -> Self {
        Self::Part { part }
    }
}

impl Body {
    /// Refuses a text that is too long, or has parts where only text is allowed.
    pub(crate) fn checked(&self, what: &'static str) -> Result<(), Refusal> {
        if !self.parts().is_empty() {
            return Err(BadPart::TextOnly { what: what.to_owned() }.into());
        }
        check_text(what, &self.text, limit::TEXT_BYTES_MAX)
    }

    /// Refuses a text that is too long or has too many parts.
    pub(crate) fn checked_with_parts(&self, what: &'static str) -> Result<(), Refusal> {
        check_parts(self.parts().iter())?;
        check_text(what, &self.text, limit::TEXT_BYTES_MAX)
    }

    /// Refuses a message that is too long, has too many parts, or is empty.
    pub(crate) fn checked_message(&self) -> Result<(), Refusal> {
        check_parts(self.parts().iter())?;
        if self.parts().is_empty() {
            return check_said("message", &self.text, limit::TEXT_BYTES_MAX);
        }
        check_text("message", &self.text, limit::TEXT_BYTES_MAX)
    }
}

fn sealed(kind: &SealKind) -> String {
    match kind {
        SealKind::Moved { to } => format!(
            "the tree was moved to `{to}` and continues where that is imported: work on it there, branch it here, or take it back"
        ),
        SealKind::Copy => "the tree is a copy, which can only be read and branched: work on the original, or branch this one with its own budget".to_owned(),
    }
}

fn too_wide(pattern: &SubjectPattern, offered: Option<&SubjectPattern>) -> String {
    match offered {
        Some(offered) => format!(
            "`{pattern}` is not within `{offered}`, which was shown, or does not cover the call itself: narrow what was shown"
        ),
        None => "this is not a call that can be approved for more than once: answer yes or no".to_owned(),
    }
}
