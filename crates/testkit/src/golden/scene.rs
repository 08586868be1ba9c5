//! The scenes: fixed scripts that together cover what journals hold.

use spinney_kernel::definition::ApprovalScope;
use spinney_kernel::primitives::Running;

/// One scene.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// What its files are called.
    pub name: &'static str,
    /// Its agents, or a whole tree file.
    pub plan: ScenePlan,
    /// What its models and tools do.
    pub script: &'static str,
    /// What people do, and what happens to the process.
    pub acts: &'static [Act],
    /// Whether its agents run commands.
    pub commands: SceneCommands,
}

/// What a scene starts.
#[derive(Clone, Copy, Debug)]
pub enum ScenePlan {
    /// Agents, as a text fixture.
    Fixture(&'static str),
    /// A tree file.
    File(&'static str),
}

/// Whether the agents of a scene run commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SceneCommands {
    /// They have only the tools of the script.
    None,
    /// A person is asked before each, unless an approval is remembered. The first role has `/srv/book`, and may connect to
    /// `*.example.org`; others may only read the book, and connect to nothing.
    Asked,
}

/// Something that happens around a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Time passes, in milliseconds.
    Pass(u64),
    /// The tree runs until it can do nothing more on its own.
    Settle,
    /// The first open question is answered.
    Answer(&'static str),
    /// The first open question is answered with a yes that counts for later calls as well: for all that it offers, or for
    /// this one command.
    Always(ApprovalScope, Option<&'static str>),
    /// A ceiling is raised, by nano-USD.
    Raise(&'static str, u64),
    /// An agent gets more time, in milliseconds.
    AddTime(&'static str, u64),
    /// An agent is cancelled.
    Cancel(&'static str),
    /// An agent is paused.
    Pause(&'static str),
    /// A pause is over.
    Unpause(&'static str),
    /// A message is sent.
    Send(&'static str, &'static str),
    /// An agent is redirected.
    Redirect(&'static str, &'static str, Running),
    /// The steps of a pipeline that are to come read an instruction.
    Instruct(&'static str, Running),
    /// A step of a pipeline is left out.
    Skip(&'static str),
    /// The tree has ended, and another one continues it.
    Continue,
    /// The process dies and another one takes the tree up.
    Crash,
}

/// All of them.
pub const SCENES: [Scene; 13] = [
    CHAT,
    FAMILY,
    HALT,
    CANCEL,
    CRASH,
    REDIRECT,
    SUMMARY,
    WRAP_UP,
    CLOCKS,
    THOUGHTS,
    COMMANDS,
    CONVERSATION,
    PIPELINE,
];

/// A conversation that is handed over and back, with a crash in it, and a follow-up after its end.
const CONVERSATION: Scene = Scene {
    name: "conversation",
    plan: ScenePlan::Fixture(
        "root $9.00 turns=9 tools=delegate_to_agent / trains later turns=9 tools=hand_back",
    ),
    script: r#"
rules:
  - when: { agent: root, last_contains: "and back?" }
    say: The train back is at nine.
  - when: { agent: root, turn: 1 }
    say: Trains are another desk.
    call: [{ tool: delegate_to_agent, args: { agent: trains, task: Find a train., id: trains } }]
  - when: { agent: trains, last_contains: noon }
    call: [{ tool: hand_back, args: { message: the train at noon } }]
  - when: { agent: trains }
    say: At which time?
  - say: "Booked: {{ last }}"
"#,
    acts: &[
        Act::Settle,
        Act::Answer("which are there?"),
        Act::Settle,
        Act::Crash,
        Act::Settle,
        Act::Answer("at noon"),
        Act::Continue,
        Act::Settle,
        Act::Send("root", "and back?"),
    ],
    commands: SceneCommands::None,
};

/// A pipeline: steps side by side, a shared value as input, an instruction while it runs, a step that is skipped, and a crash.
const PIPELINE: Scene = Scene {
    name: "pipeline",
    plan: ScenePlan::File(
        r#"
name: report
goal: Write it.
budget: { cost_usd: 1 }
models: { m: { provider: scripted, script: none, price: { input_per_mtok_usd: 1, output_per_mtok_usd: 1 } } }
shared: { tone: {} }
agents:
  writer: { model: m, tools: [write_context] }
  drafter: { model: m }
  critic: { model: m }
pipeline:
  steps:
    - parallel:
        - { id: outline, agent_id: writer, task_description: Outline it., output_to: outline }
        - { id: sources, agent_id: writer, task_description: Find sources., output_to: sources }
    - { id: draft, agent_id: drafter, task_description: Draft it., input_from: [outline, shared.tone], output_to: draft }
    - { id: review, agent_id: critic, task_description: Review it., input_from: [draft], output_to: review }
    - { id: polish, agent_id: writer, task_description: Polish it., input_from: ['review?'], output_to: polished }
"#,
    ),
    script: r#"
rules:
  - when: { agent: writer, last_contains: Outline, turn: 1 }
    say: First the tone.
    call: [{ tool: write_context, args: { key: tone, value: dry } }]
  - when: { agent: drafter }
    think_ms: 1000
    say: A draft.
  - when: { agent: writer, last_contains: Keep it short. }
    say: Polished, as told.
  - say: "Done, after {{ last | length }} characters."
"#,
    acts: &[
        Act::Pass(500),
        Act::Instruct("Keep it short.", Running::Finishes),
        Act::Skip("review"),
        Act::Pass(100),
        Act::Crash,
    ],
    commands: SceneCommands::None,
};

/// Models that think, an answer that is cut and continued, and one that the provider holds back.
const THOUGHTS: Scene = Scene {
    name: "thoughts-and-cut-answers",
    plan: ScenePlan::Fixture("root $9.00 retries=5 turns=9 tools=search,spawn_agent / child later turns=5"),
    script: r#"
rules:
  - when: { agent: root, turn: 1 }
    think: Which trees grow here?
    say: I shall look.
    call: [{ tool: search, args: { query: oaks } }]
  - when: { agent: root, turn: 2 }
    call: [{ tool: spawn_agent, args: { agent: child, id: child, goal: Count them., share: { fork: 2 } } }]
  - when: { agent: child, turn: 1 }
    fail: { kind: content_filter, times: 1 }
    think: One by one.
    say: "One, two, "
    cut: output_cap
  - when: { agent: child }
    say: three.
  - say: "Counted: {{ last }}"
tools:
  search: { description: finds pages, repeatable: true, say: "three pages about {{ args.query }}" }
"#,
    acts: &[],
    commands: SceneCommands::None,
};

/// An agent with tools: some work, some fail, some do not exist; its model is busy at first.
const CHAT: Scene = Scene {
    name: "chat-with-tools",
    plan: ScenePlan::Fixture("root $9.00 retries=5 turns=9"),
    script: r#"
rules:
  - when: { turn: 1 }
    fail: { kind: rate_limit, times: 1, retry_after_ms: 30 }
    think_ms: 10
    say: I shall look.
    call:
      - { tool: search, args: { query: oaks } }
      - { tool: broken, args: { n: 1 } }
      - { tool: nothing_of_the_kind, args: {} }
      - { tool: search, args: '{"query": ' }
  - when: { turn: 2 }
    say: And once more, at length.
    call: [{ tool: long, args: { of: "leaves" } }]
  - say: "Seen: {{ last | length }} characters."
    usage: { input: 900, output: 40 }
tools:
  search: { description: finds pages, repeatable: true, think_ms: 15, say: "three pages about {{ args.query }}" }
  broken: { description: never works, error: "no luck with {{ args.n }}" }
  long: { description: says a lot, say: "{{ args.of }}{% for n in range(2500) %} and another leaf{% endfor %}" }
"#,
    acts: &[],
    commands: SceneCommands::None,
};

/// A family: attached and detached children, a wait, messages in both directions, and two questions.
const FAMILY: Scene = Scene {
    name: "spawns-with-questions-and-messages",
    plan: ScenePlan::Fixture("root $9.00 turns=9 / a later turns=5 $2.00\nroot / b later turns=5"),
    script: r#"
rules:
  - when: { agent: root, turn: 1 }
    say: Both of you.
    call:
      - { tool: spawn_agent, args: { agent: a, goal: Ask a person., id: a-1, budget: { cost_usd: 0.50, lend: true } } }
      - { tool: spawn_agent, args: { agent: b, goal: Go ahead., id: b-1, detach: true, timeout: 60 } }
      - { tool: ask_human, args: { question: "Shall we?", timeout: 3600 } }
  - when: { agent: root, turn: 2 }
    say: Waiting.
    call: [{ tool: wait_agent, args: { agents: [b-1] } }, { tool: list_agents }]
  - when: { agent: a, turn: 1 }
    think_ms: 20
    say: I need to know.
    call: [{ tool: ask_human, args: { question: "Which colour?", default: blue, timeout: 2 } }]
  - when: { agent: a }
    say: "It is {{ last }}."
  - when: { agent: b, turn: 1 }
    think_ms: 40
    say: Telling them.
    call:
      - { tool: send_message, args: { to: root, text: "b is on its way" } }
      - { tool: spawn_agent, args: { agent: a, goal: Too deep., id: a-2 } }
  - when: { agent: b }
    think_ms: 40
    say: Arrived.
  - say: "All told: {{ last }}"
"#,
    acts: &[
        Act::Pass(30),
        Act::Send("b-1", "hurry up"),
        Act::Answer("yes"),
        Act::Pass(5_000),
        Act::Settle,
        Act::Answer("green"),
        Act::Settle,
        Act::Answer("red"),
    ],
    commands: SceneCommands::None,
};

/// A tree that reaches its ceiling, is raised, and continues.
const HALT: Scene = Scene {
    name: "halt-and-raise",
    plan: ScenePlan::Fixture("root $0.25 turns=9 / a later turns=4"),
    script: r#"
rules:
  - when: { agent: root, turn: 1 }
    say: One.
    call: [{ tool: spawn_agent, args: { agent: a, goal: Spend., id: a-1 } }, { tool: spawn_agent, args: { agent: a, goal: Spend more., id: a-2 } }]
    usage: { output: 50 }
  - when: { agent: a, turn: 1 }
    think_ms: 5
    say: Spending.
    call: [{ tool: list_agents }]
    usage: { output: 60 }
  - say: Spent.
    usage: { output: 60 }
"#,
    acts: &[Act::Settle, Act::Raise("root", 100_000_000), Act::Settle, Act::Raise("root", 900_000_000)],
    commands: SceneCommands::None,
};

/// A tree that is cancelled while its agents are at work.
const CANCEL: Scene = Scene {
    name: "cancel",
    plan: ScenePlan::Fixture("root $9.00 turns=9 / a later turns=4 / b later turns=4"),
    script: r#"
rules:
  - when: { agent: root, turn: 1 }
    say: Down we go.
    call: [{ tool: spawn_agent, args: { agent: a, goal: Go down., id: a-1 } }, { tool: slow }]
  - when: { agent: a, turn: 1 }
    say: Further.
    call: [{ tool: spawn_agent, args: { agent: b, goal: Think., id: b-1 } }]
  - when: { agent: b }
    think_ms: 10
    say: I was just about to
    hang: true
  - say: Never.
tools:
  slow: { description: takes long, think_ms: 50000, say: done }
"#,
    acts: &[
        Act::Pass(100),
        Act::Pause("a-1"),
        Act::Pass(5),
        Act::Cancel("a-1"),
        Act::Pass(50),
        Act::Cancel("root"),
    ],
    commands: SceneCommands::None,
};

/// A process that dies twice: what can be repeated is, what cannot is reported lost, and the model bills both tries.
const CRASH: Scene = Scene {
    name: "crash-and-resume",
    plan: ScenePlan::Fixture("root $9.00 turns=9 / a later turns=4"),
    script: r#"
lost: presumed
rules:
  - when: { agent: root, turn: 1 }
    think_ms: 20
    say: All at once.
    call:
      - { tool: note, args: { n: 1 } }
      - { tool: post, args: { n: 2 } }
      - { tool: spawn_agent, args: { agent: a, goal: Think., id: a-1 } }
      - { tool: ask_human, args: { question: "Still there?" } }
  - when: { agent: a }
    think_ms: 40
    say: Thought.
  - say: "In the end: {{ last }}"
tools:
  note: { description: can be repeated, repeatable: true, think_ms: 30, say: noted }
  post: { description: cannot, think_ms: 30, say: posted }
"#,
    acts: &[Act::Pass(10), Act::Crash, Act::Pass(30), Act::Crash, Act::Settle, Act::Answer("still here")],
    commands: SceneCommands::None,
};

/// An agent that is redirected, once to finish first and once to stop.
const REDIRECT: Scene = Scene {
    name: "redirect",
    plan: ScenePlan::Fixture("root $9.00 turns=9 / a later turns=4"),
    script: r#"
rules:
  - when: { agent: root, turn: 1 }
    think_ms: 30
    say: East.
    call: [{ tool: walk, args: { to: east } }]
  - when: { agent: root, turn: 2 }
    think_ms: 30
    say: Still east.
    call: [{ tool: spawn_agent, args: { agent: a, goal: Walk., id: a-1 } }]
  - when: { agent: a }
    think_ms: 500
    say: Walked.
  - think_ms: 10
    say: "As you say: {{ last }}"
tools:
  walk: { description: walks, think_ms: 30, say: "walked {{ args.to }}" }
"#,
    acts: &[
        Act::Pass(40),
        Act::Redirect("root", "go west when you are there", Running::Finishes),
        Act::Pass(100),
        Act::Pause("root"),
        Act::Redirect("root", "stop and go home", Running::Stops),
        Act::Pass(10),
        Act::Unpause("root"),
    ],
    commands: SceneCommands::None,
};

/// An agent whose model sums up what leaves its window: once, with a crash in the middle, and then no more.
const SUMMARY: Scene = Scene {
    name: "summary",
    plan: ScenePlan::Fixture("root $9.00 turns=16 summed=3375"),
    script: r#"
lost: presumed
rules:
  - when: { summary: true, turn: 8 }
    think_ms: 50
    say: Looked seven times and found nothing.
  - when: { summary: true }
    fail: { kind: auth }
  - when: { turn: 14 }
    say: Nothing.
  - think_ms: 10
    say: "Looking, {{ turn }}."
    call: [{ tool: look, args: { n: "{{ turn }}" } }]
tools:
  look: { description: looks, repeatable: true, say: "{% for n in range(40) %}nothing {% endfor %}" }
"#,
    acts: &[Act::Pass(80), Act::Crash, Act::Settle],
    commands: SceneCommands::None,
};

/// A lead that keeps something back for its answer: one child is refused, one uses all there is, the lead has its last
/// call and is topped up. A second child runs out of turns.
const WRAP_UP: Scene = Scene {
    name: "reserve-and-wrap-up",
    plan: ScenePlan::Fixture(
        "root $1.50 turns=9 wrap reserve=40% out=400 / a later turns=9 wrap out=400\nroot / b later turns=2 wrap\nroot / c later turns=4 out=3000",
    ),
    script: r#"
rules:
  - when: { agent: root, last_contains: The budget was raised. }
    say: Once more.
    call: [{ tool: spawn_agent, args: { agent: b, goal: Look twice., id: b-1 } }]
  - when: { wrap_up: true }
    say: As far as I got.
    usage: { output: 20 }
  - when: { agent: root, turn: 1 }
    say: Both.
    call:
      - { tool: spawn_agent, args: { agent: a, goal: Spend., id: a-1 } }
      - { tool: spawn_agent, args: { agent: c, goal: Too much., id: c-1, budget: { cost_usd: 0.01 } } }
    usage: { output: 100 }
  - when: { agent: root, last_contains: b-1 }
    say: Both are in.
  - think_ms: 5
    say: "Look {{ turn }}."
    call: [{ tool: list_agents }]
    usage: { output: 260 }
"#,
    acts: &[Act::Settle, Act::Raise("root", 5_000_000_000), Act::Settle],
    commands: SceneCommands::None,
};

/// Clocks: a timeout pauses while a person is asked, a default applies when a question times out, active time
/// survives a crash, a person adds time, and a tool that never ends is stopped for the last call.
const CLOCKS: Scene = Scene {
    name: "clocks",
    plan: ScenePlan::Fixture(
        "root $9.00 turns=9 timeout=20s wrap / a later turns=4 wrap active=15s\nroot / b later turns=4",
    ),
    script: r#"
rules:
  - when: { wrap_up: true }
    say: As far as I got.
  - when: { agent: root, turn: 1 }
    think_ms: 2000
    say: First a person.
    call: [{ tool: ask_human, args: { question: "Go on?", default: "yes", timeout: 60 } }]
  - when: { agent: root, turn: 2 }
    say: Now you.
    call: [{ tool: spawn_agent, args: { agent: a, goal: Look., id: a-1 } }, { tool: spawn_agent, args: { agent: b, goal: Think., id: b-1, detach: true, timeout: 30 } }]
  - when: { agent: a }
    think_ms: 4000
    say: Looking.
    call: [{ tool: look }]
  - when: { agent: b }
    think_ms: 60000
    say: Thought.
  - when: { agent: root, turn: 3 }
    say: One more thing.
    call: [{ tool: ask_human, args: { question: "Which?" } }]
  - say: "It is {{ last }}."
lost: repeatable
tools:
  look: { description: never ends, repeatable: true, hang: true }
"#,
    acts: &[
        Act::Pass(64_000),
        Act::Crash,
        Act::Pass(3_000),
        Act::AddTime("root", 30_000),
        Act::Pass(60_000),
        Act::Answer("this one"),
    ],
    commands: SceneCommands::None,
};

/// Commands: files that they make and remove, how they end, approvals that are refused, given once and remembered for an agent
/// and for the tree, folders and hosts that shrink downwards, connections, and commands that are lost in two crashes.
const COMMANDS: Scene = Scene {
    name: "commands",
    plan: ScenePlan::Fixture("root $9.00 turns=20 / coder later turns=9"),
    script: r#"
rules:
  - when: { agent: root, turn: 1 }
    say: Make it.
    call: [{ tool: run_command, args: { command: "make notes.md" } }]
  - when: { agent: root, turn: 2 }
    say: And again.
    call:
      - { tool: run_command, args: { command: "make notes.md" } }
      - { tool: run_command, args: { command: "make more.md" } }
      - { tool: run_command, args: { command: "false" } }
  - when: { agent: root, turn: 3 }
    say: Clean up, and look around.
    call:
      - { tool: run_command, args: { command: "rm more.md" } }
      - { tool: run_command, args: { command: "get docs.example.org" } }
      - { tool: run_command, args: { command: "kill" } }
      - { tool: run_command, args: { command: "fork" } }
      - { tool: run_command, args: { command: "no-such-program" } }
  - when: { agent: root, turn: 4 }
    say: Now you.
    call:
      - { tool: spawn_agent, args: { agent: coder, id: coder-1, goal: Write it. } }
      - { tool: run_command, args: { command: "hang" } }
  - when: { agent: coder, turn: 1 }
    think_ms: 20
    say: I write.
    call: [{ tool: run_command, args: { command: "make page.md" } }, { tool: run_command, args: { command: "hang" } }]
  - when: { agent: coder }
    say: "Written: {{ last }}"
  - say: "In the end: {{ last }}"
"#,
    acts: &[
        Act::Settle,
        Act::Always(ApprovalScope::Agent, Some("make notes.md")),
        Act::Settle,
        Act::Always(ApprovalScope::Tree, None),
        Act::Settle,
        Act::Answer("yes"),
        Act::Settle,
        Act::Answer("yes"),
        Act::Settle,
        Act::Answer("yes"),
        Act::Settle,
        Act::Answer("yes"),
        Act::Settle,
        Act::Answer("yes"),
        Act::Settle,
        Act::Answer("no"),
        Act::Settle,
        Act::Answer("yes"),
        Act::Pass(50),
        Act::Crash,
        Act::Settle,
        Act::Answer("yes"),
        Act::Pass(50),
        Act::Crash,
    ],
    commands: SceneCommands::Asked,
};
