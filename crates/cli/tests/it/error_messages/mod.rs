//! Every error message that a person can cause, on the real binary: the command line, standard error and the exit code, one
//! snapshot for each state of a home. A change of a text shows up here, and is read before it is accepted.
//!
//! Other files of this crate and its neighbours hold the rest, word for word: what is wrong with a tree file
//! (`tree_file_errors.rs`, `tree_file_inputs.rs` and `graph_files.rs` of the runtime, `checking.rs` here) or a script
//! (`bad_script.rs` of the drivers), what a call of a provider says (`providers.rs`, `doctor.rs`), what a file cannot be
//! sent for (`sending.rs`), and what a program of `exec` is answered (the gateway's tests in the server).
//!
//! These cannot be caused from a command line and are not tested here:
//! - invariants: a reply to another request, an account that does not sum up, a graph or a list that does not fit
//!   together, a tree without a root, a bug of ours (`please report it`);
//! - faults of the machine: no room on the disk, a disk that fails while a journal or a workspace is written, no random
//!   numbers, no address to listen on, no thread to start (`read_only.rs` and `lost_commits.rs` play some of them);
//! - races: another writer of the same tree, a journal that is replaced or a process that exits in the middle of a
//!   request (`steering.rs`, `chaos.rs`), a tree that grows faster than it is verified;
//! - refusals that only agents meet: they are results of tools, and `show` prints them (the kernel's tests have them).

mod exec;
mod files;
mod homes;
mod steering;
mod usage;

use std::path::Path;
use std::process::Command;

use crate::test_folder::{Ended, NO_SERVER, TestFolder, steady};

/// What each command line prints when it fails. They are typed into a shell, one after the other.
fn told(stage: &TestFolder, lines: &[&str]) -> String {
    lines.iter().map(|line| told_by(stage, line)).collect::<Vec<_>>().join("\n")
}

fn told_by(stage: &TestFolder, line: &str) -> String {
    let Ended { code, out, err } = typed(stage, line);
    // What this machine enforces is not the same everywhere.
    let out: String =
        out.split_inclusive('\n').filter(|line| line.split_whitespace().nth(1) != Some("box")).collect();
    assert_ne!(code, Some(0), "{line} is no error:\n{out}{err}");
    let code = code.unwrap();
    format!("$ {line}\n{}{}[exit {code}]\n", shown(stage, &out), shown(stage, &err))
}

/// Runs a command line that must do what it says.
fn done(stage: &TestFolder, line: &str) {
    let ended = typed(stage, line);
    assert_eq!(ended.code, Some(0), "{line}\n{}{}", ended.out, ended.err);
}

/// Every home of the table is in the folder, so the shell's own folder is part of it.
fn typed(stage: &TestFolder, line: &str) -> Ended {
    let binary = Path::new(env!("CARGO_BIN_EXE_spinney")).parent().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"PATH="$1:$PATH"; eval "$2""#, "sh"]).arg(binary).arg(line);
    for variable in [
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "CODEX_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "GOOGLE_GEMINI_BASE_URL",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "SPINNEY_HOME",
        "SPINNEY_LOG",
    ] {
        shell.env_remove(variable);
    }
    shell.envs(stage.user_folders());
    shell.envs(NO_SERVER);
    let ended = shell.current_dir(stage.folder()).stdin(std::process::Stdio::null()).output();
    Ended::from(ended.unwrap())
}

/// Without what differs between runs.
fn shown(stage: &TestFolder, text: &str) -> String {
    let text = text.replace(&stage.folder().display().to_string(), "[folder]");
    let text = without_number(&text, "process ", "[pid]");
    steady(&without_number(&text, "127.0.0.1:", "[port]"))
}

/// Names the numbers after this word.
fn without_number(text: &str, before: &str, name: &str) -> String {
    let mut parts = text.split(before);
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        all += before;
        all += if rest.len() < part.len() { name } else { "" };
        all += rest;
    }
    all
}
