//! A program that embeds a host runs trees whose agents are programs.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const TREE: &str = r#"
name: team
goal: Plant a wood.
budget: { cost_usd: 1 }
entry: lead
read: [scripts]
models: { fast: { provider: scripted, script: script.yaml, context: 100000, price: { input_per_mtok_usd: 0, output_per_mtok_usd: 0 } } }
agents:
  lead: { model: fast, tools: [spawn_agent] }
  coder: { program: [sh, ./scripts/say.sh, "{{ goal }}"] }
"#;
const SCRIPT: &str = "rules:
  - { when: { agent: lead, turn: 1 }, call: [{ tool: spawn_agent, args: { agent: coder, goal: Dig a hole. } }] }
  - { say: '{{ last }}' }
";

/// Runs the example in a folder, with what its user allows.
fn example(folder: &Path, allowed: &[String]) -> Output {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().and_then(Path::parent).unwrap().join("examples/team");
    let mut command = Command::new(program);
    command.arg("tree.yaml").args(allowed).current_dir(folder).env_clear();
    command.env("HOME", folder).env("PATH", "/usr/bin:/bin").env("ANTHROPIC_API_KEY", "sk-example");
    command.output().unwrap()
}

#[test]
fn a_host_runs_the_programs_of_its_trees() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir(root.join("scripts")).unwrap();
    fs::write(root.join("scripts/say.sh"), "echo \"done: $1\"\n").unwrap();
    fs::write(root.join("script.yaml"), SCRIPT).unwrap();
    fs::write(root.join("tree.yaml"), TREE).unwrap();
    let scripts = root.join("scripts").display().to_string();
    let allowed = [format!("read:{scripts}"), format!("program:sh {scripts}/say.sh {{{{ goal }}}}")];
    let ended = example(&root, &allowed);
    let shown =
        format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success() && shown.contains("done: Dig a hole."), "{shown}");
    let refused = example(&root, &allowed[..1]);
    let shown = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && shown.contains("start the program"), "{shown}");
}
