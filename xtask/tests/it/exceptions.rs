//! An exception takes one finding away, and is a finding itself when it has none to take.

use xtask::tidy::{Exception, check};

use super::{lines, workspace};

const FILES: [(&str, &str); 1] =
    [("crates/store/src/journal.rs", "//! The journal of one tree.\nstruct Info;\nstruct Misc;\n")];

fn exception(item: &'static str) -> Exception {
    Exception { rule: "names", path: "crates/store/src/journal.rs", item, reason: "a test" }
}

#[test]
fn an_exception_covers_its_item_only() {
    assert_eq!(
        lines(&check(&workspace(&FILES), &[exception("Info")])),
        ["crates/store/src/journal.rs:3: names: `Misc` names no idea; name it after its one main thing"]
    );
}

#[test]
fn an_exception_without_a_finding_is_found() {
    assert_eq!(
        lines(&check(&workspace(&FILES), &[exception("Info"), exception("Misc"), exception("Types")])),
        ["crates/store/src/journal.rs:1: exceptions: `Types` is excepted from names and does not need \
          it; delete the line from EXCEPTIONS in xtask/src/tidy/exceptions.rs"]
    );
}
