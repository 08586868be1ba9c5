//! The handle of a running tree: requests, signals, views, and subscriptions to its events.

mod apply;
mod ask;
mod asked_model;
mod branch;
mod connections;
mod effects;
mod enclosed;
mod fill;
mod free_budget;
mod gate;
mod gather;
mod hooked;
mod incoming;
mod live_state;
mod live_text;
mod outage;
mod output;
mod payload;
mod person;
mod prepared;
mod program;
mod redacted;
mod replay;
mod rollback;
mod run;
mod shared;
mod snapshot;
mod stored;
mod timers;
mod unfit;

use spinney_journal::{ChainHash, Claim, Journal, JournalFault};
use spinney_kernel::definition::{Refusal, RememberedApproval};
use spinney_kernel::primitives::{
    Actor, AgentId, Body, CallId, CheckpointName, Correlation, Enclosure, ModelName, Seq, Time, TreeId,
    enclose,
};
use spinney_kernel::rules::report::{Rate, RateKind};
use spinney_kernel::rules::request::{
    Answer, Cancel, Checkpoint, OtherReply, Pause, Raise, Redirect, Reply, Request, Send, Unpause, Verb,
};
use spinney_kernel::world::TreeState;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

use crate::bus::{Hub, Watch, Watcher};
use crate::drivers::Drivers;
use crate::output_schema;

pub use apply::ApplyError;
pub(crate) use apply::apply;
pub use branch::{BranchError, BranchOff};
pub(crate) use branch::{branch, continue_ended};
pub(crate) use fill::NotFilled;
pub use free_budget::{FreeBudget, ScarcestCeiling};
pub use gather::{Quorum, Replies, ReplyError};
pub use incoming::IncomingTree;
pub use output::OutputError;
pub use program::{ProgramRun, ProgramRunner, ProgramSessions};
pub use replay::{Diverged, Verified, verify};
pub(crate) use run::{Begin, Seed, begin, claimed, release};
pub use shared::{shared_json, shared_values};
pub use snapshot::{OpenQuestion, TreeSnapshot};
pub use spinney_kernel::context::ProgramPast;
pub use stored::{Stored, stored};
pub use unfit::is_checking_events;

/// Capacity of the request channel; beyond it, callers wait.
const REQUESTS_MAX: usize = 256;

/// A running tree. Clones are handles of the same tree; dropping them all leaves it running.
#[derive(Clone)]
pub struct Tree {
    id: TreeId,
    /// Who makes requests through this handle.
    actor: Actor,
    requests: mpsc::Sender<TreeCommand>,
    status: watch::Receiver<TreeStatus>,
    hub: Arc<Hub>,
    journal: Arc<dyn Journal>,
    /// To count tokens in the caller's task.
    drivers: Drivers,
    /// Of the process that runs it.
    claim: Claim,
}

/// A tree's durable progress.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TreeStatus {
    /// Its last event.
    pub seq: Seq,
    /// The hash over all events.
    pub hash: Option<ChainHash>,
    /// Its state.
    pub state: TreeState,
    /// Why its journal cannot be reached at the moment: it waits, and nothing is lost.
    pub unavailable: Option<JournalFault>,
    /// The last look, once it is no longer run.
    pub last: Option<Arc<TreeSnapshot>>,
    /// Why it is no longer run, if it has not ended.
    pub stopped: Option<Stopped>,
}

/// Why a tree is no longer run although it has not ended. It can be resumed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// The home was shut down.
    #[error("the home was shut down: resume the tree to continue")]
    Shutdown,
    /// Its journal failed.
    #[error(transparent)]
    Journal(JournalFault),
    /// Something that cannot happen did.
    #[error("this tree stopped at a bug; its journal is intact: please report it")]
    Bug,
}

/// Why a request was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It was refused.
    #[error(transparent)]
    Refused(Refusal),
    /// The tree is not running.
    #[error(transparent)]
    Stopped(Stopped),
    /// The reply belongs to another request. This one may have been done.
    #[error(transparent)]
    Reply(OtherReply),
}

pub(crate) enum TreeCommand {
    Request { by: Actor, request: Enclosing, answer: oneshot::Sender<Result<Reply, Refusal>> },
    TreeSnapshot(oneshot::Sender<TreeSnapshot>),
    Limit(Rate),
    FreeBudget { agent: AgentId, answer: oneshot::Sender<Option<FreeBudget>> },
}

pub(crate) struct Enclosing {
    request: rollback::Requested,
    blobs: Vec<Vec<u8>>,
}

impl Tree {
    /// Its id.
    #[must_use]
    pub const fn id(&self) -> TreeId {
        self.id
    }

