//! The documentation matches the code.

use spinney_kernel::definition::Builtin;
use spinney_kernel::primitives::limit;

const TREE_FILE: &str = include_str!("../../../../docs/tree-file.md");

#[test]
fn every_tool_that_the_kernel_answers_is_documented() {
    for builtin in Builtin::ALL {
        let row = format!("\n| `{}` | | | ", builtin.as_str());
        assert!(TREE_FILE.contains(&row), "docs/tree-file.md has no row for {}", builtin.as_str());
    }
}

#[test]
fn the_bounds_of_texts_are_what_the_page_says() {
    let bounds = [limit::TEXT_BYTES_MAX, limit::NOTE_BYTES_MAX, limit::ARGS_BYTES_MAX];
    for bound in bounds {
        let written = format!("{},{:03} bytes", bound / 1_000, bound % 1_000);
        assert!(TREE_FILE.contains(&written), "docs/tree-file.md does not say {written}");
    }
}
