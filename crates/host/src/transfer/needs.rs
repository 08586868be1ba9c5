//! What a tree needs on the machine that continues it and no file can bring: keys of providers, folders and repositories of
//! the user, and the program that it was started for.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use spinney_journal::Journal;
use spinney_kernel::definition::FolderAccess;
use spinney_kernel::primitives::{FolderPath, HostRule, Seq, TreeId};
use spinney_kernel::record::Event;

use crate::exec::options::RunOptions;
use crate::exec::program::shown_program;
use crate::home::{side_journals, tree_copies};
use crate::trust::egress::{Egress, InputValues};

/// What a tree needs where it continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeNeed {
    /// A model sends these: variables to a host, for people.
    Sends(String),
    /// A program with its arguments, for people.
    Program(String),
    /// A folder of the user.
    Folder {
        /// What agents may do in it.
        access: FolderAccess,
        /// Where it was.
        path: FolderPath,
    },
    /// A repository that agents have working copies of. The copies do not move.
    Repository(FolderPath),
    /// A host that tools connect to.
    Host(HostRule),
}

impl fmt::Display for TreeNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sends(line) => write!(f, "{line}"),
            Self::Folder { access: FolderAccess::Read, path } => write!(f, "the folder {path}, to read"),
            Self::Repository(path) => {
                write!(f, "the repository {path}: agents there begin with new working copies")
            }
            Self::Folder { access: FolderAccess::Write, path } => {
                write!(f, "the folder {path}, to read and write")
            }
            Self::Host(rule) => write!(f, "connections to {rule}"),
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
    let mut needs = folders(journal, tree).await;
    let kept = tree_copies::read(home, journal, tree).await.ok();
    if let Some(called) = kept.and_then(|kept| kept.called) {
        let all = Egress::all(&called.file, &called.models, InputValues::Known);
        needs.extend(all.iter().map(|egress| TreeNeed::Sends(egress.line())));
    }
    needs
}

/// The folders, repositories and hosts that a tree was started with.
async fn folders(journal: &dyn Journal, tree: TreeId) -> Vec<TreeNeed> {
    let first = journal.read(tree, Seq(0), 1).await.unwrap_or_default();
    let first = first.into_iter().next().and_then(|entry| entry.batch.events.into_iter().next());
    let Some(Event::TreeStarted { definition, .. }) = first else { return Vec::new() };
    let all = definition.all_folders();
    let folders = all.iter().map(|(path, access)| TreeNeed::Folder { access, path: path.clone() });
    let copied = definition.roles.values().filter_map(|role| role.working_copy().cloned());
    let copied: BTreeSet<FolderPath> = copied.collect();
    let hosts = definition.all_hosts();
    let hosts = hosts.rules().cloned().map(TreeNeed::Host);
    folders.chain(copied.into_iter().map(TreeNeed::Repository)).chain(hosts).collect()
}
