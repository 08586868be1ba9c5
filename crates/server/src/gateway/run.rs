//! A gateway that runs: its address, its key, and what all its connections share.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spinney::Tree;
use spinney::tree::RequestError;
use spinney_drivers::prices::{PriceTable, PriceTableError};
use spinney_kernel::words::{AgentId, IdError};
use spinney_kernel::world::Halt;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{interval, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::agents::Agents;
use super::bytes::{GatewayError, GatewayErrorKind, KnownInput};
use super::definition::AGENT;
use super::events::Follower;
use super::key::RunKey;
use super::models::Models;
use super::notice::OnNotice;
use super::rendezvous::Rendezvous;
use super::request_body::BodyMemory;
use super::retries::Retries;
use super::settings::GatewaySettings;
use super::upstream::Upstream;
use super::{events, listen};

/// How often silent agents are looked for.
const COLLECT_EVERY: Duration = Duration::from_secs(60);
const COLLECT_EVERY_MIN: Duration = Duration::from_millis(10);
/// How long calls may take to end that were broken off: all of them wait for it, so this is for a journal that hangs.
const BROKEN_OFF: Duration = Duration::from_secs(15);
/// Most inputs of earlier calls that are kept to bound later ones.
const INPUTS_MAX: usize = 256;

/// A gateway that runs. Dropping it ends it at once; [`close`](Self::close) lets calls end.
pub struct Gateway {
    run: Arc<Run>,
    address: SocketAddr,
    listening: JoinHandle<()>,
    following: JoinHandle<()>,
    collecting: JoinHandle<()>,
}

/// What the connections of a gateway share.
pub(super) struct Run {
    pub(super) tree: Tree,
    pub(super) key: RunKey,
    pub(super) settings: GatewaySettings,
    pub(super) rendezvous: Arc<Rendezvous>,
    pub(super) agents: Agents,
    pub(super) models: Models,
    pub(super) upstream: Upstream,
    pub(super) retries: Retries,
    pub(super) bodies: BodyMemory,
    pub(super) halt: watch::Receiver<Option<Halt>>,
    pub(super) given_up: GivenUp,
    pub(super) on_notice: OnNotice,
    /// No more connections are taken.
    pub(super) closing: CancellationToken,
    /// Calls that still run are broken off.
    pub(super) broken_off: CancellationToken,
    pub(super) calls: TaskTracker,
    inputs: Mutex<VecDeque<(AgentId, String, Arc<KnownInput>)>>,
}

/// Whether nobody came when a call waited for a person: then no other call waits for one, until a call starts
/// or a ceiling is raised.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenUp(Arc<AtomicBool>);

impl GivenUp {
    pub(super) fn set(&self, is_given_up: bool) {
        self.0.store(is_given_up, Ordering::Release);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Why a gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum GatewayStartError {
    #[error("cannot listen on this machine's own address: {0}")]
    Listen(#[source] io::Error),
    #[error("no random key: {0}")]
    Key(#[source] io::Error),
    #[error("the HTTP client cannot be set up: {0}")]
    Client(#[source] reqwest::Error),
    #[error(transparent)]
    Prices(PriceTableError),
    #[error(transparent)]
    Name(IdError),
    #[error(transparent)]
    Tree(RequestError),
    #[error("the tree has no root: its journal is empty")]
    NoRoot,
}

impl Gateway {
    /// Starts a gateway for a tree of [`exec_definition`](super::exec_definition) whose driver is a
    /// [`GatewayModel`](super::GatewayModel) on the same `rendezvous`.
    ///
    /// # Errors
    /// What is missing. Nothing listens then.
    pub async fn start(
        tree: Tree,
        rendezvous: Arc<Rendezvous>,
        settings: GatewaySettings,
        on_notice: OnNotice,
    ) -> Result<Self, GatewayStartError> {
        let look = tree.look().await.map_err(GatewayStartError::Tree)?;
        let role = AGENT.parse().map_err(GatewayStartError::Name)?;
        let agents = Agents::new(&look, role, settings.child_cost_nanos).ok_or(GatewayStartError::NoRoot)?;
        let table = PriceTable::embedded().map_err(GatewayStartError::Prices)?;
        let models = Models::new(settings.models.clone(), table);
        let upstream = Upstream::new(settings.anthropic.clone(), settings.open_ai.clone(), settings.upstream)
            .map_err(GatewayStartError::Client)?;
        let key = RunKey::draw().map_err(GatewayStartError::Key)?;
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(GatewayStartError::Listen)?;
        let address = listener.local_addr().map_err(GatewayStartError::Listen)?;
        let (halted, halt) = watch::channel(look.halted.clone());
        let given_up = GivenUp::default();
        let run = Arc::new(Run {
            tree: tree.clone(),
            key,
            settings,
            rendezvous: Arc::clone(&rendezvous),
            agents,
            models,
            upstream,
            retries: Retries::default(),
            bodies: BodyMemory::default(),
            halt,
            given_up: given_up.clone(),
            on_notice: Arc::clone(&on_notice),
            closing: CancellationToken::new(),
            broken_off: CancellationToken::new(),
            calls: TaskTracker::new(),
            inputs: Mutex::default(),
        });
        let follower = Follower { rendezvous, halt: halted, given_up, on_notice };
        let following = tokio::spawn(events::follow(tree, look.seq, follower));
        let listening = tokio::spawn(listen::listen(listener, Arc::clone(&run)));
        let collecting = tokio::spawn(collect(Arc::clone(&run)));
        Ok(Self { run, address, listening, following, collecting })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    #[must_use]
    pub fn key(&self) -> &RunKey {
        &self.run.key
    }

    /// How many calls are waiting or running.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.run.calls.len()
    }

    /// How many calls wait whose programs have closed their connections.
    #[must_use]
    pub fn abandoned_calls(&self) -> usize {
        self.run.retries.count()
    }

    /// Takes no more requests and lets running calls end, until it is `enough`: a provider bills on after its client is
    /// gone, and only the end of its response says how much.
    pub async fn close(self, enough: impl Future<Output = ()>) {
        self.run.closing.cancel();
        self.run.calls.close();
        let is_quiet = tokio::select! {
            () = self.run.calls.wait() => true,
            () = enough => false,
        };
        if !is_quiet {
            self.run.broken_off.cancel();
            if timeout(BROKEN_OFF, self.run.calls.wait()).await.is_err() {
                tracing::error!(tree = %self.run.tree.id(), calls = self.run.calls.len(), "calls do not end");
            }
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.run.closing.cancel();
        self.run.broken_off.cancel();
        self.collecting.abort();
        self.listening.abort();
        self.following.abort();
    }
}

impl Run {
    /// The input of an agent's last call on a model, if its provider counted it.
    pub(super) fn known_input(&self, agent: &AgentId, model: &str) -> Option<Arc<KnownInput>> {
        let inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        let found = inputs.iter().find(|(whose, of, _)| whose == agent && of == model);
        found.map(|(_, _, known)| Arc::clone(known))
    }

    pub(super) fn keep_input(&self, agent: &AgentId, model: &str, known: KnownInput) {
        let mut inputs = self.inputs.lock().unwrap_or_else(PoisonError::into_inner);
        inputs.retain(|(whose, of, _)| whose != agent || of != model);
        if inputs.len() >= INPUTS_MAX {
            inputs.pop_front();
        }
        inputs.push_back((agent.clone(), model.to_owned(), Arc::new(known)));
    }

    /// The error of a call whose run has ended.
    pub(super) fn over(&self) -> GatewayError {
        let message = "spinney: this run was cancelled or has ended";
        GatewayError::new(GatewayErrorKind::Ended, message)
    }
}

async fn collect(run: Arc<Run>) {
    let silent = run.settings.waiting.silent;
    let mut ticks = interval(silent.clamp(COLLECT_EVERY_MIN, COLLECT_EVERY));
    loop {
        ticks.tick().await;
        run.agents.collect(&run.tree, silent).await;
    }
}
