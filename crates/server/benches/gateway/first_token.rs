//! The time to the first token through the gateway, against the provider asked directly.

use crate::exec_run::ExecRun;
use crate::format::Format;
use crate::measure::{median, row, time, verdict};
use crate::mock::{Mock, SHORT};
use crate::raw_client::{Target, first_token};

const ROUNDS: usize = 300;
const WARM_UP: usize = 20;
/// How much later the first token may come, in nanoseconds.
const BOUND: f64 = 1_000_000.0;
/// A short prompt, and what Claude Code sends with its first call.
const BODIES: [(&str, usize); 2] = [("1 KB", 1_000), ("85 KB", 85_000)];

pub(crate) async fn run(mock: &Mock) {
    for format in Format::ALL {
        for (size, bytes) in BODIES {
            let run = ExecRun::start(mock, SHORT).await;
            let (gateway, direct) =
                (run.target(), Target { address: mock.address(), way: SHORT, key: String::new() });
            // Programs keep their connections.
            let (mut to_gateway, mut to_mock) = (gateway.connect().await, direct.connect().await);
            let (mut ours, mut plain) = (Vec::new(), Vec::new());
            for round in 0..WARM_UP + ROUNDS {
                let body = format.body(round, bytes);
                let (through, past) = (gateway.request(format, &body), direct.request(format, &body));
                let (past, through) = (
                    first_token(&mut to_mock, &past, format).await,
                    first_token(&mut to_gateway, &through, format).await,
                );
                if round >= WARM_UP {
                    ours.push(through);
                    plain.push(past);
                }
            }
            run.close().await;
            let (ours, plain) = (median(ours), median(plain));
            let added = ours - plain;
            row(
                &format!("first token, {}, request of {size}", format.name()),
                &time(ours),
                &format!("{} (directly)", time(plain)),
                &format!("{} added (at most 1 ms: {})", time(added), verdict(added <= BOUND)),
            );
        }
    }
}
