//! A run as `spinney exec` has it: a tree with its journal in SQLite, a gateway, and its key.

use std::sync::Arc;
use std::time::Duration;

use spinney::{Access, Drivers, Home, Shutdown, SqliteJournal};
use spinney_kernel::budget::Price;
use spinney_server::gateway::{
    Bodies, ExecBudget, Gateway, GatewayModel, GatewaySettings, GatewaySocket, ModelRules, OnLimit,
    PendingCalls, UpstreamKey, UpstreamServer, UpstreamServers, WaitTimes, exec_definition,
};
use tempfile::TempDir;

use crate::mock::Mock;
use crate::raw_client::Target;

/// A million dollars, so no call waits for another.
const CEILING_NANOS: u64 = 1_000_000_000_000_000;

pub(crate) struct ExecRun {
    pub(crate) gateway: Gateway,
    home: Home,
    folder: TempDir,
}

impl ExecRun {
    /// A run whose provider answers in one of the mock's ways.
    pub(crate) async fn start(mock: &Mock, way: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let journal = SqliteJournal::open(&folder.path().join("home"), Access::Write).unwrap();
        let pending_calls = Arc::new(PendingCalls::new());
        let driver = Arc::new(GatewayModel::new(Arc::clone(&pending_calls)));
        let home = Home::open(Arc::new(journal), Drivers::new().with_any_model(driver));
        let budget = ExecBudget { cost_nanos: Some(CEILING_NANOS), ..ExecBudget::default() };
        let tree = home.start(exec_definition("bench", "bench", &budget).unwrap()).await.unwrap();
        let server = |key| UpstreamServer {
            base_url: Some(mock.base_url(way)),
            key: Some(key),
            key_variable: "SOME_KEY",
            kind: None,
        };
        let settings = GatewaySettings {
            servers: UpstreamServers {
                anthropic: server(UpstreamKey::ApiKey("sk-of-the-user".to_owned())),
                open_ai: server(UpstreamKey::Bearer("sk-of-the-user".to_owned())),
                gemini: server(UpstreamKey::Google("sk-of-the-user".to_owned())),
            },
            models: ModelRules {
                prices: [("m".parse().unwrap(), Price::flat(3_000_000_000, 15_000_000_000))].into(),
                ..ModelRules::default()
            },
            child_cost_nanos: None,
            agents_max: None,
            tells_remaining: false,
            on_limit: OnLimit::Wait(Duration::from_secs(600)),
            bodies: Bodies::Kept,
            waiting: WaitTimes::default(),
            upstream: Default::default(),
            permitted: Default::default(),
            ask_person: None,
            secrets: Vec::new(),
        };
        let socket = GatewaySocket::bind(None).await.unwrap();
        let gateway = Gateway::start(tree, pending_calls, settings, Arc::new(|_| {}), socket).await.unwrap();
        Self { gateway, home, folder }
    }

    pub(crate) fn target(&self) -> Target {
        Target { address: self.gateway.address(), way: "", key: self.gateway.key().text().to_owned() }
    }

    pub(crate) async fn close(self) {
        self.gateway.close(async {}).await;
        self.home.shutdown(Shutdown::Stop).await;
        self.folder.close().unwrap();
    }
}
