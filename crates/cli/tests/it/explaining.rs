//! `--explain`: every option with its value and its source, and nothing is started.

use crate::configuration::{configure, placed};
use crate::test_folder::TestFolder;

const KEY: &str = "sk-nobody-may-see-this-0123456789";

const TREE: &str = "
name: explained
goal: Write about {{ inputs.topic }}.
inputs: { topic: { default: owls }, tone: { env: TEST_TONE }, length: { type: json, default: { pages: 3 } }, ages: { type: json } }
budget: { tokens: 1000, timeout: { wall: 5m } }
models:
  fast: { provider: openai, model: gpt-4.1 }
  own: { provider: openai_compatible, model: tiny, base_url: 'http://127.0.0.1:1/v1', key_env: TEST_OWN_KEY }
  played: { provider: scripted, script: s.yaml, price: { input_per_mtok_usd: 1, output_per_mtok_usd: 2 } }
  other: { provider: anthropic, model: claude-x, script: s.yaml }
agents:
  lead: { model: fast, tools: [spawn_agent], subagents: [a, b, c] }
  a: { model: own }
  b: { model: played }
  c: { model: other }
entry: lead
";

/// A user with every setting, a project that lowers, and keys in the environment and in a file.
fn stage() -> TestFolder {
    let stage = TestFolder::stranger();
    stage.file("tree.yaml", TREE);
    stage.file("s.yaml", "rules: [ { say: done } ]");
    let keys = stage.file(
        "keys.env",
        &format!("TEST_OWN_KEY={KEY}\nOPENAI_BASE_URL='https://u:{KEY}@own.example:8443/v1?k={KEY}'\n"),
    );
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&keys, private).unwrap();
    configure(
        &stage,
        &format!(
            "allow_hosts = ['127.0.0.1:1']\nnotify = ['true']\nenv_files = ['{keys}']\non_low = 'shrink'\n\
             [budget]\ncost_usd = 5\nsteps = 50\n[prices.tiny]\ninput_per_mtok_usd = 0.1\noutput_per_mtok_usd = 0.2\n\
             [[allow_field]]\nprogram = 'bash'\nname = 'tool:x'\n"
        ),
    );
    stage.file("spinney.yaml", "budget: { steps: 20 }\n");
    stage
}

fn told(stage: &TestFolder, args: &[&str]) -> String {
    let environment = [
        ("OPENAI_API_KEY", KEY),
        ("ANTHROPIC_AUTH_TOKEN", KEY),
        ("TEST_TONE", KEY),
        ("SPINNEY_HOME", "elsewhere"),
    ];
    let ended = stage.play_in(args, &environment).end();
    assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.err);
    assert!(!ended.out.contains(KEY) && !ended.err.contains(KEY), "{}{}", ended.out, ended.err);
    assert!(!stage.folder().join("elsewhere").exists(), "nothing was started");
    placed(stage, &ended.out)
}

