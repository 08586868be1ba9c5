//! `cargo xtask tidy [--root DIR]` prints what is untidy and exits 1 if anything is, 2 if it could not look.
//! `cargo xtask dependencies` does the same for the crates that we use, by `deny.toml`.
//! `cargo xtask prices` regenerates the price table of the binary from the committed source.
//! `cargo xtask picture FILE` turns the screen of a terminal on its standard input into an SVG.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use xtask::dependencies::{DenyFile, DependencyGraph};
use xtask::tidy::{EXCEPTIONS, check, summary};
use xtask::workspace::Workspace;
use xtask::{picture, prices};

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
        ["tidy"] => tidy(&root()),
        ["tidy", "--root", root] => tidy(&PathBuf::from(root)),
        ["dependencies"] => dependencies(&root()),
        ["prices"] => {
            let table = prices::table(&root())?;
            std::fs::write(root().join(prices::TABLE), table)?;
            Ok(ExitCode::SUCCESS)
        }
        ["picture", file] => {
            std::fs::write(file, picture::svg(&std::io::read_to_string(std::io::stdin())?)?)?;
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            anyhow::bail!(
                "usage: cargo xtask tidy [--root DIR] | cargo xtask dependencies | cargo xtask prices | cargo xtask picture FILE"
            )
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
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

#[expect(clippy::print_stdout, reason = "the findings are this program's output")]
fn dependencies(root: &Path) -> anyhow::Result<ExitCode> {
    let graph = DependencyGraph::read(root)?;
    let findings = DenyFile::read(root)?.check(&graph);
    for finding in &findings {
        println!("{finding}");
    }
    println!("dependencies: {} crates, {} findings", graph.count(), findings.len());
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
