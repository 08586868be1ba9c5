//! Rolling back: a tree does not remember what its agents knew, so whoever passes a rollback on reads it first, in its
//! own task and not in the tree's. What is past does not change, however long that takes.

use spinney_journal::find;

use spinney_journal::Journal;
use spinney_journal::recall;
use spinney_kernel::context::{ContextSnapshot, Contexts};
use spinney_kernel::definition::Refusal;
use spinney_kernel::rules::request::{Checkpoint, CheckpointReply, Reply, Request, Rollback, RollbackReply};
use spinney_kernel::words::{AgentId, By, CheckpointKind, CheckpointName, Seq, TreeId};
use spinney_kernel::world::World;

use super::{RequestError, Tree};
use crate::names::Reservation;

/// A request as a tree takes it.
pub(crate) enum Requested {
    /// With the name that it asks for.
    Plain(Box<Request>, Reservation),
    Rollback(Box<Back>),
}

/// A rollback with what was read for it.
pub(crate) struct Back {
    rollback: Rollback,
    known: Result<ContextSnapshot, Refusal>,
}

impl Back {
    /// Reads what a rollback goes back to.
    pub(super) async fn read(journal: &dyn Journal, tree: TreeId, mut rollback: Rollback) -> Self {
        let read = recall(journal, tree, &rollback.agent, rollback.at).await;
        let read = read.unwrap_or_else(|fault| Err(no_past(&rollback, fault.to_string())));
        let (standing, known) = match read {
            Ok((standing, known)) => (Some(Box::new(standing)), Ok(known)),
            Err(refusal) => (None, Err(refusal)),
        };
        (rollback.standing, rollback.prior) = (standing, None);
        Self { rollback, known }
    }

    /// What is asked before it: that what is now is kept. Refused if the rollback would be.
    pub(super) fn prior(&self, world: &World, by: &By) -> Result<Request, Refusal> {
        self.rollback.check(world, by)?;
        self.known.as_ref().map_err(Refusal::clone)?;
        let (agent, name, kind) = (self.rollback.target().clone(), None, CheckpointKind::Rollback);
        Ok(Request::Checkpoint(Checkpoint { agent, name, kind }))
    }

    /// The rollback itself, with the answer to [`prior`](Self::prior); the contexts take what was read, for the event at
    /// hand.
    pub(super) fn request(self, prior: Reply, contexts: &mut Contexts) -> (Request, Seq) {
        let Self { mut rollback, known } = self;
        if let Reply::Checkpoint(CheckpointReply { name }) = prior {
            rollback.prior = Some(name);
        }
        let at = rollback.at;
        known.into_iter().for_each(|known| contexts.hand(at, known));
        (Request::Rollback(rollback), at)
    }
}

fn no_past(rollback: &Rollback, reason: String) -> Refusal {
    Refusal::NoPast { agent: rollback.agent.clone(), at: rollback.at.0, reason }
}

impl Tree {
    /// Rolls an agent back to a checkpoint: the one whose it is, or `into` another one of its tree. What it has under way
    /// is stopped, children that it did not have then are cancelled, and its next turn follows by itself. What was spent
    /// stays spent.
    ///
    /// # Errors
    /// The refusal, or why nobody runs the tree.
    pub async fn roll_back(
        &self,
        name: &CheckpointName,
        into: Option<AgentId>,
    ) -> Result<RollbackReply, RequestError> {
        let found = find(self.journal().as_ref(), name).await;
        let found = found.map_err(|fault| {
            let (name, reason) = (name.clone(), fault.to_string());
            RequestError::Refused(Refusal::NameUnknown { name, reason })
        })?;
        let checkpoint = match found {
            Some(found) if found.tree == self.id() => found.known,
            Some(found) => {
                let (name, tree) = (name.clone(), found.tree);
                return Err(RequestError::Refused(Refusal::CheckpointElsewhere { name, tree }));
            }
            None => return Err(RequestError::Refused(Refusal::NoSuchCheckpoint { name: name.clone() })),
        };
        let rollback = Rollback::to(checkpoint.agent, checkpoint.seq, into);
        self.request(By::Person, rollback).await
    }

    /// A request as the tree takes it: with what has to be read for it.
    pub(super) async fn prepared(&self, request: Request) -> Result<Requested, Refusal> {
        let Request::Rollback(rollback) = request else {
            let reservation = self.names.reserve(&request, self.id()).await?;
            return Ok(Requested::Plain(Box::new(request), reservation));
        };
        let back = Back::read(self.journal().as_ref(), self.id(), rollback).await;
        Ok(Requested::Rollback(Box::new(back)))
    }
}
