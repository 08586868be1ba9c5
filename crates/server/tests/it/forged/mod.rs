//! Forged requests: their cost could be more than their bytes say. Each is refused before anything is sent, or it is held at
//! a bound that its bill does not reach. The bills are those of a provider that reads every request in the dearest way
//! that is possible.
#![expect(clippy::needless_pass_by_value, reason = "a row is written in one expression")]

mod bill;
mod row;
mod runner;

mod caches;
mod caps;
mod counters;
mod encodings;
mod ends;
mod fields;
mod gemini;
mod known;
mod sizes;
mod stored;
mod tiers;
mod tools;
mod usages;

use std::collections::{BTreeMap, BTreeSet};

use futures::stream::{self, StreamExt as _};
use spinney_server::gateway::wire::CallUpstream;

use row::Row;

use crate::provider::Format;

fn rows() -> Vec<Row> {
    let topics = [
        caches::rows(),
        caps::rows(),
        counters::rows(),
        encodings::rows(),
        ends::rows(),
        fields::rows(),
        gemini::rows(),
        known::rows(),
        sizes::rows(),
        stored::rows(),
        tiers::rows(),
        tools::rows(),
        usages::rows(),
    ];
    topics.into_iter().flatten().collect()
}

/// G22: a request whose cost could be more than its bytes say is held at its bound or refused; over 150 forged requests,
/// what is booked is never less than what is billed.
#[tokio::test(flavor = "multi_thread")]
async fn g22_forged_requests_are_refused_or_held_at_their_bound() {
    let rows = rows();
    assert!(rows.len() >= 150, "{} rows", rows.len());
    let of_gemini = rows.iter().filter(|row| row.format == Format::Gemini).count();
    assert!(of_gemini >= 50, "{of_gemini} rows of Gemini");
    let names: BTreeSet<String> = rows.iter().map(Row::name).collect();
    assert_eq!(names.len(), rows.len(), "two rows have one name");
    let (alone, shared): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| row.is_alone);
    // Where a run sends, and whose prices apply there, are settings of the run.
    let mut groups: BTreeMap<(bool, &str), Vec<Row>> = BTreeMap::new();
    for row in shared {
        groups.entry((row.upstream == CallUpstream::Provider, row.prices_of)).or_default().push(row);
    }
    let runs = groups.into_values().chain(alone.into_iter().map(|row| vec![row]));
    let mut played = stream::iter(runs).map(|rows| tokio::spawn(runner::play(rows))).buffer_unordered(8);
    let mut results = Vec::new();
    while let Some(run) = played.next().await {
        results.extend(run.unwrap());
    }
    let wrong: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
