//! The kernel's fixed list: pure libraries only. Its tests may use what they like.

use super::Finding;
use crate::workspace::{DependencyKind, Workspace};

const ALLOWED: [&str; 8] =
    ["serde", "serde_json", "thiserror", "smallvec", "indexmap", "blake3", "minijinja", "strsim"];

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    let kernels = workspace.manifests.iter().filter(|manifest| manifest.folder == "crates/kernel");
    let judge = |path: &String, line, package: &String| Finding {
        path: path.clone(),
        line,
        rule: "kernel-dependencies",
        item: package.clone(),
        what: format!("the kernel may not use `{package}`"),
        remedy: "do without it, or write a page in docs/decisions/ and add it to \
                 xtask/src/tidy/kernel_dependencies.rs",
    };
    kernels
        .flat_map(|kernel| {
            let built =
                kernel.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal);
            let foreign = built.filter(|dependency| !ALLOWED.contains(&dependency.package.as_str()));
            foreign.map(|dependency| judge(&kernel.path, dependency.line, &dependency.package))
        })
        .collect()
}
