//! Durable steps: the cost of a commit of a whole tree, compared with a bare insert into the same kind of file, and the
//! bytes on disk.

use std::path::Path;
use std::time::Instant;

use spinney_kernel::primitives::Durability;
use spinney_testkit::spinney::Shutdown;

use crate::LANGGRAPH_PACKAGES;
use crate::measure::{at_most, better, median, paired, row, time, verdict};
use crate::peer::{self, Peer, Script};
use crate::raw::Raw;
use crate::tree::{self, Plan, STEP_BYTES};

const ROUNDS: usize = 41;

const LANGGRAPH: Script =
    Script { home: "langgraph", packages: LANGGRAPH_PACKAGES, path: "benches/trees/langgraph_steps.py" };
const DBOS: Script = Script { home: "dbos", packages: &["dbos==3.3.0"], path: "benches/trees/dbos_steps.py" };

/// Prints the table.
pub(crate) fn run() {
    let (langgraph, dbos) = (peer::measure(&LANGGRAPH), peer::measure(&DBOS));
    for (durability, turns, bound) in [(Durability::Normal, 500, 3.0), (Durability::Full, 100, 2.0)] {
        let (ours, raw, ratio) = one_tree(durability, turns);
        let level = format!("{durability:?}").to_lowercase();
        let what = format!("one tree, one step after the other, {level}");
        row(&what, &time(ours), &format!("{} (bare insert)", time(raw)), &at_most(ratio, bound));
        against("LangGraph", &langgraph, &level, ratio);
        against("DBOS", &dbos, &level, ratio);
        if durability == Durability::Full {
            against("DBOS as it comes", &dbos, "default", ratio);
        }
    }
    on_disk(langgraph.ok().as_ref());
}

/// A peer's row below ours. Both are measured in bare inserts of their own moment, because a disk may be forty times
/// slower a minute later and the two are not measured at once.
fn against(name: &str, peer: &Result<Peer, String>, level: &str, ours: f64) {
    match peer {
        Ok(peer) => {
            let step = peer.figure(level);
            let inserts = step / peer.figure(&format!("{level}_bare"));
            let relation =
                format!("{} ({inserts:.1} bare inserts against {ours:.1})", better(inserts / ours));
            row("", "", &format!("{} ({name})", time(step)), &relation);
        }
        Err(why) => row("", "", name, &format!("not measured: {why}")),
    }
}

/// Nanoseconds per commit of a tree's turns, per bare insert of as many bytes, and their ratio. Each round compares
/// the two at one moment.
fn one_tree(durability: Durability, turns: u32) -> (f64, f64, f64) {
    let runtime = tree::runtime();
    let home = tree::folder();
    let spinney = tree::home(tree::sqlite(home.path()), Plan::Turns(turns));
    let mut raw = Raw::new(durability);
    let (mut ours, mut other) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        runtime.block_on(tree::run(&spinney, durability));
        ours.push(start.elapsed().as_nanos() as f64 / f64::from(2 * turns));
        let start = Instant::now();
        (0..2 * turns).for_each(|_| raw.insert());
        other.push(start.elapsed().as_nanos() as f64 / f64::from(2 * turns));
    }
    let ratio = paired(&ours, &other);
    (median(ours), median(other), ratio)
}

/// The bytes that steps leave on disk, and whether later ones leave more.
fn on_disk(langgraph: Option<&Peer>) {
    let runtime = tree::runtime();
    let bytes = |turns: u32| {
        let home = tree::folder();
        let spinney = tree::home(tree::sqlite(home.path()), Plan::Turns(turns));
        runtime.block_on(tree::run(&spinney, Durability::Normal));
        // The file is closed only when the last task of the home has ended.
        runtime.block_on(spinney.shutdown(Shutdown::Drain));
        drop(spinney);
        size(home.path()) as f64
    };
    let (one, thousand, all) = (bytes(1), bytes(501), bytes(5_001));
    let early = (thousand - one) / 1_000.0;
    let late = (all - thousand) / 9_000.0;
    let relation = format!("at most 1024: {}", verdict(late <= 1_024.0));
    row("bytes on disk per 200-byte step, steps 1-1,000", &format!("{early:.0}"), "", "");
    row("the same, steps 1,000-10,000", &format!("{late:.0}"), &format!("{STEP_BYTES} (said)"), &relation);
    row("late against early", "", "", &at_most(late / early, 1.1));
    if let Some(other) = langgraph.map(|peer| peer.figure("bytes")) {
        let (ours, relation) = (megabytes(thousand), better(other / thousand));
        row("1,000 steps on disk", &ours, &format!("{} (LangGraph)", megabytes(other)), &relation);
    }
}

fn megabytes(bytes: f64) -> String {
    format!("{:.1} MB", bytes / 1_000_000.0)
}

fn size(home: &Path) -> u64 {
    let files = std::fs::read_dir(home).unwrap_or_else(|error| panic!("{error}"));
    files.filter_map(|file| file.ok()?.metadata().ok()).map(|file| file.len()).sum()
}
