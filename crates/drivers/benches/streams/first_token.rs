//! The time to the first streamed token: a plain client, our driver, and a whole tree with a watcher.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use spinney_drivers::http::wire_request;
use spinney_drivers::providers::ProviderModel;
use spinney_drivers::wire::{WireFormat, WireParams, write};
use spinney_kernel::definition::Definition;
use spinney_kernel::port::model::Model as _;
use spinney_testkit::definition;
use spinney_testkit::spinney::bus::{Watch, WatchItem};
use spinney_testkit::spinney::{Drivers, Home};
use spinney_testkit::spinney_store::MemoryJournal;

use crate::measure::{at_most, median, row, time};
use crate::mock::Mock;
use crate::{attempt, model};

const ROUNDS: usize = 400;
/// How much later than with a plain client the first token may come.
const BOUND: f64 = 1.1;

pub(crate) async fn run(mock: &Mock) {
    // A driver comes first: it installs the provider of TLS without which no client can be built.
    let home = home(&mock.thinking());
    // A connection for each call, as ours has to servers on this machine.
    let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
    let body = {
        let request = wire_request(&attempt(), "mock", WireParams::default()).await.unwrap();
        write(WireFormat::CompatibleChat, &request).unwrap()
    };
    for (what, url) in [
        ("first token, driver, mock answers at once", mock.at_once()),
        ("first token, driver, mock takes 20 ms", mock.thinking()),
    ] {
        let driver = model(&url);
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        for _ in 0..rounds(&url) {
            plain.push(direct(&client, &url, &body).await);
            ours.push(through_driver(&driver).await);
        }
        line(what, ours, plain);
    }
    let url = mock.thinking();
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..rounds(&url) {
        plain.push(direct(&client, &url, &body).await);
        ours.push(through_a_tree(&home).await);
    }
    line("first token, tree and watcher, mock takes 20 ms", ours, plain);
}

fn rounds(url: &str) -> usize {
    if url.ends_with("thinking") { ROUNDS / 4 } else { ROUNDS }
}

fn line(what: &str, ours: Vec<f64>, plain: Vec<f64>) {
    let (ours, plain) = (median(ours), median(plain));
    row(what, &time(ours), &format!("{} (plain client)", time(plain)), &at_most(ours / plain, BOUND));
}

/// Nanoseconds until a plain client has the first token; then it reads the rest.
async fn direct(client: &reqwest::Client, url: &str, body: &[u8]) -> f64 {
    let start = Instant::now();
    let post = client.post(format!("{url}/chat/completions")).header("content-type", "application/json");
    let mut response = post.body(body.to_vec()).send().await.unwrap();
    let mut first = None;
    while let Some(chunk) = response.chunk().await.unwrap() {
        let has_text = chunk.windows(9).any(|window| window == b"\"content\"");
        if has_text && first.is_none() {
            first = Some(start.elapsed());
        }
    }
    first.unwrap().as_nanos() as f64
}

async fn through_driver(driver: &ProviderModel) -> f64 {
    let first = Arc::new(Mutex::new(None));
    let heard = Arc::clone(&first);
    let start = Instant::now();
    let deltas = Arc::new(move |_, _: &str| {
        heard.lock().unwrap().get_or_insert_with(Instant::now);
    });
    driver.call(attempt(), deltas).await.unwrap();
    let first = first.lock().unwrap().unwrap();
    first.duration_since(start).as_nanos() as f64
}

fn home(url: &str) -> Home {
    let model = Arc::new(model(url));
    // The names of a fixture's models.
    let drivers = ["m", "cheap", "free"].into_iter().fold(Drivers::new(), |drivers, name| {
        drivers.with_model(name.parse().unwrap(), Arc::<ProviderModel>::clone(&model))
    });
    Home::open(Arc::new(MemoryJournal::new()), drivers)
}

/// Nanoseconds from asking for a tree until a watcher sees the first token.
async fn through_a_tree(home: &Home) -> f64 {
    let definition: Definition = definition("root $9.00 turns=2");
    let start = Instant::now();
    let tree = home.start(definition).await.unwrap();
    let mut watcher = tree.watch(Watch { deltas: true, ..Watch::default() });
    let mut first = None;
    while let Some(seen) = watcher.next().await {
        if let (WatchItem::Delta(_), None) = (seen.unwrap(), first) {
            first = Some(start.elapsed());
        }
    }
    first.unwrap().as_nanos() as f64
}
