//! `spinney rm`: removes a tree with everything that the home keeps of it, unless it is in use.

use std::path::Path;

use anyhow::{Result, bail};
use spinney::Orphan;
use spinney_host::control::steering::does_run;
use spinney_host::home;
use spinney_host::home::ids::{TreeInHome, find};
use spinney_host::removal::{UnremovedTree, UntakenChanges, remove};
use spinney_journal::{Head, JournalFault, Shared};
use spinney_kernel::primitives::TreeId;
use spinney_kernel::world::TreeState;
use spinney_terminal::out;
use spinney_terminal::question::{self, YesOrNo};
use spinney_view::branches::AgentBranch;
use spinney_view::wording::short_id;

use super::files_diff::left_words;
use crate::args;
use crate::exit::Exit;
use crate::hint::{about, command, next_command};

/// Asks for confirmation before an unfinished tree is removed. Without a terminal, says which option confirms.
async fn confirmed(path: &Path, head: &Head) -> bool {
    let (id, state) = (short_id(head.tree), head.state);
    let next = next_command(path, head.tree, state).await;
    let what = match state {
        TreeState::Moved => format!("tree {id} was moved away; `{next}` continues it here"),
        TreeState::Copied => format!("tree {id} is a copy; `{next}` lists where it can be branched"),
        _ => format!("tree {id} has not ended ({state}); `{next}` continues it"),
    };
    match question::ask(&format!("{what}. Remove it for good?")) {
        YesOrNo::Yes => true,
        YesOrNo::No => false,
        YesOrNo::NotAsked => {
            let force = about(path, "rm", head.tree, &["--force"]);
            out::complain(&format!("{what}; `{force}` removes it anyway"));
            false
        }
    }
}

/// Asks whether a tree is removed that others use. Without a terminal, the error says which option does that.
fn may_take_from_branches(tree: TreeId, fault: &JournalFault) -> bool {
    let what =
        format!("{fault}. They keep the part that they share and are notified. Remove {}?", short_id(tree));
    question::ask(&what) == YesOrNo::Yes
}

pub(super) async fn rm(path: &Path, args: &args::Rm) -> Result<Exit> {
    let head = find(path, &home::open_read_only(path)?, args.tree.text()).await?;
    let tree = head.tree;
    if does_run(TreeInHome { home: path, tree }).await {
        bail!("tree {tree} is running: `{}` first", about(path, "cancel", tree, &[]));
    }
    if !head.state.is_over() && !args.force && !confirmed(path, &head).await {
        return Ok(Exit::Usage);
    }
    let shared = if args.force { Shared::HandOver } else { Shared::Refuse };
    let untaken = if args.force { UntakenChanges::Remove } else { UntakenChanges::Refuse };
    let mut removed = remove(path, tree, shared, untaken).await;
    if let Err(UnremovedTree::Journal(fault @ JournalFault::InUse { .. })) = &removed
        && may_take_from_branches(tree, fault)
    {
        removed = remove(path, tree, Shared::HandOver, untaken).await;
    }
    let removed = removed.map_err(|error| match error {
        UnremovedTree::Copy { .. } => {
            let force = about(path, "rm", tree, &["--force"]);
            anyhow::Error::new(error).context(format!("not removed; `{force}` removes it with these changes"))
        }
        UnremovedTree::Journal(fault @ JournalFault::InUse { .. }) => {
            let force = about(path, "rm", tree, &["--force"]);
            anyhow::Error::new(fault).context(format!("not removed; `{force}` removes it anyway"))
        }
        UnremovedTree::Unsettled(error) => {
            let again = command(path, &["checkpoint", "clean"]);
            let what = format!("tree {tree} was removed, its folders were not; `{again}` tries again");
            anyhow::Error::new(error).context(what)
        }
        UnremovedTree::Journal(fault) => fault.into(),
        UnremovedTree::Home(error) => error.into(),
        UnremovedTree::Folder(error) => error.into(),
        UnremovedTree::Running(error) => error.into(),
    })?;
    out::note(&format!("removed tree {tree}"));
    for AgentBranch { agent, repository, branch } in &removed.branches {
        out::note(&format!("the changes of {agent} are in branch {branch} of {repository}"));
    }
    for (agent, left) in &removed.left_out {
        out::note(&format!("removed with the working copy of {agent}: {}", left_words(left)));
    }
    for Orphan { tree, notified } in removed.orphans {
        let how = if notified { "its root was notified" } else { "it has ended and was not notified" };
        out::note(&format!("branch {tree} keeps the shared part; {how}"));
    }
    Ok(Exit::Completed)
}
