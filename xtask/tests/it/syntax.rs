//! A file that does not parse is found and does not stop the others.

use super::found;

#[test]
fn a_broken_file_is_found_at_its_line() {
    let files = [
        ("crates/store/src/blobs.rs", "//! Blobs.\n\nfn open() {\n"),
        ("crates/store/src/journal.rs", "//! Journal.\nfn 1() {}\n"),
    ];
    assert_eq!(
        found("syntax", &files),
        [
            "crates/store/src/blobs.rs:3: syntax: the file does not parse: cannot parse string into token \
             stream; make it compile first",
            "crates/store/src/journal.rs:2: syntax: the file does not parse: expected identifier; make it \
             compile first",
        ]
    );
}

#[test]
fn a_broken_manifest_is_found_at_its_line() {
    assert_eq!(
        found("syntax", &[("crates/store/Cargo.toml", "[package]\nname = \n")]),
        ["crates/store/Cargo.toml:2: syntax: the file does not parse: string values must be quoted, \
          expected literal string; make it compile first"]
    );
}
