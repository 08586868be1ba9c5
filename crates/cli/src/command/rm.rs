//! `spinney rm`: removes a tree with everything that the home keeps of it, unless it is in use.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use spinney::{Drivers, Home, Orphan, RemoveError};
use spinney_host::control::{RunningTrees, running};
use spinney_host::home;
use spinney_host::home::ids::find;
use spinney_host::home::{pending_folders, side_journals};
use spinney_host::trust::tree_marks;
use spinney_journal::{Blocking as _, Head, Journal as _, JournalFault, Shared};
use spinney_view::wording::short_id;

use crate::args;
use crate::exit::Exit;
use crate::hint::{about, command, go_on};
use crate::terminal::out;
use crate::terminal::question::{self, Reply};

/// Asks for confirmation before an unfinished tree is removed. Without a terminal, says which option confirms.
fn confirmed(path: &Path, head: &Head) -> bool {
    let (id, state) = (short_id(head.tree), head.state);
    let resume = go_on(path, head.tree, state);
    let what = format!("tree {id} has not ended ({state}); `{resume}` continues it");
    match question::ask(&format!("{what}. Remove it for good?")) {
        Reply::Yes => true,
        Reply::No => false,
        Reply::Nobody => {
            let force = about(path, "rm", head.tree, &["--force"]);
            out::complain(&format!("{what}; `{force}` removes it anyway"));
            false
        }
    }
}

pub(super) async fn rm(path: &Path, args: &args::Rm) -> Result<Exit> {
    let head = find(path, &home::look(path)?, args.tree.text())?;
    let tree = head.tree;
    if let RunningTrees::Trees(trees) = running(path).await
        && trees.contains(&tree)
    {
        bail!("tree {tree} is running: `{}` first", about(path, "cancel", tree, &[]));
    }
    if !head.state.is_over() && !args.force && !confirmed(path, &head) {
        return Ok(Exit::Usage);
    }
    let journal = home::write_to_remove(path)?;
    let is_last = journal.heads(&[]).wait()?.iter().all(|head| head.tree == tree);
    if side_journals::side_tree(path).is_some() && is_last {
        side_journals::remove(path, journal)?;
        tree_marks::forget(path, tree);
        out::note(&format!("removed tree {tree}"));
        return Ok(Exit::Completed);
    }
    let home = Home::open(Arc::new(journal), Drivers::new());
    let shared = if args.force { Shared::HandOver } else { Shared::Refuse };
    pending_folders::mark(path, tree)?;
    let removed = home.remove(tree, shared).await;
    let settled = pending_folders::settle(path, home.journal().as_ref());
    let orphans = match removed {
        Ok(orphans) => orphans,
        Err(RemoveError::Journal(fault @ JournalFault::InUse { .. })) => {
            let force = about(path, "rm", tree, &["--force"]);
            return Err(
                anyhow::Error::new(fault).context(format!("not removed; `{force}` removes it anyway"))
            );
        }
        Err(RemoveError::Journal(fault)) => return Err(fault.into()),
        Err(other) => return Err(other.into()),
    };
    settled.with_context(|| {
        let again = command(path, &["checkpoint", "clean"]);
        format!("tree {tree} was removed, its folders were not; `{again}` tries again")
    })?;
    side_journals::settle_branch(path, home.journal().as_ref(), tree)?;
    drop(home);
    tree_marks::forget(path, tree);
    out::note(&format!("removed tree {tree}"));
    for Orphan { tree, notified } in orphans {
        let how = if notified { "its root was notified" } else { "it has ended and was not notified" };
        out::note(&format!("branch {tree} keeps the shared part; {how}"));
    }
    Ok(Exit::Completed)
}
