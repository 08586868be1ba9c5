//! Rule `file-lines`: how long a file may be.

use super::{NOTHING, found};

const PATH: &str = "crates/store/src/journal.rs";

fn found_in(rule: &str, text: &str) -> Vec<String> {
    found(rule, &[(PATH, text)])
}

#[test]
fn a_long_file_is_found() {
    let text = "// line\n".repeat(801);
    assert_eq!(
        found_in("file-lines", &text),
        ["crates/store/src/journal.rs:1: file-lines: `journal.rs` has 801 lines, at most 800; find the \
          second idea in it and give it a file of its own"]
    );
}

#[test]
fn tests_do_not_lengthen_a_file() {
    let code = "// line\n".repeat(800);
    let tests = "// line\n".repeat(100);
    assert_eq!(found_in("file-lines", &format!("{code}#[cfg(test)]\nmod tests {{\n{tests}}}\n")), NOTHING);
    let long = code + &tests;
    for path in [
        "crates/store/tests/it/journal.rs",
        "crates/store/src/journal/tests.rs",
        "crates/store/src/journal_tests.rs",
        "crates/store/benches/append.rs",
    ] {
        assert_eq!(found("file-lines", &[(path, &long)]), NOTHING);
    }
}

#[test]
fn code_that_only_tests_leave_out_counts() {
    let code = "// line\n".repeat(800);
    let text = format!("#[cfg(not(test))]\nmod live {{\n{code}}}\n");
    assert_eq!(found_in("file-lines", &text).len(), 1);
}
