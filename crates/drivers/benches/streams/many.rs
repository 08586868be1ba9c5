//! Many streams at once in one process: the bytes that each takes.

use std::sync::Arc;

use spinney_kernel::port::model::{DeltaKind, Model as _};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::measure::{row, verdict};
use crate::mock::Mock;
use crate::{alloc, attempt, model};

const COUNTS: [usize; 3] = [100, 500, 1_000];
/// How much more a stream of the most may take than one of the fewest.
const BOUND: f64 = 1.1;
/// Pieces that each stream has sent before it is weighed.
const PIECES: u32 = 20;

pub(crate) async fn run(mock: &Mock) {
    alloc::count();
    let each: Vec<f64> = {
        let mut each = Vec::new();
        for count in COUNTS {
            each.push(bytes_per_stream(mock, count).await);
        }
        each
    };
    for (count, bytes) in COUNTS.iter().zip(&each) {
        row(&format!("bytes per open stream, of {count}"), &format!("{bytes:.0}"), "", "");
    }
    let ratio = each[COUNTS.len() - 1] / each[0];
    let relation = format!("{ratio:.2}x (at most {BOUND}x, flat: {})", verdict(ratio <= BOUND));
    row("of 1,000 against of 100", "", "", &relation);
}

/// Opens so many streams, waits until all of them have sent something, and weighs them.
async fn bytes_per_stream(mock: &Mock, count: usize) -> f64 {
    let model = Arc::new(model(&mock.endless()));
    let heard = Arc::new(Semaphore::new(0));
    let mut calls = JoinSet::new();
    let before = alloc::live_bytes();
    for _ in 0..count {
        let (model, heard) = (Arc::clone(&model), Arc::clone(&heard));
        calls.spawn(async move {
            let deltas = Arc::new(move |kind, _: &str| {
                if kind == DeltaKind::Text {
                    heard.add_permits(1);
                }
            });
            model.call(attempt(), deltas).await.map(|_| ())
        });
    }
    let pieces = u32::try_from(count).unwrap() * PIECES;
    let _all = heard.acquire_many(pieces).await.unwrap();
    let taken = alloc::live_bytes().wrapping_sub(before);
    calls.shutdown().await;
    taken as f64 / count as f64
}
