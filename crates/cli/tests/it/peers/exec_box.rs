//! The real Claude Code and Codex in a box (`spinney exec --box`): each edits a file and runs a command in its folder, and
//! sees nothing else of its user.

use std::fs;
use std::path::PathBuf;

use spinney_kernel::budget::Usage;

use super::outside::{DONE, Program, TASK, ended};
use super::peer::installed;
use crate::provider::{Answer, Provider, Question};
use crate::pty::Pty;
use crate::test_folder::TestFolder;

/// What their model lets them run: it leaves what it found in a file.
const COMMAND: &str = "echo green > wood.txt; (cat ~/.bashrc || echo no secret) >> wood.txt 2>&1; (echo evil > .git/hooks/pre-commit) >> wood.txt 2>&1; echo ran";

/// A user with a secret in the home folder, and a project in there.
fn project(stage: &TestFolder) -> PathBuf {
    let project = stage.folder().join("project");
    fs::create_dir_all(project.join(".git/hooks")).unwrap();
    fs::write(stage.folder().join(".bashrc"), "the secret\n").unwrap();
    project
}

fn words(program: Program, is_interactive: bool) -> Vec<String> {
    let (name, prices, words): (_, _, &[&str]) = match (program, is_interactive) {
        (Program::ClaudeCode, false) => {
            ("claude", "anthropic", &["-p", TASK, "--model", "claude-sonnet-4-5", "--allowedTools", "Bash"])
        }
        (Program::ClaudeCode, true) => {
            ("claude", "anthropic", &[TASK, "--model", "claude-sonnet-4-5", "--allowedTools", "Bash"])
        }
        (Program::Codex, false) => {
            ("codex", "openai", &["exec", "--skip-git-repo-check", "-m", "gpt-6.1-sol", TASK])
        }
        (Program::Codex, true) => ("codex", "openai", &["-a", "never", "-m", "gpt-6.1-sol", TASK]),
    };
    let start = ["exec", "--box", "--budget-usd", "20", "--prices-of", prices, "--"].map(str::to_owned);
    let program = installed().join(name).display().to_string();
    start.into_iter().chain([program]).chain(words.iter().map(|&word| word.to_owned())).collect()
}

fn answer(program: Program, question: &Question) -> Answer {
    let usage = Usage { input: 100, output: 10, ..Usage::default() };
    if !question.has(TASK) || !question.results.is_empty() {
        return Answer::says(DONE, usage);
    }
    program.runs(Answer::says("I look.", usage), COMMAND)
}

fn assert_worked(program: Program, project: &std::path::Path, shown: &str) {
    let left =
        fs::read_to_string(project.join("wood.txt")).unwrap_or_else(|_| panic!("{program:?}: {shown}"));
    assert!(left.starts_with("green\n"), "{program:?}: {left} {shown}");
    assert!(left.contains("no secret") && left.contains("Read-only"), "{program:?}: {left} {shown}");
    assert!(!project.join(".git/hooks/pre-commit").exists());
}

#[test]
fn a_real_program_edits_a_file_and_runs_a_command_in_a_box() {
    for program in Program::ALL {
        let stage = TestFolder::new();
        let project = project(&stage);
        let provider = Provider::new(move |question| answer(program, question));
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_spinney"));
        command.args(words(program, false)).env_clear().envs(program.environment(&stage, &provider));
        command.current_dir(&project).stdin(std::process::Stdio::null());
        let ended = ended(TestFolder::started(command));
        assert_eq!(ended.code, Some(0), "{program:?} {ended:?}");
        assert!(ended.out.contains(DONE), "{program:?} {ended:?}");
        assert_worked(program, &project, &ended.err);
    }
}

#[test]
fn a_real_program_does_the_same_at_a_terminal() {
    for program in Program::ALL {
        let stage = TestFolder::new();
        let project = project(&stage);
        accept_questions(&stage, program, &project);
        let provider = Provider::new(move |question| answer(program, question));
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_spinney"));
        command.args(words(program, true)).env_clear().envs(program.environment(&stage, &provider));
        command.env("TERM", "xterm-256color").current_dir(&project);
        let mut terminal = Pty::start(&command, 120, 40);
        let wood = project.join("wood.txt");
        let has_run = |_: &str| fs::read_to_string(&wood).is_ok_and(|left| left.contains("Read-only"));
        let shown = terminal.answers_until(has_run);
        assert_worked(program, &project, &shown);
        // Closing the terminal ends it, as it does outside.
        assert_eq!(terminal.close(), Some(130), "{program:?}");
    }
}

/// What a user has answered before: whether the folder is trusted, and how it looks.
fn accept_questions(stage: &TestFolder, program: Program, project: &std::path::Path) {
    match program {
        Program::ClaudeCode => {
            let settings = serde_json::json!({
                "hasCompletedOnboarding": true, "theme": "dark",
                "projects": { project.display().to_string(): { "hasTrustDialogAccepted": true } },
            });
            fs::write(stage.folder().join(".claude.json"), settings.to_string()).unwrap();
        }
        Program::Codex => {
            let trusted =
                format!("[projects.{:?}]\ntrust_level = \"trusted\"\n", project.display().to_string());
            fs::create_dir_all(stage.folder().join(".codex")).unwrap();
            fs::write(stage.folder().join(".codex/config.toml"), trusted).unwrap();
        }
    }
}
