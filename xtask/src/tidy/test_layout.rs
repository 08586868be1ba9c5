//! How tests are laid out: each name is a sentence, and each crate has one integration binary, `tests/it/`.

use super::Finding;
use crate::workspace::{Source, Workspace};

const WORDS_MIN: usize = 3;

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    workspace
        .sources
        .iter()
        .flat_map(|source| short_names(source).into_iter().chain(second_binary(source)))
        .collect()
}

/// Works on the scan and not on the tree, because properties hide their functions inside a macro call.
fn short_names(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut follows_test_attribute = false;
    for mention in &source.scan.mentions {
        if let Some(attribute) = mention.path.strip_prefix('#') {
            follows_test_attribute |= attribute.rsplit("::").next() == Some("test");
        }
        let Some(name) = mention.path.strip_prefix("fn ") else { continue };
        let words = name.split('_').filter(|word| !word.is_empty()).count();
        if follows_test_attribute && words < WORDS_MIN {
            findings.push(Finding {
                path: source.path.clone(),
                line: mention.line,
                rule: "tests",
                item: name.to_owned(),
                what: format!("the test name `{name}` is no sentence"),
                remedy: "say what must hold, as in `child_cannot_outspend_its_parent`",
            });
        }
        follows_test_attribute = false;
    }
    findings
}

fn second_binary(source: &Source) -> Option<Finding> {
    let parts: Vec<&str> = source.parts_in_package().collect();
    let is_second = match parts.as_slice() {
        // The interleavings need their own feature, which changes every lock in the binary.
        ["tests", file] => *file != "interleave.rs",
        ["tests", folder, "main.rs"] => *folder != "it",
        _ => false,
    };
    is_second.then(|| Finding {
        path: source.path.clone(),
        line: 1,
        rule: "tests",
        item: source.file_name().to_owned(),
        what: "a second integration binary, which links everything once more".to_owned(),
        remedy: "make it a module of tests/it/main.rs",
    })
}
