//! Fills the folders of living agents from the journal before their tree continues: whatever became of the disk, or on
//! another machine, they find the files that they wrote.

use std::sync::Arc;

use spinney_journal::{Journal, JournalFault};
use spinney_kernel::context::Contexts;
use spinney_kernel::port::AgentFolder;
use spinney_kernel::primitives::WrittenFile;
use spinney_kernel::world::World;

use crate::drivers::Drivers;

/// Why a folder could not be filled.
pub(crate) enum NotFilled {
    Journal(JournalFault),
    /// In words for a person.
    Folder(String),
}

pub(crate) async fn fill(
    journal: &dyn Journal,
    world: &World,
    contexts: &Contexts,
    drivers: &Drivers,
) -> Result<(), NotFilled> {
    let (Some(root), Some(filler)) = (drivers.workspaces(), drivers.filler()) else { return Ok(()) };
    for (ix, files) in world.outputs().all() {
        let agent = world.agents().id(ix);
        let Some(origin) = contexts.origin(agent) else { continue };
        let folder = AgentFolder::new(Arc::clone(root), Arc::clone(origin));
        for (path, blob) in files {
            let Some(blob) = blob else {
                filler.remove(folder.clone(), path.clone()).await.map_err(NotFilled::Folder)?;
                continue;
            };
            let bytes = journal.blob(blob).await.map_err(NotFilled::Journal)?;
            let missing =
                || NotFilled::Folder(format!("the journal has no bytes of `{path}` of agent `{agent}`"));
            let file = WrittenFile { path: path.clone(), bytes: bytes.ok_or_else(missing)? };
            filler.fill(folder.clone(), file).await.map_err(NotFilled::Folder)?;
        }
    }
    Ok(())
}
