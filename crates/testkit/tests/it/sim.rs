//! Random trees under random load, cancels, failures and crashes by truncation: the laws hold after every decision.

use spinney_testkit::sim;

/// V16, X1: ten thousand trees and a million operations; at every moment spent + held + lent is within the ceiling of
/// every account (except overrun), every hold ends once, nothing waits forever, and at the end the root's spent is the
/// sum of everything booked.
#[test]
fn v16_random_trees_never_pass_a_ceiling_at_any_moment() {
    let workers = 2;
    let tallies: Vec<_> = std::thread::scope(|scope| {
        let share = |worker: u64| move || sim::run(1 + worker * 1_000_000_000, 500_000);
        let handles: Vec<_> = (0..workers).map(|worker| scope.spawn(share(worker))).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    let mut sum = sim::Tally::default();
    for tally in tallies {
        sum.add(&tally.unwrap_or_else(|broken| panic!("{broken}")));
    }
    assert!(sum.cases >= 10_000 && sum.operations >= 1_000_000, "too little was tried: {sum:?}");
    assert!(sum.branches > 1_000, "too few were branched off: {sum:?}");
    assert!(sum.rollbacks > 5_000, "too few were rolled back: {sum:?}");
    assert!(sum.crashes > 1_000 && sum.halts > 1_000 && sum.waits > 1_000, "too little happened: {sum:?}");
    assert!(sum.blanks > 300, "too few images were too many: {sum:?}");
    assert!(sum.wrap_ups > 100, "too few last calls: {sum:?}");
    assert!(sum.host_questions > 50 && sum.hosts_allowed > 20, "too few hosts: {sum:?}");
    assert!(sum.repeats > 100 && sum.loops > 20, "too few loops: {sum:?}");
    let values = [sum.values_written, sum.values_read, sum.values_cleared];
    assert!(values.iter().all(|count| *count > 100), "too few shared values: {sum:?}");
    assert!(sum.shortened > 100, "too few packets were too long: {sum:?}");
    assert!(sum.held_back > 500, "too few were held back: {sum:?}");
    assert!(sum.cache_waits > 100 && sum.first_tokens > 20, "too few shared a prompt: {sum:?}");
    assert!(sum.summaries > 100, "too few summaries: {sum:?}");
    assert!(sum.stood_still > 500 && sum.times_up > 500, "clocks did too little: {sum:?}");
    assert!(sum.defaults > 100 && sum.late_answers > 20, "too few questions ran out of time: {sum:?}");
}

/// V16 (a few): the same with other trees. About half of all trees have a model whose tokens are estimated, so that
/// reports correct windows and holds.
#[test]
fn v16_a_few_random_trees_never_pass_a_ceiling() {
    let tally = sim::run(5_000_000_000, 20_000).unwrap_or_else(|broken| panic!("{broken}"));
    assert!(tally.operations >= 20_000, "too little was tried: {tally:?}");
}

/// O8, O10, O12, X4: random graphs with random failures, cancels, ceilings and crashes. A step runs only with its inputs, a
/// group ends after its members, a race leaves no survivor, what succeeded is undone in reverse order once, every law of
/// trees holds, and each step, group and graph ends as a second computation of its policy says.
#[test]
fn random_graphs_keep_their_laws() {
    let tally = sim::run(7_000_000_000, 150_000).unwrap_or_else(|broken| panic!("{broken}"));
    assert!(tally.nodes > 1_000 && tally.undone > 2, "too few graphs: {tally:?}");
    assert!(tally.steps_waited > 20 && tally.policy.waited > 0, "too few steps waited: {tally:?}");
    let policy = tally.policy;
    assert!(policy.graphs.iter().all(|graphs| *graphs > 20), "too few ends of graphs: {policy:?}");
    assert!(policy.inputs > 50 && policy.races > 5, "too little was compared: {policy:?}");
}
