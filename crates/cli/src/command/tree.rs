//! `spinney tree`: the agents of a tree, from the journal; also while another process runs it.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use spinney::clock::{Clock, SystemClock};
use spinney_host::home::ids::NamedTree;
use spinney_kernel::primitives::Time;
use spinney_terminal::{Terminal, out};
use spinney_view::live::LiveTree;

use super::resume::note_weak_boxes;
use crate::args;
use crate::exit::Exit;
use crate::live::{dot_lines, tree_lines};

pub(super) async fn tree(home: &Path, args: &args::TreeView, terminal: Terminal) -> Result<Exit> {
    let named = NamedTree::in_home(home, args.tree.text()).await?.redacted().await?;
    let tree = LiveTree::read(&named.journal, named.tree).await?;
    note_weak_boxes(&named.journal, named.tree).await?;
    if args.json {
        for line in tree.agents_json() {
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
