//! Rule `public-names`: a public type name exists once in the workspace.

use super::{NOTHING, found};

#[test]
fn a_public_type_with_a_name_that_another_crate_has_is_found() {
    let files = [
        ("crates/kernel/src/budget/amount.rs", "pub struct Limits;"),
        ("crates/runtime/src/budget/limits.rs", "\npub enum Limits {}"),
    ];
    assert_eq!(
        found("public-names", &files),
        ["crates/runtime/src/budget/limits.rs:2: public-names: `Limits` is also a public type in \
          crates/kernel/src/budget/amount.rs; give one of them a name that says what sets it apart"]
    );
}

#[test]
fn private_types_tests_and_programs_may_share_names() {
    let files = [
        ("crates/kernel/src/a.rs", "pub struct Limits;"),
        ("crates/runtime/src/b.rs", "struct Limits; pub(crate) struct Other;"),
        ("crates/runtime/src/c.rs", "pub(crate) struct Other;"),
        ("crates/runtime/tests/it/d.rs", "pub struct Limits;"),
        ("crates/testkit/src/bin/e.rs", "pub struct Limits;"),
    ];
    assert_eq!(found("public-names", &files), NOTHING);
}
