//! Folders of the user that a file names for its tree, its agents and its servers. They are texts until the caller has resolved them:
//! only it knows the file's folder, the user and what is on the disk. Until then agents have none of them.

use std::collections::BTreeMap;

use spinney_kernel::definition::{Definition, FolderAccess, FolderGrants};
use spinney_kernel::primitives::{FolderPath, RoleName, ServerName, limit};

use super::TreeFile;
use super::definition::Reader;
use super::error::FileError;
use super::node::Step;
use super::reach::step_roles;

/// The lists of a tree or an agent, as they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WrittenFolders {
    read: Vec<String>,
    write: Vec<String>,
}

/// Who has a list of folders.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FolderOwner {
    Tree,
    Role(RoleName),
    Server(ServerName),
}

pub(super) type FolderLists = BTreeMap<FolderOwner, WrittenFolders>;

impl WrittenFolders {
    /// `None` if neither list is there. An empty list says that there are none.
    fn new(read: Option<&Vec<String>>, write: Option<&Vec<String>>) -> Option<Self> {
        let list = |texts: Option<&Vec<String>>| texts.cloned().unwrap_or_default();
        (read.is_some() || write.is_some()).then(|| Self { read: list(read), write: list(write) })
    }

    fn lists(&self) -> [(FolderAccess, &[String]); 2] {
        [(FolderAccess::Read, &self.read), (FolderAccess::Write, &self.write)]
    }
}

impl Reader<'_> {
    /// All lists of the file, each within its bounds.
    pub(super) fn folders(&self) -> FolderLists {
        let keys = self.keys;
        let of_tree = WrittenFolders::new(keys.read.as_ref(), keys.write.as_ref());
        let of_roles = keys.agents.iter().filter_map(|(role, agent)| {
            let owner = FolderOwner::Role(role.clone());
            Some((owner, WrittenFolders::new(agent.read.as_ref(), agent.write.as_ref())?))
        });
        let of_servers = keys.mcp.iter().map(|(server, keys)| {
            let (read, write) = (keys.read.clone(), keys.write.clone());
            (FolderOwner::Server(server.clone()), WrittenFolders { read, write })
        });
        let of_tree = of_tree.map(|lists| (FolderOwner::Tree, lists));
        let all: FolderLists = of_tree.into_iter().chain(of_roles).chain(of_servers).collect();
        for (owner, written) in &all {
            let count = written.lists().iter().map(|(_, texts)| texts.len()).sum::<usize>();
            let at = place(owner);
            if count > limit::FOLDERS_MAX {
                let message = format!("{count} folders are more than {}", limit::FOLDERS_MAX);
                let key = if written.write.is_empty() { "read" } else { "write" };
                self.note(self.wrong(&with(&at, &[Step::Key(key)]), message));
            }
            for (access, texts) in written.lists() {
                for (index, text) in texts.iter().enumerate() {
                    let path = with(&at, &[Step::Key(access.as_str()), Step::Item(index)]);
                    self.noted(self.said(&path, text, limit::FOLDER_PATH_BYTES_MAX));
                }
            }
        }
        all
    }
}

impl TreeFile {
    /// What has a list has nothing before it is resolved, and nothing of its parent's.
    pub(super) fn without_folders(mut self) -> Self {
        self.resolve_folders(&|_, _| Err(String::new()));
        self
    }

    /// Gives the tree and its agents the folders that the file names, each as `resolve` says. One that cannot be resolved is
    /// not given, and its error is at its place.
    pub fn resolve_folders(
        &mut self,
        resolve: &dyn Fn(&str, FolderAccess) -> Result<FolderPath, String>,
    ) -> Vec<FileError> {
        let mut errors = Vec::new();
        for (owner, written) in &self.folders {
            let mut grants = FolderGrants::default();
            for (access, texts) in written.lists() {
                for (index, text) in texts.iter().enumerate() {
                    match resolve(text, access) {
                        Ok(path) => grants.add(path, access),
                        Err(reason) => {
                            let at = place(owner);
                            let path = with(&at, &[Step::Key(access.as_str()), Step::Item(index)]);
                            errors.push(FileError::new(&self.file, self.root.place_of(&path), reason));
                        }
                    }
                }
            }
            match owner {
                FolderOwner::Tree => self.definition.folders = Some(grants),
                FolderOwner::Role(role) => {
                    if let Some(role) = self.definition.roles.get_mut(role) {
                        role.caps.folders = Some(grants);
                    }
                }
                FolderOwner::Server(server) => {
                    if let Some(server) = self.definition.servers.get_mut(server) {
                        server.folders = grants;
                    }
                }
            }
        }
        errors
    }
}

impl TreeFile {
    /// Roles of a pipeline's steps that list more than the tree has: the tree itself is what starts them.
    pub(super) fn folders_beyond(&self, definition: &Definition) -> Vec<FileError> {
        let Some(graph) = definition.graph.as_deref() else { return Vec::new() };
        let of_tree = definition.folders.clone().unwrap_or_default();
        let beyond = step_roles(graph).into_iter().filter_map(|name| {
            let folders = definition.roles.get(name)?.caps.folders.as_ref()?.beyond(&of_tree);
            let (_, access) = folders.iter().next()?;
            let message = format!("a step of `{name}` can never be started: the tree may not {folders}");
            let at = [Step::Key("agents"), Step::Key(name.as_str()), Step::Key(access.as_str())];
            let error = FileError::new(&self.file, self.root.place_of_key(&at), message);
            Some(error.with_help("also list it at the top of the file"))
        });
        beyond.collect()
    }
}

/// Where the lists of an owner are.
fn place(owner: &FolderOwner) -> Vec<Step<'_>> {
    match owner {
        FolderOwner::Tree => Vec::new(),
        FolderOwner::Role(role) => vec![Step::Key("agents"), Step::Key(role.as_str())],
        FolderOwner::Server(server) => vec![Step::Key("mcp"), Step::Key(server.as_str())],
    }
}

fn with<'a>(path: &[Step<'a>], more: &[Step<'a>]) -> Vec<Step<'a>> {
    [path, more].concat()
}
