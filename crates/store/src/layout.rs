//! The names of what a home has. Everything else in a folder makes it something that is not a home.

/// The file of the journal.
pub const JOURNAL: &str = "journal.sqlite3";
/// The file that the process which writes holds locked.
pub const LOCK: &str = "lock";
/// The socket of the process that has the home open.
pub const SOCKET: &str = "control";
/// By which the user's own list of homes knows a home.
pub const ID: &str = "id";
/// Keeps a home out of the repository that it is in.
pub const IGNORED: &str = ".gitignore";
/// The folder of side journals, each in a home of one run. It may exist before the home itself is used.
pub const RUNS: &str = "runs";
/// Where older releases kept the side journals of programs.
pub const EXEC: &str = "exec";
/// What a listing read in a side journal, so the next one need not open it.
pub const LISTED: &str = "listed.json";
/// The folder of what trees of older releases were started from, and of marks on folders that are being changed.
pub const TREES: &str = "trees";
/// The folder of the workspaces.
pub const WORKSPACES: &str = "workspace";
