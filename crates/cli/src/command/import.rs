//! `spinney import`: reads the trees of a file that `spinney export` wrote.

use std::path::Path;

use anyhow::{Result, anyhow};
use spinney_host::home::side_journals;
use spinney_host::transfer::{Arrival, ImportError, ImportedTree, KeptCopy, import as import_trees};
use spinney_kernel::world::TreeState;
use spinney_terminal::out;
use spinney_view::wording::{one_line, short_id};

use super::export::note_needs;
use super::files_diff::left_words;
use crate::args;
use crate::exit::Exit;
use crate::hint::{about, command, next_step};

/// Prints the id of each tree.
pub(super) async fn import(home: &Path, args: &args::Import) -> Result<Exit> {
    let imported = import_trees(home, &args.file).await.map_err(|error| match error {
        ImportError::OtherHead { tree, state: TreeState::Copied, .. } => {
            let rm = about(home, "rm", tree, &[]);
            anyhow!("{error}; the one here is a copy, which `{rm}` removes")
        }
        ImportError::Copy { tree, ref why, .. } => {
            let rm = about(home, "rm", tree, &[]);
            let save = match &**why {
                KeptCopy::Files(left) => format!("save what you need ({})", left_words(left)),
                KeptCopy::Changes(_) => "save what you need".to_owned(),
            };
            let first = format!("nothing was replaced; {save}, remove it with `{rm}`, and import again");
            anyhow::Error::new(error).context(first)
        }
        error => error.into(),
    })?;
    for tree in &imported {
        out::line(&tree.tree.to_string())?;
        note(home, tree).await;
    }
    Ok(Exit::Completed)
}

async fn note(home: &Path, imported: &ImportedTree) {
    let ImportedTree { tree, name, state, arrival, needs, checkpoint } = imported;
    let (id, name) = (short_id(*tree), one_line(name, 60));
    let came = match arrival {
        Arrival::New => format!("imported {name}, tree {id}"),
        Arrival::Back => format!("imported {name}, tree {id}, which had moved away from here"),
        Arrival::Known => format!("{name}, tree {id}, is already here"),
    };
    let folder = side_journals::find(home, &tree.to_string()).await;
    let folder = folder.as_deref().unwrap_or(home);
    out::note(&match (state, checkpoint) {
        (TreeState::Ended(_), _) => {
            format!("{came}; see how it ended: {}", about(home, "resume", *tree, &[]))
        }
        (TreeState::Copied, Some(checkpoint)) => {
            let branch = command(home, &["checkpoint", "branch", checkpoint.as_str(), "--budget-usd", "1"]);
            format!("{came}; it is a copy that can be read or branched: {branch}")
        }
        (TreeState::Copied, None) => format!("{came}; it is a copy that can be read or branched"),
        (TreeState::Moved, _) => {
            format!(
                "{came}, and was moved away: take it back with: {}",
                about(home, "export", *tree, &["--take-back"])
            )
        }
        (state, _) => format!("{came}; {}", next_step(folder, *tree, *state).await),
    });
    if !state.is_over() && !state.is_sealed() {
        note_needs(needs);
    }
}
