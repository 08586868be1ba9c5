//! `spinney rm`: removes a tree with everything that the home keeps of it, unless somebody still uses it.

use std::fs;
use std::io::ErrorKind;
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
    let home = Home::open(Arc::new(place::write(path)?), Drivers::new());
    let shared = if args.force { Shared::HandOver } else { Shared::Refuse };
    let orphans = match home.remove(tree, shared).await {
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
    kept::forget(path, tree);
    let folder = path.join("workspace").join(tree.to_string());
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| {
                format!("the tree is removed, {} is not: remove it by hand", folder.display())
            });
        }
        Ok(()) | Err(_) => {}
    }
    out::note(&format!("removed tree {tree}"));
    for Orphan { tree, told } in orphans {
        let how = if told { "its root is told" } else { "it has ended, and is not told" };
        out::note(&format!("branch {tree} keeps what it shared with it; {how}"));
    }
    Ok(Exit::Completed)
}
