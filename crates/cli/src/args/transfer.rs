//! The command lines of `spinney export` and `spinney import`.

use std::path::PathBuf;

use clap::Args as Group;

use super::TreeArg;

#[derive(Debug, Group)]
pub(crate) struct Export {
    #[command(flatten)]
    pub(crate) tree: TreeArg,
    /// The file to write; it must not exist
    #[arg(short, long, value_name = "FILE", required_unless_present = "take_back")]
    pub(crate) output: Option<PathBuf>,
    /// Export every tree in the home
    #[arg(long, conflicts_with = "id")]
    pub(crate) all: bool,
    /// Copy unfinished trees instead of moving them; the copies can only be read and branched
    #[arg(long)]
    pub(crate) copy: bool,
    /// Continue a moved tree here again, after asking
    #[arg(long, conflicts_with_all = ["output", "all", "copy"])]
    pub(crate) take_back: bool,
    /// Take it back without asking
    #[arg(long, requires = "take_back")]
    pub(crate) yes: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Import {
    /// A file that `spinney export` wrote
    pub(crate) file: PathBuf,
}
