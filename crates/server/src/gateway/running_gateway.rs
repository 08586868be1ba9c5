//! A gateway that runs: its address, its key, how it starts and how it ends.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spinney::Tree;
use spinney::tree::{RequestError, TreeSnapshot};
use spinney_drivers::prices::{PriceTable, PriceTableError};
use spinney_drivers::wire::{RequestName, Secrets};
use spinney_kernel::primitives::{AgentId, IdError, RoleName};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{interval, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::agents::{AgentTerms, Agents, members};
use super::counter::Counter;
use super::definition::AGENT;
use super::events::Follower;
use super::halted_call::HaltedCall;
use super::kept_response::ResponseMemory;
use super::key::RunKey;
use super::models::Models;
use super::notice::OnNotice;
use super::pending_calls::PendingCalls;
use super::permissions::Permissions;
use super::refusals::{Refusals, RefusedRequests};
use super::request_body::BodyMemory;
use super::retries::Retries;
use super::run::{CountedInputs, GivenUp, Run};
use super::settings::GatewaySettings;
use super::upstream::Upstream;
use super::{events, listen};

/// A shorter key is a word like `none`, as servers without keys want one, and stays in what is kept.
const KEPT_KEY_BYTES_MIN: usize = 8;
/// How often silent agents are looked for.
const COLLECT_EVERY: Duration = Duration::from_secs(60);
const COLLECT_EVERY_MIN: Duration = Duration::from_millis(10);
/// How long calls may take to end that were broken off: all of them wait for it, so this is for a journal that hangs.
const BROKEN_OFF: Duration = Duration::from_secs(15);

/// A gateway that runs. Dropping it ends it at once; [`close`](Self::close) lets calls end.
pub struct Gateway {
    run: Arc<Run>,
    address: SocketAddr,
    listening: JoinHandle<()>,
    following: JoinHandle<()>,
    collecting: JoinHandle<()>,
}

/// The address of a gateway, before it starts: on this machine only.
#[derive(Debug)]
pub struct GatewaySocket {
    listener: TcpListener,
    address: SocketAddr,
}

impl GatewaySocket {
    /// Takes a port, or any that is free.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub async fn bind(port: Option<u16>) -> Result<Self, GatewayStartError> {
        let asked = SocketAddr::from((Ipv4Addr::LOCALHOST, port.unwrap_or(0)));
        let bound = async {
            let listener = TcpListener::bind(asked).await?;
            Ok((listener.local_addr()?, listener))
        };
        let bound: io::Result<(SocketAddr, TcpListener)> = bound.await;
        let (address, listener) =
            bound.map_err(|error| GatewayStartError::Listen { address: asked, error })?;
        Ok(Self { listener, address })
    }
}

/// What the user should know about the requests of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayReport {
    /// The requests that got an error from the gateway itself.
    pub refused: RefusedRequests,
    /// The number of calls that got a smaller output cap than they asked for.
    pub capped: u64,
    /// For each name whose cost has no bound, the number of calls that had it.
    pub outside_bound: BTreeMap<RequestName, u64>,
}

