//! `SPINNEY_LOG`: internal log lines on standard error, for debugging.

use crate::test_folder::TestFolder;

const SECRET: &str = "open sesame";

fn stage() -> TestFolder {
    let stage = TestFolder::new();
    let script = format!(
        "rules:\n  - when: {{ turn: 1 }}\n    say: {SECRET}\n    call: [{{ tool: look, args: {{ key: {SECRET} }} }}]\n  \
         - say: done with {SECRET}\ntools:\n  look: {{ say: {SECRET} }}\n"
    );
    stage.tree("look", &script);
    stage
}

#[test]
fn nothing_is_logged_unless_it_is_asked_for() {
    let ended = stage().shell("unset SPINNEY_LOG; spinney run tree.yaml");
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    let ended = stage().shell("SPINNEY_LOG=off spinney run tree.yaml");
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
}

/// Each line has the time, level, target and tree; standard output does not change.
#[test]
fn a_level_prints_the_lines_of_that_level_and_above() {
    let ended = stage().shell("SPINNEY_LOG=info spinney run tree.yaml --json");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let tree = ended.result()["tree"].as_str().unwrap().to_owned();
    let lines: Vec<&str> = ended.err.lines().filter(|line| line.contains(" INFO ")).collect();
    assert_eq!(lines.len(), 2, "{}", ended.err);
    assert!(
        lines[0].contains(&format!("s INFO spinney::home::start: tree started tree={tree}")),
        "{}",
        lines[0]
    );
    assert!(lines[1].contains("s INFO spinney::tree::run: tree ended"), "{}", lines[1]);

    let ended = stage().shell("SPINNEY_LOG=trace spinney run tree.yaml --json");
    for part in [
        "DEBUG spinney::tree::run: decided tree=",
        "DEBUG spinney::effect: call started tree=",
        " model=fast",
        " tool=look",
        "DEBUG spinney::effect: call done tree=",
        "DEBUG spinney::journal: durable tree=",
        "TRACE spinney::journal: group commit started batches=",
        "DEBUG spinney::journal: group commit done batches=",
    ] {
        assert!(ended.err.contains(part), "no `{part}` in:\n{}", ended.err);
    }
    assert!(!ended.err.contains(SECRET), "texts stay out of the log:\n{}", ended.err);
}

#[test]
fn a_target_is_logged_by_itself() {
    let ended = stage().shell("SPINNEY_LOG=spinney::effect=debug spinney run tree.yaml");
    assert!(!ended.err.is_empty());
    for line in ended.err.lines() {
        assert!(line.contains(" DEBUG spinney::effect: "), "{line}");
    }
}

/// A mistyped value is an error, because no log lines would ever appear.
#[test]
fn a_filter_that_cannot_be_read_is_wrong_usage() {
    let ended = stage().shell("SPINNEY_LOG=loud spinney ps");
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_eq!(
        ended.err,
        "spinney: bad SPINNEY_LOG, at `loud`: write off, error, warn, info, debug or trace, or target=level, with commas\n"
    );
}

/// A request from another process appears in the log of the process that runs the tree.
#[test]
fn requests_at_the_socket_are_logged() {
    let stage = TestFolder::new();
    stage.tree("", "rules:\n  - hang: true\n");
    let mut running = stage.play_in(&["run", "tree.yaml"], &[("SPINNEY_LOG", "spinney::control=debug")]);
    running.until("lead starts");
    assert_eq!(stage.spinney(&["cancel", "last"]).code, Some(0));
    assert!(running.until_noted("spinney::control: request").contains(" tree="));
}
