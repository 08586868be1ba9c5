//! Rule `machine-paths`: no folder of one person's machine. Paths are in two parts: this file is also checked.

use super::{NOTHING, found};

#[test]
fn a_path_on_one_machine_is_found() {
    let text = concat!("# Guide\nRun /", "home/ada/bin/spinney.\nOr `/", "root/x`, or \"/", "work/x\".\n");
    let remedy = "name it relative to the workspace, or take it as an argument";
    assert_eq!(
        found("machine-paths", &[("docs/guide.md", text)]),
        [
            format!(
                concat!("docs/guide.md:2: machine-paths: the line names a path under `/", "home/`; {}"),
                remedy
            ),
            format!(
                concat!("docs/guide.md:3: machine-paths: the line names a path under `/", "root/`; {}"),
                remedy
            ),
        ]
    );
    assert_eq!(found("machine-paths", &[(".ci/run", concat!("cd /", "work/main"))]).len(), 1);
}

#[test]
fn relative_paths_are_fine() {
    let text = concat!(
        "$HOME/",
        "work/x, {home}/",
        "work/x, https://example.org/",
        "home/ada, crates/",
        "root/x, /",
        "home/$USER, ",
        "/",
        "workspace/x"
    );
    assert_eq!(found("machine-paths", &[("Makefile", text)]), NOTHING);
}