    /// Sends a request. The reply comes when it is durable.
    ///
    /// # Errors
    /// The refusal, or why the tree is not running.
    pub async fn request<V: Verb>(&self, by: Actor, verb: V) -> Result<V::Reply, RequestError> {
        self.request_with(by, verb, Vec::new()).await
    }

    /// Sends a request with the bytes of its images and files. They are blobs of the tree when the reply comes.
    ///
    /// # Errors
    /// The refusal, or why the tree is not running.
    pub async fn request_with<V: Verb>(
        &self,
        by: Actor,
        verb: V,
        bytes: Vec<Vec<u8>>,
    ) -> Result<V::Reply, RequestError> {
        let reply = self.request_any(by, verb.into(), bytes).await?;
        reply
            .try_into()
            .map_err(|other: <V::Reply as TryFrom<Reply>>::Error| RequestError::Reply(other.into()))
    }

    async fn request_any(
        &self,
        by: Actor,
        mut request: Request,
        bytes: Vec<Vec<u8>>,
    ) -> Result<Reply, RequestError> {
        output_schema::check_request(&request).map_err(RequestError::Refused)?;
        self.drivers.count(&mut request);
        let blobs = enclosed::enclosed(&self.drivers, &mut request, bytes).map_err(RequestError::Refused)?;
        let request = self.prepared(request).await.map_err(RequestError::Refused)?;
        let request = Enclosing { request, blobs };
        match ask::ask(&self.requests, |answer| TreeCommand::Request { by, request, answer }).await {
            Some(reply) => reply.map_err(RequestError::Refused),
            None => Err(self.gone()),
        }
    }

    async fn ask<V: Verb>(&self, verb: V) -> Result<V::Reply, RequestError> {
        self.request(self.actor.clone(), verb).await
    }

    /// This tree for another actor: who makes the requests of [`send`](Self::send), [`cancel`](Self::cancel) and all
    /// others that are not told. At first it is the home's.
    #[must_use]
    pub fn with_actor(mut self, actor: Actor) -> Self {
        self.actor = actor;
        self
    }

    /// Sends a message to an agent.
    ///
    /// # Errors
    /// The refusal, or why the tree is not running.
    pub async fn send(&self, to: AgentId, text: impl Into<String>) -> Result<(), RequestError> {
        self.ask(Send::plain(to, Body::text(text))).await.map(drop)
    }

    /// Sends a message with images and files to an agent.
    ///
    /// # Errors
    /// The refusal, or why the tree is not running.
    pub async fn send_with(
        &self,
        to: AgentId,
        text: impl Into<String>,
        enclosures: Vec<Enclosure>,
    ) -> Result<(), RequestError> {
        let (parts, bytes) = enclose(enclosures).map_err(|bad| RequestError::Refused(bad.into()))?;
        let send = Send::plain(to, Body::text(text).with_parts(parts));
        self.request_with(self.actor.clone(), send, bytes).await.map(drop)
    }

    /// Answers a question.
    ///
    /// # Errors
    /// The refusal, or why the tree is not running.
    pub async fn answer(&self, question: CallId, text: impl Into<String>) -> Result<(), RequestError> {
        self.ask(Answer::new(question, text)).await.map(drop)
    }

    /// Approves the tool call of a question, and others like it from now on: at most what the question offers
    /// ([`OpenQuestion::offers`]).
    ///
    /// # Errors
    /// The refusal, or why the tree is not running.
    pub async fn answer_always(
        &self,
        question: CallId,
        remember: RememberedApproval,
    ) -> Result<(), RequestError> {
        self.ask(Answer::always(question, remember)).await.map(drop)
    }

    /// Cancels an agent and everything below it.
    ///
    /// # Errors
    /// The refusal, or why the tree is not running.
    pub async fn cancel(&self, agent: AgentId, reason: impl Into<String>) -> Result<(), RequestError> {
        self.ask(Cancel { agent, reason: reason.into() }).await.map(drop)
    }

    /// Pauses an agent and everything below it.
    ///
    /// # Errors
    /// The refusal, or why the tree is not running.
    pub async fn pause(&self, agent: AgentId) -> Result<(), RequestError> {
        self.ask(Pause { agent }).await.map(drop)
    }

    /// Ends a pause.
    ///
    /// # Errors
    /// The refusal, or why the tree is not running.
    pub async fn unpause(&self, agent: AgentId) -> Result<(), RequestError> {
        self.ask(Unpause::now(agent)).await.map(drop)
    }

    /// Gives an agent a new instruction.
    ///
    /// # Errors
    /// The refusal, or why the tree is not running.
    pub async fn redirect(&self, redirect: Redirect) -> Result<(), RequestError> {
        self.ask(redirect).await.map(drop)
    }

