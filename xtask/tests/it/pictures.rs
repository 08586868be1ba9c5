//! Rule `pictures`: no words of our own for things that engineers have words for.

use super::{NOTHING, found};

#[test]
fn a_picture_in_the_name_of_a_file_a_type_or_a_function_is_found() {
    let text = "pub struct WritingDesk;\nfn has_told() {}\n";
    assert_eq!(
        found("pictures", &[("crates/store/src/pen.rs", text)]),
        [
            "crates/store/src/pen.rs:1: pictures: `WritingDesk` has the word `desk`; people say a writer; use the \
             word that databases, operating systems and Rust programmers use",
            "crates/store/src/pen.rs:1: pictures: `pen` has the word `pen`; people say a write connection; use \
             the word that databases, operating systems and Rust programmers use",
            "crates/store/src/pen.rs:2: pictures: `has_told` has the word `told`; people say recorded, delivered, \
             shared, shown or described; use the word that databases, operating systems and Rust programmers use",
        ]
    );
}

#[test]
fn fields_tests_and_words_that_only_contain_one_are_fine() {
    let files = [
        (
            "crates/kernel/src/record/event.rs",
            "pub struct Clamped { pub is_told: bool }\nfn pending() {}\nfn open() {}",
        ),
        ("crates/kernel/tests/it/told.rs", "fn what_is_told() {}"),
    ];
    assert_eq!(found("pictures", &files), NOTHING);
}
