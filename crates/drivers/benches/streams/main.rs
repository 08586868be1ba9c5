//! `cargo bench -p spinney-drivers --bench streams`: what a streamed answer costs on its way through us, against a plain
//! client and the same mock in the same run. The mock is a separate process, so its memory and its time are not
//! ours. Times alone say little on a machine that does other things too, so nothing here fails on a time.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench prints and reads the clock")]
#![expect(clippy::float_arithmetic, reason = "ratios are for people; no money is counted here")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot run has nothing else to say")]

#[path = "../../../testkit/benches/bench/alloc.rs"]
mod alloc;
mod first_token;
mod many;
#[path = "../../../testkit/benches/bench/measure.rs"]
#[expect(dead_code, reason = "one set of tables for all benches; not each uses all")]
mod measure;
mod mock;

use std::sync::Arc;

use spinney_drivers::http::HttpLimits;
use spinney_drivers::providers::{ProviderClients, ProviderModel, ProviderSetup};
use spinney_drivers::wire::WireParams;
use spinney_kernel::context::{Message, Origin, Packet};
use spinney_kernel::definition::ModelProvider;
use spinney_kernel::port::model::ModelAttempt;
use spinney_kernel::primitives::{Actor, CallId, Category, TreeId};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test --benches` only wants to know that it starts.
    if words.iter().any(|word| word == "--test") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if words.iter().any(|word| word == mock::WORD) {
        runtime.block_on(mock::serve());
        return;
    }
    let mock = mock::Mock::start();
    measure::title("streams");
    runtime.block_on(first_token::run(&mock));
    // What counts bytes comes last: counting takes time.
    runtime.block_on(many::run(&mock));
}

fn model(base_url: &str) -> ProviderModel {
    let setup = ProviderSetup {
        provider: ModelProvider::OpenAiCompatible,
        model: "mock".to_owned(),
        base_url: Some(base_url.to_owned()),
        key: None,
        headers: Vec::new(),
        params: WireParams::default(),
    };
    ProviderModel::new(setup, &ProviderClients::new(HttpLimits::default()).unwrap()).unwrap()
}

/// A first turn with a goal.
fn attempt() -> Arc<ModelAttempt> {
    let text = "Compare two libraries in two sentences.".to_owned();
    let goal = Message::Heard { from: Actor::PERSON, text, category: Category::Dialog, along: None };
    let messages = vec![Arc::new(Message::System("You are careful.".into())), Arc::new(goal)];
    let origin = Origin {
        tree: TreeId::new([7; 16]),
        path: ["root".parse().unwrap()].into(),
        role: "lead".parse().unwrap(),
        goal: "Compare.".into(),
    };
    let packet = Packet { messages: Arc::new(messages), tools: Arc::default(), tokens: 100 };
    let model = "m".parse().unwrap();
    Arc::new(ModelAttempt::new(Arc::new(origin), CallId(1), "k".to_owned(), model, packet))
}
