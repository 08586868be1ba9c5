//! `spinney files --diff`: what each agent changed in its working copy, and the command that merges it.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;
use spinney::redaction::Redactor;
use spinney_drivers::working_copies::{CopyTakeover, LeftNames, UntakenFiles, WorkingCopy};
use spinney_host::control::steering::does_run;
use spinney_host::home::ids::{NamedTree, TreeInHome};
use spinney_host::home::working_copies::HomeCopies;
use spinney_host::redaction::redactor_of;
use spinney_terminal::out;
use spinney_view::branches::AgentBranch;
use spinney_view::wording::short_id;

use crate::args;
use crate::exit::Exit;
use crate::hint::merging;

/// The changes of an agent, as JSON.
#[derive(Serialize)]
struct ChangesJson<'a> {
    agent: &'a str,
    repository: String,
    base: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    taken: Option<&'a CopyTakeover>,
    diff: &'a str,
    omitted_bytes: u64,
}

pub(super) async fn files_diff(home: &Path, args: &args::Files) -> Result<Exit> {
    let named = NamedTree::in_home(home, args.tree.text()).await?;
    let (tree, redactor) = (named.tree, redactor_of(&named.journal, named.tree).await?);
    let copies = HomeCopies::new(home);
    let mut all = copies.all(tree).with_context(|| format!("cannot read {}", home.display()))?;
    if all.is_empty() && !args.json {
        out::line(&format!("the agents of tree {} have no working copies", short_id(tree)))?;
    }
    let runs = does_run(TreeInHome { home, tree }).await;
    let mut exit = Exit::Completed;
    for copy in &mut all {
        if let Err(error) = show(&copies, copy, runs, args.json, &redactor).await {
            out::complain(&format!("the changes of {} cannot be shown: {error:#}", copy.agent()));
            exit = Exit::Failed;
        }
    }
    Ok(exit)
}

async fn show(
    copies: &HomeCopies,
    copy: &mut WorkingCopy,
    runs: bool,
    json: bool,
    redactor: &Redactor,
) -> Result<()> {
    if !runs && copy.taken().is_none() {
        // Its process was killed before it could be.
        copies.take_over(copy).await?;
    }
    let diff = copies.diff(copy).await?;
    let text = redactor.redact(&diff.text);
    if json {
        let changes = ChangesJson {
            agent: copy.agent().as_str(),
            repository: copy.repository().display().to_string(),
            base: copy.base().as_str(),
            taken: copy.taken(),
            diff: &text,
            omitted_bytes: diff.omitted_bytes,
        };
        out::json(&serde_json::to_string(&changes)?)?;
        return Ok(());
    }
    let begin = if copy.is_without_changes() { ", without your uncommitted changes" } else { "" };
    out::line(&format!(
        "{} · {} from commit {}{begin}",
        copy.agent(),
        copy.repository().display(),
        copy.base().short()
    ))?;
    match text.trim_end() {
        "" => out::line("no changes")?,
        text => out::verbatim(text)?,
    }
    let Some(taken) = copy.taken() else {
        out::note(&format!("{} has not ended: its changes become a branch when it does", copy.agent()));
        return Ok(());
    };
    if !taken.left_out.is_empty() {
        let folder = copy.folder();
        out::note(&format!("left in {}: {}", folder.display(), left_words(&taken.left_out)));
    }
    for branch in &taken.branches {
        let (agent, repository) = (copy.agent().clone(), copy.repository().display().to_string());
        let branch = AgentBranch { agent, repository, branch: branch.clone() };
        out::note(&format!("merge it with: {}", merging(&branch)));
    }
    Ok(())
}

/// What stayed in a copy, for people.
pub(super) fn left_words(left: &UntakenFiles) -> String {
    let of = |what: &str, LeftNames { count, names }: &LeftNames| {
        if *count == 0 {
            return None;
        }
        let shown: Vec<&str> = names.iter().take(5).map(String::as_str).collect();
        let more = count.saturating_sub(shown.len() as u64);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Some(format!("{what} {}{more}", shown.join(", ")))
    };
    let parts = [of("ignored", &left.ignored), of("over 10 MB", &left.large), of("not plain", &left.other)];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}
