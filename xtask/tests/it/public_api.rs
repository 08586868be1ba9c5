//! The public API of `spinney` as a snapshot: a change of it is a change of the snapshot, which a person reviews.

use std::path::Path;

use xtask::public_api::public_api;
use xtask::workspace::Workspace;

use super::workspace;

/// After a change that is meant: `INSTA_UPDATE=always cargo nextest run -p xtask public_api`, and read the difference.
#[test]
fn the_public_api_of_spinney_is_the_reviewed_one() {
    let real = Workspace::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
    insta::assert_snapshot!(public_api(&real));
}

#[test]
fn public_items_are_found_through_modules_and_re_exports() {
    let found = public_api(&workspace(&[
        (
            "crates/runtime/src/lib.rs",
            "mod tree;\npub mod bus;\npub mod prelude;\n#[cfg(test)] pub mod tests {}\npub use tree::Tree;\npub use spinney_kernel::primitives::{Time, limit, Id};\npub fn run<T>(\n    it: T,\n) -> Result<T, Time> { loop {} }\nfn hidden() {}",
        ),
        (
            "crates/runtime/src/tree/mod.rs",
            "mod look;\npub use look::Look;\n/// A tree.\n#[derive(Clone, Debug)]\n#[non_exhaustive]\npub struct Tree { pub id: u64, secret: u64 }\nimpl Tree { pub fn look(&self) -> Look { loop {} } fn inner() {} }\nimpl Drop for Tree { fn drop(&mut self) {} }",
        ),
        ("crates/runtime/src/tree/look.rs", "pub struct Look;"),
        (
            "crates/runtime/src/bus.rs",
            "pub use super::tree::Look;\npub trait Watch: Send { fn next(&self) -> u8; fn room(&self) -> u8 { 1 } }\npub(crate) struct Hub;",
        ),
        ("crates/runtime/src/prelude.rs", "pub use crate::{Tree, bus::Look};"),
        (
            "crates/kernel/src/primitives/mod.rs",
            "mod time;\npub mod limit { pub const MOST: u32 = 7; }\npub use time::Time;\nname!(Id);",
        ),
        ("crates/kernel/src/primitives/time.rs", "pub enum Time { Never, At(u64), In { ms: u64 } }"),
        ("crates/kernel/src/lib.rs", "pub mod primitives;"),
    ]));
    insta::assert_snapshot!(found, @"
    item spinney::Id
    enum spinney::Time
        Never
        At(u64)
        In { ms: u64 }
    struct spinney::Tree: Clone, Debug (non-exhaustive)
        id: u64
        ..
        fn look(&self) -> Look
        impl Drop
    mod spinney::bus
    struct spinney::bus::Look
    trait spinney::bus::Watch: Send
        fn next(&self) -> u8
        fn room(&self) -> u8 { .. }
    mod spinney::limit
    const spinney::limit::MOST: u32
    mod spinney::prelude
    use spinney::prelude::Look = spinney::bus::Look
    use spinney::prelude::Tree = spinney::Tree
    fn spinney::run = fn run<T>(it: T) -> Result<T, Time>
    ");
}
