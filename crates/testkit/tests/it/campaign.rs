//! The kill campaign, from fixed seeds.

use std::path::Path;

use spinney::rng::Rng;
use spinney_testkit::kill_campaign::{KillTally, kill_one_tree};

const KILLS: u64 = 200;

/// X2: two hundred kills, and no agent, message or question is lost, no keyed effect happens twice, nothing is paid
/// twice, and every tree has the result of an undisturbed run.
#[test]
fn x2_two_hundred_kills_lose_nothing_and_repeat_nothing() {
    let run = |first: u64| {
        let mut draws = Rng::seeded(first);
        let mut tally = KillTally::default();
        for seed in (first..).step_by(2) {
            let folder = tempfile::tempdir().unwrap();
            let program = Path::new(env!("CARGO_BIN_EXE_campaign"));
            let one = kill_one_tree(program, folder.path(), seed, &mut draws);
            tally.add(&one.unwrap_or_else(|broken| panic!("{broken}")));
            if tally.kills >= KILLS / 2 {
                break;
            }
        }
        tally
    };
    let tally = std::thread::scope(|scope| {
        let odd = scope.spawn(|| run(1));
        let mut even = run(2);
        even.add(&odd.join().unwrap());
        even
    });
    assert!(tally.kills >= KILLS, "{tally:?}");
    // Calls of every kind were hit.
    assert!(tally.resumed > 100 && tally.lost > 0 && tally.presumed > 0, "{tally:?}");
    println!("{tally:?}");
}
