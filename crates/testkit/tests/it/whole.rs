//! The real runtime over real stores, crashed on purpose and resumed: the laws hold with every batch, and where nothing
//! depends on timing the result is that of a run without a crash.

use spinney_testkit::sim::whole::{Case, CaseStore, CrashChoice, LIVES, Mode, RunTally, TELLING};

/// Runs seeds in every mode on two threads.
fn run(seeds: impl IntoIterator<Item = u64>, place: &CaseStore, tries: CrashChoice) -> RunTally {
    let seeds: Vec<u64> = seeds.into_iter().collect();
    let half = |odd: u64| {
        let mut tally = RunTally::default();
        for seed in seeds.iter().copied().filter(|seed| seed % 2 == odd) {
            for mode in Mode::ALL {
                let case = Case { seed, mode, place: place.clone() };
                tally.add(&case.run(tries).unwrap_or_else(|broken| panic!("{broken}")));
            }
        }
        tally
    };
    let tally = std::thread::scope(|scope| {
        let odd = scope.spawn(|| half(1));
        let mut sum = half(0);
        sum.add(&odd.join().unwrap());
        sum
    });
    assert!(tally.equal > tally.trees / 2, "too little was compared: {tally:?}");
    assert!(tally.excused * 50 < tally.trees, "too much was excused: {tally:?}");
    tally
}

/// O19, X2: the process dies at every position of the journal, before and after the batch is written, and is started
/// again. No agent, message, timer or question is lost, nothing that ended is done again, no key is used twice, every
/// call is paid once, and the result is that of a run without a crash.
#[test]
fn x2_o19_a_crash_at_every_journal_position_loses_and_repeats_nothing() {
    let tally = run(1..41, &CaseStore::Memory, CrashChoice::Every);
    assert!(tally.positions > 2_000 && tally.crashes == tally.positions, "too little was tried: {tally:?}");
}

/// G20, X2 (another owner): at every position of the journal another owner claims the tree. The old one writes nothing more
/// and stops that tree on its own, nothing leaves once it knows, and the new one finishes what was begun: nothing is lost,
/// repeated or paid twice.
#[test]
fn x2_another_owner_at_every_journal_position_loses_and_repeats_nothing() {
    let tally = run(1..31, &CaseStore::Memory, CrashChoice::Takeover);
    assert!(tally.positions > 700 && tally.crashes == tally.positions, "too little was tried: {tally:?}");
    let folder = tempfile::tempdir().unwrap();
    let tally = run(1..4, &CaseStore::Sqlite(folder.path().to_path_buf()), CrashChoice::Takeover);
    assert!(tally.positions > 50 && tally.crashes == tally.positions, "too little was tried: {tally:?}");
}

/// O7, O8, O10, S9, X4: random graphs of every kind on the real runtime, with failures, cancels, ceilings and a crash at
/// every position of the journal. Each step, group and graph ends as a second computation of its policy says, whatever
/// crashed, and every step read the values that it asked for.
#[test]
fn graphs_come_to_what_their_policy_says_wherever_the_process_dies() {
    let is_graph = |seed: &u64| Case { seed: *seed, mode: Mode::Serial, place: CaseStore::Memory }.is_graph();
    let tally = run((3_000..3_018).filter(is_graph), &CaseStore::Memory, CrashChoice::Every);
    let policy = tally.policy;
    assert!(policy.graphs.iter().sum::<u64>() > 200, "too few ends of graphs: {policy:?}");
    assert!(policy.nodes > 2_000 && policy.inputs > 50, "too little was compared: {policy:?}");
}

/// X2: several crashes of one tree, some of them during recovery, and clean shutdowns. Every kind of event happens in
/// at least one of these.
#[test]
fn x2_crash_after_crash_keeps_every_law() {
    let tally = run(1_000..1_080, &CaseStore::Memory, CrashChoice::Random(LIVES));
    assert!(tally.crashes > 4_000, "too little was tried: {tally:?}");
    let missing: Vec<_> = TELLING.iter().filter(|telling| !tally.seen.contains(*telling)).collect();
    assert!(missing.is_empty(), "never seen: {missing:?}");
}

/// O19, X2: the same over SQLite, where each process opens the file again.
#[test]
fn x2_o19_a_crash_at_every_position_of_a_file_loses_and_repeats_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let tally = run(1..4, &CaseStore::Sqlite(folder.path().to_path_buf()), CrashChoice::Every);
    assert!(tally.positions > 100 && tally.crashes == tally.positions, "too little was tried: {tally:?}");
}

/// X2: the same over SQLite, with several crashes each.
#[test]
fn x2_crash_after_crash_over_one_file_keeps_every_law() {
    let folder = tempfile::tempdir().unwrap();
    let tally =
        run(2_000..2_006, &CaseStore::Sqlite(folder.path().to_path_buf()), CrashChoice::Random(LIVES));
    assert!(tally.crashes > 300, "too little was tried: {tally:?}");
}
