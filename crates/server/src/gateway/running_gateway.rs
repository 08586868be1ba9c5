//! A gateway that runs: its address, its key, how it starts and how it ends.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use spinney::Tree;
use spinney::tree::RequestError;
use spinney_drivers::prices::{PriceTable, PriceTableError};
use spinney_kernel::words::IdError;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{interval, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::agents::Agents;
use super::definition::AGENT;
use super::events::Follower;
use super::halted_call::HaltedCall;
use super::kept_response::ResponseMemory;
use super::key::RunKey;
use super::models::Models;
use super::notice::OnNotice;
use super::pending_calls::PendingCalls;
use super::refusals::{Refusals, RefusedRequests};
use super::request_body::BodyMemory;
use super::retries::Retries;
use super::run::{CountedInputs, GivenUp, Run};
use super::settings::GatewaySettings;
use super::upstream::Upstream;
use super::{events, listen};

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
    /// [`GatewayModel`](super::GatewayModel) on the same `pending_calls`.
    ///
    /// # Errors
    /// What is missing. Nothing listens then.
    pub async fn start(
        tree: Tree,
        pending_calls: Arc<PendingCalls>,
        settings: GatewaySettings,
        on_notice: OnNotice,
    ) -> Result<Self, GatewayStartError> {
        let look = tree.look().await.map_err(GatewayStartError::Tree)?;
        let role = AGENT.parse().map_err(GatewayStartError::Name)?;
        let agents = Agents::new(&look, role, settings.child_cost_nanos).ok_or(GatewayStartError::NoRoot)?;
        let table = PriceTable::embedded().map_err(GatewayStartError::Prices)?;
        let models = Arc::new(Models::new(settings.models.clone(), table));
        let upstream = Upstream::new(settings.anthropic.clone(), settings.open_ai.clone(), settings.upstream)
            .map_err(GatewayStartError::Client)?;
        let key = RunKey::draw().map_err(GatewayStartError::Key)?;
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(GatewayStartError::Listen)?;
        let address = listener.local_addr().map_err(GatewayStartError::Listen)?;
        let halted = look.halted.clone().map(|halt| HaltedCall { halt, large_cap: None });
        let (halted, halt) = watch::channel(halted);
        let given_up = GivenUp::default();
        let run = Arc::new(Run {
            tree: tree.clone(),
            key,
            settings,
            pending_calls: Arc::clone(&pending_calls),
            agents,
            models: Arc::clone(&models),
            upstream,
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
            refusals: Refusals::default(),
            inputs: CountedInputs::default(),
        });
        let follower = Follower::new(pending_calls, models, halted, given_up, on_notice);
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

    /// How many requests of the program have come, also those that were refused.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.run.requests.load(Ordering::Relaxed)
    }

    /// How many calls wait whose programs have closed their connections.
    #[must_use]
    pub fn abandoned_calls(&self) -> usize {
        self.run.retries.count()
    }

    /// Takes no more requests and lets running calls end, until it is `enough`: a provider bills on after its client is
    /// gone, and only the end of its response says how much.
    /// Returns which requests got an error of its own, if any did.
    pub async fn close(self, enough: impl Future<Output = ()>) -> Option<RefusedRequests> {
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
        self.run.refusals.get()
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
