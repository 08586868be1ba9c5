//! `spinney export`: writes trees to one file, to continue them on another machine or to copy them.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use spinney_host::home::ids::{NamedTree, TreeInHome};
use spinney_host::transfer::{
    ExportError, ExportKind, ExportedTree, TreeNeed, export as export_trees, take_back,
};
use spinney_host::tree_list::TreeList;
use spinney_journal::seal_of;
use spinney_kernel::primitives::{SealKind, TreeId};
use spinney_kernel::world::TreeState;
use spinney_terminal::out;
use spinney_terminal::question::{self, YesOrNo};
use spinney_view::wording::{counted, short_id};

use crate::args;
use crate::exit::Exit;
use crate::hint::{about, command, next_command, on_another_machine};

pub(super) async fn export(home: &Path, args: &args::Export) -> Result<Exit> {
    let Some(file) = &args.output else { return back(home, args).await };
    let trees: Vec<(PathBuf, TreeId)> = match args.all {
        true => all(home, file, args.copy).await?,
        false => {
            let NamedTree { home, tree, .. } = NamedTree::in_home(home, args.tree.text()).await?;
            vec![(home, tree)]
        }
    };
    let kind = if args.copy { ExportKind::Copy } else { ExportKind::Move };
    let places: Vec<TreeInHome<'_>> =
        trees.iter().map(|(home, tree)| TreeInHome { home, tree: *tree }).collect();
    match export_trees(&places, file, kind).await {
        Ok(exported) => {
            for (place, exported) in places.iter().zip(&exported) {
                note(place.home, kind, exported);
            }
            let import = on_another_machine(&["import", &file.to_string_lossy()]);
            out::note(&format!("import it with: {import}"));
            Ok(Exit::Completed)
        }
        Err(ExportError::MovedElsewhere { tree, to }) => {
            let again = about(home, "export", tree, &["-o", to.as_str()]);
            let back = about(home, "export", tree, &["--take-back"]);
            bail!(
                "tree {tree} was moved to `{to}`: write that file again with `{again}`, or take the tree back with `{back}`"
            )
        }
        Err(error @ ExportError::Running { tree }) => {
            let file = file.to_string_lossy();
            let copy = match args.all {
                true => command(home, &["export", "--all", "--copy", "-o", &file]),
                false => about(home, "export", tree, &["--copy", "-o", &file]),
            };
            bail!("{error}, with `{copy}`")
        }
        Err(ExportError::Sealed(error)) => {
            let back = |tree: &TreeId| format!("\n  {}", about(home, "export", *tree, &["--take-back"]));
            let backs: String = error.trees.iter().map(back).collect();
            let what = counted(error.trees.len() as u64, "tree");
            let sealed = format!(
                "{what} moved to a file that does not exist: export again to the same name, or undo it with:{backs}"
            );
            Err(anyhow::Error::new(error).context(sealed))
        }
        Err(error) => Err(error.into()),
    }
}

/// Every tree of the home, newest first, but those that moved to another file.
async fn all(home: &Path, file: &Path, copies: bool) -> Result<Vec<(PathBuf, TreeId)>> {
    let mut list = TreeList::new(home);
    let listing = list.look().await?;
    if let Some(why) = listing.unreadable.first() {
        bail!("{why}");
    }
    if listing.trees.is_empty() {
        bail!("this home has no trees yet");
    }
    let mut trees = Vec::new();
    for listed in &listing.trees {
        let (tree, journal) = (listed.head.tree, list.journal(listed)?);
        match seal_of(journal.as_ref(), &listed.head).await? {
            Some(SealKind::Moved { to }) if !copies && file.file_name() != Some(to.as_str().as_ref()) => {
                out::note(&format!("left out tree {}, which moved to `{to}`", short_id(tree)));
            }
            Some(_) | None => trees.push((listed.home.to_path_buf(), tree)),
        }
    }
    Ok(trees)
}

fn note(home: &Path, kind: ExportKind, ExportedTree { tree, state, events, needs }: &ExportedTree) {
    let (id, events) = (short_id(*tree), counted(*events, "event"));
    let moves = kind == ExportKind::Move && *state == TreeState::Moved;
    out::note(&match state {
        TreeState::Moved if moves => {
            let back = about(home, "export", *tree, &["--take-back"]);
            format!(
                "moved tree {id}, {events}; it continues where the file is imported, not here (undo: {back})"
            )
        }
        TreeState::Ended(_) => format!("copied tree {id}, {events}; it has ended"),
        _ => format!("copied tree {id}, {events}; the copy can be read and branched, not resumed"),
    });
    if moves {
        note_needs(needs);
    }
}

/// What cannot move with a tree.
pub(super) fn note_needs(needs: &[TreeNeed]) {
    if needs.is_empty() {
        return;
    }
    let lines: String = needs.iter().map(|need| format!("\n  {need}")).collect();
    out::note(&format!("to continue, it needs things that a file cannot hold:{lines}"));
}

/// Continues a tree here that moved to a file.
async fn back(home: &Path, args: &args::Export) -> Result<Exit> {
    let NamedTree { home, tree, .. } = NamedTree::in_home(home, args.tree.text()).await?;
    let place = TreeInHome { home: &home, tree };
    let what = format!("if tree {} was imported anywhere, it would run and spend twice", short_id(tree));
    if !args.yes {
        match question::ask(&format!("{what}. Take it back?")) {
            YesOrNo::Yes => {}
            YesOrNo::No => return Ok(Exit::Usage),
            YesOrNo::NotAsked => {
                let yes = about(&home, "export", tree, &["--take-back", "--yes"]);
                out::complain(&format!("{what}; `{yes}` takes it back anyway"));
                return Ok(Exit::Usage);
            }
        }
    }
    take_back(place).await?;
    let resume = next_command(&home, tree, TreeState::Suspended).await;
    out::note(&format!("tree {} continues here: {resume}", short_id(tree)));
    Ok(Exit::Completed)
}
