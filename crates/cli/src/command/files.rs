//! `spinney files`: what agents wrote, with paths to open, and one of them in full.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::json;
use spinney::tree_file::nearest;
use spinney_kernel::words::{TreeId, grouped};

use crate::args::{self, FilesCommand};
use crate::exit::Exit;
use crate::home;
use crate::home::ids::{find, short};
use crate::home::output_files::{FILES_MAX, OutputFile, list, open};
use crate::terminal::paint::{Ink, Row};
use crate::terminal::table::{Column, Table};
use crate::terminal::wording::counted;
use crate::terminal::{Terminal, out};

/// Bytes that are copied at once.
const CHUNK: usize = 64 * 1024;

pub(super) fn files(home: &Path, args: &args::Files, terminal: Terminal) -> Result<Exit> {
    if let Some(FilesCommand::Cat(args)) = &args.command {
        return cat(home, args, terminal);
    }
    let tree = find(home, &home::look(home)?, args.tree.text())?.tree;
    let files = list(home, tree);
    if args.json {
        for OutputFile { agent, name, path, bytes } in &files {
            let line = json!({
                "agent": agent,
                "name": name.to_string_lossy(),
                "path": path.to_string_lossy(),
                "bytes": bytes,
            });
            out::json(&line.to_string())?;
        }
        return Ok(Exit::Completed);
    }
    if files.is_empty() {
        out::line(&format!("the agents of tree {} wrote no files", short(tree)))?;
        return Ok(Exit::Completed);
    }
    let mut table = Table::new(vec![
        Column::left("AGENT").shrinking(),
        Column::right("BYTES"),
        // A path is there to be opened, so it is never cut.
        Column::left("PATH"),
    ]);
    for OutputFile { agent, path, bytes, .. } in &files {
        let path = Row::plain(&path.to_string_lossy());
        table.add(vec![Row::of(Ink::Name, agent), Row::plain(&grouped(*bytes)), path]);
    }
    table.write(terminal)?;
    if files.len() == FILES_MAX {
        out::note(&format!("there may be more: only {} are listed", counted(FILES_MAX as u64, "file")));
    }
    Ok(Exit::Completed)
}

/// Prints a file: unchanged into a pipe or file, without effect on a terminal.
fn cat(home: &Path, args: &args::FilesCat, terminal: Terminal) -> Result<Exit> {
    let tree = find(home, &home::look(home)?, args.tree.text())?.tree;
    let files = list(home, tree);
    let file = found(&files, &args.file, tree)?;
    let what = || format!("cannot read {}", file.path.display());
    let mut opened = open(home, tree, file).with_context(what)?;
    let mut chunk = vec![0; CHUNK];
    let mut text = Vec::new();
    loop {
        let read = opened.read(&mut chunk).with_context(what)?;
        if read == 0 {
            break;
        }
        if terminal.is_terminal {
            text.extend_from_slice(&chunk[..read]);
        } else {
            out::bytes(&chunk[..read])?;
        }
    }
    if terminal.is_terminal {
        out::verbatim(String::from_utf8_lossy(&text).trim_end_matches('\n'))?;
    }
    Ok(Exit::Completed)
}

/// The file with this name, path, or end of its name.
fn found<'a>(files: &'a [OutputFile], wanted: &str, tree: TreeId) -> Result<&'a OutputFile> {
    if let Some(file) =
        files.iter().find(|file| file.name == Path::new(wanted) || file.path == Path::new(wanted))
    {
        return Ok(file);
    }
    let matching: Vec<&OutputFile> = files.iter().filter(|file| file.name.ends_with(wanted)).collect();
    let names = |files: &[&OutputFile]| {
        files.iter().map(|file| file.name.to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    match matching.as_slice() {
        [file] => Ok(file),
        [] if files.is_empty() => bail!("the agents of tree {} wrote no files", short(tree)),
        [] => {
            let names = names(&files.iter().collect::<Vec<_>>());
            bail!("no file `{wanted}`: {}", nearest::help(wanted, names.iter().map(String::as_str), "files"))
        }
        several => bail!("`{wanted}` may be {}: name one of them", names(several).join(" or ")),
    }
}
