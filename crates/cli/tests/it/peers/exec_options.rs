//! What people allow a program, as Claude Code and Codex take it.

use serde_json::json;
use spinney_kernel::budget::Usage;

use super::exec::{assert_bill, exec, exec_with};
use super::outside::{DONE, Program, ended, play};
use crate::provider::{Answer, Exchange, Provider};
use crate::test_folder::TestFolder;

#[test]
fn a_real_program_shows_that_its_model_is_not_allowed() {
    for program in Program::ALL {
        let (stage, provider) = (TestFolder::new(), Provider::new(move |question| program.answer(question)));
        let options = ["--budget-usd", "20", "--models", "gpt-5-nano,claude-haiku-*"];
        let ended = ended(exec(&stage, program, &provider, &options));
        let screen = format!("{}{}", ended.out, ended.err);
        assert!(
            screen.contains(&format!("model {} is not allowed", program.model())),
            "{program:?} {ended:?}"
        );
        assert_eq!((ended.code, provider.answered().len()), (Some(1), 0), "{program:?} {ended:?}");
    }
}

const ELSEWHERE: &str = "http://127.0.0.1:9";
const STORED: &str = "sk-stored";

/// Settings of Claude Code that lead everywhere but to its environment's address.
fn claude_settings() -> String {
    let environment = json!({
        "ANTHROPIC_BASE_URL": ELSEWHERE, "ANTHROPIC_API_KEY": STORED, "ANTHROPIC_AUTH_TOKEN": STORED,
        "CLAUDE_CODE_USE_BEDROCK": "1", "ANTHROPIC_BEDROCK_BASE_URL": ELSEWHERE, "AWS_BEARER_TOKEN_BEDROCK": STORED,
        "CLAUDE_CODE_USE_VERTEX": "1", "ANTHROPIC_VERTEX_BASE_URL": ELSEWHERE,
        "CLAUDE_CODE_USE_FOUNDRY": "1", "ANTHROPIC_FOUNDRY_BASE_URL": ELSEWHERE,
    });
    json!({ "env": environment }).to_string()
}

fn other_provider() -> String {
    format!("[model_providers.other]\nname = \"other\"\nbase_url = \"{ELSEWHERE}/v1\"\n")
}

/// An address, a provider or a login in the program's own configuration does not lead it past the gateway.
#[test]
fn the_configuration_of_a_real_program_does_not_lead_past_the_gateway() {
    for program in Program::ALL {
        let login = json!({ "auth_mode": "apikey", "OPENAI_API_KEY": STORED }).to_string();
        let config = format!("model_provider = \"other\"\n{}", other_provider());
        let files = match program {
            Program::ClaudeCode => vec![(".claude/settings.json", claude_settings())],
            Program::Codex => vec![(".codex/config.toml", config), (".codex/auth.json", login)],
        };
        assert_not_led_past(program, &files, &[]);
    }
}

/// The same for configuration that the user names.
#[test]
fn the_configuration_that_a_real_program_is_given_does_not_lead_past_the_gateway() {
    let settings = [("mine.json", claude_settings())];
    assert_not_led_past(Program::ClaudeCode, &settings, &["--settings", "mine.json"]);
    assert_not_led_past(Program::ClaudeCode, &[], &["--settings", &claude_settings()]);
    let profile = [
        (".codex/config.toml", other_provider()),
        (".codex/work.config.toml", "model_provider = \"other\"\n".to_owned()),
    ];
    assert_not_led_past(Program::Codex, &profile, &["--profile", "work"]);
}

