//! Combined results of several agents, for their parent.

use insta::assert_snapshot;
use spinney_kernel::context::{Finding, Findings, Message, TimedOut};
use spinney_kernel::record::{Ballot, ExitKind, WaitNeed};
use spinney_testkit::{Scenario, check};

use crate::observed::name;

fn finding(agent: &str, state: ExitKind, text: &str) -> Finding {
    Finding { agent: name(agent), state, text: text.to_owned(), used: None, answer: None }
}

fn three() -> Findings {
    let asked = ["a", "b", "c"].map(name);
    let a = finding(
        "a",
        ExitKind::Completed,
        "Ash is common (https://trees.example/ash#top).\nSources:\n- The Wood Book\n- www stuff",
    );
    let b = finding(
        "b",
        ExitKind::Completed,
        "So it is: http://www.Trees.example/ash/, and the\n## Sources\n* the  wood book",
    );
    Findings::new(WaitNeed::All, &asked, vec![a, b])
}

/// L33 (the library's part): two complete and one missing, in spawn order, marked partial, with each source once and
/// both agents that name it.
#[test]
fn l33_sources_are_listed_once_with_everybody_who_names_them() {
    let findings = three();
    assert!(!findings.is_had());
    assert_eq!(findings.missing, [name("c")]);
    assert_snapshot!(findings.text(TimedOut::Yes), @"partial, time is up: 2 of 3 ended; still working: c; wait again, or cancel the agents you no longer need");
    assert_snapshot!(findings.source_lines(), @"
    Sources:
    - https://trees.example/ash#top (a, b)
    - The Wood Book (a, b)
    - www stuff (a)
    ");
}

/// The majority answer is given by more than half of all that were asked, however few have ended.
#[test]
fn what_most_agree_on_is_the_answer_of_more_than_half_of_those_asked() {
    let of = |asked: &[&str], answers: &[(&str, ExitKind, &str)]| {
        let asked: Vec<_> = asked.iter().map(|id| name(id)).collect();
        let answers = answers.iter().map(|(id, state, text)| finding(id, *state, text)).collect();
        Findings::new(WaitNeed::Majority, &asked, answers).is_had()
    };
    let (a, b) = (("a", ExitKind::Completed, "blue"), ("b", ExitKind::Completed, " blue\n"));
    assert!(of(&["a", "b", "c"], &[a, b]));
    assert!(!of(&["a", "b", "c", "d"], &[a, b]));
    assert!(!of(&["a", "b", "c"], &[a, ("b", ExitKind::Failed, "blue")]));
}

#[test]
fn a_list_of_sources_has_a_bound_and_says_so() {
    let long: String =
        (0..200).map(|n| format!("- https://trees.example/{n}/{}\n", "x".repeat(60))).collect();
    let findings = Findings::new(WaitNeed::All, &[name("a")], vec![finding("a", ExitKind::Completed, &long)]);
    let lines = findings.source_lines();
    assert!(lines.len() <= spinney_kernel::primitives::limit::SOURCES_BYTES_MAX, "{}", lines.len());
    assert!(lines.lines().last().unwrap().starts_with("… and "), "{lines}");
    let endless = finding("a", ExitKind::Completed, &format!("https://{}", "y".repeat(100_000)));
    assert_eq!(Findings::new(WaitNeed::All, &[name("a")], vec![endless]).sources(), []);
}

/// Whether there is enough, for every need, as results arrive.
#[test]
fn a_majority_is_more_than_half_of_those_asked_and_not_of_those_who_answered() {
    let ballots = |answers: &[Option<&'static str>]| -> Vec<Ballot<&'static str>> {
        answers.iter().map(|answer| Ballot { is_completed: answer.is_some(), answer: *answer }).collect()
    };
    let (yes, no, failed) = (Some("yes"), Some("no"), None);
    for (need, asked, ended, is_met) in [
        (WaitNeed::All, 3, vec![yes, yes], false),
        (WaitNeed::All, 3, vec![yes, yes, failed], true),
        (WaitNeed::Any, 3, vec![failed], true),
        (WaitNeed::Any, 3, vec![], false),
        (WaitNeed::First(2), 3, vec![yes, failed], false),
        (WaitNeed::First(2), 3, vec![yes, no], true),
        (WaitNeed::First(2), 3, vec![yes, failed, failed], true),
        (WaitNeed::Majority, 3, vec![yes, no], false),
        (WaitNeed::Majority, 3, vec![yes, yes], true),
        (WaitNeed::Majority, 4, vec![yes, yes], false),
        (WaitNeed::Majority, 4, vec![yes, yes, no], false),
        (WaitNeed::Majority, 4, vec![yes, yes, no, yes], true),
        (WaitNeed::Majority, 3, vec![yes, no, failed], true),
    ] {
        assert_eq!(need.is_met(asked, &ballots(&ended)), is_met, "{need:?} of {asked}: {ended:?}");
    }
}

const FIXTURE: &str = "root $90.00 turns=20 / helper later turns=3";

fn spawned(names: &[&str]) -> String {
    let spawn = |id: &&str| {
        format!("spawn_agent {{\"agent\":\"helper\",\"goal\":\"Vote.\",\"id\":\"{id}\",\"detach\":true}}")
    };
    names.iter().map(spawn).collect::<Vec<_>>().join(" | ")
}

/// The root's last tool result, as its model reads it.
fn result(play: &Scenario) -> String {
    let contexts = spinney_testkit::contexts_of(
        play.world().tree(),
        play.batches().iter().flat_map(|batch| &batch.events),
    );
    let root = name("root");
    let texts =
        crate::observed::window(&contexts, &root).filter(|message| matches!(message, Message::Result { .. }));
    texts.last().map(|message| message.text().into_owned()).unwrap_or_default()
}

/// Named in another order, one of them failed: the first two of three that completed.
#[test]
fn the_first_few_that_complete_are_enough_and_come_in_the_order_of_their_birth() {
    let mut play = Scenario::grow(FIXTURE);
    play.run(&format!(
        "said #1 Go. | {} | wait_agent {{\"agents\":[\"c\",\"a\",\"b\"],\"need\":{{\"first\":2}}}}
        said #4 C says this.
        said #2 A says that.",
        spawned(&["a", "b", "c"])
    ));
    assert_snapshot!(result(&play), @"
    2 of 3 ended; still working: b; wait again, or cancel the agents you no longer need

    [a completed]
    A says that.

    [c completed]
    C says this.
    ");
}

#[test]
fn a_wait_ends_as_soon_as_most_agree() {
    let mut play = Scenario::grow(FIXTURE);
    play.run(&format!(
        "said #1 Go. | {} | wait_agent {{\"agents\":[\"a\",\"b\",\"c\"],\"need\":\"majority\"}}
        said #2 blue
        said #3 red
        said #4 blue",
        spawned(&["a", "b", "c"])
    ));
    assert_snapshot!(result(&play), @"
    3 of 3 ended; more than half agree

    [a completed]
    blue

    [b completed]
    red

    [c completed]
    blue
    ");
    let mut play = Scenario::grow(FIXTURE);
    play.run(&format!(
        "said #1 Go. | {} | wait_agent {{\"agents\":[\"a\",\"b\",\"c\"],\"need\":\"majority\"}}
        said #2 blue
        said #3  blue",
        spawned(&["a", "b", "c"])
    ));
    assert_snapshot!(result(&play), @"
    2 of 3 ended; more than half agree; still working: c; wait again, or cancel the agents you no longer need

    [a completed]
    blue

    [b completed]
    blue
    ");
}

/// Votes count whole answers. A wait that names children whose answers were read before shows them in short, and still
/// finds the majority.
#[test]
fn a_majority_counts_answers_that_were_read_before() {
    let mut play = Scenario::grow(FIXTURE);
    play.run(&format!(
        "said #1 Go. | {} | wait_agent {{\"agents\":[\"a\",\"b\"]}}
        said #2 blue
        said #3 blue
        said #6 Once more. | wait_agent {{\"agents\":[\"a\",\"b\",\"c\"],\"need\":\"majority\"}}",
        spawned(&["a", "b", "c"])
    ));
    assert_snapshot!(result(&play), @"
    2 of 3 ended; more than half agree; still working: c; wait again, or cancel the agents you no longer need

    [a completed]
    a completed, as you know

    [b completed]
    b completed, as you know
    ");
    let mut play = Scenario::grow(FIXTURE);
    play.run(&format!(
        "said #1 Go. | {} | wait_agent {{\"agents\":[\"a\",\"b\",\"c\"]}}
        said #2 blue
        said #3 red
        said #4 green
        said #6 Once more. | wait_agent {{\"agents\":[\"a\",\"b\",\"c\"],\"need\":\"majority\"}}",
        spawned(&["a", "b", "c"])
    ));
    assert_snapshot!(result(&play), @"
    3 of 3 ended; no answer has a majority

    [a completed]
    a completed, as you know

    [b completed]
    b completed, as you know

    [c completed]
    c completed, as you know
    ");
}

/// The same for attached children: each answered the call that spawned it.
#[test]
fn a_majority_counts_answers_of_children_that_were_not_detached() {
    let spawn =
        |id: &&str| format!("spawn_agent {{\"agent\":\"helper\",\"goal\":\"Vote.\",\"id\":\"{id}\"}}");
    let spawns: Vec<String> = ["a", "b", "c"].iter().map(spawn).collect();
    let mut play = Scenario::grow(FIXTURE);
    play.run(&format!(
        "said #1 Go. | {}
        said #3 blue
        said #5 red
        said #7 blue
        said #8 Once more. | wait_agent {{\"agents\":[\"a\",\"b\",\"c\"],\"need\":\"majority\"}}",
        spawns.join(" | ")
    ));
    assert_snapshot!(result(&play), @"
    3 of 3 ended; more than half agree

    [a completed]
    a completed, as you know

    [b completed]
    b completed, as you know

    [c completed]
    c completed, as you know
    ");
}

/// L33: one of three children hangs; when time is up, two are complete and one is missing, in spawn order, marked
/// partial, with each source once and both agents that name it.
#[test]
fn l33_a_wait_that_runs_out_of_time_brings_what_there_is_marked_as_partial() {
    let mut play = Scenario::grow(FIXTURE);
    play.run(&format!(
        "said #1 Go. | {} | wait_agent {{\"agents\":[\"b\",\"c\",\"a\"],\"sources\":true,\"timeout\":\"30s\"}}
        said #4 Ash, see https://trees.example/ash.
        said #2 Oak and ash, see https://trees.example/ash/ and https://trees.example/oak
        pass 30s",
        spawned(&["a", "b", "c"])
    ));
    assert_snapshot!(result(&play), @"
    partial, time is up: 2 of 3 ended; still working: b; wait again, or cancel the agents you no longer need

    [a completed]
    Oak and ash, see https://trees.example/ash/ and https://trees.example/oak

    [c completed]
    Ash, see https://trees.example/ash.

    Sources:
    - https://trees.example/ash/ (a, c)
    - https://trees.example/oak (a)
    ");
}

#[test]
fn a_need_that_says_nothing_is_refused() {
    let log = check(
        FIXTURE,
        &format!(
            "said #1 Go. | {} | wait_agent {{\"agents\":[\"a\"],\"need\":{{\"first\":0}}}} | wait_agent {{\"agents\":[\"a\"],\"need\":\"few\"}}",
            spawned(&["a"])
        ),
    );
    let errors: Vec<&str> = log.lines().filter(|line| line.contains("error:")).collect();
    assert_snapshot!(errors.join("\n"), @"
    root tool 1 error: nothing to wait for: name at least one child, or wait for messages
    root tool 2 error: bad arguments for `wait_agent`: unknown variant `few`, expected one of `all`, `any`, `first`, `majority` at line 1 column 28; write one JSON object with the fields it takes
    ");
}
