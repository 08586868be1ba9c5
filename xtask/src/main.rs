//! `cargo run -p xtask -- tidy [--root DIR]`: prints what is untidy and exits 1 if anything is, 2 if it
//! could not look.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use xtask::tidy::{EXCEPTIONS, check, summary};
use xtask::workspace::Workspace;

#[expect(clippy::print_stderr, reason = "what keeps the program from its work is for people to read")]
fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::from(2)
    })
}

fn run() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => tidy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")),
        ["tidy", "--root", root] => tidy(&PathBuf::from(root)),
        _ => anyhow::bail!("usage: cargo run -p xtask -- tidy [--root DIR]"),
    }
}

#[expect(clippy::print_stdout, reason = "the findings are this program's output")]
fn tidy(root: &Path) -> anyhow::Result<ExitCode> {
    let workspace = Workspace::read(root)?;
    let findings = check(&workspace, &EXCEPTIONS);
    for finding in &findings {
        println!("{finding}");
    }
    println!("{}", summary(&workspace, &findings));
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