fn assert_not_led_past(program: Program, files: &[(&str, String)], more: &[&str]) {
    let (stage, provider) = (TestFolder::new(), Provider::new(move |question| program.answer(question)));
    for (name, text) in files {
        let path = stage.folder().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let ended = ended(exec_with(&stage, program, &provider, &["--budget-usd", "20"], more));
    assert_eq!(ended.code, Some(0), "{program:?} {ended:?}");
    assert_bill(program, &provider, &stage.spinney(&["events", "last", "--json"]).json());
    let told = |exchange: &Exchange| exchange.asked.head.contains(STORED);
    assert!(
        !provider.exchanges().iter().any(told),
        "{program:?}: only the key of the user's environment goes up"
    );
}

/// A call that does not fit with its own cap gets a smaller one, and the program continues.
#[test]
fn a_real_program_finishes_with_smaller_caps() {
    for program in Program::ALL {
        let (stage, provider) = (TestFolder::new(), Provider::new(move |question| program.answer(question)));
        let ceiling = match program {
            Program::ClaudeCode => "0.80",
            Program::Codex => "0.40",
        };
        let options = ["--budget-usd", ceiling, "--on-low", "shrink"];
        let ended = ended(exec(&stage, program, &provider, &options));
        assert_eq!(ended.code, Some(0), "{program:?} {ended:?}");
        assert!(ended.out.contains(DONE), "{program:?} {ended:?}");
        let answered = provider.answered();
        let caps = answered.iter().map(|(question, _)| {
            let body = &question.asked.body;
            let cap = body["max_tokens"].as_u64().or(body["max_output_tokens"].as_u64()).unwrap();
            if program == Program::ClaudeCode {
                assert!(body["thinking"]["budget_tokens"].as_u64().unwrap() < cap, "{}", body["thinking"]);
            }
            cap
        });
        let caps: Vec<u64> = caps.collect();
        assert!(
            caps.iter().all(|&cap| (1_024..=32_000).contains(&cap)) && caps[0] < 32_000,
            "{program:?} {caps:?}"
        );
        assert_bill(program, &provider, &stage.spinney(&["events", "last", "--json"]).json());
    }
}

/// Codex compacts its context with a call like any other: it has an output cap and is on the bill, and the program continues
/// with what it got.
#[test]
fn the_compaction_of_codex_is_a_call_on_the_bill() {
    const SUMMARY: &str = "YSBzdW1tYXJ5";
    let program = Program::Codex;
    let (stage, provider) = (
        TestFolder::new(),
        Provider::new(move |question| {
            let used = |input, output| Usage { input, output, ..Usage::default() };
            if question.is_compaction() {
                Answer::says(SUMMARY, used(20_011, 97))
            } else if question.asked.text.contains(SUMMARY) {
                Answer::says(DONE, used(7_001, 31))
            } else {
                program.runs(Answer::says("It looks around.", used(20_003, 53)), "echo here")
            }
        }),
    );
    let more = ["-c", "model_auto_compact_token_limit=10000"];
    let ended = ended(exec_with(&stage, program, &provider, &["--budget-usd", "5"], &more));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains(DONE), "{ended:?}");
    let answered = provider.answered();
    let compactions = answered.iter().filter(|(question, _)| question.is_compaction());
    let caps: Vec<_> =
        compactions.map(|(question, _)| question.asked.body["max_output_tokens"].as_u64()).collect();
    assert_eq!((answered.len(), caps), (3, vec![Some(32_000)]));
    assert_bill(program, &provider, &stage.spinney(&["events", "last", "--json"]).json());
}

/// With other models than its default Codex offers the web search of the provider, which the gateway refuses. `exec` turns it
/// off, unless the user asks for it.
#[test]
fn codex_completes_with_another_model_than_its_default() {
    let program = Program::Codex;
    let run = |more: &[&str]| {
        let stage = TestFolder::new();
        let provider = Provider::new(|_| {
            let usage = Usage { input: 5_003, output: 31, ..Usage::default() };
            Answer::says(DONE, usage)
        });
        let start =
            [env!("CARGO_BIN_EXE_spinney"), "exec", "--prices-of", "openai", "--budget-usd", "20", "--"];
        let words = start.into_iter().map(str::to_owned).chain(program.words());
        let words = words.map(|word| if word == program.model() { "gpt-5".to_owned() } else { word });
        let words: Vec<String> = words.chain(more.iter().map(|&word| word.to_owned())).collect();
        (ended(play(&stage, &words, &program.environment(&stage, &provider))), provider.answered())
    };
    let (ended, answered) = run(&[]);
    assert_eq!((ended.code, answered.len()), (Some(0), 1), "{ended:?}");
    let searches = |tool: &serde_json::Value| tool["type"].as_str().unwrap().starts_with("web_search");
    let tools = answered[0].0.asked.body["tools"].as_array().unwrap();
    assert!(!tools.iter().any(searches), "{tools:?}");
    let (asked, answered) = run(&["-c", "web_search=\"live\""]);
    assert_eq!(answered.len(), 0, "{asked:?}");
    assert!(format!("{}{}", asked.out, asked.err).contains("web_search"), "{asked:?}");
}
