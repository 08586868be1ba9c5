//! The real Claude Code, Codex and opencode as agents of one tree, each in a box of its own, below a lead on a scripted model.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use spinney_kernel::budget::Usage;

use super::outside::{KEY, ended};
use super::peer::installed;
use crate::provider::{Answer, Pace, Provider, Question};
use crate::test_folder::{Ended, Playing, TestFolder};

const SCRIPT: &str = "rules:
  - when: { agent: lead, turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: coder, goal: Plant a wood. } }
      - { tool: spawn_agent, args: { agent: reviewer, goal: Look at the wood. } }
  - say: '{{ last }}'
";
const FOLLOWUPS: &str = "rules:
  - when: { agent: lead, turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: coder, id: first, goal: Plant a wood. } }
      - { tool: spawn_agent, args: { agent: reviewer, id: second, goal: Look at the wood. } }
  - when: { agent: lead, turn: 2 }
    call:
      - { tool: followup_task, args: { agent: first, task: Water it. } }
      - { tool: followup_task, args: { agent: second, task: Look again. } }
  - say: '{{ last }}'
";
const OPENCODE: &str = "rules:
  - { when: { agent: lead, turn: 1 }, call: [{ tool: spawn_agent, args: { agent: coder, id: first, goal: Plant a wood. } }] }
  - { when: { agent: lead, turn: 2 }, call: [{ tool: followup_task, args: { agent: first, task: Water it. } }] }
  - say: '{{ last }}'
";
const TREE: &str = "name: team
goal: Grow a wood.
budget: { cost_usd: 1.20 }
entry: lead
models: { fast: { provider: scripted, script: script.yaml, context: 100000, price: { input_per_mtok_usd: 0, output_per_mtok_usd: 0 } } }
agents:
  lead: { model: fast, tools: [spawn_agent, wait_agent] }
  coder: { program: claude, budget: { cost_usd: 0.50 } }
  reviewer: { program: codex, budget: { cost_usd: 0.50 } }
";
const PRICES: &str = "[prices.'claude-*']
input_per_mtok_usd = 1
output_per_mtok_usd = 2
[prices.'gpt-*']
input_per_mtok_usd = 1
output_per_mtok_usd = 2
";
/// A hundred tokens in and ten out.
const CALL_NANOS: u64 = 120_000;

/// Moments at which the process is killed: after so many of its events.
const KILLS: std::ops::Range<usize> = 3..23;

/// A tree with both programs, whose provider is scripted.
struct Wood {
    stage: TestFolder,
    provider: Provider,
    file: String,
}

impl Wood {
    fn new(tree: &str, script: impl Fn(&Question) -> Answer + Send + Sync + 'static) -> Self {
        Self::with_script(tree, SCRIPT, script)
    }

    /// With another lead.
    fn with_script(
        tree: &str,
        lead: &str,
        script: impl Fn(&Question) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let stage = TestFolder::new();
        fs::create_dir_all(stage.folder().join("user/config/spinney")).unwrap();
        stage.file("user/config/spinney/config.toml", PRICES);
        stage.file("script.yaml", lead);
        let file = stage.file("tree.yaml", tree);
        Self { stage, provider: Provider::new(script), file }
    }

    /// Runs or resumes the tree, with what its user allows.
    fn starts(&self, words: &[&str]) -> Playing {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spinney"));
        command.args(words).arg("--json");
        for program in ["claude", "codex", "opencode"] {
            command.args(["--allow-box", &format!("program:{program}")]);
        }
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", installed().display());
        command
            .env_clear()
            .envs(self.stage.user_folders())
            .env("HOME", self.stage.folder())
            .env("PATH", path);
        command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", &self.provider.url);
        command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", format!("{}/v1", self.provider.url));
        command.current_dir(self.stage.folder()).stdin(Stdio::null());
        TestFolder::started(command)
    }

    fn runs(&self) -> Playing {
        self.starts(&["run", &self.file])
    }

    fn billed(&self) -> u64 {
        self.provider.answered().len() as u64 * CALL_NANOS
    }