/// Why a gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum GatewayStartError {
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: io::Error },
    #[error("cannot create a random key: {0}")]
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
    /// [`GatewayModel`](super::GatewayModel) on the same `pending_calls`.
    ///
    /// # Errors
    /// What is missing. Then nothing listens.
    pub async fn start(
        tree: Tree,
        pending_calls: Arc<PendingCalls>,
        settings: GatewaySettings,
        on_notice: OnNotice,
        socket: GatewaySocket,
    ) -> Result<Self, GatewayStartError> {
        let snapshot = tree.snapshot().await.map_err(GatewayStartError::Tree)?;
        let role = AGENT.parse().map_err(GatewayStartError::Name)?;
        let agents = Agents::new(&snapshot, role, agent_terms(&settings)).ok_or(GatewayStartError::NoRoot)?;
        Self::start_with(tree, (snapshot, agents), pending_calls, settings, on_notice, socket)
    }

    /// Starts a gateway for the program that is an agent of a tree. Its calls are that agent's, and its sub-agents are of the
    /// same role.
    ///
    /// # Errors
    /// What is missing. Then nothing listens.
    pub async fn start_below(
        tree: Tree,
        (agent, role): (AgentId, RoleName),
        pending_calls: Arc<PendingCalls>,
        settings: GatewaySettings,
        on_notice: OnNotice,
        socket: GatewaySocket,
    ) -> Result<Self, GatewayStartError> {
        let snapshot = tree.snapshot().await.map_err(GatewayStartError::Tree)?;
        let agents = Agents::below(&snapshot, agent, role, agent_terms(&settings));
        Self::start_with(tree, (snapshot, agents), pending_calls, settings, on_notice, socket)
    }

    fn start_with(
        tree: Tree,
        (snapshot, agents): (TreeSnapshot, Agents),
        pending_calls: Arc<PendingCalls>,
        settings: GatewaySettings,
        on_notice: OnNotice,
        socket: GatewaySocket,
    ) -> Result<Self, GatewayStartError> {
        let members = members(&snapshot, agents.root());
        let table = PriceTable::embedded().map_err(GatewayStartError::Prices)?;
        let models = Arc::new(Models::new(settings.models.clone(), table));
        let upstream =
            Upstream::new(settings.servers.clone(), settings.upstream).map_err(GatewayStartError::Client)?;
        let key = RunKey::draw().map_err(GatewayStartError::Key)?;
        let keys = settings.servers.keys().filter(|key| key.len() >= KEPT_KEY_BYTES_MIN).chain([key.text()]);
        let keys = keys.chain(settings.secrets.iter().map(String::as_str));
        let kept_secrets = Secrets::new(keys.map(str::to_owned));
        let GatewaySocket { listener, address } = socket;
        let halted = snapshot.halted.clone().map(|halt| HaltedCall { halt, large_cap: None });
        let (halted, halt) = watch::channel(halted);
        let given_up = GivenUp::default();
        let permissions = Permissions::new(settings.permitted.clone(), settings.ask_person.clone());
        let run = Arc::new(Run {
            tree: tree.clone(),
            key,
            settings,
            pending_calls: Arc::clone(&pending_calls),
            agents,
            models: Arc::clone(&models),
            upstream,
            kept_secrets,
            retries: Retries::default(),
            bodies: BodyMemory::default(),
            responses: ResponseMemory::default(),
            halt,
            given_up: given_up.clone(),
            on_notice: Arc::clone(&on_notice),
            closing: CancellationToken::new(),
            broken_off: CancellationToken::new(),
            calls: TaskTracker::new(),
            requests: AtomicU64::new(0),
            calls_asked: AtomicU64::new(0),
            refusals: Refusals::default(),
            has_met_another_key: AtomicBool::new(false),
            has_met_another_answer: AtomicBool::new(false),
            inputs: CountedInputs::default(),
            counter: Counter::default(),
            opaque: Mutex::default(),
            permissions,
            capped: AtomicU64::new(0),
        });
        let follower = Follower::new(members, pending_calls, models, halted, given_up, on_notice);
        let following = tokio::spawn(events::follow(tree, snapshot.seq, follower));
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

    /// How many requests of the program have come, also those that were refused.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.run.requests.load(Ordering::Relaxed)
    }

    /// How many model calls the program has asked for, also those that were refused.
    #[must_use]
    pub fn calls_asked(&self) -> u64 {
        self.run.calls_asked.load(Ordering::Relaxed)
    }

    /// Whether a call was given up at a ceiling, and none has started and no ceiling was raised since.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.run.given_up.is_set()
    }

    /// How many calls wait whose programs have closed their connections.
    #[must_use]
    pub fn abandoned_calls(&self) -> usize {
        self.run.retries.count()
    }

    /// Takes no more requests and lets running calls end, until it is `enough`: a provider bills on after its client is
    /// gone, and only the end of its response says how much.
    /// Returns what the user should know about its requests.
    pub async fn close(self, enough: impl Future<Output = ()>) -> GatewayReport {
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
        GatewayReport {
            refused: self.run.refusals.get(),
            capped: self.run.capped.load(Ordering::Relaxed),
            outside_bound: self.run.permissions.used(),
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

async fn collect(run: Arc<Run>) {
    let silent = run.settings.waiting.silent;
    let mut ticks = interval(silent.clamp(COLLECT_EVERY_MIN, COLLECT_EVERY));
    loop {
        ticks.tick().await;
        run.agents.collect(&run.tree, silent).await;
    }
}

const fn agent_terms(settings: &GatewaySettings) -> AgentTerms {
    AgentTerms { cost_nanos: settings.child_cost_nanos, agents_max: settings.agents_max }
}
