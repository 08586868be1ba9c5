//! The real Claude Code and Codex as agents of one tree, each in a box of its own, below a lead on a scripted model.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;
use spinney_kernel::budget::Usage;

use super::outside::{KEY, ended};
use super::peer::installed;
use crate::provider::{Answer, Provider};
use crate::test_folder::TestFolder;

const SCRIPT: &str = "rules:
  - when: { agent: lead, turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: coder, goal: Plant a wood. } }
      - { tool: spawn_agent, args: { agent: reviewer, goal: Look at the wood. } }
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

/// G10, G29 (real programs inside a tree): both answer their lead, and the bill of each is exact to the nano-dollar.
#[test]
fn g29_claude_code_and_codex_are_agents_of_one_tree() {
    let usage = || Usage { input: 100, output: 10, ..Usage::default() };
    let provider = Provider::new(move |_| Answer::says("The wood is green.", usage()));
    let stage = TestFolder::new();
    fs::create_dir_all(stage.folder().join("user/config/spinney")).unwrap();
    stage.file("user/config/spinney/config.toml", PRICES);
    stage.file("script.yaml", SCRIPT);
    let file = stage.file("tree.yaml", TREE);
    let mut command = Command::new(env!("CARGO_BIN_EXE_spinney"));
    command.args(["run", &file, "--json", "--allow-box", "program:claude", "--allow-box", "program:codex"]);
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", installed().display());
    command.env_clear().envs(stage.user_folders()).env("HOME", stage.folder()).env("PATH", path);
    command.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", &provider.url);
    command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", format!("{}/v1", provider.url));
    command.current_dir(stage.folder()).stdin(Stdio::null());
    let ended = ended(TestFolder::started(command));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let result = ended.result();
    assert!(result["output"].as_str().unwrap().contains("The wood is green."), "{result}");
    let calls = provider.answered().len() as u64;
    assert!(calls >= 2, "{calls}");
    assert_eq!(result["spent"]["cost_nanos"], Value::from(calls * CALL_NANOS), "{result}");
    let ends: Vec<Value> = ended.json().into_iter().filter(|event| event["type"] == "agent_ended").collect();
    let of = |role: &str| {
        let end = ends.iter().find(|end| end["agent"].as_str().unwrap().starts_with(role)).unwrap();
        assert_eq!(end["exit"]["state"], "completed", "{end}");
        end["spent"]["cost_nanos"].as_u64().unwrap()
    };
    assert_eq!(of("coder") + of("reviewer"), calls * CALL_NANOS);
    assert!(of("coder") > 0 && of("reviewer") > 0);
}