#[test]
fn every_option_of_a_tree_has_its_value_and_its_source() {
    let stage = stage();
    let told_by_run = told(&stage, &["run", "tree.yaml", "--explain", "--set", "topic=bees"]);
    insta::assert_snapshot!(told_by_run, @r#"
    OPTION  VALUE  FROM
    home  elsewhere  environment SPINNEY_HOME
    file  tree.yaml  command line
    goal  Write about {{ inputs.topic }}.  tree.yaml
    input ages  –  default
    input length  {"pages":3}  tree.yaml
    input tone  set  environment TEST_TONE
    input topic  bees  command line
    budget.cost_usd  5  config.toml
    budget.tokens  1000  tree.yaml
    budget.steps  20  spinney.yaml
    budget.timeout  5m, also while it waits  tree.yaml
    budget.tool_calls  –  default
    budget.retries  –  default
    on_low  shrink  config.toml
    model fast  openai gpt-4.1  tree.yaml
    price of fast  2,8,0.5  price table
    model own  openai_compatible tiny  tree.yaml
    price of own  0.1,0.2  config.toml
    model played  scripted s.yaml  tree.yaml
    price of played  1,2  tree.yaml
    model other  scripted s.yaml, without a key  tree.yaml
    price of other  –  default
    ANTHROPIC_API_KEY  –  default
    OPENAI_API_KEY  set  environment OPENAI_API_KEY
    TEST_OWN_KEY  set  [folder]/keys.env
    ANTHROPIC_BASE_URL  –  default
    OPENAI_BASE_URL  own.example:8443  [folder]/keys.env
    allow_outside  –  default
    allow_hosts  127.0.0.1:1  config.toml
    notify  true  config.toml
    env_files  [folder]/keys.env  config.toml
    redact_env  –  default
    configuration  [folder]/user/config/spinney/config.toml  environment XDG_CONFIG_HOME
    project  [folder]/spinney.yaml  default
    "#);
    assert_eq!(told(&stage, &["check", "tree.yaml", "--explain", "--set", "topic=bees"]), told_by_run);
    let line = told(&stage, &["run", "tree.yaml", "--explain", "--json"]);
    assert!(line.starts_with(r#"{"type":"explain","options":[{"option":"home","value":"elsewhere","from":"environment SPINNEY_HOME"}"#), "{line}");
    assert_eq!(line.lines().count(), 1);
}

#[test]
fn every_option_of_a_program_has_its_value_and_its_source() {
    let stage = stage();
    let args = [
        "exec",
        "--explain",
        "--price",
        "m=1,2",
        "--on-limit",
        "stop",
        "--allow-field",
        "beta:y",
        "--",
        "bash",
        "-c",
        "touch ran",
    ];
    insta::assert_snapshot!(told(&stage, &args), @r"
    OPTION  VALUE  FROM
    home  elsewhere  environment SPINNEY_HOME
    program  bash  command line
    budget.cost_usd  5  config.toml
    child_budget_usd  –  default
    max_agents  –  default
    budget.tokens  –  default
    budget.steps  20  spinney.yaml
    budget.timeout  –  default
    max_parallel  –  default
    on_low  shrink  config.toml
    on_limit  stop  command line
    halt_wait  –  default
    tell_remaining  no  default
    models  all  default
    price of m  1,2  command line
    price of tiny  0.1,0.2  config.toml
    prices_of  –  default
    allow_field  beta:y  command line
    allow_field  tool:x  config.toml
    bodies  kept  default
    listen  –  default
    other_keys  visible  default
    box  –  default
    ANTHROPIC_API_KEY  –  default
    ANTHROPIC_AUTH_TOKEN  set  environment ANTHROPIC_AUTH_TOKEN
    ANTHROPIC_BASE_URL  –  default
    OPENAI_API_KEY  set  environment OPENAI_API_KEY
    CODEX_API_KEY  –  default
    OPENAI_BASE_URL  own.example:8443  [folder]/keys.env
    GEMINI_API_KEY  –  default
    GOOGLE_API_KEY  –  default
    GOOGLE_GEMINI_BASE_URL  –  default
    allow_hosts  127.0.0.1:1  config.toml
    notify  true  config.toml
    env_files  [folder]/keys.env  config.toml
    redact_env  –  default
    configuration  [folder]/user/config/spinney/config.toml  environment XDG_CONFIG_HOME
    project  [folder]/spinney.yaml  default
    ");
    insta::assert_snapshot!(told(&stage, &["--home", "here", "exec", "--explain", "--timeout", "90s", "--no-bodies", "--hide-keys", "--", "./bash"]), @r"
    OPTION  VALUE  FROM
    home  here  command line
    program  ./bash  command line
    budget.cost_usd  5  config.toml
    child_budget_usd  –  default
    max_agents  –  default
    budget.tokens  –  default
    budget.steps  20  spinney.yaml
    budget.timeout  90s  command line
    max_parallel  –  default
    on_low  shrink  config.toml
    on_limit  wait  default
    halt_wait  10m  default
    tell_remaining  no  default
    models  all  default
    price of tiny  0.1,0.2  config.toml
    prices_of  –  default
    allow_field  –  default
    bodies  dropped  command line
    listen  –  default
    other_keys  hidden  command line
    box  –  default
    ANTHROPIC_API_KEY  –  default
    ANTHROPIC_AUTH_TOKEN  set  environment ANTHROPIC_AUTH_TOKEN
    ANTHROPIC_BASE_URL  –  default
    OPENAI_API_KEY  set  environment OPENAI_API_KEY
    CODEX_API_KEY  –  default
    OPENAI_BASE_URL  own.example:8443  [folder]/keys.env
    GEMINI_API_KEY  –  default
    GOOGLE_API_KEY  –  default
    GOOGLE_GEMINI_BASE_URL  –  default
    allow_hosts  127.0.0.1:1  config.toml
    notify  true  config.toml
    env_files  [folder]/keys.env  config.toml
    redact_env  –  default
    configuration  [folder]/user/config/spinney/config.toml  environment XDG_CONFIG_HOME
    project  [folder]/spinney.yaml  default
    ");
    assert!(!stage.folder().join("ran").exists());
}

#[test]
fn a_file_that_cannot_be_run_is_not_explained() {
    let stage = TestFolder::stranger();
    stage.file("tree.yaml", &TREE.replace("agents:", "agent:"));
    stage.file("s.yaml", "rules: [ { say: done } ]");
    for command in ["run", "check"] {
        let ended = stage.spinney(&[command, "tree.yaml", "--explain"]);
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{}", ended.err);
        assert!(ended.err.contains("unknown key `agent`: did you mean `agents`?"), "{}", ended.err);
    }
    let ended = stage.spinney(&["exec", "--explain", "--resume", "last"]);
    assert_eq!(ended.code, Some(2), "{}", ended.err);
}
