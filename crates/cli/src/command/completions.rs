//! `spinney completions`: a script for a shell that completes our commands and options.

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::args::{self, Args};
use crate::exit::Exit;
use crate::terminal::out;

pub(super) fn completions(args: &args::Completions) -> Result<Exit> {
    let shell = match args.shell {
        args::Shell::Bash => Shell::Bash,
        args::Shell::Elvish => Shell::Elvish,
        args::Shell::Fish => Shell::Fish,
        args::Shell::Powershell => Shell::PowerShell,
        args::Shell::Zsh => Shell::Zsh,
    };
    let mut script = Vec::new();
    generate(shell, &mut Args::command(), "spinney", &mut script);
    out::verbatim(String::from_utf8_lossy(&script).trim_end())?;
    Ok(Exit::Completed)
}
