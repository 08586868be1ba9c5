//! `spinney questions`: shows the open questions of a tree in full, also while another process runs the tree.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use spinney::tree::{OpenQuestion, recorded_events};
use spinney_journal::{Journal, pages};
use spinney_kernel::context::Trace;
use spinney_kernel::record::Event;
use spinney_kernel::words::{CallId, Seq, TreeId};

use crate::approval::Extent;
use crate::exit::Exit;
use crate::hint::{YOUR_ANSWER, about};
use crate::ids::{find, short};
use crate::wording::counted;
use crate::{args, open_home, out, questions};

pub(super) fn questions(home: &Path, args: &args::Questions) -> Result<Exit> {
    let journal = open_home::look(home)?;
    let tree = find(home, &journal, args.id.as_deref().unwrap_or("last"))?.tree;
    let open = open(&journal, tree)?;
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
fn open(journal: &dyn Journal, tree: TreeId) -> Result<BTreeMap<CallId, OpenQuestion>> {
    let (mut open, mut trace) = (BTreeMap::new(), Trace::default());
    for page in pages(journal, tree, Seq(0)).blocking() {
        for recorded in page?.into_iter().flat_map(recorded_events) {
            let context = trace.take(recorded.at, &recorded.event);
            if let Event::QuestionAsked { call, question, .. } = &recorded.event {
                let asked = OpenQuestion {
                    question: *call,
                    path: context.path().to_vec(),
                    text: question.text.clone(),
                    approves: question.approves.clone(),
                };
                open.insert(*call, asked);
            } else if let Event::CallEnded { call, .. } = &recorded.event {
                open.remove(call);
            }
        }
    }
    Ok(open)
}
