//! Short commands run without huge pages. Nothing else does, and no program that is started by one of ours.

use std::fs;

use crate::test_folder::{NO_SERVER, TestFolder};

#[test]
fn a_program_of_exec_has_huge_pages_as_we_have() {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ours = status.lines().find(|line| line.starts_with("THP_enabled"));
    let ended = TestFolder::new().play_in(&["exec", "--", "cat", "/proc/self/status"], &NO_SERVER).end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(ended.out.lines().find(|line| line.starts_with("THP_enabled")), ours);
}