    /// Raises the ceilings of an agent.
    ///
    /// # Errors
    /// The refusal, or why the tree is not running.
    pub async fn raise(&self, raise: Raise) -> Result<(), RequestError> {
        self.ask(raise).await.map(drop)
    }

    /// Gives an agent's current context a name in the home; generated if `None`.
    ///
    /// # Errors
    /// The refusal, or why the tree is not running.
    pub async fn checkpoint(
        &self,
        agent: AgentId,
        name: Option<CheckpointName>,
    ) -> Result<CheckpointName, RequestError> {
        Ok(self.ask(Checkpoint::manual(agent, name)).await?.name)
    }

    /// A view of the tree; the last one once it is no longer run.
    ///
    /// # Errors
    /// Why the tree is not running, if its last view is unknown.
    pub async fn snapshot(&self) -> Result<TreeSnapshot, RequestError> {
        if let Some(snapshot) = ask::ask(&self.requests, TreeCommand::TreeSnapshot).await {
            return Ok(snapshot);
        }
        match self.status.borrow().last.clone() {
            Some(snapshot) => Ok(TreeSnapshot::clone(&snapshot)),
            None => Err(self.gone()),
        }
    }

    /// Lets calls of a model wait until a moment, because its provider takes none of this account until then. A moment that
    /// has passed lifts that. A tree that no longer runs takes nothing.
    pub async fn limit_model(&self, model: &ModelName, until: Time) {
        let rate = Rate { model: model.clone(), until, cause: RateKind::Window };
        // A tree that has ended has no calls.
        let _ = self.requests.send(TreeCommand::Limit(rate)).await;
    }

    /// What an agent can use now; `None` if the agent has ended or the tree no longer runs. Other calls may take it at any
    /// moment: only a request holds budget.
    pub async fn free_budget(&self, agent: &AgentId) -> Option<FreeBudget> {
        let agent = agent.clone();
        ask::ask(&self.requests, |answer| TreeCommand::FreeBudget { agent, answer }).await.flatten()
    }

    /// Its durable progress.
    #[must_use]
    pub fn status(&self) -> TreeStatus {
        self.status.borrow().clone()
    }

    /// Waits until it has ended or is no longer run.
    pub async fn ended(&self) -> TreeStatus {
        self.until(|status| matches!(status.state, TreeState::Ended(_))).await
    }

    /// Waits until it cannot continue on its own: it has ended, is halted or paused, waits for a person, or is no
    /// longer run.
    pub async fn settled(&self) -> TreeStatus {
        // A tree that is being stopped counts as running until its running calls have ended.
        let moves = |status: &TreeStatus| {
            matches!(status.state, TreeState::New | TreeState::Running | TreeState::Suspended)
        };
        self.until(|status| !moves(status)).await
    }

    /// Waits until its start is durable.
    pub(crate) async fn begun(&self) -> Result<(), Stopped> {
        let status = self.until(|status| status.seq > Seq(0)).await;
        match status.stopped {
            Some(stopped) if status.seq == Seq(0) => Err(stopped),
            Some(_) | None => Ok(()),
        }
    }

    async fn until(&self, done: impl Fn(&TreeStatus) -> bool) -> TreeStatus {
        let mut status = self.status.clone();
        let found = status.wait_for(|status| done(status) || status.stopped.is_some()).await;
        if let Ok(found) = found {
            return found.clone();
        }
        // The task ended without a status.
        let mut last = self.status.borrow().clone();
        if !matches!(last.state, TreeState::Ended(_)) {
            last.stopped.get_or_insert(Stopped::Bug);
        }
        last
    }

    /// Subscribes to its events, from any event on, each once and in order, until it is no longer run. Use
    /// [`Tail`](crate::bus::Tail) for a tree that another process runs.
    #[must_use]
    pub fn watch(&self, watch: Watch) -> Watcher {
        Watcher::new(Arc::clone(&self.hub), watch)
    }

    /// Number of watchers, and of keys kept for what they ask for.
    #[must_use]
    pub fn watchers(&self) -> (usize, usize) {
        self.hub.count()
    }

    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    pub(crate) fn draw_correlation(&self) -> Correlation {
        self.hub.draw_correlation()
    }

    fn gone(&self) -> RequestError {
        let status = self.status.borrow();
        match (&status.stopped, status.state) {
            (Some(stopped), _) => RequestError::Stopped(stopped.clone()),
            (None, TreeState::Ended(_)) => RequestError::Refused(Refusal::TreeEnded),
            (
                None,
                TreeState::New
                | TreeState::Running
                | TreeState::Waiting
                | TreeState::Paused
                | TreeState::Suspended
                | TreeState::Halted
                | TreeState::Moved
                | TreeState::Copied,
            ) => RequestError::Stopped(Stopped::Bug),
        }
    }
}
