//! `spinney completions`: a script for a shell that completes our commands, and what they name.

use anyhow::Result;
use spinney_terminal::out;

use crate::exit::Exit;
use crate::{args, completion};

pub(super) fn completions(args: &args::Completions) -> Result<Exit> {
    let shell = match args.shell {
        args::Shell::Bash => "bash",
        args::Shell::Elvish => "elvish",
        args::Shell::Fish => "fish",
        args::Shell::Powershell => "powershell",
        args::Shell::Zsh => "zsh",
    };
    out::verbatim(String::from_utf8_lossy(&completion::script(shell)?).trim_end())?;
    Ok(Exit::Completed)
}
