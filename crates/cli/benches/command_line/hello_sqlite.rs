//! What short commands are compared with: a program that prints a line and opens one SQLite file.
#![expect(clippy::print_stdout, clippy::expect_used, reason = "a reference as short as it can be")]

use rusqlite::{Connection, OpenFlags};

fn main() {
    println!("Hello, world!");
    let path = std::env::args_os().nth(1).expect("the path of a database");
    let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("it opens");
    // SQLite opens the file when something is read.
    let version: i64 =
        database.pragma_query_value(None, "schema_version", |row| row.get(0)).expect("it reads");
    assert!(version > 0);
}
