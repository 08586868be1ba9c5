//! Rule `kernel-dependencies`: the fixed list.

use super::{NOTHING, found};

#[test]
fn a_library_outside_the_list_is_found() {
    let manifest =
        "[package]\nname = \"spinney-kernel\"\n[dependencies]\nserde.workspace = true\nuuid = \"1\"\n";
    assert_eq!(
        found("kernel-dependencies", &[("crates/kernel/Cargo.toml", manifest)]),
        ["crates/kernel/Cargo.toml:5: kernel-dependencies: the kernel may not use `uuid`; do without it, \
          or write a page in docs/decisions/ and add it to xtask/src/tidy/kernel_dependencies.rs"]
    );
}

#[test]
fn the_kernels_tests_and_other_packages_are_free() {
    let kernel = "[package]\nname = \"spinney-kernel\"\n[dependencies]\nblake3 = \"1\"\nminijinja = \"3\"\n\
                  [dev-dependencies]\nproptest = \"1\"\n";
    let runtime = "[package]\nname = \"spinney\"\n[dependencies]\ntokio = \"1\"\n";
    let files = [("crates/kernel/Cargo.toml", kernel), ("crates/runtime/Cargo.toml", runtime)];
    assert_eq!(found("kernel-dependencies", &files), NOTHING);
}