    fn events(&self, kind: &str) -> Vec<Value> {
        let all = self.stage.spinney(&["events", "last", "--json"]).json();
        all.into_iter().filter(|event| event["type"] == kind).collect()
    }

    /// How an agent of a role ended, what it spent, and how much of that is presumed.
    fn end(&self, role: &str) -> (String, u64, u64) {
        let ends = self.events("agent_ended");
        let of_role = |end: &&Value| end["agent"].as_str().unwrap().starts_with(role);
        let end = ends.iter().find(of_role).unwrap_or_else(|| panic!("{role}: {ends:?}"));
        let nanos = |key: &str| end[key]["cost_nanos"].as_u64().unwrap_or_default();
        (end["exit"]["state"].as_str().unwrap().to_owned(), nanos("spent"), nanos("presumed"))
    }
}

fn usage() -> Usage {
    Usage { input: 100, output: 10, ..Usage::default() }
}

fn green(_: &Question) -> Answer {
    Answer::says("The wood is green.", usage())
}

fn succeeded(ended: &Ended) {
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Whether a process runs whose home is in this folder.
fn runs_in(folder: &Path) -> bool {
    let folder = folder.display().to_string();
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let environments = processes.filter_map(|process| fs::read(process.path().join("environ")).ok());
    environments.into_iter().any(|environment| {
        let environment = String::from_utf8_lossy(&environment).into_owned();
        environment.split('\0').any(|variable| variable.starts_with(&format!("HOME={folder}")))
    })
}

/// G10, G29 (real programs inside a tree): both answer their lead, and the bill of each is exact to the nano-dollar.
#[test]
fn g29_claude_code_and_codex_are_agents_of_one_tree() {
    let wood = Wood::new(TREE, green);
    let ended = ended(wood.runs());
    succeeded(&ended);
    let result = ended.result();
    assert!(result["output"].as_str().unwrap().contains("The wood is green."), "{result}");
    assert!(wood.billed() >= 2 * CALL_NANOS);
    assert_eq!(result["spent"]["cost_nanos"], Value::from(wood.billed()), "{result}");
    let ((coder, of_coder, _), (reviewer, of_reviewer, _)) = (wood.end("coder"), wood.end("reviewer"));
    assert_eq!((coder.as_str(), reviewer.as_str()), ("completed", "completed"));
    assert_eq!(of_coder + of_reviewer, wood.billed());
    assert!(of_coder > 0 && of_reviewer > 0);
}

/// G29 (real programs): a follow-up of each continues in the session of the first, whose files were copied.
#[test]
fn g29_followups_of_claude_code_and_codex_continue_in_their_sessions() {
    let tree = TREE.replace("[spawn_agent, wait_agent]", "[spawn_agent, followup_task]");
    let wood = Wood::with_script(&tree, FOLLOWUPS, green);
    let ended = ended(wood.runs());
    succeeded(&ended);
    let started: Vec<Value> = wood.events("followup_started");
    assert_eq!(started.len(), 2, "{started:?}");
    assert!(started.iter().all(|event| event["start"]["session"].is_string()), "{started:?}");
    for (before, now) in [("Plant a wood.", "Water it."), ("Look at the wood.", "Look again.")] {
        let answered = wood.provider.answered();
        let knows = |(question, _): &&(Question, Answer)| question.has(before) && question.has(now);
        let (question, _) = answered.iter().find(knows).unwrap_or_else(|| panic!("{now}"));
        assert!(question.asked.body.to_string().contains("The wood is green."), "{now}: its own answer");
    }
    assert_eq!(ended.result()["spent"]["cost_nanos"], Value::from(wood.billed()));
}

/// G29 (real programs): opencode answers its lead at an exact bill. Its sessions are bound to their folders, so with a
/// follow-up it begins anew and is told what was said.
#[test]
fn g29_opencode_is_an_agent_of_a_tree() {
    let tree = TREE.replace("[spawn_agent, wait_agent]", "[spawn_agent, followup_task]");
    let tree = tree.replace("program: claude", "program: opencode").replace("  reviewer: {", "  unused: {");
    let wood = Wood::with_script(&tree, OPENCODE, green);
    let ended = ended(wood.runs());
    succeeded(&ended);
    let result = ended.result();
    assert!(result["output"].as_str().unwrap().contains("The wood is green."), "{result}");
    assert!(wood.billed() >= 2 * CALL_NANOS);
    assert_eq!(result["spent"]["cost_nanos"], Value::from(wood.billed()), "{result}");
    assert_eq!(wood.end("first").0, "completed");
    let started = wood.events("followup_started");
    assert_eq!(started.len(), 1, "{started:?}");
    assert_eq!(started[0]["start"]["anew"], "unsupported");
    let answered = wood.provider.answered();
    let last = answered.iter().find(|(question, _)| question.has("Water it.")).unwrap();
    assert!(last.0.has("Plant a wood.") && last.0.has("The wood is green."), "{:?}", last.0.users);
}

/// G11 (real programs): Claude Code waits at its own ceiling while Codex finishes, and a raise lets it finish.
#[test]
fn g11_one_real_program_waits_at_its_ceiling_while_the_other_finishes() {
    let tree = TREE.replace(
        "coder: { program: claude, budget: { cost_usd: 0.50 } }",
        "coder: { program: claude, budget: { cost_usd: 0.001 } }",
    );
    let wood = Wood::new(&tree, green);
    let mut playing = wood.runs();
    playing.until("\"why\":\"ceiling\"");
    // Codex may well be faster.
    while wood.events("agent_ended").is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(wood.end("reviewer").0, "completed");
    let spawned = wood.events("agent_spawned");
    let coder = spawned.iter().find(|event| event["role"] == "coder").unwrap();
    let raise = ["budget", "last", coder["agent"].as_str().unwrap(), "--add-usd", "0.5"];
    assert_eq!(wood.stage.spinney(&raise).code, Some(0));
    succeeded(&ended(playing));
    assert_eq!(wood.end("coder").0, "completed");
    assert_eq!(wood.end("lead").1, wood.billed());
    assert!(wood.events("tree_halted").is_empty());
}

/// O15 (real programs): cancelling the tree leaves nothing of them.
#[test]
fn o15_a_cancelled_tree_leaves_nothing_of_real_programs() {
    let wood = Wood::new(TREE, |question| Answer { pace: Pace::Late, ..green(question) });
    let playing = wood.runs();
    wood.provider.until("both ask", |exchanges| {
        let asked = |path: &str| exchanges.iter().any(|exchange| exchange.asked.head.contains(path));
        asked("/messages") && asked("/responses")
    });
    assert!(runs_in(&wood.stage.folder().join(".spinney")));
    assert_eq!(wood.stage.spinney(&["cancel", "last"]).code, Some(0));
    assert_eq!(ended(playing).code, Some(4));
    assert!(!runs_in(&wood.stage.folder().join(".spinney")));
    wood.provider.release();
}

/// G29 (real programs): killed at twenty moments and resumed, everything is booked once, no program is started a second
/// time, and one that named its session finishes in it.
#[test]
fn g29_real_programs_survive_twenty_kills() {
    let mut continued = 0;
    for kill in KILLS {
        let wood = Wood::new(TREE, green);
        let mut playing = wood.runs();
        for _ in 0..kill {
            if playing.line().is_none() {
                break;
            }
        }
        playing.kill();
        let ended = ended(wood.starts(&["resume", "last"]));
        succeeded(&ended);
        let programs =
            wood.events("call_asked").iter().filter(|event| event["work"]["is_program"] == true).count();
        assert!(programs <= 2, "after {kill} events: {programs} programs");
        let (_, spent, presumed) = wood.end("lead");
        let billed = wood.billed();
        assert!(spent >= billed && spent - presumed <= billed, "{kill}: {spent} {presumed} {billed}");
        assert_eq!(wood.stage.spinney(&["replay", "last", "--verify"]).code, Some(0), "after {kill} events");
        continued += usize::from(!wood.events("call_resumed").is_empty());
        assert!(!runs_in(&wood.stage.folder().join(".spinney")), "after {kill} events");
    }
    assert!(continued > 0, "no kill came while a program had named its session");
}
