//! The names of what a home has. Everything else in a folder makes it something that is not a home.

/// The file of the journal.
pub const JOURNAL: &str = "journal.sqlite3";
/// The file that the process which writes holds locked.
pub const LOCK: &str = "lock";
/// The socket of the process that has the home open.
pub const SOCKET: &str = "control";
/// By which the user's own list of homes knows a home.
pub const ID: &str = "id";
/// Keeps a home out of the repository that it lies in.
pub const IGNORED: &str = ".gitignore";
/// The folder of the homes of programs, each with a journal of its own. It may exist before the home itself is used.
pub const EXEC: &str = "exec";
/// The folder of what trees were started from.
pub const TREES: &str = "trees";
/// The folder of the workspaces.
pub const WORKSPACES: &str = "workspace";
