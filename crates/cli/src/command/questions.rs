//! `spinney questions`: shows the open questions of a tree in full, also while another process runs the tree.

use std::path::Path;

use anyhow::Result;
use spinney_host::control::steering::answerable;
use spinney_host::home::ids::{NamedTree, RedactedTree};
use spinney_journal::{Journal, JournalFault};
use spinney_terminal::out;
use spinney_view::approval::ApprovalExtent;
use spinney_view::questions::QuestionView;
use spinney_view::wording::short_id;

use crate::args;
use crate::exit::Exit;
use crate::hint::{YOUR_ANSWER, about, next_step};
use crate::question_lines;

pub(super) async fn questions(home: &Path, args: &args::Questions) -> Result<Exit> {
    let named = NamedTree::in_home(home, args.tree.text()).await?.redacted().await?;
    let open = answerable(named.place(), &named.journal).await?;
    let RedactedTree { journal, tree, .. } = named;
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
    let head = journal.head(tree).await?.ok_or(JournalFault::UnknownTree { tree })?;
    out::line(&question_lines::heading(open.len(), head.state))?;
    for question in open.values() {
        for line in question_lines::lines(question, ApprovalExtent::Whole, "") {
            out::line(&format!("  {line}"))?;
        }
        if !head.state.is_sealed() {
            let number = question.question.0.to_string();
            out::line(&format!("    {}", about(home, "answer", tree, &[&number, YOUR_ANSWER])))?;
        }
    }
    if head.state.is_sealed() {
        out::line(&next_step(home, tree, head.state).await)?;
    }
    Ok(Exit::Completed)
}
