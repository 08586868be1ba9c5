//! `spinney tree`: the agents of a tree, from the journal; also while another process runs it.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use spinney::bus::Tail;
use spinney::clock::{Clock, SystemClock};
use spinney_journal::Journal;
use spinney_kernel::words::{Time, TreeId};

use crate::exit::Exit;
use crate::home::ids::find;
use crate::live::{LiveTree, dot_lines, json_lines, tree_lines};
use crate::terminal::{Terminal, out};
use crate::{args, home};

/// Columns of a tree that is written to a file.
const WIDTH_UNBOUND: usize = 120;

pub(super) async fn tree(home: &Path, args: &args::TreeView, terminal: Terminal) -> Result<Exit> {
    let journal = home::look(home)?;
    let id = find(home, &journal, args.tree.text())?.tree;
    let tree = folded(&journal, id).await?;
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
        for line in tree_lines(&tree, terminal.width.unwrap_or(WIDTH_UNBOUND), now) {
            out::row(&line, terminal)?;
        }
    }
    Ok(Exit::Completed)
}

/// What the live view would know of it.
pub(super) async fn folded(journal: &dyn Journal, id: TreeId) -> Result<LiveTree> {
    let (mut tree, mut tail) = (LiveTree::new(id), Tail::new(journal, id));
    while let Some(traced) = tail.next().await? {
        tree.event(&traced);
    }
    Ok(tree)
}
