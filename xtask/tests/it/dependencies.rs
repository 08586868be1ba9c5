//! What may enter the dependency graph.

use std::path::Path;

use xtask::dependencies::{DenyFile, DependencyGraph};

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn found(name: &str, license: &str, source: &str) -> Vec<String> {
    let ours = r#"{ "name": "ours", "version": "0.1.0", "license": null, "source": null }"#;
    let theirs =
        format!(r#"{{ "name": "{name}", "version": "1.0.0", "license": {license}, "source": "{source}" }}"#);
    let graph = DependencyGraph::parse(format!(r#"{{ "packages": [{ours}, {theirs}] }}"#).as_bytes())
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(graph.count(), 1);
    DenyFile::read(&root()).unwrap_or_else(|error| panic!("{error}")).check(&graph)
}

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[test]
fn licences_are_allowed_as_their_expressions_say() {
    for licence in [
        r#""MIT""#,
        r#""MIT OR Apache-2.0""#,
        r#""MIT/Apache-2.0""#,
        r#""GPL-3.0 OR MIT""#,
        r#""(MIT OR Apache-2.0) AND Unicode-3.0""#,
        r#""Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT""#,
    ] {
        assert_eq!(found("theirs", licence, REGISTRY), [""; 0], "{licence}");
    }
    for licence in [r#""GPL-3.0""#, r#""MIT AND GPL-3.0""#, r#""what they say""#, r#""""#] {
        assert_eq!(found("theirs", licence, REGISTRY).len(), 1, "{licence}");
    }
    assert_eq!(found("theirs", "null", REGISTRY), ["theirs 1.0.0 has no licence"]);
}

#[test]
fn banned_crates_and_other_sources_are_named() {
    let banned = found("openssl-sys", r#""MIT""#, REGISTRY);
    assert_eq!(banned, ["openssl-sys 1.0.0 is banned: we use rustls with ring"]);
    let git = found("theirs", r#""MIT""#, "git+https://example.com/theirs");
    assert_eq!(git, ["theirs 1.0.0 comes from git+https://example.com/theirs"]);
}
