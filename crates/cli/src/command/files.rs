//! `spinney files`: what agents wrote, with paths to open, and one of them in full.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use spinney_host::home::ids::NamedTree;
use spinney_host::home::output_files::{FILES_MAX, list, named, open};
use spinney_kernel::primitives::grouped;
use spinney_terminal::paint::{Ink, Row};
use spinney_terminal::table::{Column, Table};
use spinney_terminal::{Terminal, out};
use spinney_view::wording::{counted, short_id};

use super::files_diff::files_diff;
use crate::args::{self, FilesCommand};
use crate::exit::Exit;

/// Bytes that are copied at once.
const CHUNK: usize = 64 * 1024;

pub(super) async fn files(home: &Path, args: &args::Files, terminal: Terminal) -> Result<Exit> {
    if let Some(FilesCommand::Cat(args)) = &args.command {
        return cat(home, args, terminal).await;
    }
    if args.diff {
        return files_diff(home, args).await;
    }
    let tree = NamedTree::in_home(home, args.tree.text()).await?.tree;
    let files = list(home, tree);
    if args.json {
        for file in &files {
            out::json(&serde_json::to_string(file)?)?;
        }
        return Ok(Exit::Completed);
    }
    if files.is_empty() {
        out::line(&format!("the agents of tree {} wrote no files", short_id(tree)))?;
        return Ok(Exit::Completed);
    }
    let mut table = Table::new(vec![
        Column::left("AGENT").shrinking(),
        Column::right("BYTES"),
        // A path is there to be opened, so it is never cut.
        Column::left("PATH"),
    ]);
    for file in &files {
        let path = Row::plain(&file.shown_path());
        table.add(vec![Row::inked(Ink::Name, &file.agent), Row::plain(&grouped(file.bytes)), path]);
    }
    table.write(terminal)?;
    if files.len() == FILES_MAX {
        out::note(&format!("there may be more: only {} are listed", counted(FILES_MAX as u64, "file")));
    }
    Ok(Exit::Completed)
}

/// Prints a file: unchanged into a pipe or file, without effect on a terminal.
async fn cat(home: &Path, args: &args::FilesCat, terminal: Terminal) -> Result<Exit> {
    let tree = NamedTree::in_home(home, args.tree.text()).await?.tree;
    let files = list(home, tree);
    let file = named(&files, &args.file, tree)?;
    let what = || format!("cannot read {}", file.shown_path());
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
