//! Rule `tests`: sentences for names, one binary per crate.

use super::{NOTHING, found};

#[test]
fn a_test_name_that_is_no_sentence_is_found() {
    let text = "#[test]\nfn it_works() {}\n#[tokio::test]\nasync fn spawn() {}\n\
                proptest! {\n    #[test]\n    fn budget_holds(x in 0..9) {}\n}\n";
    let remedy = "is no sentence; say what must hold, as in `child_cannot_outspend_its_parent`";
    assert_eq!(
        found("tests", &[("crates/store/src/lib.rs", text)]),
        [
            format!("crates/store/src/lib.rs:2: tests: the test name `it_works` {remedy}"),
            format!("crates/store/src/lib.rs:4: tests: the test name `spawn` {remedy}"),
            format!("crates/store/src/lib.rs:7: tests: the test name `budget_holds` {remedy}"),
        ]
    );
}

#[test]
fn sentences_and_plain_functions_are_fine() {
    let text =
        "#[cfg(test)]\nfn open() {}\n#[test]\n#[should_panic]\nfn a_stale_writer_stops() {}\nfn check() {}\n";
    assert_eq!(found("tests", &[("crates/store/src/lib.rs", text)]), NOTHING);
}

#[test]
fn a_second_integration_binary_is_found() {
    let remedy =
        "a second integration binary, which links everything once more; make it a module of tests/it/main.rs";
    let files = [("crates/store/tests/crash.rs", ""), ("crates/store/tests/slow/main.rs", "")];
    assert_eq!(
        found("tests", &files),
        [
            format!("crates/store/tests/crash.rs:1: tests: {remedy}"),
            format!("crates/store/tests/slow/main.rs:1: tests: {remedy}"),
        ]
    );
}

#[test]
fn the_one_binary_and_the_interleavings_are_fine() {
    let files = [
        ("crates/runtime/tests/it/main.rs", ""),
        ("crates/runtime/tests/it/budget.rs", ""),
        ("crates/runtime/tests/interleave.rs", ""),
        ("crates/runtime/src/tests.rs", ""),
    ];
    assert_eq!(found("tests", &files), NOTHING);
}
