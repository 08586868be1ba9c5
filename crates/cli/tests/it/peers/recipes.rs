//! The recipes of `docs/exec.md` with the real programs, as far as they are installed here: none of them is a peer that
//! `peers/install` brings, because each brings some hundred megabytes. `npm install --global` does.

use std::path::Path;
use std::process::Command;

use spinney_kernel::budget::Usage;

use crate::exec_recipes::{recipes, run};
use crate::exec_refused::last_line;
use crate::provider::{Answer, Provider};
use crate::test_folder::TestFolder;

fn is_installed(program: &str) -> bool {
    // Node alone does not run Mastra.
    let line = match program {
        "node" => "node --input-type=module --eval 'import \"@mastra/core/agent\"'".to_owned(),
        program => format!("command -v {program}"),
    };
    Command::new("sh").args(["-c", &line]).output().unwrap().status.success()
}

#[test]
fn each_recipe_leads_the_real_program_to_the_gateway() {
    let provider = Provider::new(|_| {
        let usage = Usage { input: 100, output: 10, ..Usage::default() };
        Answer::says("Nothing to fix.", usage)
    });
    let open_ai = format!("{}/v1", provider.url);
    let stage = TestFolder::new();
    let home = stage.folder().join("user").display().to_string();
    for recipe in recipes(stage.folder()) {
        if !is_installed(recipe.program) {
            eprintln!("{} is not installed: its recipe is not run", recipe.program);
            continue;
        }
        let environment = [
            ("HOME", home.as_str()),
            ("ANTHROPIC_API_KEY", "sk-1"),
            ("ANTHROPIC_BASE_URL", provider.url.as_str()),
            ("OPENAI_API_KEY", "sk-2"),
            ("OPENAI_BASE_URL", open_ai.as_str()),
            ("GEMINI_API_KEY", "sk-3"),
            ("GOOGLE_GEMINI_BASE_URL", provider.url.as_str()),
        ];
        let ended = run(&stage, &recipe, Path::new("/nowhere"), &environment);
        let result = last_line(&ended);
        assert!(result["requests"].as_u64() > Some(0), "{}: {} {}", recipe.program, ended.out, ended.err);
    }
}
