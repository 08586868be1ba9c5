//! `spinney questions`: shows the open questions of a tree in full, also while another process runs the tree.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use spinney::bus::{Tail, TracedEvent};
use spinney::tree::OpenQuestion;
use spinney_journal::Journal;
use spinney_kernel::record::Event;
use spinney_kernel::words::{CallId, TreeId};

use crate::asking::approval::Extent;
use crate::asking::questions;
use crate::exit::Exit;
use crate::hint::{YOUR_ANSWER, about};
use crate::home::ids::{find, short};
use crate::terminal::out;
use crate::terminal::wording::counted;
use crate::{args, home};

pub(super) async fn questions(home: &Path, args: &args::Questions) -> Result<Exit> {
    let journal = home::look(home)?;
    let tree = find(home, &journal, args.tree.text())?.tree;
    let open = open(&journal, tree).await?;
    if args.json {
        for question in open.values() {
            out::json(&questions::json(question).to_string())?;
        }
        return Ok(Exit::Completed);
    }
    if open.is_empty() {
        out::line(&format!("no open questions in tree {}", short(tree)))?;
        return Ok(Exit::Completed);
    }
    out::line(&format!("{} to answer:", counted(open.len() as u64, "question")))?;
    for question in open.values() {
        for line in questions::lines(question, Extent::Whole, "") {
            out::line(&format!("  {line}"))?;
        }
        let number = question.question.0.to_string();
        out::line(&format!("    {}", about(home, "answer", tree, &[&number, YOUR_ANSWER])))?;
    }
    Ok(Exit::Completed)
}

/// Every question that was asked and has not ended.
async fn open(journal: &dyn Journal, tree: TreeId) -> Result<BTreeMap<CallId, OpenQuestion>> {
    let (mut open, mut tail) = (BTreeMap::new(), Tail::new(journal, tree));
    while let Some(TracedEvent { recorded, context, .. }) = tail.next().await? {
        match recorded.event {
            Event::QuestionAsked { call, question, .. } => {
                let (path, text, approves) = (context.path().to_vec(), question.text, question.approves);
                open.insert(call, OpenQuestion { question: call, path, text, approves });
            }
            Event::CallEnded { call, .. } => {
                open.remove(&call);
            }
            _ => {}
        }
    }
    Ok(open)
}
