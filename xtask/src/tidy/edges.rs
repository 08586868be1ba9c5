//! Which package lives in which folder and may depend on which: the layers, as a table.
//!
//! The table holds every edge that the layers permit, not only those in use. It knows no external crates.

use super::Finding;
use crate::workspace::{Dependency, DependencyKind, Manifest, Workspace};

struct Package {
    folder: &'static str,
    name: &'static str,
    may_use: &'static [&'static str],
    /// What it may re-export, and only behind a feature.
    may_offer: &'static [&'static str],
}

const KERNEL: &str = "spinney-kernel";
const JOURNAL: &str = "spinney-journal";
const RUNTIME: &str = "spinney";
const STORE: &str = "spinney-store";
const DRIVERS: &str = "spinney-drivers";
const TESTKIT: &str = "spinney-testkit";
const SERVER: &str = "spinney-server";
const VIEW: &str = "spinney-view";
const HOST: &str = "spinney-host";
const TERMINAL: &str = "spinney-terminal";

/// From the bottom layer to the top.
const PACKAGES: [Package; 13] = [
    Package { folder: "crates/kernel", name: KERNEL, may_use: &[], may_offer: &[] },
    Package { folder: "crates/journal", name: JOURNAL, may_use: &[KERNEL], may_offer: &[] },
    Package { folder: "crates/runtime", name: RUNTIME, may_use: &[KERNEL, JOURNAL], may_offer: &[STORE] },
    Package { folder: "crates/store", name: STORE, may_use: &[KERNEL, JOURNAL], may_offer: &[] },
    Package { folder: "crates/drivers", name: DRIVERS, may_use: &[KERNEL, JOURNAL], may_offer: &[] },
    Package { folder: "crates/view", name: VIEW, may_use: &[KERNEL, JOURNAL, RUNTIME], may_offer: &[] },
    Package {
        folder: "crates/host",
        name: HOST,
        may_use: &[KERNEL, JOURNAL, RUNTIME, STORE, DRIVERS, VIEW],
        may_offer: &[],
    },
    Package {
        folder: "crates/testkit",
        name: TESTKIT,
        may_use: &[KERNEL, JOURNAL, RUNTIME, STORE, DRIVERS],
        may_offer: &[],
    },
    Package {
        folder: "crates/server",
        name: SERVER,
        may_use: &[KERNEL, JOURNAL, RUNTIME, STORE, DRIVERS, VIEW, HOST],
        may_offer: &[],
    },
    Package { folder: "crates/terminal", name: TERMINAL, may_use: &[KERNEL, VIEW], may_offer: &[] },
    Package {
        folder: "crates/cli",
        name: "spinney-cli",
        may_use: &[KERNEL, JOURNAL, RUNTIME, STORE, DRIVERS, VIEW, HOST, SERVER, TERMINAL],
        may_offer: &[],
    },
    Package {
        folder: "crates/python",
        name: "spinney-python",
        may_use: &[KERNEL, JOURNAL, RUNTIME, STORE, DRIVERS, VIEW, HOST, SERVER],
        may_offer: &[],
    },
    Package { folder: "xtask", name: "xtask", may_use: &[], may_offer: &[] },
];

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    let is_ours = |name: &str| {
        PACKAGES.iter().any(|package| package.name == name)
            || workspace.manifests.iter().any(|manifest| manifest.package == name)
    };
    let mut findings = Vec::new();
    for manifest in &workspace.manifests {
        let package = PACKAGES.iter().find(|package| package.name == manifest.package);
        match package.filter(|package| package.folder == manifest.folder) {
            Some(package) => {
                let ours = manifest.dependencies.iter().filter(|dependency| is_ours(&dependency.package));
                let forbidden = ours.filter(|dependency| !package.may_depend_on(dependency));
                findings.extend(forbidden.map(|dependency| forbidden_edge(manifest, dependency)));
            }
            None => findings.push(misplaced(manifest)),
        }
    }
    findings
}

impl Package {
    fn may_depend_on(&self, dependency: &Dependency) -> bool {
        // Cargo would allow the kernel's tests to use the testkit, and would build the kernel twice for it:
        // two sets of types with the same names.
        let is_test_use =
            dependency.kind == DependencyKind::Dev && dependency.package == TESTKIT && self.name != KERNEL;
        let is_offer = dependency.kind == DependencyKind::Optional
            && self.may_offer.contains(&dependency.package.as_str());
        is_test_use || is_offer || self.may_use.contains(&dependency.package.as_str())
    }
}

fn forbidden_edge(manifest: &Manifest, dependency: &Dependency) -> Finding {
    let verb = match dependency.kind {
        DependencyKind::Normal | DependencyKind::Optional => "depend",
        DependencyKind::Dev => "dev-depend",
    };
    Finding {
        path: manifest.path.clone(),
        line: dependency.line,
        rule: "edges",
        item: dependency.package.clone(),
        what: format!("`{}` may not {verb} on `{}`", manifest.package, dependency.package),
        remedy: "depend downwards only: move what both need to a layer below, or pass it in from above",
    }
}

/// The package is not in the table, or the table puts another folder beside its name.
fn misplaced(manifest: &Manifest) -> Finding {
    let Manifest { path, folder, package, .. } = manifest;
    let right_name = PACKAGES.iter().find(|row| row.folder == folder).map(|row| row.name);
    let right_folder = PACKAGES.iter().find(|row| row.name == package).map(|row| row.folder);
    let (what, remedy) = match (right_name, right_folder) {
        (Some(name), _) => {
            (format!("`{folder}` holds package `{package}`, not `{name}`"), "rename the package")
        }
        (None, Some(right)) => {
            (format!("package `{package}` lies in `{folder}`, not in `{right}`"), "move the folder")
        }
        (None, None) => (
            format!("package `{package}` in `{folder}` has no layer"),
            "add it to PACKAGES in xtask/src/tidy/edges.rs and to ARCHITECTURE.md, or make it a module",
        ),
    };
    Finding { path: path.clone(), line: 1, rule: "edges", item: package.clone(), what, remedy }
}
