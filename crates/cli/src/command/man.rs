//! `spinney man`: manual pages, from the same texts as `--help`.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use spinney_terminal::out;

use crate::args::{self, Args};
use crate::exit::Exit;

pub(super) fn man(args: &args::Man) -> Result<Exit> {
    let mut whole = Args::command().disable_help_subcommand(true);
    whole.build();
    if let Some(folder) = &args.all {
        write_all(&whole, folder)?;
        return Ok(Exit::Completed);
    }
    let mut command = &whole;
    for word in &args.command {
        let Some(found) = command.find_subcommand(word).filter(|found| !found.is_hide_set()) else {
            bail!("there is no command `{}`: `spinney --help` lists all", args.command.join(" "))
        };
        command = found;
    }
    out::verbatim(page(command)?.trim_end())?;
    Ok(Exit::Completed)
}

/// Writes the page of a command and of those below it.
fn write_all(command: &Command, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join(format!("{}.1", name(command)));
    std::fs::write(&path, page(command)?).with_context(|| format!("cannot write {}", path.display()))?;
    command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
        .try_for_each(|below| write_all(below, folder))
}

/// The name of its page, such as `spinney-checkpoint-make`.
fn name(command: &Command) -> String {
    command.get_bin_name().unwrap_or_else(|| command.get_name()).replace(' ', "-")
}

fn page(command: &Command) -> Result<String> {
    let mut page = Vec::new();
    let source = format!("Spinney {}", env!("CARGO_PKG_VERSION"));
    Man::new(command.clone()).title(name(command)).section("1").source(source).render(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}
