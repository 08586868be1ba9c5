//! Many streams at once: how fast they come through the gateway and through a plain reverse proxy.

use std::sync::Arc;
use std::time::Instant;

use tokio::task::JoinSet;

use crate::STREAMS;
use crate::exec_run::ExecRun;
use crate::format::Format;
use crate::measure::{row, verdict};
use crate::mock::{LONG, Mock};
use crate::plain_proxy::PlainProxy;
use crate::raw_client::{Target, read_all};

const ROUNDS: usize = 4;
/// The least part of the plain proxy's throughput.
const BOUND: f64 = 0.8;
const BODY_BYTES: usize = 2_000;

pub(crate) async fn run(mock: &Mock) {
    let proxy = PlainProxy::start(mock.address()).await;
    let plain = Target { address: proxy.address, way: LONG, key: String::new() };
    let exec = ExecRun::start(mock, LONG).await;
    let gateway = exec.target();
    for format in Format::ALL {
        // The best of each: whatever else the machine does only takes time away.
        let (mut ours, mut others) = (0.0_f64, 0.0_f64);
        for round in 0..ROUNDS {
            others = others.max(streams_per_second(&plain, format, round).await);
            ours = ours.max(streams_per_second(&gateway, format, round).await);
        }
        let ratio = ours / others;
        let verdict = verdict(ratio >= BOUND);
        row(
            &format!("{STREAMS} streams at once, {}", format.name()),
            &per_second(ours),
            &format!("{} (plain proxy)", per_second(others)),
            &format!("{:.0} % (at least {:.0} %: {verdict})", ratio * 100.0, BOUND * 100.0),
        );
    }
    exec.close().await;
}

/// Whole responses per second, all asked for at once. Bytes would not compare: a proxy that forwards several pieces together
/// has fewer of its own around them.
async fn streams_per_second(target: &Target, format: Format, round: usize) -> f64 {
    let target = Arc::new(target.clone());
    let mut streams = JoinSet::new();
    let start = Instant::now();
    for stream in 0..STREAMS {
        let target = Arc::clone(&target);
        streams.spawn(async move {
            let request = target.request(format, &format.body(round * STREAMS + stream, BODY_BYTES));
            let mut connection = target.connect().await;
            read_all(&mut connection, &request).await;
        });
    }
    streams.join_all().await;
    STREAMS as f64 / start.elapsed().as_secs_f64()
}

fn per_second(streams: f64) -> String {
    format!("{streams:.0}/s")
}
