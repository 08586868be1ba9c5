//! Rule `comments`: unfinished work does not merge.

use super::{NOTHING, found};

const PATH: &str = "crates/store/src/lib.rs";

fn found_in(text: &str) -> Vec<String> {
    found("comments", &[(PATH, text)])
}

#[test]
fn marks_in_comments_are_found_at_their_lines() {
    let text =
        "/// FIXME: wrong.\nfn f() {\n    /* later,\n       XXX */ g();\n    // dbg!(x)\n}\n// TODO write\n";
    assert_eq!(
        found_in(text),
        [
            "crates/store/src/lib.rs:1: comments: `FIXME` does not merge; fix it, or open an issue",
            "crates/store/src/lib.rs:4: comments: `XXX` does not merge; fix it, or open an issue",
            "crates/store/src/lib.rs:5: comments: `dbg!` does not merge; delete the line",
            "crates/store/src/lib.rs:7: comments: `TODO` names no issue; open one and write `TODO(#12)`",
        ]
    );
}

#[test]
fn marks_in_code_are_found() {
    let text = "fn f() {\n    dbg!(1);\n    todo!();\n    vec![unimplemented!(\"x\")];\n}\n\
                #[test]\n#[ignore = \"x\"]\nfn g() {}\n";
    assert_eq!(
        found_in(text),
        [
            "crates/store/src/lib.rs:2: comments: `dbg!` does not merge; write what belongs there",
            "crates/store/src/lib.rs:3: comments: `todo!` does not merge; write what belongs there",
            "crates/store/src/lib.rs:4: comments: `unimplemented!` does not merge; write what belongs there",
            "crates/store/src/lib.rs:7: comments: `#[ignore]` hides a test; repair the test or delete it",
        ]
    );
}

#[test]
fn issues_and_talk_and_strings_are_fine() {
    let text = "
        //! A `FIXME` does not merge. Neither does a `TODO` without its issue.
        // TODO(#12): spread the load. See the TODOLIST, or the XXXL size.
        /* ünïcödé */ fn f() { say(\"// FIXME\", 'T', r#\"/* XXX */\"#); let todo = ignore(); }
    ";
    assert_eq!(found_in(text), NOTHING);
}
