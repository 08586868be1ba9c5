//! `spinney tree`: the agents of a tree, from the journal; also while another process runs it.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use spinney::clock::{Clock, SystemClock};
use spinney_host::home;
use spinney_host::home::ids::find;
use spinney_kernel::words::Time;
use spinney_view::live::LiveTree;

use crate::args;
use crate::exit::Exit;
use crate::live::{dot_lines, json_lines, tree_lines};
use crate::terminal::{Terminal, out};

pub(super) async fn tree(home: &Path, args: &args::TreeView, terminal: Terminal) -> Result<Exit> {
    let journal = home::look(home)?;
    let id = find(home, &journal, args.tree.text())?.tree;
    let tree = LiveTree::read(&journal, id).await?;
    if args.json {
        for line in json_lines(&tree) {
            out::json(&line.to_string())?;
        }
    } else if args.dot {
        let mut graph = "digraph tree {\n  node [shape=box];\n".to_owned();
        for line in dot_lines(&tree) {
            let _ = writeln!(graph, "  {line}");
        }
        out::verbatim(&(graph + "}"))?;
    } else {
        let now = Time(SystemClock::new().now_ms());
        for line in tree_lines(&tree, terminal.width, now) {
            out::row(&line, terminal)?;
        }
    }
    Ok(Exit::Completed)
}
