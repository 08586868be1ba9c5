//! Names that are unique in a home. A tree knows no other, so whoever passes a request on asks here first: the catalog
//! knows every name that is durable, and this knows those on their way there. One process writes in a home, so that
//! is all of them.

use spinney_journal::find;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use spinney_journal::{Journal, JournalFault};
use spinney_kernel::definition::Refusal;
use spinney_kernel::rules::request::{Checkpoint, Request};
use spinney_kernel::words::{CheckpointName, Seq, TreeId};

/// The names of a home.
pub(crate) struct Names {
    journal: Arc<dyn Journal>,
    /// Those that were given away, with the event that will hold them. Once that is durable the catalog says more.
    given: Mutex<BTreeMap<CheckpointName, (TreeId, Seq)>>,
}

impl Names {
    pub(crate) fn new(journal: Arc<dyn Journal>) -> Self {
        Self { journal, given: Mutex::default() }
    }

    /// Gives a request the name it asks for, if it asks for one, as the name of an event to come.
    pub(crate) fn give(
        &self,
        request: &Request,
        (tree, at): (TreeId, Seq),
    ) -> Result<Option<CheckpointName>, Refusal> {
        let Request::Checkpoint(Checkpoint { name: Some(name), .. }) = request else { return Ok(None) };
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = self
            .owner(name, given.get(name).copied())
            .map_err(|fault| Refusal::NameUnknown { name: name.clone(), reason: fault.to_string() })?;
        if let Some(tree) = owner {
            return Err(Refusal::NameTaken { name: name.clone(), tree });
        }
        given.insert(name.clone(), (tree, at));
        Ok(Some(name.clone()))
    }

    /// A request that was refused needs no name.
    pub(crate) fn take_back(&self, name: Option<&CheckpointName>) {
        if let Some(name) = name {
            self.given.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        }
    }

    fn owner(
        &self,
        name: &CheckpointName,
        given: Option<(TreeId, Seq)>,
    ) -> Result<Option<TreeId>, JournalFault> {
        if let Some(found) = find(self.journal.as_ref(), name)? {
            return Ok(Some(found.tree));
        }
        let Some((tree, at)) = given else { return Ok(None) };
        let durable = self.journal.head(tree)?.is_none_or(|head| head.seq >= at);
        // It was written, and is not there any more.
        Ok(Some(tree).filter(|_| !durable))
    }
}
