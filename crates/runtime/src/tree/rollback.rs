//! Rollback: a tree does not remember its agents' past contexts, so the caller reads them first, in its own task
//! rather than the tree's. The past does not change, however long that takes.

use spinney_journal::find;

use spinney_journal::Journal;
use spinney_journal::recall;
use spinney_kernel::context::{ContextSnapshot, Contexts};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, AgentId, CheckpointKind, CheckpointName, Seq, TreeId};
use spinney_kernel::rules::request::{Checkpoint, CheckpointReply, Reply, Request, Rollback, RollbackReply};
use spinney_kernel::world::World;

use super::{RequestError, Tree};
use crate::names::ReservedName;

/// A request as the tree's task takes it.
pub(crate) enum Requested {
    /// With the name that it requests.
    Plain(Box<Request>, ReservedName),
    Rollback(Box<PreparedRollback>),
}

/// A rollback with the state that was read for it.
pub(crate) struct PreparedRollback {
    rollback: Rollback,
    known: Result<ContextSnapshot, Refusal>,
}

impl PreparedRollback {
    /// Reads the state that a rollback returns to.
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

    /// The request for a checkpoint of the current state, which comes first. Refused if the rollback would be.
    pub(super) fn prior(&self, world: &World, by: &Actor) -> Result<Request, Refusal> {
        self.rollback.check(world, by)?;
        self.known.as_ref().map_err(Refusal::clone)?;
        let (agent, name, kind) = (self.rollback.target().clone(), None, CheckpointKind::Rollback);
        Ok(Request::Checkpoint(Checkpoint { agent, name, kind }))
    }

    /// The rollback itself, with the reply to [`prior`](Self::prior). Gives the contexts what was read, for the next
    /// event.
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
    /// Rolls an agent back to a checkpoint: the checkpoint's own agent, or `into` another one of its tree. Its
    /// running work is stopped, children that did not exist then are cancelled, and its next turn follows. What was
    /// spent stays spent.
    ///
    /// # Errors
    /// The refusal, or why the tree is not running.
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
        self.ask(rollback).await
    }

    /// A request with what had to be read for it.
    pub(super) async fn prepared(&self, request: Request) -> Result<Requested, Refusal> {
        let Request::Rollback(rollback) = request else {
            let name = ReservedName::new(self.journal(), self.claim, &request).await?;
            return Ok(Requested::Plain(Box::new(request), name));
        };
        let back = PreparedRollback::read(self.journal().as_ref(), self.id(), rollback).await;
        Ok(Requested::Rollback(Box::new(back)))
    }
}
