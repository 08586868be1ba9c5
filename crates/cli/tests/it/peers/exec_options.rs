//! What people allow a program, as Claude Code and Codex take it.

use serde_json::json;

use super::exec::{assert_bill, exec};
use super::outside::{DONE, Program, ended};
use crate::provider::{Exchange, Provider};
use crate::stage::Stage;

#[test]
fn a_real_program_shows_that_its_model_is_not_allowed() {
    for program in Program::ALL {
        let (stage, provider) = (Stage::new(), Provider::new(move |question| program.answer(question)));
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

/// An address or a login in the program's own configuration does not lead it past the gateway.
#[test]
fn the_configuration_of_a_real_program_does_not_lead_past_the_gateway() {
    const ELSEWHERE: &str = "http://127.0.0.1:9";
    for program in Program::ALL {
        let (stage, provider) = (Stage::new(), Provider::new(move |question| program.answer(question)));
        let write = |folder: &str, name: &str, text: String| {
            let folder = stage.folder().join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(name), text).unwrap();
        };
        match program {
            Program::ClaudeCode => {
                let settings =
                    json!({ "env": { "ANTHROPIC_BASE_URL": ELSEWHERE, "ANTHROPIC_API_KEY": "sk-stored" } });
                write(".claude", "settings.json", settings.to_string());
            }
            Program::Codex => {
                let other = format!("name = \"other\"\nbase_url = \"{ELSEWHERE}/v1\"\n");
                write(
                    ".codex",
                    "config.toml",
                    format!("model_provider = \"other\"\n[model_providers.other]\n{other}"),
                );
                let login = json!({ "auth_mode": "apikey", "OPENAI_API_KEY": "sk-stored" });
                write(".codex", "auth.json", login.to_string());
            }
        }
        let ended = ended(exec(&stage, program, &provider, &["--budget-usd", "20"]));
        assert_eq!(ended.code, Some(0), "{program:?} {ended:?}");
        assert_bill(program, &provider, &stage.spinney(&["events", "last", "--json"]).json());
        let told = |exchange: &Exchange| exchange.asked.head.contains("sk-stored");
        assert!(
            !provider.exchanges().iter().any(told),
            "{program:?}: only the key of the user's environment goes up"
        );
    }
}

/// A call that does not fit with its own cap gets a smaller one, and the program goes on.
#[test]
fn a_real_program_finishes_with_smaller_caps() {
    for program in Program::ALL {
        let (stage, provider) = (Stage::new(), Provider::new(move |question| program.answer(question)));
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
