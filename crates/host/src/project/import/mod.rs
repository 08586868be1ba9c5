//! Reads what a project says to other agent programs and makes a tree file of it: agents of Claude Code and Codex, the
//! instructions of `AGENTS.md` and `CLAUDE.md`, and servers of tools. Every line says where it came from. The project may be
//! a stranger's: sizes and counts have bounds, links are followed only inside it, nothing is started, and words that look
//! like keys are left out.

mod agent_files;
mod codex;
mod front_matter;
mod models;
mod servers;
mod source_files;
mod tools;
mod tree_text;

use std::io;
use std::path::{Path, PathBuf};

use spinney::tree_file::{FileErrors, TreeFile};
use spinney_drivers::prices::{PriceTable, PriceTableError};

use self::source_files::SourceFolder;
use crate::text_file::FileFault;

/// Most agents that are read.
const AGENTS_MAX: usize = 64;
/// Most servers that are read.
const SERVERS_MAX: usize = 32;
/// Most things that are listed as left out.
const LEFT_OUT_MAX: usize = 200;

/// Why nothing was made of a folder.
#[derive(Debug, thiserror::Error)]
pub enum ProjectImportError {
    /// It cannot be read.
    #[error("cannot read {}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The cause.
        #[source]
        why: io::Error,
    },
    /// A file of it cannot be read.
    #[error(transparent)]
    File(#[from] FileFault),
    /// There is nothing that is known.
    #[error(
        "{} has nothing to import: no .claude/agents, AGENTS.md, CLAUDE.md, .codex or .mcp.json",
        folder.display()
    )]
    Nothing {
        /// The folder.
        folder: PathBuf,
    },
    /// The price table of this program cannot be read.
    #[error(transparent)]
    Prices(#[from] PriceTableError),
    /// What was written is no tree file, which is a bug.
    #[error("the tree file that was made of {} is wrong: please report it", folder.display())]
    Wrong {
        /// The folder.
        folder: PathBuf,
        /// What is wrong.
        #[source]
        why: FileErrors,
    },
}

/// A tree file, and what is not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The text of the tree file, in YAML.
    pub tree: String,
    /// What could not be carried over.
    pub left_out: Vec<NotCarried>,
    /// How many agents were read.
    pub agents: usize,
    /// How many servers of tools were read.
    pub servers: usize,
}

/// Something that the tree file does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCarried {
    /// The file, with its line where that is known.
    pub from: String,
    /// What it is, and what to do about it.
    pub what: String,
}

/// An agent as a file describes it.
#[derive(Clone, Debug, Default)]
struct ImportedAgent {
    name: String,
    from: String,
    /// What it is for, with its place.
    description: Option<(String, String)>,
    prompt: String,
    prompt_from: String,
    /// The model that its file names, with its place.
    model: Option<(String, String)>,
    /// Tools of a tree file, each with its place.
    tools: Vec<(String, String)>,
}

/// A server of tools as a file describes it.
#[derive(Clone, Debug)]
struct ImportedServer {
    name: String,
    from: String,
    place: ImportedPlace,
}

/// Where a server is.
#[derive(Clone, Debug)]
enum ImportedPlace {
    /// A program, with the names of its variables.
    Command { command: String, args: Vec<String>, env: Vec<String> },
    /// Elsewhere.
    Url { url: String, host: String, auth: Option<ImportedKey> },
}

/// The variable that has the key of a server, and the header that it is sent in, if it is another one than usual.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ImportedKey {
    variable: String,
    header: Option<String>,
}

/// Everything that was read.
#[derive(Debug, Default)]
struct Found {
    agents: Vec<ImportedAgent>,
    servers: Vec<ImportedServer>,
    /// Instructions for every agent, each with its file.
    instructions: Vec<(String, String)>,
    /// The model of the program's main agent, with its place.
    model: Option<(String, String)>,
    left_out: Vec<NotCarried>,
}

impl Found {
    fn leave_out(&mut self, from: impl Into<String>, what: impl Into<String>) {
        if self.left_out.len() < LEFT_OUT_MAX {
            let (from, what) = (from.into(), what.into());
            let (from, what) = (tree_text::plain_line(&from), tree_text::plain_line(&what));
            self.left_out.push(NotCarried { from, what });
        }
    }
}

impl Import {
    /// Reads a folder. The tree file will be at `file`.
    ///
    /// # Errors
    /// If there is nothing to read, or it cannot be read.
    pub fn read(folder: &Path, file: &Path) -> Result<Self, ProjectImportError> {
        let source = SourceFolder::open(folder)?;
        let mut found = Found::default();
        source_files::instructions(&source, &mut found)?;
        agent_files::read(&source, &mut found)?;
        codex::read(&source, &mut found)?;
        servers::read(&source, &mut found)?;
        if found.agents.is_empty() && found.servers.is_empty() && found.instructions.is_empty() {
            return Err(ProjectImportError::Nothing { folder: folder.to_owned() });
        }
        let prices = PriceTable::embedded()?;
        let tree = tree_text::write(&mut found, &source, file, &prices);
        TreeFile::parse_whole("tree.yaml", &tree, &spinney::tree_file::NoCatalog)
            .map_err(|why| ProjectImportError::Wrong { folder: folder.to_owned(), why })?;
        let Found { agents, servers, left_out, .. } = found;
        Ok(Self { tree, left_out, agents: agents.len(), servers: servers.len() })
    }
}

#[cfg(test)]
mod tests;
