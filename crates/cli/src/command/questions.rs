//! `spinney questions`: shows the open questions of a tree in full, also while another process runs the tree.

use std::path::Path;

use anyhow::Result;
use spinney_host::home::ids::NamedTree;
use spinney_view::approval::ApprovalExtent;
use spinney_view::questions::{QuestionView, open as open_questions};
use spinney_view::wording::{counted, short_id};

use crate::args;
use crate::exit::Exit;
use crate::hint::{YOUR_ANSWER, about};
use crate::question_lines;
use crate::terminal::out;

pub(super) async fn questions(home: &Path, args: &args::Questions) -> Result<Exit> {
    let NamedTree { journal, tree, .. } = NamedTree::in_home(home, args.tree.text()).await?;
    let open = open_questions(&journal, tree).await?;
    if args.json {
        for question in open.values() {
            out::json(&serde_json::to_string(&QuestionView::from(question))?)?;
        }
        return Ok(Exit::Completed);
    }
    if open.is_empty() {
        out::line(&format!("no open questions in tree {}", short_id(tree)))?;
        return Ok(Exit::Completed);
    }
    out::line(&format!("{} to answer:", counted(open.len() as u64, "question")))?;
    for question in open.values() {
        for line in question_lines::lines(question, ApprovalExtent::Whole, "") {
            out::line(&format!("  {line}"))?;
        }
        let number = question.question.0.to_string();
        out::line(&format!("    {}", about(home, "answer", tree, &[&number, YOUR_ANSWER])))?;
    }
    Ok(Exit::Completed)
}
