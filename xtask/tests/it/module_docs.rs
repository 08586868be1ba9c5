//! Rule `module-docs`: each file opens with what it owns.

use super::{NOTHING, found};

fn found_in(text: &str) -> Vec<String> {
    found("module-docs", &[("crates/store/tests/it/main.rs", text)])
}

#[test]
fn a_file_without_opening_docs_is_found() {
    assert_eq!(
        found_in("// A comment is no documentation.\nuse std::fmt;\n"),
        ["crates/store/tests/it/main.rs:1: module-docs: the file does not open with `//!` lines; say on \
          the first lines what the file owns and what it must not know"]
    );
}

#[test]
fn opening_docs_that_say_nothing_are_found() {
    assert_eq!(
        found_in("//! Journal.\n//!\n//! The journal.\n"),
        ["crates/store/tests/it/main.rs:1: module-docs: no opening `//!` line has 20 characters; say on \
          the first lines what the file owns and what it must not know"]
    );
}

#[test]
fn one_full_line_is_enough() {
    assert_eq!(found_in("//! The journal of one tree.\n\nuse std::fmt;\n"), NOTHING);
}
