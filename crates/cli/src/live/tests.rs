//! The live view of trees that the kernel decides, at several sizes.

use std::path::Path;
use std::sync::Arc;

use spinney::TreeFile;
use spinney::bus::Delta;
use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::context::{Origin, Trace};
use spinney_kernel::definition::ToolSpec;
use spinney_kernel::port::model::DeltaKind;
use spinney_kernel::primitives::{Actor, AgentId, Body, CallId, Fault, FaultKind, Seq, Time, TreeId};
use spinney_kernel::record::{Event, ToolAsk};
use spinney_kernel::rules::report::{Done, Failed, Report};
use spinney_kernel::rules::request::{Request, Start};
use spinney_kernel::rules::{Input, InputKind, decide};
use spinney_kernel::world::World;
use spinney_terminal::paint::Paint;
use spinney_testkit::sim;
use spinney_view::live::LiveTree;
use spinney_view::wording::is_hostile;

use super::listing::{dot_lines, tree_lines};
use super::view::{Commands, Size, view};

const TREE: TreeId = TreeId::new([1; 16]);

const FILE: &str = "
name: research
goal: Compare PyTorch, TensorFlow and JAX for a small team.
budget: { cost_usd: 0.50, tokens: 200000, steps: 60, timeout: 5m }
models:
  fast: { provider: scripted, script: none, context: 8000, price: { input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 } }
agents:
  lead: { model: fast, prompt: You coordinate., tools: [spawn_agent, ask_human, look], subagents: [researcher] }
  researcher: { model: fast, prompt: You research., tools: [look, ask_human], window: { size: 2000 } }
entry: lead
";

/// A tree that is decided by the kernel, and what the view knows of it.
struct ViewedTree {
    world: World,
    trace: Trace,
    live: LiveTree,
    now: u64,
}

impl ViewedTree {
    fn new() -> Self {
        Self::from_file(FILE)
    }

    fn from_file(file: &str) -> Self {
        let mut definition = TreeFile::parse("tree.yaml", file).unwrap().definition;
        definition.tools.insert("look".parse().unwrap(), ToolSpec::default());
        let (world, trace) = (World::new(TREE), Trace::default());
        let mut stage = Self { world, trace, live: LiveTree::new(TREE), now: 1_000_000 };
        let request = Request::Start(Start::new(definition));
        stage.input(InputKind::Request { by: Actor::PERSON, request: Box::new(request) });
        stage
    }

    fn after(&mut self, ms: u64) -> &mut Self {
        self.now += ms;
        self
    }

    fn input(&mut self, what: InputKind) {
        let input = Input { now: Time(self.now), draw: self.now, what };
        for event in decide(&mut self.world, &input).unwrap().events {
            self.event(&event);
        }
    }

    fn event(&mut self, event: &Event) {
        let at = Time(self.now);
        let context = self.trace.take(at, event);
        self.live.take(at, event, context.agent.as_ref());
    }

    /// The running call of an agent.
    fn call(&self, agent: &str) -> CallId {
        let id: AgentId = agent.parse().unwrap();
        let running = self
            .world
            .calls()
            .all()
            .find(|(_, call)| call.is_running() && *self.world.agents().id(call.agent) == id);
        running.unwrap().0
    }

    /// Ends the running call of an agent.
    fn done(&mut self, agent: &str, text: &str, asks: &[(&str, &str)]) -> &mut Self {
        let used = Used::Tokens(Usage { input: 1_000, output: 50, ..Usage::default() });
        let mut done = Done::new(self.call(agent), 1, used, Body::text(text));
        let asks = asks.iter().zip(1..).map(|((tool, args), id)| ToolAsk::new(id.to_string(), *tool, *args));
        done.asks = asks.collect();
        self.input(InputKind::Report(Report::Done(done)));
        self
    }

    fn delta(&mut self, agent: &str, kind: DeltaKind, text: &str) -> &mut Self {
        let call = self.call(agent);
        let path: Vec<AgentId> = self.world.agents().path(self.world.call(call).unwrap().agent);
        let origin = Origin { tree: TREE, path: path.into(), role: "any".parse().unwrap(), goal: "".into() };
        let (attempt, offset, text) = (1, 0, text.to_owned());
        self.live.delta(&Delta {
            origin: Arc::new(origin),
            call,
            attempt,
            kind,
            offset,
            text,
            after: Seq(0),
        });
        self
    }

