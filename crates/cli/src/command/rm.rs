//! `spinney rm`: removes a tree with everything that the home keeps of it, unless somebody still uses it.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use spinney::{Drivers, Home, Orphan, RemoveError};
use spinney_kernel::port::journal::{JournalFault, Shared};

use crate::control::{Running, running};
use crate::exit::Exit;
use crate::hint::command;
use crate::ids::{find, short};
use crate::{args, kept, out, place};

/// Removes a tree.
pub(super) async fn rm(path: &Path, args: &args::Rm) -> Result<Exit> {
    let tree = find(path, &place::look(path)?, &args.id)?.tree;
    if let Running::Trees(trees) = running(path).await
        && trees.contains(&tree)
    {
        bail!("tree {tree} is running: `{}` first", command(path, &format!("cancel {}", short(tree))));
    }
    let home = Home::open(Arc::new(place::write_to_remove(path)?), Drivers::new());
    let shared = if args.force { Shared::HandOver } else { Shared::Refuse };
    kept::mark(path, tree)?;
    let removed = home.remove(tree, shared).await;
    let settled = kept::settle(path, home.journal().as_ref());
    let orphans = match removed {
        Ok(orphans) => orphans,
        Err(RemoveError::Journal(fault @ JournalFault::InUse { .. })) => {
            let force = command(path, &format!("rm {} --force", short(tree)));
            return Err(
                anyhow::Error::new(fault).context(format!("not removed; `{force}` does it all the same"))
            );
        }
        Err(RemoveError::Journal(fault)) => return Err(fault.into()),
        Err(error @ RemoveError::Running { .. }) => return Err(error.into()),
    };
    settled.with_context(|| {
        let again = command(path, "checkpoint clean");
        format!("tree {tree} is removed and its folders are not; `{again}` tries that again")
    })?;
    out::note(&format!("removed tree {tree}"));
    for Orphan { tree, told } in orphans {
        let how = if told { "its root is told" } else { "it has ended, and is not told" };
        out::note(&format!("branch {tree} keeps what it shared with it; {how}"));
    }
    Ok(Exit::Completed)
}
