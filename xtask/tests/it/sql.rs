//! Rule `sql`: statements are the store's.

use super::{NOTHING, found};

#[test]
fn a_statement_outside_the_store_is_found() {
    let text =
        "fn f() {\n    query(\"SELECT 1\");\n    query(r\"\n        delete from events where seq > 1\");\n}";
    assert_eq!(
        found("sql", &[("crates/server/src/lib.rs", text)]),
        [
            "crates/server/src/lib.rs:2: sql: the string \"SELECT 1 …\" is SQL; give the store a method for \
             it: only the store speaks SQL",
            "crates/server/src/lib.rs:3: sql: the string \"delete from events …\" is SQL; give the store a \
             method for it: only the store speaks SQL",
        ]
    );
    assert_eq!(found("sql", &[("crates/store/src/sqlite.rs", text)]), NOTHING);
}

#[test]
fn every_kind_of_statement_is_found() {
    for statement in [
        r#""insert into events values (1)""#,
        r#""Update events set seq = 1""#,
        r#""CREATE TABLE events (seq)""#,
        r#""create table events (seq)""#,
        r#""pragma journal_mode=wal""#,
    ] {
        let text = format!("const STATEMENT: &str = {statement};");
        assert_eq!(found("sql", &[("crates/server/src/lib.rs", &text)]).len(), 1, "{statement}");
    }
}

#[test]
fn english_is_no_statement() {
    let text = "
        /// Select one from the list. Update it and set it. Delete from here on.
        fn f() { say(\"update the table\"); say(\"select a model\");
                 say(\"delete a line from it\"); say(\"SELECT\") }
    ";
    assert_eq!(found("sql", &[("crates/server/src/lib.rs", text)]), NOTHING);
}