    fn shown(&self, width: usize, height: usize) -> String {
        let mut commands = Commands::new(Path::new("/no/home"), TREE);
        commands.update(self.live.world());
        let rows = view(&self.live, &commands, None, Size { width, height }, Time(self.now));
        for row in &rows {
            assert!(row.width() <= width, "{}", row.text());
        }
        assert!(rows.len() <= height);
        rows.iter().map(|row| row.painted(Paint::Plain) + "\n").collect()
    }
}

/// A lead that waits for two researchers: one streams, the other's provider failed once. A third was refused.
fn busy() -> ViewedTree {
    let mut stage = ViewedTree::new();
    let spawns = [
        (
            "spawn_agent",
            r#"{"agent":"researcher","id":"torch","goal":"Research PyTorch.","budget":{"cost_usd":0.1}}"#,
        ),
        ("spawn_agent", r#"{"agent":"researcher","id":"jax","goal":"Research JAX."}"#),
        ("spawn_agent", r#"{"agent":"writer","goal":"Write it down."}"#),
    ];
    stage.after(1_500).done("lead", "I split the work.", &spawns);
    stage.after(700).done("torch", "", &[("look", r#"{"at":"https://example.org/a/long/path"}"#)]);
    let (call, used) = (stage.call("jax"), Used::Tokens(Usage { input: 900, ..Usage::default() }));
    let fault = Fault { message: "too many requests".to_owned(), ..Fault::new(FaultKind::RateLimit) };
    stage.after(40).input(InputKind::Report(Report::Failed(Failed { call, attempt: 1, fault, used })));
    stage.after(300).done("torch", "A page about PyTorch.", &[]);
    stage.delta("torch", DeltaKind::Text, "PyTorch is what most people know, ");
    stage.delta("torch", DeltaKind::Text, "and it is easy to find help.");
    stage.after(12_000);
    stage
}

#[test]
fn the_view_shows_who_does_what_and_what_it_costs() {
    let stage = busy();
    insta::assert_snapshot!("busy_60", stage.shown(60, 20));
    insta::assert_snapshot!("busy_80", stage.shown(80, 20));
    insta::assert_snapshot!("busy_200", stage.shown(200, 20));
}

/// Issue 34: the mark of refusals was cut with a long name.
#[test]
fn a_long_name_leaves_room_for_what_was_refused() {
    let mut stage = ViewedTree::new();
    let id = "somebody-with-a-rather-long-name";
    let spawn = format!(r#"{{"agent":"researcher","id":"{id}","goal":"Look."}}"#);
    stage.done("lead", "", &[("spawn_agent", &spawn)]);
    stage.done(id, "", &[("nope", "{}")]);
    for width in [60, 80] {
        let shown = stage.shown(width, 20);
        let line = shown.lines().find(|line| line.contains("● somebod")).unwrap();
        assert!(line.contains("… !1 "), "{shown}");
    }
}

/// G40 (the live view): sums that are presumed in part are marked, and a line says how much that is.
#[test]
fn g40_the_view_says_how_much_is_presumed() {
    let mut stage = busy();
    let (call, used) = (stage.call("torch"), Used::Unknown);
    let fault = Fault { message: "the stream broke off".to_owned(), ..Fault::new(FaultKind::Cut) };
    stage.input(InputKind::Report(Report::Failed(Failed { call, attempt: 1, fault, used })));
    insta::assert_snapshot!("presumed_60", stage.shown(60, 20));
    insta::assert_snapshot!("presumed_80", stage.shown(80, 20));
    insta::assert_snapshot!("presumed_200", stage.shown(200, 20));
    // A small terminal has it as well.
    assert!(stage.shown(60, 5).contains("* includes what is presumed: $"), "{}", stage.shown(60, 5));
}

/// O17 (the root's view): text of a deep agent is shown in that agent's line while it is still streaming, and another
/// attempt or agent never gets it.
#[test]
fn o17_streamed_text_is_shown_at_its_agent_before_that_agent_ends() {
    let mut stage = busy();
    let line = |stage: &ViewedTree, agent: &str| {
        let shown = stage.shown(120, 20);
        shown.lines().find(|line| line.contains(&format!("● {agent}"))).map(str::to_owned)
    };
    assert!(line(&stage, "torch").unwrap().contains("easy to find help."), "{}", stage.shown(120, 20));
    assert!(!stage.shown(120, 20).lines().any(|line| line.contains("jax") && line.contains("easy to find")));
    // Reasoning is distinguished from the answer.
    stage.delta("torch", DeltaKind::Reasoning, "Is that so?");
    assert!(line(&stage, "torch").unwrap().contains("thinks: Is that so?"));
    // When the call ends, so does the text.
    stage.done("torch", "PyTorch.", &[]);
    assert_eq!(line(&stage, "torch"), None);
}

/// P19 (the view): whatever order two agents stream in, each line has only its own agent's text.
#[test]
fn p19_no_interleaving_shows_text_at_the_wrong_agent() {
    let mut stage = ViewedTree::new();
    let spawn = |id: &str| format!(r#"{{"agent":"researcher","id":"{id}","goal":"Research {id}."}}"#);
    let (one, two) = (spawn("one"), spawn("two"));
    stage.done("lead", "", &[("spawn_agent", &one), ("spawn_agent", &two)]);
    let mut order = 0x2545_F491_4F6C_DD1D_u64;
    for _ in 0..1_000 {
        order ^= order << 13;
        order ^= order >> 7;
        order ^= order << 17;
        let (agent, word) = if order.is_multiple_of(2) { ("one", "ein ") } else { ("two", "zwei ") };
        stage.delta(agent, DeltaKind::Text, word);
        for line in stage.shown(100, 20).lines() {
            let is_mixed = line.contains("● one") && line.contains("zwei")
                || line.contains("● two") && line.contains("ein ");
            assert!(!is_mixed, "{line}");
        }
    }
    assert!(stage.shown(100, 20).contains("zwei zwei") || stage.shown(100, 20).contains("ein ein"));
}

#[test]
fn a_question_is_shown_with_the_command_that_answers_it() {
    let mut stage = busy();
    stage.done("torch", "", &[("ask_human", r#"{"question":"Which version of PyTorch do you use?"}"#)]);
    insta::assert_snapshot!("question_80", stage.shown(80, 20));
    // A command that does not fit is left out: half of one is worse than none.
    assert!(!stage.shown(50, 20).contains("spinney"), "{}", stage.shown(50, 20));
}

#[test]
fn an_agent_that_failed_says_why_and_the_rest_is_listed() {
    let mut stage = busy();
    let (call, used) = (stage.call("torch"), Used::NOTHING);
    let fault = Fault { message: "no such key".to_owned(), ..Fault::new(FaultKind::Auth) };
    stage.input(InputKind::Report(Report::Failed(Failed { call, attempt: 1, fault, used })));
    insta::assert_snapshot!("failed_80", stage.shown(80, 20));
    let lines = tree_lines(&stage.live, Some(100), Time(stage.now));
    insta::assert_snapshot!(
        "tree_100",
        lines.iter().map(|row| row.painted(Paint::Plain) + "\n").collect::<String>()
    );
    insta::assert_snapshot!("tree_dot", dot_lines(&stage.live).join("\n"));
    let json: Vec<String> = stage.live.agents_json().map(|line| line.to_string()).collect();
    insta::assert_snapshot!("tree_json", json.join("\n"));
}

/// Thousands of agents: the important ones are shown with those above them, and the rest is counted.
#[test]
fn a_large_tree_is_folded_by_importance() {
    let budget = "budget: { cost_usd: 0.50, tokens: 200000, steps: 60, timeout: 5m }";
    let mut stage = ViewedTree::from_file(&FILE.replace(budget, "budget: { cost_usd: 5 }"));
    for wave in 0..40 {
        let spawns: Vec<(String, String)> = (0..16)
            .map(|at| {
                let args =
                    format!(r#"{{"agent":"researcher","id":"r{wave}-{at}","goal":"Look at {wave}/{at}."}}"#);
                ("spawn_agent".to_owned(), args)
            })
            .collect();
        let asks: Vec<(&str, &str)> =
            spawns.iter().map(|(tool, args)| (tool.as_str(), args.as_str())).collect();
        stage.after(10).done("lead", "", &asks);
        let last = if wave == 39 { 14 } else { 16 };
        for at in 0..last {
            stage.after(1).done(&format!("r{wave}-{at}"), "Nothing new.", &[]);
        }
    }
    assert_eq!(stage.live.agents.len(), 641);
    insta::assert_snapshot!("folded_80", stage.shown(80, 14));
}

/// Any tree at any size: nothing is wider or taller than the terminal, and nothing of it is acted on.
#[test]
fn no_random_tree_breaks_the_view() {
    for seed in 0..300 {
        let (mut live, mut trace) = (LiveTree::new(TREE), Trace::default());
        let mut now = Time(0);
        for batch in sim::batches(seed).unwrap() {
            now = batch.input.now;
            for event in &batch.events {
                let context = trace.take(now, event);
                live.take(now, event, context.agent.as_ref());
            }
        }
        for (width, height) in [(40, 5), (60, 20), (80, 24), (200, 50)] {
            let rows = view(
                &live,
                &Commands::new(Path::new("home"), TREE),
                Some(&(CallId(1), "typed\u{1b}[2J".repeat(30))),
                Size { width, height },
                now,
            );
            assert!(rows.len() <= height, "seed {seed}");
            for row in rows.iter().chain(&tree_lines(&live, Some(width), now)) {
                assert!(row.width() <= width, "seed {seed}: {}", row.text());
                assert!(!row.text().contains(is_hostile), "seed {seed}: {}", row.text());
            }
        }
    }
}

/// G16 (terminal, the live view): hostile text from a model, a tool or a person is inert in every line.
#[test]
fn g16_hostile_text_is_inert_in_the_live_view() {
    let hostile = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\r\u{202e}\u{2066}\u{200b}\n";
    let mut stage = ViewedTree::new();
    stage.delta("lead", DeltaKind::Text, &format!("SAID {hostile}"));
    let check = |stage: &ViewedTree, part: &str| {
        let shown = stage.shown(200, 20);
        assert!(shown.contains(part), "{shown}");
        assert!(!shown.contains(is_hostile), "{shown:?}");
    };
    check(&stage, "SAID \\u{1b}[2J");
    let goal =
        serde_json::json!({ "agent": "researcher", "id": "helper", "goal": format!("GOAL {hostile}") });
    let question = serde_json::json!({ "question": format!("WHICH {hostile}?") }).to_string();
    let args = serde_json::json!({ "at": format!("ASKED {hostile}") }).to_string();
    stage.done(
        "lead",
        hostile,
        &[
            ("spawn_agent", &goal.to_string()),
            ("ask_human", &question),
            (&format!("NOTOOL{hostile}"), "{}"),
            ("look", &args),
        ],
    );
    check(&stage, "WHICH \\u{1b}[2J");
    check(&stage, "ASKED ");
    check(&stage, "NOTOOL\\u{1b}[2J");
}

/// A pipeline: what is done, what runs now, and which step failed.
#[test]
fn the_steps_of_a_pipeline_are_counted() {
    let pipeline = "
pipeline:
  steps:
    - parallel:
        - { id: torch, agent_id: researcher, task_description: Research PyTorch., output_to: torch }
        - { id: jax, agent_id: researcher, task_description: Research JAX., output_to: jax, required: false }
    - { id: report, agent_id: lead, task_description: Write it., input_from: [torch], output_to: report }
";
    let mut stage = ViewedTree::from_file(&FILE.replace("entry: lead\n", pipeline));
    insta::assert_snapshot!("steps_started", stage.shown(80, 20));
    let agents: Vec<String> =
        stage.world.calls().all().map(|(_, call)| stage.world.agents().id(call.agent).to_string()).collect();
    let of = |step: &str| agents.iter().find(|agent| agent.contains(step)).unwrap().clone();
    let (call, used) = (stage.call(&of("jax")), Used::NOTHING);
    let fault = Fault { message: "no such key".to_owned(), ..Fault::new(FaultKind::Auth) };
    stage.after(500).input(InputKind::Report(Report::Failed(Failed { call, attempt: 1, fault, used })));
    stage.after(500).done(&of("torch"), "PyTorch.", &[]);
    insta::assert_snapshot!("steps_later", stage.shown(80, 20));
}

/// A pipeline that an agent runs has its own line with its steps by name and state, in the view, the listing
/// and the JSON, and stays apart from the tree's own steps.
#[test]
fn the_steps_of_a_nested_pipeline_are_named_with_their_states() {
    let pipeline = "
pipeline:
  steps:
    - { id: report, agent_id: lead, task_description: Write it., output_to: report }
    - { id: check, agent_id: researcher, task_description: Check it. }
";
    let file = FILE
        .replace("entry: lead\n", pipeline)
        .replace("tools: [spawn_agent", "tools: [write_context, run_pipeline");
    let file = format!("{file}shared: {{ plan: {{}} }}\n")
        .replace("tools: [look, ask_human]", "tools: [write_context]");
    let mut stage = ViewedTree::from_file(&file);
    let step =
        |id: &str| serde_json::json!({ "id": id, "agent_id": "researcher", "task_description": "Do it." });
    let (mut late, mut unwanted) = (step("late"), step("unwanted"));
    late["input_from"] = "shared.plan".into();
    (unwanted["when"], unwanted["required"]) = ("false".into(), false.into());
    let graph = serde_json::json!({
        "mode": "parallel",
        "on_partial_success": "continue",
        "steps": [step("torch"), step("jax"), step("flax"), unwanted, late],
    });
    stage.done("report", "", &[("run_pipeline", &graph.to_string())]);
    stage.after(500).done("torch", "PyTorch.", &[]);
    let (call, used) = (stage.call("jax"), Used::NOTHING);
    let fault = Fault { message: "no such key".to_owned(), ..Fault::new(FaultKind::Auth) };
    stage.input(InputKind::Report(Report::Failed(Failed { call, attempt: 1, fault, used })));
    insta::assert_snapshot!("nested_steps", stage.shown(100, 20));
    let json = stage.live.agents_json().find(|agent| agent["parent"] == "report").unwrap();
    insta::assert_snapshot!(json["pipeline"].to_string(), @"{\"planned\":5,\"succeeded\":1,\"failed\":1,\"skipped\":1,\"cancelled\":0,\"steps\":[{\"name\":\"torch\",\"state\":\"succeeded\"},{\"name\":\"jax\",\"state\":\"failed\"},{\"name\":\"flax\",\"state\":\"running\"},{\"name\":\"unwanted\",\"state\":\"skipped\"},{\"name\":\"late\",\"state\":\"waiting\"}],\"left_out\":0}");
}

/// G11 (the view): a halted tree says why, and has the command that raises the ceiling, even on a small terminal.
#[test]
fn g11_a_halted_tree_shows_the_command_that_raises_its_ceiling() {
    let budget = "budget: { cost_usd: 0.50, tokens: 200000, steps: 60, timeout: 5m }";
    let stage =
        ViewedTree::from_file(&FILE.replace(budget, "budget: { cost_usd: 0.00001, answer_reserve: 0 }"));
    assert!(stage.live.world().halted().is_some());
    insta::assert_snapshot!("halted_70", stage.shown(70, 20));
    insta::assert_snapshot!("halted_80", stage.shown(80, 5));
    insta::assert_snapshot!("halted_200", stage.shown(200, 20));
}

/// Who waits for budget says for how much of whose.
#[test]
fn an_agent_that_waits_for_budget_says_so() {
    let budget = "budget: { cost_usd: 0.50, tokens: 200000, steps: 60, timeout: 5m }";
    let mut stage =
        ViewedTree::from_file(&FILE.replace(budget, "budget: { tokens: 7000, answer_reserve: 0 }"));
    let spawn = |id: &str| format!(r#"{{"agent":"researcher","id":"{id}","goal":"Research {id}."}}"#);
    let asks: Vec<String> = ["one", "two", "three"].map(spawn).into();
    let asks: Vec<(&str, &str)> = asks.iter().map(|args| ("spawn_agent", args.as_str())).collect();
    stage.done("lead", "", &asks);
    let shown = stage.shown(100, 20);
    let waits = shown.lines().find(|line| line.contains("─$ "));
    assert!(
        waits.is_some_and(|line| line.contains("waits for") && line.contains("the budget of lead")),
        "{shown}"
    );
}
