//! Rule `names`: names that say nothing, second ways, and flags.

use super::{NOTHING, found};

const PATH: &str = "crates/store/src/journal.rs";

/// The item of each finding, in order; the whole line is looked at once per kind of finding.
fn items(text: &str) -> Vec<String> {
    let findings = found("names", &[(PATH, text)]);
    findings.iter().filter_map(|line| line.split('`').nth(1).map(str::to_owned)).collect()
}

#[test]
fn a_file_or_folder_that_names_no_idea_is_found() {
    assert_eq!(
        found("names", &[("crates/store/src/utils.rs", "")]),
        ["crates/store/src/utils.rs:1: names: `utils` names no idea; name it after its one main thing"]
    );
    assert_eq!(
        found("names", &[("crates/store/tests/it/common/mod.rs", "")]),
        ["crates/store/tests/it/common/mod.rs:1: names: `common` names no idea; name it after its one \
          main thing"]
    );
}

#[test]
fn a_type_or_module_that_names_no_idea_is_found() {
    assert_eq!(
        items("struct Helpers; enum Misc {} mod types { trait Common {} }"),
        ["Common", "Helpers", "Misc", "types"]
    );
}

#[test]
fn an_empty_ending_is_found() {
    assert_eq!(
        found("names", &[(PATH, "struct TreeManager;")]),
        ["crates/store/src/journal.rs:1: names: `Manager` at the end of `TreeManager` says nothing; drop \
          the ending, or say what the type does"]
    );
    assert_eq!(
        items("trait BlobService {}\ntype Box = RowWrapper;\nenum TreeInfo {}\nstruct JournalImpl;"),
        ["Service", "Info", "Impl"]
    );
}

#[test]
fn a_getter_with_a_prefix_is_found() {
    assert_eq!(
        found("names", &[(PATH, "impl Journal {\n    fn get_head(&self) {}\n}")]),
        ["crates/store/src/journal.rs:2: names: `get_head` starts with `get_`; drop the prefix"]
    );
}

#[test]
fn a_second_way_is_found() {
    assert_eq!(
        found("names", &[(PATH, "fn append_v2() {}")]),
        ["crates/store/src/journal.rs:1: names: `append_v2` sounds like a second way to do one thing; \
          keep one way, delete the other, and give it the plain name"]
    );
    assert_eq!(
        items("struct JournalV2;\nconst PAGE_NEW: u8 = 1;\ntrait Port { fn read_legacy(); }"),
        ["JournalV2", "PAGE_NEW", "read_legacy"]
    );
}

#[test]
fn a_flag_in_public_is_found() {
    assert_eq!(
        found("names", &[(PATH, "pub fn open(path: &Path, create: bool) {}")]),
        ["crates/store/src/journal.rs:1: names: public `open` takes a `bool`, which says nothing where \
          it is called; take an enum of two variants, or make it two functions"]
    );
    assert_eq!(items("pub trait Port { fn open(&self, create: bool); }"), ["open"]);
}

#[test]
fn good_names_are_not_found() {
    let text = "
        struct Journal { is_new: bool }
        impl Journal { pub fn new() {} pub fn head(&self) -> bool {} fn mark(&self, durable: bool) {} }
        impl Port for Journal { fn get_head(&self) {} fn set(&self, flag: bool) {} }
        struct Information; struct Renewed; mod helper_of_none {}
        #[test] fn get_and_set_survive_what_is_new() {}
    ";
    assert_eq!(found("names", &[(PATH, text)]), NOTHING);
}
