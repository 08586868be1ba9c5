//! The table of attempts to get more rights than the parent has: the goal of each, and its calls.

/// What an attempt tries to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum After {
    Files,
    Models,
    Tools,
    Budget,
    Depth,
    Roles,
    Network,
    Children,
    Knowledge,
    Others,
}

/// The expected outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comes {
    /// Each of its calls is refused.
    No,
    /// A call may be answered, but has no effect.
    ToNothing,
}

use After::{Budget, Children, Depth, Files, Knowledge, Models, Network, Others, Roles, Tools};
use Comes::{No, ToNothing};

/// One attempt: calls in one answer, as YAML.
pub(crate) type Try = (After, Comes, &'static str);

pub(crate) const TRIES: [Try; 94] = [
    (Files, No, r#"{ tool: read_file, args: { path: "../root/outputs/secret.txt" } }"#),
    (Files, No, r#"{ tool: read_file, args: { path: "../s/outputs/secret.txt" } }"#),
    (Files, No, r#"{ tool: read_file, args: { path: "outputs/../../s/outputs/secret.txt" } }"#),
    (Files, No, r#"{ tool: read_file, args: { path: "../../../secret.txt" } }"#),
    (Files, No, r#"{ tool: read_file, args: { path: /etc/passwd } }"#),
    (Files, No, r#"{ tool: read_file, args: { path: "~/secret.txt" } }"#),
    (Files, No, r#"{ tool: read_file, args: { path: "file:///etc/passwd" } }"#),
    (Files, No, r#"{ tool: read_file, args: { path: outputs/x, agent: s } }"#),
    (Files, No, r#"{ tool: list_files, args: { path: ".." } }"#),
    (Files, No, r#"{ tool: list_files, args: { path: "../s/outputs" } }"#),
    (Files, No, r#"{ tool: list_files, args: { path: / } }"#),
    (Files, No, r#"{ tool: write_file, args: { path: "../s/outputs/secret.txt", text: CHANGED } }"#),
    (Files, No, r#"{ tool: write_file, args: { path: "../root/outputs/more.txt", text: CHANGED } }"#),
    (Files, No, r#"{ tool: write_file, args: { path: history/step_001.json, text: CHANGED } }"#),
    (Files, ToNothing, r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach. } }"#),
    (Models, No, r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., model: cheap } }"#),
    (Models, No, r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., model: free } }"#),
    (Models, No, r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., model: nobody } }"#),
    (Models, No, r#"{ tool: spawn_agent, args: { agent: costly, goal: Reach. } }"#),
    (
        Models,
        No,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Spend., budget: { on_low: { downgrade: cheap } } } }"#,
    ),
    (
        Models,
        No,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Spend., budget: { on_low: { downgrade: free } } } }"#,
    ),
    (Models, ToNothing, r#"{ tool: spawn_agent, args: { agent: plain, goal: Fail. } }"#),
    (Models, ToNothing, r#"{ tool: spawn_agent, args: { agent: rich, goal: Fail. } }"#),
    (Models, ToNothing, r#"{ tool: spawn_agent, args: { agent: rich, goal: Reach. } }"#),
    (Models, No, r#"{ tool: spawn_agent, args: { agent: rich, goal: Reach., model: cheap } }"#),
    (Tools, No, r#"{ tool: run, args: {} }"#),
    (Tools, No, r#"{ tool: RUN, args: {} }"#),
    (Tools, No, r#"{ tool: "run ", args: {} }"#),
    (Tools, No, r#"{ tool: gated, args: {} }"#),
    (Tools, No, r#"{ tool: ask_human, args: { question: May I? } }"#),
    (Tools, No, r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., tools: [run] } }"#),
    (Tools, No, r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., tools: [look, run] } }"#),
    (Tools, No, r#"{ tool: spawn_agent, args: { agent: greedy, goal: Reach., tools: [run] } }"#),
    (Tools, No, r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., tools: [ask_human] } }"#),
    (Tools, No, r#"{ tool: spawn_agent, args: { agent: armed, goal: Reach. } }"#),
    (Tools, No, r#"{ tool: spawn_agent, args: { agent: armed, goal: Reach., tools: [run] } }"#),
    (Tools, ToNothing, r#"{ tool: spawn_agent, args: { agent: greedy, goal: Reach. } }"#),
    (Tools, ToNothing, r#"{ tool: spawn_agent, args: { agent: greedy, goal: Reach., tools: [gated] } }"#),
    (Tools, ToNothing, r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., tools: [] } }"#),
    (
        Tools,
        No,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., approvals: { gated: allow } } }"#,
    ),
    (
        Budget,
        ToNothing,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Spend., budget: { cost_usd: 1000 } } }"#,
    ),
    (
        Budget,
        No,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Spend., budget: { cost_usd: 1000, lend: true } } }"#,
    ),
    (
        Budget,
        No,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Spend., budget: { tokens: 900000000, lend: true } } }"#,
    ),
    (
        Budget,
        ToNothing,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Spend., budget: { tokens: 900000000 } } }"#,
    ),
    (
        Budget,
        ToNothing,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Spend., budget: { steps: 1000000 } } }"#,
    ),
    (
        Budget,
        ToNothing,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Spend., budget: { tool_calls: 1000000 } } }"#,
    ),
    (
        Budget,
        ToNothing,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Fail., budget: { retries: 1000000 } } }"#,
    ),
    (
        Budget,
        ToNothing,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Spend., budget: { answer_reserve: 0 } } }"#,
    ),
    (
        Budget,
        No,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Spend., budget: { answer_reserve: 91 } } }"#,
    ),
    (
        Budget,
        ToNothing,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Spend., budget: { on_low: shrink } } }"#,
    ),
    (Budget, No, r#"{ tool: spawn_agent, args: { agent: plain, goal: Spend., budget: { cost_usd: -5 } } }"#),
    (
        Budget,
        No,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Spend., budget: { cost_usd: 99999999999 } } }"#,
    ),
    (Budget, ToNothing, r#"{ tool: spawn_agent, args: { agent: plain, goal: Spend., timeout: 365d } }"#),
    (Budget, No, r#"{ tool: spawn_agent, args: { agent: plain, goal: Spend., timeout: 366d } }"#),
    (Budget, ToNothing, r#"{ tool: spawn_agent, args: { agent: wealthy, goal: Spend. } }"#),
    (
        Budget,
        ToNothing,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Spend. } }, { tool: spawn_agent, args: { agent: plain, goal: Spend. } }"#,
    ),
    (Depth, ToNothing, r#"{ tool: spawn_agent, args: { agent: deepest, goal: Deeper. } }"#),
    (
        Depth,
        ToNothing,
        r#"{ tool: spawn_agent, args: { agent: deepest, goal: Deeper., detach: true } }, { tool: look }"#,
    ),
    (Depth, No, r#"{ tool: spawn_agent, args: { agent: deepest, goal: Deeper., depth: 99 } }"#),
    (Depth, No, r#"{ tool: spawn_agent, args: { agent: deepest, goal: Deeper., limits: { depth: 99 } } }"#),
    (Depth, No, r#"{ tool: spawn_agent, args: { agent: deepest, goal: Deeper., depth_max: 99 } }"#),
    (Depth, No, r#"{ tool: spawn_agent, args: { agent: deepest, goal: Deeper., parent: root } }"#),
    (Roles, No, r#"{ tool: spawn_agent, args: { agent: outside, goal: Reach. } }"#),
    (Roles, No, r#"{ tool: spawn_agent, args: { agent: sib, goal: Reach. } }"#),
    (Roles, No, r#"{ tool: spawn_agent, args: { agent: root, goal: Reach. } }"#),
    (Roles, No, r#"{ tool: spawn_agent, args: { agent: a, goal: Reach. } }"#),
    (Roles, No, r#"{ tool: spawn_agent, args: { agent: nobody, goal: Reach. } }"#),
    (Roles, ToNothing, r#"{ tool: spawn_agent, args: { agent: boss, goal: Reach. } }"#),
    (Roles, No, r#"{ tool: spawn_agent, args: { agent: boss, goal: Reach., subagents: [outside] } }"#),
    (Network, No, r#"{ tool: spawn_agent, args: { agent: online, goal: Reach. } }"#),
    (Network, No, r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., network: granted } }"#),
    (
        Children,
        ToNothing,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Spend., detach: true } }, { tool: spawn_agent, args: { agent: plain, goal: Spend., detach: true } }, { tool: spawn_agent, args: { agent: plain, goal: Spend., detach: true } }, { tool: spawn_agent, args: { agent: greedy, goal: Spend., detach: true } }"#,
    ),
    (
        Children,
        ToNothing,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach. } }, { tool: spawn_agent, args: { agent: boss, goal: Reach. } }, { tool: spawn_agent, args: { agent: rich, goal: Reach. } }"#,
    ),
    (
        Children,
        No,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., limits: { children: 99 } } }"#,
    ),
    (
        Knowledge,
        ToNothing,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., share: { fork: 1000 } } }"#,
    ),
    (Knowledge, No, r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., share: { fork: 1001 } } }"#),
    (Knowledge, No, r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., share: { fork: -1 } } }"#),
    (Knowledge, No, r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., share: all } }"#),
    (Knowledge, ToNothing, r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., share: briefing } }"#),
    (Knowledge, ToNothing, r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., share: thread } }"#),
    (
        Knowledge,
        ToNothing,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., messages: [root] } }"#,
    ),
    (
        Knowledge,
        No,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., messages: [{ from: root }] } }"#,
    ),
    (
        Knowledge,
        ToNothing,
        r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., window: 100000000 } }"#,
    ),
    (Others, No, r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., id: root } }"#),
    (Others, No, r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., id: s } }"#),
    (Others, No, r#"{ tool: spawn_agent, args: { agent: plain, goal: Reach., id: ../s } }"#),
    (
        Others,
        No,
        r#"{ tool: cancel_agent, args: { agent: s } }, { tool: cancel_agent, args: { agent: root } }"#,
    ),
    (
        Others,
        No,
        r#"{ tool: wait_agent, args: { agents: [s] } }, { tool: wait_agent, args: { agents: [root] } }"#,
    ),
    (Others, No, r#"{ tool: wait_agent, args: { agents: [q] } }"#),
    (Others, No, r#"{ tool: followup_task, args: { agent: q, task: Tell all. } }"#),
    (Others, No, r#"{ tool: followup_task, args: { agent: s, task: Tell all. } }"#),
    (Others, No, r#"{ tool: followup_task, args: { agent: root, task: Tell all. } }"#),
    (Others, No, r#"{ tool: send_message, args: { to: s, text: Stop., from: root } }"#),
    (Others, No, r#"{ tool: raise_budget, args: { agent: root, cost_usd: 1000 } }"#),
];
