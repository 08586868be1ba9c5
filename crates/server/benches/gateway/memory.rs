//! Many open streams: the bytes that each takes, with the little that the client itself has.

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::exec_run::ExecRun;
use crate::format::Format;
use crate::measure::{row, verdict};
use crate::mock::{ENDLESS, ENDLESS_EVENTS, Mock};
use crate::plain_proxy::PlainProxy;
use crate::raw_client::{Target, read_until};
use crate::{STREAMS, alloc};

const COUNTS: [usize; 3] = [100, 500, STREAMS];
/// How much more a stream of the most may take than one of the fewest.
const BOUND: f64 = 1.1;
const BODY_BYTES: usize = 2_000;

pub(crate) async fn run(mock: &Mock) {
    alloc::count();
    let proxy = PlainProxy::start(mock.address()).await;
    let plain = Target { address: proxy.address, way: ENDLESS, key: String::new() };
    let mut each = Vec::new();
    for count in COUNTS {
        let other = bytes_per_stream(&plain, count).await;
        let exec = ExecRun::start(mock, ENDLESS).await;
        // What the first call brings along stays.
        bytes_per_stream(&exec.target(), 1).await;
        let our = bytes_per_stream(&exec.target(), count).await;
        exec.close().await;
        let other = format!("{} (plain proxy)", kilobytes(other));
        row(&format!("memory of an open stream, of {count}"), &kilobytes(our), &other, "");
        each.push(our);
    }
    let ratio = each[COUNTS.len() - 1] / each[0];
    let relation = format!("{ratio:.2}x (at most {BOUND}x, flat: {})", verdict(ratio <= BOUND));
    row("of 1,000 against of 100", "", "", &relation);
}

/// Opens so many streams, waits until each has everything that the provider sent, and weighs them.
async fn bytes_per_stream(target: &Target, count: usize) -> f64 {
    let format = Format::Messages;
    let (ready, mut all) = mpsc::channel(count);
    let before = alloc::live_bytes();
    let mut streams = JoinSet::new();
    for stream in 0..count {
        let (target, ready) = (target.clone(), ready.clone());
        streams.spawn(async move {
            let request = target.request(format, &format.body(stream, BODY_BYTES));
            let mut connection = target.connect().await;
            read_until(&mut connection, &request, format.text_event(ENDLESS_EVENTS).as_bytes()).await;
            drop((target, request));
            ready.send(()).await.unwrap();
            // Until the weighing is over.
            ready.closed().await;
        });
    }
    for _ in 0..count {
        all.recv().await.unwrap();
    }
    let taken = alloc::live_bytes().wrapping_sub(before);
    drop(all);
    streams.join_all().await;
    taken as f64 / count as f64
}

fn kilobytes(bytes: f64) -> String {
    format!("{:.1} KB", bytes / 1_000.0)
}
