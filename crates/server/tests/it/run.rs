//! A run for tests: a tree in memory, a gateway, and a client with its key. A token of output costs a tenth of a cent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use spinney::tree::TreeSnapshot;
use spinney::{Drivers, Home, Journal, MemoryJournal, Tree};
use spinney_kernel::budget::{Amounts, Price, Resource};
use spinney_kernel::primitives::Seq;
use spinney_kernel::record::Event;
use spinney_kernel::rules::request::Raise;
use spinney_server::gateway::{
    Bodies, ExecBudget, Gateway, GatewayModel, GatewaySettings, GatewaySocket, ModelRules, Notice, OnLimit,
    PendingCalls, UpstreamKey, UpstreamServer, UpstreamServers, WaitTimes, exec_definition,
};
use tokio::sync::watch;

use crate::provider::{Format, Provider};

/// The user's own key, which only the provider may see.
pub(crate) const USER_KEY: &str = "sk-the-users-own-key-0123456789";
/// What a token of output costs, in nano-dollars.
pub(crate) const TOKEN: u64 = 1_000_000;

pub(crate) struct TestRun {
    pub(crate) home: Arc<Home>,
    pub(crate) tree: Tree,
    pub(crate) gateway: Gateway,
    pub(crate) client: reqwest::Client,
    pub(crate) notices: watch::Receiver<Vec<Notice>>,
    pub(crate) pending_calls: Arc<PendingCalls>,
}

pub(crate) fn budget(cost: u64) -> ExecBudget {
    ExecBudget { cost_nanos: Some(cost * TOKEN), ..ExecBudget::default() }
}

pub(crate) fn settings(provider: &Provider) -> GatewaySettings {
    let server = |key| UpstreamServer {
        base_url: Some(format!("http://{}/v1", provider.address)),
        key: Some(key),
        key_variable: "SOME_KEY",
        kind: None,
    };
    GatewaySettings {
        servers: UpstreamServers {
            anthropic: server(UpstreamKey::ApiKey(USER_KEY.to_owned())),
            open_ai: server(UpstreamKey::Bearer(USER_KEY.to_owned())),
            gemini: server(UpstreamKey::Google(USER_KEY.to_owned())),
        },
        models: ModelRules {
            prices: [("m".parse().unwrap(), Price::flat(0, TOKEN * 1_000_000))].into(),
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
    }
}

impl TestRun {
    /// A run with a ceiling in tokens of output.
    pub(crate) async fn start(provider: &Provider, tokens: u64) -> Self {
        Self::start_with(settings(provider), &budget(tokens)).await
    }

    pub(crate) async fn start_with(settings: GatewaySettings, budget: &ExecBudget) -> Self {
        Self::start_in(Arc::new(MemoryJournal::new()), settings, budget).await
    }

    pub(crate) async fn start_in(
        journal: Arc<dyn Journal>,
        settings: GatewaySettings,
        budget: &ExecBudget,
    ) -> Self {
        let (home, pending_calls) = open(journal);
        let definition = exec_definition("program", "program --do it", budget).unwrap();
        let tree = home.start(definition).await.unwrap();
        Self::serve(home, tree, pending_calls, settings).await
    }

    /// Continues the only tree of a journal.
    pub(crate) async fn resume_in(journal: Arc<dyn Journal>, settings: GatewaySettings) -> Self {
        let (home, pending_calls) = open(journal);
        let head = home.journal().heads(&[]).await.unwrap().pop().unwrap();
        let tree = home.resume(head.tree).await.unwrap();
        Self::serve(home, tree, pending_calls, settings).await
    }

    async fn serve(
        home: Arc<Home>,
        tree: Tree,
        pending_calls: Arc<PendingCalls>,
        settings: GatewaySettings,
    ) -> Self {
        let (heard, notices) = watch::channel(Vec::new());
        let heard = Mutex::new(heard);
        let on_notice = Arc::new(move |notice| {
            heard.lock().unwrap().send_modify(|notices: &mut Vec<Notice>| notices.push(notice));
        });
        let socket = GatewaySocket::bind(None).await.unwrap();
        let gateway = Gateway::start(tree.clone(), Arc::clone(&pending_calls), settings, on_notice, socket)
            .await
            .unwrap();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { home, tree, gateway, client, notices, pending_calls }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.gateway.address())
    }

    /// A request with the run's key, as programs of its format send it.
    pub(crate) fn post(&self, format: Format, body: &Value) -> reqwest::RequestBuilder {
        let (path, body) = format.sent(body);
        self.post_to(format, &path, body)
    }

    pub(crate) fn post_bytes(
        &self,
        format: Format,
        body: impl Into<reqwest::Body>,
    ) -> reqwest::RequestBuilder {
        self.post_to(format, format.path(), body)
    }

    pub(crate) fn post_to(
        &self,
        format: Format,
        path: &str,
        body: impl Into<reqwest::Body>,
    ) -> reqwest::RequestBuilder {
        let post = self.client.post(self.url(path)).header("content-type", "application/json");
        let key = self.gateway.key().text();
        match format {
            Format::Messages => {
                post.header("x-api-key", key).header("anthropic-version", "2023-06-01").body(body)
            }
            Format::Chat | Format::Responses => post.bearer_auth(key).body(body),
            Format::Gemini => post.header("x-goog-api-key", key).body(body),
        }
    }

    pub(crate) async fn snapshot(&self) -> TreeSnapshot {
        self.tree.snapshot().await.unwrap()
    }

    pub(crate) async fn spent(&self) -> u64 {
        self.snapshot().await.agents[0].spent.get(Resource::Cost)
    }

    pub(crate) async fn raise(&self, agent: &str, tokens: u64) {
        let add = Amounts::cost(tokens * TOKEN);
        self.tree.raise(Raise { agent: agent.parse().unwrap(), add, add_ms: 0 }).await.unwrap();
    }

    /// Waits until a notice came.
    pub(crate) async fn heard(&mut self, is_it: impl Fn(&Notice) -> bool) {
        self.notices.wait_for(|notices| notices.iter().any(&is_it)).await.unwrap();
    }

    /// Waits until an event is in the journal.
    pub(crate) async fn saw(&self, is_it: impl FnMut(&Event) -> bool) {
        self.saw_after(Seq(0), is_it).await;
    }

    /// Waits until an event after that one is in the journal.
    pub(crate) async fn saw_after(&self, seen: Seq, mut is_it: impl FnMut(&Event) -> bool) {
        let mut events = self.tree.watch(spinney::bus::Watch::after(seen));
        while let Some(traced) = events.next_event().await {
            if is_it(&traced.unwrap().recorded.event) {
                return;
            }
        }
        panic!("the tree ended without it");
    }

    /// Every event of the tree.
    pub(crate) async fn events(&self) -> Vec<Event> {
        let entries = self.home.journal().read(self.tree.id(), Seq(0), 10_000).await.unwrap();
        entries.into_iter().flat_map(|entry| entry.batch.events).collect()
    }
}

fn open(journal: Arc<dyn Journal>) -> (Arc<Home>, Arc<PendingCalls>) {
    let pending_calls = Arc::new(PendingCalls::new());
    let driver = Arc::new(GatewayModel::new(Arc::clone(&pending_calls)));
    let home = Home::open(journal, Drivers::new().with_any_model(driver));
    (Arc::new(home), pending_calls)
}
