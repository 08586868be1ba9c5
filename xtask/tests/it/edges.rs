//! Rule `edges`: who lives where and may depend on whom.

use super::{NOTHING, found};

fn found_in(folder: &str, manifest: &str) -> Vec<String> {
    found("edges", &[(&format!("{folder}/Cargo.toml"), manifest)])
}

#[test]
fn an_edge_between_strangers_is_found() {
    let manifest = "[package]\nname = \"spinney-store\"\n[dependencies]\nspinney.workspace = true\n";
    assert_eq!(
        found_in("crates/store", manifest),
        ["crates/store/Cargo.toml:4: edges: `spinney-store` may not depend on `spinney`; depend \
          downwards only: move what both need to a layer below, or pass it in from above"]
    );
}

#[test]
fn an_edge_downwards_is_fine() {
    let manifest = "[package]\nname = \"spinney-store\"\n[dependencies]\nspinney-kernel.workspace = true\n\
                    rusqlite.workspace = true\n[dev-dependencies]\nspinney-testkit.workspace = true\n";
    assert_eq!(found_in("crates/store", manifest), NOTHING);
}

#[test]
fn an_edge_for_one_target_or_under_another_name_is_found() {
    let manifest = "[package]\nname = \"spinney-server\"\n[target.'cfg(unix)'.dependencies]\n\
                    tree = { package = \"spinney-cli\", path = \"../cli\" }\nfakes.workspace = true\n";
    let root =
        "[workspace.dependencies]\nfakes = { package = \"spinney-testkit\", path = \"crates/testkit\" }\n";
    let findings = found("edges", &[("crates/server/Cargo.toml", manifest), ("Cargo.toml", root)]);
    let starts: Vec<&str> = findings.iter().filter_map(|finding| finding.split(';').next()).collect();
    assert_eq!(
        starts,
        [
            "crates/server/Cargo.toml:4: edges: `spinney-server` may not depend on `spinney-cli`",
            "crates/server/Cargo.toml:5: edges: `spinney-server` may not depend on `spinney-testkit`",
        ]
    );
}

#[test]
fn the_binary_may_test_with_the_testkit_and_not_link_it() {
    let manifest = "[package]\nname = \"spinney-cli\"\n[dependencies]\nspinney-testkit.workspace = true\n\
                    [dev-dependencies]\nspinney-testkit.workspace = true\n";
    assert_eq!(
        found_in("crates/cli", manifest),
        ["crates/cli/Cargo.toml:4: edges: `spinney-cli` may not depend on `spinney-testkit`; depend \
          downwards only: move what both need to a layer below, or pass it in from above"]
    );
}

#[test]
fn the_runtime_may_offer_the_store_behind_a_feature_only() {
    let manifest = |store: &str| format!("[package]\nname = \"spinney\"\n[dependencies]\n{store}\n");
    let optional = manifest("spinney-store = { workspace = true, optional = true }");
    assert_eq!(found_in("crates/runtime", &optional), NOTHING);
    assert_eq!(
        found_in("crates/runtime", &manifest("spinney-store.workspace = true")),
        ["crates/runtime/Cargo.toml:4: edges: `spinney` may not depend on `spinney-store`; depend \
          downwards only: move what both need to a layer below, or pass it in from above"]
    );
    let drivers = manifest("spinney-drivers = { workspace = true, optional = true }");
    assert_eq!(found_in("crates/runtime", &drivers).len(), 1);
}

#[test]
fn the_kernel_may_not_test_with_the_testkit() {
    let manifest =
        "[package]\nname = \"spinney-kernel\"\n[dev-dependencies]\nspinney-testkit.workspace = true\n";
    assert_eq!(
        found_in("crates/kernel", manifest),
        ["crates/kernel/Cargo.toml:4: edges: `spinney-kernel` may not dev-depend on `spinney-testkit`; \
          depend downwards only: move what both need to a layer below, or pass it in from above"]
    );
}

#[test]
fn a_package_without_a_layer_is_found() {
    assert_eq!(
        found_in("crates/garden", "[package]\nname = \"spinney-garden\"\n"),
        ["crates/garden/Cargo.toml:1: edges: package `spinney-garden` in `crates/garden` has no layer; \
          add it to PACKAGES in xtask/src/tidy/edges.rs and to ARCHITECTURE.md, or make it a module"]
    );
}

#[test]
fn folder_and_package_must_belong_together() {
    assert_eq!(
        found_in("crates/runtime", "[package]\nname = \"spinney-runtime\"\n"),
        ["crates/runtime/Cargo.toml:1: edges: `crates/runtime` holds package `spinney-runtime`, not \
          `spinney`; rename the package"]
    );
    assert_eq!(
        found_in("crates/spinney", "[package]\nname = \"spinney\"\n"),
        ["crates/spinney/Cargo.toml:1: edges: package `spinney` lies in `crates/spinney`, not in \
          `crates/runtime`; move the folder"]
    );
}
