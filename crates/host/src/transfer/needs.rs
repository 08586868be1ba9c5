//! What a tree needs on the machine that continues it and no file can bring: keys of providers, repositories, and the program
//! that it was started for.

use std::fmt;
use std::path::Path;

use spinney_journal::Journal;
use spinney_kernel::primitives::{FolderPath, TreeId};

use crate::exec::options::RunOptions;
use crate::exec::program::shown_program;
use crate::home::{side_journals, tree_copies};
use crate::trust::boxes::BoxNeeds;
use crate::trust::egress::{Egress, InputValues};

/// What a tree needs where it continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeNeed {
    /// A model sends these: variables to a host, for people.
    Sends(String),
    /// A program with its arguments, for people.
    Program(String),
    /// A repository that agents have working copies of. The copies do not move.
    Repository(FolderPath),
}

impl fmt::Display for TreeNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sends(line) => write!(f, "{line}"),
            Self::Repository(path) => {
                write!(f, "the repository {path}: agents there begin with new working copies")
            }
            Self::Program(program) => write!(f, "the program `{program}`, and the files that it works on"),
        }
    }
}

/// What a tree needs. Of files that cannot be read it is unknown: resuming says why.
pub(super) async fn needs(home: &Path, journal: &dyn Journal, tree: TreeId) -> Vec<TreeNeed> {
    if side_journals::is_program(journal, tree).await.unwrap_or(false) {
        let options = RunOptions::read(home, journal, tree).await.ok();
        let program = options.and_then(|options| options.program().ok());
        return program.map(|program| TreeNeed::Program(shown_program(&program))).into_iter().collect();
    }
    let boxes = BoxNeeds::of_stored(journal, tree).await.unwrap_or_default();
    let repositories = boxes.repositories().cloned().map(TreeNeed::Repository);
    let called = tree_copies::read(home, journal, tree).await.ok().and_then(|kept| kept.called);
    let all = called.map(|called| Egress::all(&called.file, &called.models, InputValues::Known));
    let sent = all.unwrap_or_default();
    sent.iter().map(|egress| TreeNeed::Sends(egress.line())).chain(repositories).collect()
}
