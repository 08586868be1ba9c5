//! Rule `layers`: inside a crate no module imports from one above or beside it.

use super::{NOTHING, found};

#[test]
fn an_import_from_a_layer_above_is_found() {
    let text = "use crate::words::{AgentId, limit};\nuse crate::rules::Draft;\n";
    assert_eq!(
        found("layers", &[("crates/kernel/src/world/apply.rs", text)]),
        [
            "crates/kernel/src/world/apply.rs:2: layers: `world` imports `crate::rules::Draft` from `rules`, which \
          is above it; move what both need to the lower layer, or pass it in from above"
        ]
    );
}

#[test]
fn a_path_in_the_code_counts_as_an_import() {
    let text = "fn f() { crate::context::told(); }\n";
    assert_eq!(found("layers", &[("crates/kernel/src/primitives/id.rs", text)]).len(), 1);
}

#[test]
fn a_file_or_folder_without_a_layer_is_found() {
    for path in ["crates/kernel/src/helpers/a.rs", "crates/kernel/src/other.rs"] {
        assert_eq!(found("layers", &[(path, "")]).len(), 1, "{path}");
    }
}

#[test]
fn imports_from_below_and_from_the_same_layer_are_fine() {
    let files = [
        ("crates/kernel/src/lib.rs", "pub mod rules;"),
        ("crates/kernel/src/rules/decide.rs", "use crate::rules::Draft;\nuse crate::words::Seq;"),
        ("crates/journal/src/words/other.rs", "use crate::rules::Draft;"),
    ];
    assert_eq!(found("layers", &files), NOTHING);
}

#[test]
fn modules_of_one_layer_are_strangers() {
    let text = "use crate::names::Names;\n";
    assert_eq!(
        found("layers", &[("crates/runtime/src/hooks.rs", text)]),
        [
            "crates/runtime/src/hooks.rs:1: layers: `hooks` imports `crate::names::Names` from `names`, which is beside \
          it; move what both need to the lower layer, or pass it in from above"
        ]
    );
}

/// Neither the root's re-exports nor `super` are a way around the table.
#[test]
fn a_name_counts_by_the_module_that_it_comes_from() {
    let root = ("crates/runtime/src/lib.rs", "mod bus;\nmod tree;\npub use tree::Tree;");
    for text in ["use crate::Tree;", "use super::super::tree::Tree;", "fn f(_: super::super::Tree) {}"] {
        assert_eq!(found("layers", &[root, ("crates/runtime/src/bus/hub.rs", text)]).len(), 1, "{text}");
    }
    for text in ["use crate::Watch;", "use super::Watch;", "use super::super::clock::Clock;"] {
        assert_eq!(found("layers", &[root, ("crates/runtime/src/bus/hub.rs", text)]), NOTHING, "{text}");
    }
}

#[test]
fn a_folder_of_a_crate_may_have_a_table_of_its_own() {
    let upwards = ("crates/server/src/gateway/wire/input.rs", "use super::super::call::Call;");
    let downwards =
        ("crates/server/src/gateway/call.rs", "use super::wire::Input;\nuse crate::gateway::run::Run;");
    assert_eq!(found("layers", &[upwards]).len(), 1);
    assert_eq!(
        found("layers", &[downwards, ("crates/server/src/gateway/mod.rs", "pub use call::Call;")]),
        NOTHING
    );
}

/// The terminal knows no command line, and the parts of the host that are below a home know no home.
#[test]
fn the_command_line_and_the_host_have_tables() {
    for (path, text) in [
        ("crates/terminal/src/mode.rs", "use crate::out::complain;"),
        ("crates/cli/src/result/mod.rs", "use crate::follow::Follow;"),
        ("crates/host/src/user/variables.rs", "use crate::home::side_journals;"),
        ("crates/host/src/home/open.rs", "use crate::trust::tree_marks;"),
    ] {
        assert_eq!(found("layers", &[(path, text)]).len(), 1, "{path}");
    }
    let downwards = [
        ("crates/cli/src/command/run.rs", "use crate::follow::Follow;\nuse crate::{args, hint};"),
        ("crates/host/src/trust/mod.rs", "use crate::home::HomeError;"),
    ];
    assert_eq!(found("layers", &downwards), NOTHING);
}
