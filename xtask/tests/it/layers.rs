//! Rule `layers`: inside the kernel no folder imports from one above it.

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
    assert_eq!(found("layers", &[("crates/kernel/src/words/id.rs", text)]).len(), 1);
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
        ("crates/runtime/src/words/other.rs", "use crate::rules::Draft;"),
    ];
    assert_eq!(found("layers", &files), NOTHING);
}
