//! Names that are unique in a home. A tree knows no other trees, so the caller reserves a request's name here first:
//! the catalog has every durable name, and this has those on their way there. Only one process writes in a home, so
//! together they are complete.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_journal::{Journal, JournalFault, find};
use spinney_kernel::definition::Refusal;
use spinney_kernel::rules::request::{Checkpoint, Request};
use spinney_kernel::words::{CheckpointName, Seq, TreeId};

pub(crate) struct Names {
    journal: Arc<dyn Journal>,
    /// Names that the catalog may not have yet, each with its tree.
    reserved: Mutex<BTreeMap<CheckpointName, (TreeId, State)>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Reserved,
    /// This event will contain it. Once that is durable, the catalog is authoritative.
    Given(Seq),
}

/// A reserved name. Dropping it frees the name, unless it was given away.
pub(crate) struct Reservation {
    names: Arc<Names>,
    name: Option<CheckpointName>,
}

impl Names {
    pub(crate) fn new(journal: Arc<dyn Journal>) -> Self {
        Self { journal, reserved: Mutex::default() }
    }

    /// Reserves the name that a request asks for, if any.
    pub(crate) async fn reserve(
        self: &Arc<Self>,
        request: &Request,
        tree: TreeId,
    ) -> Result<Reservation, Refusal> {
        let Request::Checkpoint(Checkpoint { name: Some(name), .. }) = request else {
            return Ok(Reservation { names: Arc::clone(self), name: None });
        };
        let before = self.reserved().get(name).copied();
        let taken = |tree| Refusal::NameTaken { name: name.clone(), tree };
        let unknown =
            |fault: JournalFault| Refusal::NameUnknown { name: name.clone(), reason: fault.to_string() };
        if let Some((owner, state)) = before
            && !self.is_gone(name, owner, state).await.map_err(unknown)?
        {
            return Err(taken(owner));
        }
        self.insert(name, tree, before).map_err(taken)?;
        let reservation = Reservation { names: Arc::clone(self), name: Some(name.clone()) };
        match find(self.journal.as_ref(), name).await.map_err(unknown)? {
            Some(found) => Err(taken(found.tree)),
            None => Ok(reservation),
        }
    }

    /// Reserves a name, unless it was reserved in the meantime; then returns its tree.
    fn insert(
        &self,
        name: &CheckpointName,
        tree: TreeId,
        before: Option<(TreeId, State)>,
    ) -> Result<(), TreeId> {
        let mut reserved = self.reserved();
        let now = reserved.get(name).copied();
        if now != before {
            return Err(now.map_or(tree, |(owner, _)| owner));
        }
        reserved.insert(name.clone(), (tree, State::Reserved));
        Ok(())
    }

    /// Whether a reserved name was written and removed again.
    async fn is_gone(
        &self,
        name: &CheckpointName,
        owner: TreeId,
        state: State,
    ) -> Result<bool, JournalFault> {
        let State::Given(at) = state else { return Ok(false) };
        if find(self.journal.as_ref(), name).await?.is_some() {
            return Ok(false);
        }
        Ok(self.journal.head(owner).await?.is_none_or(|head| head.seq >= at))
    }

    fn reserved(&self) -> MutexGuard<'_, BTreeMap<CheckpointName, (TreeId, State)>> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// The event with the name was decided.
    pub(crate) fn give(mut self, tree: TreeId, at: Seq) {
        if let Some(name) = self.name.take() {
            self.names.reserved().insert(name, (tree, State::Given(at)));
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            self.names.reserved().remove(name);
        }
    }
}
