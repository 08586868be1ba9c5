//! The real runtime over real stores, crashed on purpose and resumed: the laws hold with every batch, and where nothing
//! depends on who is faster the result is that of a run without a crash.

use spinney_testkit::sim::whole::{Case, Mode, Place, Tally, Try};

/// Runs seeds in every mode on two threads.
fn run(seeds: std::ops::Range<u64>, place: &Place, tries: Try) -> Tally {
    let half = |odd: u64| {
        let mut tally = Tally::default();
        for seed in seeds.clone().filter(|seed| seed % 2 == odd) {
            for mode in Mode::ALL {
                let case = Case { seed, mode, place: place.clone() };
                tally.add(&case.run(tries).unwrap_or_else(|broken| panic!("{broken}")));
            }
        }
        tally
    };
    std::thread::scope(|scope| {
        let odd = scope.spawn(|| half(1));
        let mut sum = half(0);
        sum.add(&odd.join().unwrap());
        sum
    })
}

#[test]
fn crash_at_every_position_of_a_journal_in_memory_changes_nothing() {
    let tally = run(1..21, &Place::Memory, Try::Every);
    println!("{tally:?}");
}

#[test]
fn several_crashes_anywhere_keep_every_law_in_memory() {
    let tally = run(1_000..1_400, &Place::Memory, Try::Random(12));
    println!("{tally:?}");
}

#[test]
fn crash_at_every_position_of_a_journal_in_sqlite_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::Sqlite(folder.path().to_path_buf());
    let tally = run(1..4, &place, Try::Every);
    println!("{tally:?}");
}
